"""Agents of LangChain with scripted models, for the tests of its adapter."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain_core.messages import BaseMessage
from langchain_core.tools import StructuredTool
from tests.capture import travel

from memlineage.testing.langchain import ScriptedChatModel, calling

QUIET = ToolRetryMiddleware(max_retries=0, on_failure="continue")
"""A tool that fails does not end the run: the model is told."""


def tools(*functions: Any) -> list[StructuredTool]:
    return [StructuredTool.from_function(function) for function in functions]


def planner_script() -> list[Any]:
    return [calling("", *travel.FIRST_CALLS), calling(travel.AGAIN, *travel.SECOND_CALLS), travel.ANSWER]


def planner(*middleware: AgentMiddleware[Any, Any, Any], asynchronous: bool = False, **options: Any) -> Any:
    """The agent of the travel task; its expert has the same middleware."""
    trip = travel.Trip()
    expert = create_agent(
        ScriptedChatModel([calling("", *travel.EXPERT_CALLS), travel.UMBRELLA]), tools(trip.forecast),
        middleware=middleware, name=travel.EXPERT,
    )  # fmt: skip

    def ask_weather(question: str) -> str:
        """Ask an expert."""
        return str(expert.invoke({"messages": [("user", question)]})["messages"][-1].text)

    async def ask_weather_async(question: str) -> str:
        answer = await expert.ainvoke({"messages": [("user", question)]})
        return str(answer["messages"][-1].text)

    ask = StructuredTool.from_function(ask_weather, ask_weather_async if asynchronous else None)
    return create_agent(
        ScriptedChatModel(planner_script()), [*tools(trip.search_flights, trip.search_hotels), ask],
        middleware=[*middleware, QUIET], name=travel.PLANNER, **options,
    )  # fmt: skip


def asked(text: str = travel.ASKED) -> Any:
    return {"messages": [("user", text)]}


def booking(*middleware: AgentMiddleware[Any, Any, Any], **options: Any) -> tuple[Any, travel.Desk, ScriptedChatModel]:
    """An agent that reads a poisoned page, and books what it says; then what the user said."""
    desk = travel.Desk()
    model = ScriptedChatModel(
        [
            calling("", ("call_web", "read_web", {"url": "cheap.example"})),
            calling("", travel.POISONED_CALL),
            calling("", travel.HONEST_CALL),
            "Booked.",
        ]
    )
    agent = create_agent(
        model, tools(travel.read_web, desk.book_flight), middleware=[*middleware, QUIET], name="planner", **options
    )
    return agent, desk, model


def last_of(prompt: list[BaseMessage]) -> str:
    return str(prompt[-1].text)
