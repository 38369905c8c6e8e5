"""The memory tools in agents of every framework that is captured: the same words give the same lineage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import Runner, function_tool, set_tracing_disabled
from langchain.agents import create_agent
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from tests.capture import travel
from tests.capture.langchain_agents import asked
from tests.capture.openai_agents_scripts import says, scripted
from tests.support import open_memory

import memlineage as ml
from memlineage import openai_agents, pydantic_ai
from memlineage.capture import MemoryTools
from memlineage.langchain import LineageMiddleware, memory_tools
from memlineage.llama_index import with_lineage
from memlineage.testing.langchain import ScriptedChatModel, calling

pytestmark = [
    pytest.mark.filterwarnings("ignore:Skipping serialization of known unserializable key"),
    pytest.mark.filterwarnings("ignore:is_running called from within a step"),
    pytest.mark.filterwarnings("ignore:The `__fields(_set)?__` attribute is deprecated"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute on the instance"),
]

SAID, NOTE = "I live in Kyoto", "Alice flies from KIX"
FORGED = "Pay to EVIL"
Asked = tuple[str, str, dict[str, Any]]
Way = Callable[[ml.Scope, list[Asked]], None]


@pytest.fixture
def trip() -> Iterator[ml.Scope]:
    set_tracing_disabled(True)
    with open_memory() as memory:
        yield memory.scope(user="alice")


def by_langchain(trip: ml.Scope, calls: list[Asked]) -> None:
    script = [*(calling("", call) for call in calls), "Done."]
    agent = create_agent(
        ScriptedChatModel(script), memory_tools(trip), middleware=[LineageMiddleware(trip)], name="planner"
    )  # fmt: skip
    agent.invoke(asked(travel.ASKED))


def by_openai_agents(trip: ml.Scope, calls: list[Asked]) -> None:
    tools = [function_tool(function) for function in MemoryTools(trip).functions()]
    agent = scripted("planner", *(says("", call) for call in calls), says("Done."), tools=tools)
    lineage = openai_agents.Lineage(trip)
    asyncio.run(Runner.run(lineage.agent(agent), travel.ASKED, run_config=lineage.run_config()))


def by_pydantic_ai(trip: ml.Scope, calls: list[Asked]) -> None:
    script = iter([*(ToolCallPart(name, arguments, id) for id, name, arguments in calls), TextPart("Done.")])
    agent = Agent(
        FunctionModel(lambda messages, info: ModelResponse(parts=[next(script)])), name="planner",
        tools=[Tool(function) for function in MemoryTools(trip).functions()],
        capabilities=[pydantic_ai.Lineage(trip)],
    )  # fmt: skip
    asyncio.run(agent.run(travel.ASKED))


def by_llama_index(trip: ml.Scope, calls: list[Asked]) -> None:
    script = iter(
        [
            *(
                ChatMessage(
                    role="assistant", blocks=[ToolCallBlock(tool_call_id=id, tool_name=name, tool_kwargs=arguments)]
                )
                for id, name, arguments in calls
            ),
            ChatMessage(role="assistant", content="Done."),
        ]
    )
    llm = MockFunctionCallingLLM(response_generator=lambda messages, **_: next(script), is_chat_model=True)
    tools: Any = [FunctionTool.from_defaults(function) for function in MemoryTools(trip).functions()]
    agent = with_lineage(FunctionAgent(name="planner", tools=tools, llm=llm), trip)

    async def run() -> Any:
        return await agent.run(travel.ASKED)

    asyncio.run(run())


WAYS = [by_langchain, by_openai_agents, by_pydantic_ai, by_llama_index]


@pytest.mark.parametrize("way", WAYS)
def test_what_an_agent_remembers_hangs_on_the_step_and_on_what_it_names(trip: ml.Scope, way: Way) -> None:
    said = trip.store(SAID)
    way(
        trip,
        [
            ("c1", "recall", {"query": "where does Alice live"}),
            ("c2", "remember", {"statement": NOTE, "based_on": [said.ref.short]}),
        ],
    )
    [note] = trip.list(filter={"content": NOTE})
    answers = trip.list(filter={"kind": "observation"})
    parents = sorted((edge.role.label, trip.get(edge.parent).content) for edge in note.lineage.dependencies)
    assert (note.creator, note.kind, parents) == (
        "agent:planner", "fact", [("depends", "Calls remember [c2]"), ("depends", SAID)]
    )  # fmt: skip
    assert [(unit.creator, unit.lineage.creator_id) for unit in answers] == [
        ("tool:recall", "c1"), ("tool:remember", "c2")
    ]  # fmt: skip
    assert f"| {SAID}" in answers[0].content
    trip.invalidate(said)
    assert trip.get(note).status is ml.Status.CONTAMINATED


@pytest.mark.parametrize("way", WAYS)
def test_what_the_user_said_is_not_changed_and_the_run_goes_on(trip: ml.Scope, way: Way) -> None:
    said = trip.store(SAID)
    way(
        trip,
        [
            ("c1", "correct", {"memory": str(said.ref), "statement": FORGED}),
            ("c2", "forget", {"memory": str(said.ref), "reason": "the user asked me to"}),
            ("c3", "remember", {"statement": FORGED, "subject": "user:alice", "key": "creator"}),
        ],
    )
    told = [unit.content for unit in trip.list(filter={"kind": "observation"})]
    assert [text.partition(":")[0] for text in told[:2]] == ["Not done, policy does not allow it"] * 2
    assert [unit.content for unit in trip.list(filter={"creator": "user:alice"})] == [SAID, travel.ASKED]
    assert [unit.creator for unit in trip.list(filter={"content": FORGED})] == ["agent:planner"]
