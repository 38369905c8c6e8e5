"""Agents of the OpenAI Agents SDK, captured: who said what, and what it hangs on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    RunConfig,
    RunHooks,
    Runner,
    SQLiteSession,
    ToolExecutionConfig,
    ToolGuardrailFunctionOutput,
    function_tool,
    input_guardrail,
    set_tracing_disabled,
    tool_output_guardrail,
)
from tests.capture import travel
from tests.capture.openai_agents_scripts import planner, prompts, says, scripted

import memlineage as ml
from memlineage.capture import current_scope
from memlineage.openai_agents import Lineage

SESSIONS: list[SQLiteSession] = []


@pytest.fixture(autouse=True)
def _no_traces() -> Iterator[None]:
    set_tracing_disabled(True)
    yield
    while SESSIONS:
        SESSIONS.pop().close()


async def streamed(lineage: Lineage, *given: Any, **options: Any) -> Any:
    result = lineage.run_streamed(*given, **options)
    async for _ in result.stream_events():
        pass
    return result


def by_pieces(lineage: Lineage, agent: Any, given: Any) -> Any:
    return asyncio.run(Runner.run(lineage.agent(agent), given, run_config=lineage.run_config()))


def synchronously(lineage: Lineage, *given: Any, **options: Any) -> Any:
    """`run_sync` takes the thread's event loop, and leaves it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return lineage.run_sync(*given, **options)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


