"""Scripted models for agents of the OpenAI Agents SDK, and the travel task told with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from tests.capture import travel

Asked = tuple[str, str, dict[str, Any]]

_IDS = count(1)


@dataclass
class Question:
    question: str


def says(text: str = "", *asked: Asked) -> list[Any]:
    """One answer of a model: words, then calls."""
    words = [assistant_message(text, item_id=f"msg_{next(_IDS)}")] if text else []
    return [*words, *(function_call(name, arguments, call_id=id) for id, name, arguments in asked)]


def scripted(name: str, *answers: Sequence[Any], **options: Any) -> Agent[Any]:
    """An agent whose model gives these answers."""
    return Agent(name=name, model=ScriptedModel([list(answer) for answer in answers]), **options)


def prompts(agent: Agent[Any]) -> list[Any]:
    """What its model was shown, call by call."""
    assert isinstance(agent.model, ScriptedModel)
    return [call.input for call in agent.model.calls]


def expert(trip: travel.Trip) -> Agent[Any]:
    return scripted(
        travel.EXPERT, says("", *travel.EXPERT_CALLS), says(travel.UMBRELLA), tools=[function_tool(trip.forecast)]
    )


def planner(*, asking: Mapping[str, Any] | None = None, **options: Any) -> Agent[Any]:
    """The agent of the travel task; `asking` is how it asks its sub-agent."""
    trip = travel.Trip()
    ask = expert(trip).as_tool(
        "ask_weather", "Ask about the weather", parameters=Question,
        input_builder=lambda given: given["params"]["question"], **(asking or {}),
    )  # fmt: skip
    return scripted(
        travel.PLANNER,
        says("", *travel.FIRST_CALLS),
        says(travel.AGAIN, *travel.SECOND_CALLS),
        says(travel.ANSWER),
        tools=[function_tool(trip.search_flights), function_tool(trip.search_hotels), ask],
        **options,
    )
