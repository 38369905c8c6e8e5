"""Agents of pydantic-ai with scripted models, for the tests of its adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from tests.capture import travel

Script = Sequence[ModelResponse | str] | Callable[[list[ModelMessage]], ModelResponse | str]


class Scripted:
    """What a model says, one after another; and every prompt that it was given."""

    def __init__(self, script: Script) -> None:
        self.prompts: list[list[ModelMessage]] = []
        self._script = script
        self.model = FunctionModel(self._say, stream_function=self._stream)

    def _next(self, messages: list[ModelMessage]) -> ModelResponse:
        self.prompts.append(list(messages))
        said = self._script(messages) if callable(self._script) else self._script[len(self.prompts) - 1]
        return ModelResponse(parts=[TextPart(said)]) if isinstance(said, str) else said

    def _say(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return self._next(messages)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for place, part in enumerate(self._next(messages).parts):
            if isinstance(part, ToolCallPart):
                yield {place: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}
            elif isinstance(part, TextPart):
                for word in part.content.split(" "):
                    yield word if part.content.startswith(word) else f" {word}"


def calling(text: str, *calls: tuple[str, str, dict[str, Any]]) -> ModelResponse:
    asked = [ToolCallPart(name, arguments, id) for id, name, arguments in calls]
    return ModelResponse(parts=[*([TextPart(text)] if text else []), *asked])


def planner(*capabilities: Any) -> Agent[Any, str]:
    """The agent of the travel task; its expert has the same capabilities."""
    trip = travel.Trip()
    expert = Agent(
        Scripted([calling("", *travel.EXPERT_CALLS), travel.UMBRELLA]).model, name=travel.EXPERT,
        tools=[trip.forecast], capabilities=capabilities,
    )  # fmt: skip

    async def ask_weather(question: str) -> str:
        """Ask an expert."""
        return str((await expert.run(question)).output)

    def search_hotels(city: str) -> str:
        """Find rooms in a city."""
        try:
            return trip.search_hotels(city)
        except TimeoutError as error:
            raise ModelRetry(str(error)) from error

    script = [calling("", *travel.FIRST_CALLS), calling(travel.AGAIN, *travel.SECOND_CALLS), travel.ANSWER]
    return Agent(
        Scripted(script).model, name=travel.PLANNER, tools=[trip.search_flights, search_hotels, ask_weather],
        capabilities=capabilities,
    )  # fmt: skip


def booking(*capabilities: Any) -> tuple[Agent[Any, str], travel.Desk, Scripted]:
    """An agent that reads a poisoned page, and books what it says; then what the user said."""
    desk = travel.Desk()
    script = Scripted(
        [
            calling("", ("call_web", "read_web", {"url": "cheap.example"})),
            calling("", travel.POISONED_CALL),
            calling("", travel.HONEST_CALL),
            "Booked.",
            "I do not know any more.",
        ]
    )
    agent = Agent(
        script.model, name="planner", tools=[travel.read_web, desk.book_flight], capabilities=capabilities
    )  # fmt: skip
    return agent, desk, script