WAYS = {
    "run": lambda lineage, *given: asyncio.run(lineage.run(*given)),
    "run_sync": synchronously,
    "run_streamed": lambda lineage, *given: asyncio.run(streamed(lineage, *given)),
    "pieces": by_pieces,
    "agent alone": lambda lineage, agent, given: asyncio.run(Runner.run(lineage.agent(agent), given)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_travel_task_gives_the_expected_lineage(trip: ml.Scope, way: str) -> None:
    result = WAYS[way](Lineage(trip), planner(), travel.ASKED)
    assert (result.final_output, travel.shape(trip), travel.call_ids(trip)) == (
        travel.ANSWER, travel.EXPECTED, travel.CALL_IDS,
    )  # fmt: skip


def _session(name: str) -> SQLiteSession:
    SESSIONS.append(SQLiteSession(name))
    return SESSIONS[-1]


async def _ignore(event: Any) -> None:
    pass


@input_guardrail
async def _harmless(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


VARIANTS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "in a session": lambda: (planner(), {"session": _session("s1")}),
    "in a group": lambda: (planner(), {"run_config": RunConfig(group_id="chat 7")}),
    "with a guardrail on what comes in": lambda: (planner(input_guardrails=[_harmless]), {}),
    "with a sub-agent that streams": lambda: (planner(asking={"on_stream": _ignore}), {}),
    "with a sub-agent that has a configuration of its own": lambda: (planner(asking={"run_config": RunConfig()}), {}),
    "with a sub-agent that has a session of its own": lambda: (planner(asking={"session": _session("s2")}), {}),
    "with one tool at a time": lambda: (
        planner(), {"run_config": RunConfig(tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1))}
    ),
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_travel_task_gives_the_same_lineage(trip: ml.Scope, variant: str) -> None:
    agent, options = VARIANTS[variant]()
    asyncio.run(Lineage(trip).run(agent, travel.ASKED, **options))
    assert (travel.shape(trip), travel.call_ids(trip)) == (travel.EXPECTED, travel.CALL_IDS)


def test_hooks_of_a_run_do_not_reach_the_agents_that_tools_ask_and_capture_does(trip: ml.Scope) -> None:
    class Told(RunHooks[Any]):
        answered: ClassVar[list[str]] = []

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            self.answered.append(agent.name)

    asyncio.run(Lineage(trip).run(planner(), travel.ASKED, hooks=Told()))
    steps = [unit for unit in trip.list() if unit.creator == f"agent:{travel.EXPERT}"]
    assert (set(Told.answered), len(steps)) == ({travel.PLANNER}, 2)


def test_what_went_wrong_reaches_the_answer(trip: ml.Scope) -> None:
    asyncio.run(Lineage(trip).run(planner(), travel.ASKED))
    [forecast] = trip.list(filter={"creator": "tool:forecast"})
    trip.invalidate(forecast, reason="another Kyoto")
    down = {travel.named(unit) for unit in trip.list(status="contaminated")}
    assert down == {travel.EXPERT_2, travel.WEATHER, travel.STEP_3}


def test_a_sub_agent_does_not_see_what_is_withheld(trip: ml.Scope) -> None:
    """The filter of the run reaches it, or that of a configuration of its own."""

    def spoil() -> str:
        """Finds something, and finds it wrong."""
        return "EVIL"

    sub = scripted(
        travel.EXPERT, says("", ("call_a", "spoil", {})), says("", ("call_b", "undo", {})), says("Nothing."),
    )  # fmt: skip

    def undo() -> str:
        """Finds out that it was wrong."""
        [found] = trip.list(filter={"creator": "tool:spoil"})
        trip.invalidate(found, reason="wrong")
        return "undone"

    sub.tools += [function_tool(spoil), function_tool(undo)]
    ask = sub.as_tool("ask", "Ask", run_config=RunConfig())
    agent = scripted("planner", says("", ("call_1", "ask", {"input": "Go"})), says("Ok."), tools=[ask])
    asyncio.run(Lineage(trip).run(agent, "Go"))
    told = [item["output"][:23] for item in prompts(sub)[-1] if "output" in item]
    assert told == ["[withheld by consistency"[:23]] * 2  # what undid it read it, too


def test_an_answer_that_a_guardrail_replaces_is_what_the_step_hangs_on(trip: ml.Scope) -> None:
    @tool_output_guardrail
    def silenced(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("[secret]")

    @function_tool(tool_output_guardrails=[silenced])
    def look() -> str:
        return "The code is 1234"

    agent = scripted("planner", says("", ("call_1", "look", {})), says("Done."), tools=[look])
    asyncio.run(Lineage(trip).run(agent, "Go"))
    [answer] = [unit for unit in trip.list() if unit.content == "Done."]
    [told] = trip.list(filter={"creator": "tool:look"})
    depends = [edge.parent for edge in answer.lineage.dependencies if edge.role is ml.Role.DEPENDS]
    assert (told.content, depends) == ("The code is 1234", [told.ref])


def test_a_tool_whose_agent_cannot_be_found_is_refused_before_anything_runs(trip: ml.Scope) -> None:
    tool = scripted("expert", says("Fine.")).as_tool("ask", "Ask")
    tool._agent_instance = scripted("somebody else")
    with pytest.raises(ml.InvalidInputError, match=r"make the tool of a guarded one: lineage.agent\(agent\).as_tool"):
        Lineage(trip).agent(scripted("planner", tools=[tool]))


def test_a_tool_made_of_a_guarded_agent_is_captured(trip: ml.Scope) -> None:
    lineage = Lineage(trip)
    tool = lineage.agent(scripted("expert", says("Fine."))).as_tool("ask", "Ask")
    agent = scripted("planner", says("", ("call_1", "ask", {"input": "How?"})), says("Done."), tools=[tool])
    asyncio.run(lineage.run(agent, "Go"))
    assert [unit.creator for unit in trip.list()] == [
        "user:alice", "agent:planner", "agent:planner", "agent:expert", "tool:ask", "agent:planner",
    ]  # fmt: skip


def test_a_guarded_agent_is_of_its_own_kind_still(trip: ml.Scope) -> None:
    class Mine(Agent[Any]):
        _mood = "well"

        def greet(self) -> str:
            return f"I am {self.name}, {self._mood}"

    agent = Mine(name="planner")
    agent._mood = "tired"
    guarded = Lineage(trip).agent(agent)
    assert (isinstance(guarded, Mine), guarded.greet()) == (True, "I am planner, tired")  # type: ignore[attr-defined]


@pytest.mark.parametrize("given", [None, "planner", object()])
def test_what_is_no_agent_is_refused(trip: ml.Scope, given: Any) -> None:
    with pytest.raises(ml.InvalidInputError, match="is no Agent of the OpenAI Agents SDK"):
        Lineage(trip).agent(given)


@pytest.mark.parametrize("source", ["alice", None, 7])
def test_what_is_no_scope_is_refused(source: Any) -> None:
    with pytest.raises(ml.InvalidInputError, match="neither a Recorder nor a Scope"):
        Lineage(source)


def test_the_scope_of_whoever_calls_is_at_hand_in_a_tool(trip: ml.Scope) -> None:
    @function_tool
    def note() -> str:
        return current_scope(trip).store("Noted").creator

    agent = scripted("planner", says("", ("call_1", "note", {})), says("Done."), tools=[note])
    asyncio.run(Lineage(trip).run(agent, "Go"))
    assert prompts(agent)[-1][-1]["output"] == "agent:planner"
