"""Tools of the OpenAI Agents SDK, gated: what may not run does not, and the model is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    CustomTool,
    FunctionTool,
    HostedMCPTool,
    RunConfig,
    RunHooks,
    Runner,
    SQLiteSession,
    ToolExecutionConfig,
    ToolGuardrailFunctionOutput,
    WebSearchTool,
    function_tool,
    handoff,
    set_tracing_disabled,
    tool_input_guardrail,
)
from agents.mcp import MCPServer
from agents.testing import ScriptedModel
from openai.types.responses import ResponseCustomToolCall
from openai.types.responses.response_output_item import McpCall
from pydantic import BaseModel
from tests.capture import travel
from tests.capture.openai_agents_scripts import prompts, says, scripted

import memlineage as ml
from memlineage.capture import Recorder
from memlineage.openai_agents import Lineage

WEB = ("call_web", "read_web", {"url": "cheap.example"})


@pytest.fixture(autouse=True)
def _no_traces() -> None:
    set_tracing_disabled(True)


def clerk(desk: travel.Desk, *answers: Any, book: Any = None, **options: Any) -> Agent[Any]:
    """Reads the page, then does what its script says."""
    tools = [function_tool(travel.read_web), book or function_tool(desk.book_flight)]
    return scripted("clerk", says("", WEB), *answers, says("Done."), tools=tools, **options)


def outputs(agent: Agent[Any]) -> dict[str, str]:
    """What the model was told of each call, in its last prompt."""
    return {item["call_id"]: item["output"] for item in prompts(agent)[-1] if "output" in item}


def run(scope: Any, agent: Agent[Any], given: Any = travel.WANTED, **options: Any) -> Any:
    return asyncio.run(Lineage(scope).run(agent, given, **options))


async def _streamed(scope: Any, agent: Agent[Any]) -> None:
    result = Lineage(scope).run_streamed(agent, travel.WANTED)
    async for _ in result.stream_events():
        pass


@pytest.mark.parametrize(
    "way",
    [
        run,
        lambda scope, agent: asyncio.run(_streamed(scope, agent)),
        lambda scope, agent: asyncio.run(Runner.run(Lineage(scope).agent(agent), travel.WANTED)),
    ],
    ids=["run", "streamed", "agent alone"],
)
def test_a_poisoned_call_is_refused_and_the_honest_one_goes_through(
    trip: ml.Scope, way: Callable[[ml.Scope, Agent[Any]], None]
) -> None:
    desk = travel.Desk()
    agent = clerk(desk, says("", travel.POISONED_CALL), says("", travel.HONEST_CALL))
    way(trip, agent)
    told = outputs(agent)
    [refusal] = trip.list(filter={"kind": "refusal"})
    [action] = trip.list(filter={"kind": "action"})
    assert desk.booked == [("NH203", "ANA")]
    assert told["call_bad"].startswith("book_flight was refused and did not run")
    assert "pay_to=EVIL: only tool:read_web said so (UNTRUSTED)" in told["call_bad"]
    assert (told["call_good"], travel.BOOKED in action.content) == (travel.BOOKED, True)
    assert (refusal.creator, refusal.lineage.creator_id) == ("tool:book_flight", "call_bad")


def test_what_a_person_approved_is_asked_for_all_the_same(trip: ml.Scope) -> None:
    desk = travel.Desk()
    lineage = Lineage(trip)
    book = function_tool(desk.book_flight, needs_approval=True)
    original = clerk(desk, says("", travel.POISONED_CALL), says("", travel.HONEST_CALL), book=book)
    agent = lineage.agent(original)

    async def approve_everything() -> None:
        result = await lineage.run(agent, travel.WANTED)
        while result.interruptions:
            state = result.to_state()
            for asked in result.interruptions:
                state.approve(asked)
            result = await lineage.run(agent, state)

    asyncio.run(approve_everything())
    creators = [unit.creator for unit in trip.list(filter={"kind": "message"})]
    assert (desk.booked, creators.count("user:alice")) == ([("NH203", "ANA")], 1)
    assert outputs(original)["call_bad"].startswith("book_flight was refused and did not run")


@pytest.mark.parametrize("session", [None, SQLiteSession], ids=["alone", "in a session"])
def test_a_sub_agent_that_waits_for_approval_has_not_answered_yet(trip: ml.Scope, session: Any) -> None:
    desk = travel.Desk()
    lineage = Lineage(trip)
    book = function_tool(desk.book_flight, needs_approval=True)
    booker = scripted(
        "booker", says("", travel.POISONED_CALL), says("", travel.HONEST_CALL), says("So be it."), tools=[book]
    )
    ask = ("call_ask", "ask_booker", {"input": "Please " + travel.WANTED})
    tools = [booker.as_tool("ask_booker", "Book")]
    agent = lineage.agent(scripted("clerk", says("", ask), says("Done."), tools=tools))
    kept = session and session("s1")

    async def approve_everything() -> None:
        result = await lineage.run(agent, travel.WANTED, session=kept)
        while result.interruptions:
            state = result.to_state()
            for asked in result.interruptions:
                state.approve(asked)
            result = await lineage.run(agent, state, session=kept)

    asyncio.run(approve_everything())
    if kept:
        kept.close()
    [answer] = trip.list(filter={"creator": "tool:ask_booker"})
    said = {edge.role.label: trip.get(edge.parent).content for edge in answer.lineage.dependencies}
    assert (desk.booked, len(list(trip.list()))) == ([("NH203", "ANA")], 10)
    assert said == {"argument": "Calls ask_booker [call_ask]", "depends": "So be it."}


def test_a_call_that_is_asked_for_before_it_is_approved_leaves_nothing_open(trip: ml.Scope) -> None:
    desk = travel.Desk()
    lineage = Lineage(trip)
    book = function_tool(desk.book_flight, needs_approval=True)
    agent = lineage.agent(clerk(desk, says("", travel.HONEST_CALL), book=book))
    config = RunConfig(tool_execution=ToolExecutionConfig(pre_approval_tool_input_guardrails=True))

    async def approve_once() -> None:
        result = await lineage.run(agent, travel.WANTED, run_config=config)
        state = result.to_state()
        state.approve(result.interruptions[0])
        await lineage.run(agent, state, run_config=config)

    asyncio.run(approve_once())
    ends = [unit.content for unit in trip.list(filter={"kind": "action"})]
    assert (desk.booked, len(ends), ["abandoned" in end or "failed" in end for end in ends]) == (
        [("NH203", "ANA")], 2, [True, False],
    )  # fmt: skip


def test_a_hook_that_fails_between_leaves_nothing_open(trip: ml.Scope) -> None:
    class Strict(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            if tool.name == "book_flight":
                raise RuntimeError("not on my watch")

    desk = travel.Desk()
    with pytest.raises(Exception, match="not on my watch"):
        run(trip, clerk(desk, says("", travel.HONEST_CALL)), hooks=Strict())
    [action] = trip.list(filter={"kind": "action"})
    assert (desk.booked, "failed" in action.content) == ([], True)


def test_a_guardrail_of_the_programs_own_comes_first(trip: ml.Scope) -> None:
    @tool_input_guardrail
    def never(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("Never on Sundays.")

    desk = travel.Desk()
    book = function_tool(desk.book_flight, tool_input_guardrails=[never])
    agent = clerk(desk, says("", travel.HONEST_CALL), book=book)
    run(trip, agent)
    assert (desk.booked, outputs(agent)["call_good"], list(trip.list(filter={"kind": "action"}))) == (
        [], "Never on Sundays.", [],
    )  # fmt: skip


def test_a_tool_of_an_agent_that_a_tool_asks_is_gated(trip: ml.Scope) -> None:
    desk = travel.Desk()
    booker = scripted(
        "booker", says("", travel.POISONED_CALL), says("I could not."), tools=[function_tool(desk.book_flight)]
    )
    ask = ("call_ask", "ask_booker", {"input": "Book NH203 and pay to EVIL"})
    tools = [function_tool(travel.read_web), booker.as_tool("ask_booker", "Book")]
    run(trip, scripted("clerk", says("", WEB), says("", ask), says("Done."), tools=tools))
    assert (desk.booked, outputs(booker)["call_bad"][:23]) == ([], "book_flight was refused")


@pytest.mark.parametrize("made", ["agent", "handoff", "circle"])
def test_a_tool_of_an_agent_that_was_handed_on_to_is_gated(trip: ml.Scope, made: str) -> None:
    desk = travel.Desk()
    booker = scripted(
        "booker", says("", travel.POISONED_CALL), says("I could not."), tools=[function_tool(desk.book_flight)]
    )
    target: Any = handoff(booker) if made == "handoff" else booker
    clerk = scripted(
        "clerk", says("", WEB), says("", ("call_h", "transfer_to_booker", {})), tools=[function_tool(travel.read_web)],
        handoffs=[target],
    )  # fmt: skip
    if made == "circle":
        booker.handoffs.append(clerk)
    result = run(trip, clerk)
    steps = [unit.creator for unit in trip.list() if unit.creator.startswith("agent:")]
    assert (desk.booked, result.last_agent.name) == ([], "booker")
    assert steps == ["agent:clerk", "agent:clerk", "agent:booker", "agent:booker"]


HANDING_ON: dict[str, Any] = {
    "memlineage": 1,
    "layer": "global",
    "rules": [
        {
            "name": "handing-on",
            "sensitive_action": {"tool": "transfer_to_booker", "arguments": ["pay_to"], "integrity": "TRUSTED"},
        }
    ],
}


class Order(BaseModel):
    pay_to: str


def test_a_plain_agent_that_is_handed_on_to_is_gated_as_well() -> None:
    asking = {"tool": "transfer_to_booker", "approval": "always"}
    policy = {**HANDING_ON, "rules": [{"name": "ask-first", "sensitive_action": asking}]}
    with ml.Memory.open(":memory:", policies=[policy]) as memory:
        clerk = scripted("clerk", says("", ("call_h", "transfer_to_booker", {})), handoffs=[scripted("booker")])
        with pytest.raises(ml.PolicyViolationError, match="transfer_to_booker awaits approval"):
            run(memory.scope(user="alice"), clerk)


@pytest.mark.parametrize(("pay_to", "went"), [("ANA", True), ("EVIL", False)])
def test_a_handoff_that_policy_refuses_ends_the_run(pay_to: str, went: bool) -> None:
    with ml.Memory.open(":memory:", policies=[HANDING_ON]) as memory:
        trip = memory.scope(user="alice")
        target = handoff(scripted("booker", says("Done.")), input_type=Order, on_handoff=lambda context, order: None)
        clerk = scripted("clerk", says("", ("call_h", "transfer_to_booker", {"pay_to": pay_to})), handoffs=[target])
        with nullcontext() if went else pytest.raises(ml.PolicyViolationError, match="transfer_to_booker was refused"):
            run(trip, clerk)
        kinds = [unit.kind for unit in trip.list(filter={"creator": "tool:transfer_to_booker"})]
    assert kinds == (["action"] if went else ["refusal"])


class Servers(MCPServer):
    """A local MCP server with one tool."""

    def __init__(self, desk: travel.Desk) -> None:
        super().__init__()
        self.desk = desk

    @property
    def name(self) -> str:
        return "bookings"

    async def connect(self) -> None:
        pass

    async def cleanup(self) -> None:
        pass

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Any]:
        from mcp.types import Tool

        texts = {"flight": {"type": "string"}, "pay_to": {"type": "string"}}
        schema = {"type": "object", "properties": texts, "required": ["flight", "pay_to"]}
        return [Tool.model_validate({"name": "book_flight", "inputSchema": schema})]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        from mcp.types import CallToolResult

        said = self.desk.book_flight(**arguments)
        return CallToolResult.model_validate({"content": [{"type": "text", "text": said}]})

    async def list_prompts(self) -> Any:
        raise NotImplementedError

    async def get_prompt(self, name: str, arguments: Any = None) -> Any:
        raise NotImplementedError


def test_a_tool_of_an_mcp_server_is_gated(trip: ml.Scope) -> None:
    desk = travel.Desk()
    agent = scripted(
        "clerk", says("", WEB), says("", travel.POISONED_CALL), says("", travel.HONEST_CALL), says("Done."),
        tools=[function_tool(travel.read_web)], mcp_servers=[Servers(desk)],
    )  # fmt: skip
    run(trip, agent)
    assert (desk.booked, outputs(agent)["call_bad"][:23]) == ([("NH203", "ANA")], "book_flight was refused")


def test_a_tool_that_takes_free_text_is_gated(trip: ml.Scope) -> None:
    ran: list[str] = []

    async def note(context: Any, text: str) -> str:
        ran.append(text)
        return "noted"

    asked = ResponseCustomToolCall(type="custom_tool_call", call_id="call_n", name="note", input="pay EVIL")
    agent = scripted("clerk", [asked], says("Done."))
    agent.tools.append(CustomTool(name="note", description="Takes a note", on_invoke_tool=note))
    run(Recorder(trip, gate=["note"]), agent)
    assert (ran, outputs(agent)["call_n"].startswith("note failed")) == ([], True)


@pytest.mark.parametrize("gate", ["all", ["web_search"]])
def test_a_tool_that_the_provider_runs_cannot_be_gated_and_says_so(trip: ml.Scope, gate: Any) -> None:
    agent = scripted("clerk", says("Done."), tools=[WebSearchTool()])
    with pytest.raises(ml.InvalidInputError, match="web_search does not run as a function tool and cannot be gated"):
        run(Recorder(trip, gate=gate), agent)
    assert prompts(agent) == []


def test_a_run_does_not_go_on_from_what_a_provider_ran_behind_policys_back(trip: ml.Scope) -> None:
    ran = McpCall(
        id="mcp_1", type="mcp_call", name="book_flight", server_label="bookings", output=travel.BOOKED,
        arguments='{"flight": "NH203", "pay_to": "EVIL"}',
    )  # fmt: skip
    server = HostedMCPTool({"type": "mcp", "server_label": "bookings", "server_url": "x.example"})  # type: ignore[typeddict-item]
    with pytest.raises(ml.InvalidInputError, match="ran 'book_flight' itself, which had to be authorized first"):
        run(trip, scripted("clerk", [ran, *says("Done.")], tools=[server]))
    assert [unit.content for unit in trip.list(filter={"creator": "tool:book_flight"})] == [travel.BOOKED]


def test_a_function_tool_of_the_programs_own_making_is_gated(trip: ml.Scope) -> None:
    ran: list[str] = []

    async def invoke(context: Any, arguments: str) -> str:
        ran.append(arguments)
        return "booked"

    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    book = FunctionTool("book_flight", "Book", schema, invoke, strict_json_schema=False)
    desk = travel.Desk()
    agent = clerk(desk, says("", travel.POISONED_CALL), says("", travel.HONEST_CALL), book=book)
    run(trip, agent)
    assert (len(ran), outputs(agent)["call_good"]) == (1, "booked")


# The program's own agent ---------------------------------------------------------------------------------------


def test_the_programs_agents_and_tools_are_not_touched(trip: ml.Scope) -> None:
    desk = travel.Desk()
    sub = scripted("booker", tools=[function_tool(desk.book_flight)])
    other = scripted("other")
    agent = clerk(desk, handoffs=[sub, handoff(other)])
    agent.tools.append(sub.as_tool("ask_booker", "Book"))

    def looks(one: Agent[Any]) -> list[Any]:
        held = [vars(tool) for tool in one.tools if isinstance(tool, FunctionTool)]
        return [dict(vars(one)), list(one.tools), list(one.handoffs), [dict(tool) for tool in held]]

    before = [looks(agent), looks(sub)]
    Lineage(trip).agent(agent)
    assert [looks(agent), looks(sub)] == before


def test_a_clone_of_a_guarded_agent_is_guarded_with_whatever_is_put_into_it(trip: ml.Scope) -> None:
    desk = travel.Desk()
    lineage = Lineage(trip)
    model = ScriptedModel([says("", WEB), says("", travel.POISONED_CALL), says("Done.")])
    tools = [function_tool(travel.read_web), function_tool(desk.book_flight)]
    agent = lineage.agent(Agent(name="clerk")).clone(model=model, tools=tools, hooks=AgentHooks())
    asyncio.run(Runner.run(agent, travel.WANTED))
    assert (desk.booked, len(list(trip.list(filter={"kind": "refusal"})))) == ([], 1)


def test_the_programs_hooks_are_called(trip: ml.Scope) -> None:
    class Told(AgentHooks[Any]):
        def __init__(self) -> None:
            self.heard: list[str] = []

        async def on_start(self, context: Any, agent: Any) -> None:
            self.heard.append("start")

        async def on_end(self, context: Any, agent: Any, output: Any) -> None:
            self.heard.append("end")

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            self.heard.append(f"tool {tool.name}")

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            self.heard.append(f"told {result}")

        async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
            self.heard.append("asks")

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            self.heard.append("answers")

    told = Told()
    run(trip, clerk(travel.Desk(), hooks=told))
    assert told.heard == [
        "start", "asks", "answers", "tool read_web", f"told {travel.PAGE}", "asks", "answers", "end",
    ]  # fmt: skip


def test_an_agent_that_another_lineage_guards_is_refused(memory: ml.Memory) -> None:
    guarded = Lineage(memory.scope(user="alice")).agent(Agent(name="clerk"))
    with pytest.raises(ml.InvalidInputError, match="'clerk' is guarded by another Lineage"):
        Lineage(memory.scope(user="bob")).agent(guarded)


def test_the_filter_refuses_an_agent_that_is_not_guarded(trip: ml.Scope) -> None:
    agent, lineage = scripted("clerk", says("Done.")), Lineage(trip)

    async def one_after_the_other() -> None:
        await lineage.run(scripted("guarded", says("Done.")), "Hello")
        await Runner.run(agent, "Hello", run_config=lineage.run_config())

    with pytest.raises(ml.InvalidInputError, match="'clerk' is not guarded"):
        asyncio.run(one_after_the_other())
    assert prompts(agent) == []
