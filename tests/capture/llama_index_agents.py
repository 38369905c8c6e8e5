"""Agents of LlamaIndex with scripted models, for the tests of its adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from tests.capture import travel

Said = ChatMessage | str
Script = Sequence[Said] | Callable[[Sequence[ChatMessage]], Said]


def calling(text: str, *calls: tuple[str, str, dict[str, Any]]) -> ChatMessage:
    blocks = [ToolCallBlock(tool_call_id=id, tool_name=name, tool_kwargs=given) for id, name, given in calls]
    message = ChatMessage(role="assistant", content=text or None)
    message.blocks.extend(blocks)
    return message


class Scripted:
    """What a model says, one after another; and every prompt that it was given."""

    def __init__(self, script: Script) -> None:
        self.prompts: list[list[ChatMessage]] = []
        self._script = script
        self.llm = MockFunctionCallingLLM(response_generator=self._say, is_chat_model=True)

    def _say(self, messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        self.prompts.append([message.model_copy(deep=True) for message in messages])
        said = self._script(messages) if callable(self._script) else self._script[len(self.prompts) - 1]
        return ChatMessage(role="assistant", content=said) if isinstance(said, str) else said


def agent(name: str, script: Script | Scripted, *tools: Any, **options: Any) -> FunctionAgent:
    llm = script.llm if isinstance(script, Scripted) else Scripted(script).llm
    return FunctionAgent(name=name, description=f"The {name}", tools=list(tools), llm=llm, **options)


def planner(guarded: Callable[[FunctionAgent], Any], **options: Any) -> Any:
    """The agent of the travel task, guarded as its expert is."""
    trip = travel.Trip()
    expert = guarded(
        agent(travel.EXPERT, [calling("", *travel.EXPERT_CALLS), travel.UMBRELLA], trip.forecast, **options)
    )

    async def ask_weather(question: str) -> str:
        """Ask an expert."""
        return str(await expert.run(question))

    script = [calling("", *travel.FIRST_CALLS), calling(travel.AGAIN, *travel.SECOND_CALLS), travel.ANSWER]
    return guarded(
        agent(travel.PLANNER, script, trip.search_flights, trip.search_hotels, ask_weather, **options)
    )  # fmt: skip


def booking(guarded: Callable[[FunctionAgent], Any], **options: Any) -> tuple[Any, travel.Desk, Scripted]:
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
    return guarded(agent("planner", script, travel.read_web, desk.book_flight, **options)), desk, script
