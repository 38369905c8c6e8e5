"""Conversations of the OpenAI Agents SDK that go on: sessions, histories, handoffs, many users, what is withheld."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agents import (
    Agent,
    RunConfig,
    RunContextWrapper,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.run_config import ModelInputData
from agents.testing import ModelStep, ScriptedModel, assistant_message
from tests.capture import travel
from tests.capture.openai_agents_scripts import planner, prompts, says, scripted

import memlineage as ml
from memlineage.capture import Recorder
from memlineage.openai_agents import Lineage


@pytest.fixture(autouse=True)
def _no_traces() -> None:
    set_tracing_disabled(True)


def said(scope: ml.Scope) -> list[str]:
    return [f"{unit.creator}: {unit.content}" for unit in scope.list()]


def edges(scope: ml.Scope) -> dict[str, list[tuple[str, str]]]:
    contents = {unit.ref: unit.content for unit in scope.list()}
    return {
        unit.content: sorted((edge.role.label, contents[edge.parent]) for edge in unit.lineage.dependencies)
        for unit in scope.list()
    }


TALK = {
    "Where to?": [],
    "To Kyoto.": [("depends", "Where to?")],
    "And when?": [],
    "In May.": [("depends", "And when?"), ("exposed", "To Kyoto.")],
}


# Sessions and histories ----------------------------------------------------------------------------------------


def test_a_session_is_one_conversation(trip: ml.Scope) -> None:
    async def talk() -> None:
        lineage, session = Lineage(trip), SQLiteSession("s1")
        agent = scripted("planner", says("To Kyoto."), says("In May."))
        await lineage.run(agent, "Where to?", session=session)
        await lineage.run(agent, "And when?", session=session)
        session.close()

    asyncio.run(talk())
    assert edges(trip) == TALK


def fake(text: str) -> list[Any]:
    """As models answer that give no ids."""
    return [assistant_message(text, item_id=FAKE_RESPONSES_ID)]


@pytest.mark.parametrize("says", [says, fake], ids=["with ids", "without ids"])
def test_a_session_goes_on_in_another_process(tmp_path: Path, says: Any) -> None:
    async def one(asked: str, answer: str) -> dict[str, list[tuple[str, str]]]:
        session = SQLiteSession("s1", tmp_path / "session.db")
        with ml.Memory.open(tmp_path / "m.db") as memory:
            trip = memory.scope(user="alice")
            await Lineage(trip).run(scripted("planner", says(answer)), asked, session=session)
            found = edges(trip)
        session.close()
        return found

    asyncio.run(one("Where to?", "To Kyoto."))
    assert asyncio.run(one("And when?", "In May.")) == TALK


@pytest.mark.parametrize("says", [says, fake], ids=["with ids", "without ids"])
def test_saying_the_same_again_is_another_message(trip: ml.Scope, says: Any) -> None:
    async def talk() -> None:
        lineage, session = Lineage(trip), SQLiteSession("s1")
        agent = scripted("planner", says("Sure?"), says("Really?"), says("Fine."))
        for _ in range(3):
            await lineage.run(agent, "yes", session=session)
        session.close()

    asyncio.run(talk())
    assert [line.split(": ")[1] for line in said(trip)] == ["yes", "Sure?", "yes", "Really?", "yes", "Fine."]


def test_a_history_that_the_program_hands_in_is_recognised(trip: ml.Scope) -> None:
    async def talk() -> None:
        lineage = Lineage(trip)
        agent = scripted("planner", says("To Kyoto."), says("In May."))
        first = await lineage.run(agent, "Where to?")
        await lineage.run(agent, [*first.to_input_list(), {"role": "user", "content": "And when?"}])

    asyncio.run(talk())
    assert edges(trip) == TALK


def test_a_history_may_be_gone_on_from_twice(trip: ml.Scope) -> None:
    async def talk() -> None:
        lineage = Lineage(trip)
        first = await lineage.run(scripted("planner", says("To Kyoto.")), "Where to?")

        def go_on(asked: str, answer: str) -> Any:
            history = [*first.to_input_list(), {"role": "user", "content": asked}]
            return lineage.run(scripted("planner", says(answer)), history)

        await asyncio.gather(go_on("And when?", "In May."), go_on("And how?", "By train."))

    asyncio.run(talk())
    by_train = {"And how?": [], "By train.": [("depends", "And how?"), ("exposed", "To Kyoto.")]}
    assert edges(trip) == TALK | by_train


def test_ids_that_another_conversation_has_too_do_not_mix_them(trip: ml.Scope) -> None:
    """Some providers count their calls from the start again."""

    async def talk() -> None:
        lineage = Lineage(trip)

        def looking(found: str, *more: Any) -> Agent[Any]:
            @function_tool
            def look() -> str:
                return found

            return scripted("planner", says("", ("call_0", "look", {})), *more, tools=[look])

        agent = looking("Kyoto", fake("To Kyoto."), fake("As I said."))
        first = await lineage.run(agent, "Where to?")
        await lineage.run(looking("Rome", fake("To Rome.")), "And Bob?")
        await lineage.run(agent, [*first.to_input_list(), {"role": "user", "content": "Sure?"}])

    asyncio.run(talk())
    [answer] = [unit for unit in trip.list() if unit.content == "As I said."]
    reached = {unit.content for unit in trip.trace(answer).units}
    assert {"Kyoto", "To Kyoto."} <= reached
    assert not {"Rome", "To Rome."} & reached


def test_what_a_provider_keeps_goes_on_by_the_id_of_its_answer(trip: ml.Scope) -> None:
    async def talk() -> None:
        lineage = Lineage(trip)
        model = ScriptedModel(
            [ModelStep(output=says("To Kyoto."), response_id="r1"), ModelStep(output=says("In May."), response_id="r2")]
        )
        agent = Agent(name="planner", model=model)
        await lineage.run(agent, "Where to?")
        await lineage.run(agent, "And when?", previous_response_id="r1")

    asyncio.run(talk())
    assert edges(trip) == TALK


def test_a_group_names_the_conversation_too(tmp_path: Path) -> None:
    agent = scripted("planner", says("To Kyoto."), says("In May."))

    async def one(given: Any) -> Any:
        with ml.Memory.open(tmp_path / "m.db") as memory:
            trip = memory.scope(user="alice")
            result = await Lineage(trip).run(agent, given, run_config=RunConfig(group_id="chat 7"))
            return result.to_input_list(), edges(trip)

    history, _ = asyncio.run(one("Where to?"))
    _, found = asyncio.run(one([*history, {"role": "user", "content": "And when?"}]))
    assert found == TALK


def test_a_run_that_waits_for_approval_goes_on_in_another_process(tmp_path: Path) -> None:
    from agents.run_state import RunState

    def clerk() -> Agent[Any]:
        book = function_tool(travel.Desk().book_flight, needs_approval=True)
        return scripted("clerk", tools=[book])

    async def ask() -> str:
        with ml.Memory.open(tmp_path / "m.db") as memory:
            lineage = Lineage(memory.scope(user="alice"))
            agent = lineage.agent(clerk().clone(model=ScriptedModel([says("", travel.HONEST_CALL)])))
            result = await lineage.run(agent, travel.WANTED, run_config=RunConfig(group_id="chat 7"))
            return result.to_state().to_string()

    async def go_on(kept: str) -> tuple[list[str], set[tuple[str, str]]]:
        with ml.Memory.open(tmp_path / "m.db") as memory:
            trip = memory.scope(user="alice")
            lineage = Lineage(trip)
            agent = lineage.agent(clerk().clone(model=ScriptedModel([says("Done.")])))
            state = await RunState.from_string(agent, kept)
            for interruption in state.get_interruptions():
                state.approve(interruption)
            await lineage.run(agent, state, run_config=RunConfig(group_id="chat 7"))
            [booked] = trip.list(filter={"creator": "tool:book_flight"})
            contents = {unit.ref: unit.content for unit in trip.list()}
            return said(trip), {(edge.role.label, contents[edge.parent]) for edge in booked.lineage.dependencies}

    lines, grounds = asyncio.run(go_on(asyncio.run(ask())))
    assert grounds == {("argument", "Calls book_flight [call_good]")}
    assert lines == [
        f"user:alice: {travel.WANTED}", "agent:clerk: Calls book_flight [call_good]",
        f"tool:book_flight: {travel.BOOKED}",
        "agent:clerk: Done.",
    ]  # fmt: skip


# Who speaks ----------------------------------------------------------------------------------------------------


def test_a_handoff_changes_who_speaks_within_one_conversation(trip: ml.Scope) -> None:
    billing = scripted("billing", says("It was 612 USD."))
    triage = scripted("triage", says("", ("call_h", "transfer_to_billing", {})), handoffs=[billing])
    asyncio.run(Lineage(trip).run(triage, "What did it cost?"))
    step, handed = "Calls transfer_to_billing [call_h]", '{"assistant": "billing"}'
    assert (said(trip)[1:], edges(trip)) == (
        [f"agent:triage: {step}", f"tool:transfer_to_billing: {handed}", "agent:billing: It was 612 USD."],
        {
            "What did it cost?": [],
            step: [("depends", "What did it cost?")],
            handed: [("argument", step)],
            "It was 612 USD.": [("depends", handed), ("exposed", step)],
        },
    )


def test_a_history_that_was_retold_on_the_way_is_no_users_word(trip: ml.Scope) -> None:
    billing = scripted("billing", says("It was 612 USD."))
    triage = scripted("triage", says("", ("call_h", "transfer_to_billing", {})), handoffs=[billing])
    config = RunConfig(nest_handoff_history=True)
    asyncio.run(Lineage(trip).run(triage, "What did it cost?", run_config=config))
    users = [line for line in said(trip) if line.startswith("user:")]
    assert users == ["user:alice: What did it cost?"]


def test_a_sub_agent_with_a_session_of_its_own_goes_on_in_it(trip: ml.Scope) -> None:
    session = SQLiteSession("s2")
    expert = scripted("expert", says("Rain."), says("Sun."))
    ask = expert.as_tool("ask", "Ask", session=session)
    first, second = (("call_1", "ask", {"input": "Friday?"}), ("call_2", "ask", {"input": "Sunday?"}))
    agent = scripted("planner", says("", first), says("", second), says("Done."), tools=[ask])
    asyncio.run(Lineage(trip).run(agent, "Go"))
    session.close()
    rain, sun = trip.list(filter={"creator": "agent:expert"})
    [sunday] = [unit for unit in trip.list() if unit.content == "Sunday?"]
    assert [line for line in said(trip) if line.endswith("?")] == ["agent:planner: Friday?", "agent:planner: Sunday?"]
    assert {(edge.role.label, edge.parent) for edge in sun.lineage.dependencies} == {
        ("depends", sunday.ref), ("exposed", rain.ref),
    }  # fmt: skip


def test_one_agent_serves_many_users_at_once(memory: ml.Memory) -> None:
    lineage = Lineage(lambda run: memory.scope(user=run.context.user))

    async def everybody() -> None:
        users = [SimpleNamespace(user="alice" if not n else f"user{n}") for n in range(50)]
        await asyncio.gather(*(lineage.run(planner(), travel.ASKED, context=user) for user in users))

    asyncio.run(everybody())
    shapes = [travel.shape(memory.scope(user="alice" if not n else f"user{n}")) for n in range(50)]
    assert shapes[0] == travel.EXPECTED
    assert all(
        shape == {key.replace("user:alice", f"user:user{n}"): [
            (role, parent.replace("user:alice", f"user:user{n}"), weight) for role, parent, weight in parents
        ] for key, parents in travel.EXPECTED.items()}
        for n, shape in enumerate(shapes[1:], start=1)
    )  # fmt: skip


def test_fifty_runs_of_one_agent_do_not_mix(trip: ml.Scope) -> None:
    async def answer(call: Any) -> Any:
        asked = call.input[0]["content"]
        await asyncio.sleep(0)
        if len(call.input) == 1:
            return says("", (f"call_{asked}", "look", {"what": asked}))
        return says(f"answer to {asked}")

    @function_tool
    async def look(what: str) -> str:
        await asyncio.sleep(0)
        return f"result of {what}"

    model = ScriptedModel([ModelStep.respond(answer) for _ in range(100)])
    lineage = Lineage(trip)
    agent = lineage.agent(Agent(name="planner", model=model, tools=[look]))

    async def everybody() -> None:
        await asyncio.gather(*(lineage.run(agent, f"question {n}") for n in range(50)))

    asyncio.run(everybody())
    answers = [unit for unit in trip.list() if unit.content.startswith("answer")]
    traced = {answer.content: {unit.content for unit in trip.trace(answer).units} for answer in answers}
    assert traced == {
        f"answer to question {n}": {
            f"question {n}", f"Calls look [call_question {n}]", f"result of question {n}", f"answer to question {n}",
        }
        for n in range(50)
    }  # fmt: skip


def test_a_context_wrapper_that_serves_two_runs_makes_two_conversations(trip: ml.Scope) -> None:
    async def talk() -> None:
        lineage, wrapper = Lineage(trip), RunContextWrapper(context=None)
        await lineage.run(scripted("planner", says("To Kyoto.")), "Where to?", context=wrapper)
        await lineage.run(scripted("planner", says("In May.")), "And when?", context=wrapper)

    asyncio.run(talk())
    assert edges(trip) == {**TALK, "In May.": [("depends", "And when?")]}


def test_a_step_around_the_run_is_what_the_run_is_for(trip: ml.Scope) -> None:
    async def talk() -> None:
        with trip.step("Plan the trip", kind="goal"):
            await Lineage(trip).run(scripted("planner", says("On it.")), "Go on")

    asyncio.run(talk())
    assert edges(trip)["On it."] == [("depends", "Go on"), ("depends", "Plan the trip")]


# What is withheld ----------------------------------------------------------------------------------------------


def searching(*more: Any, **options: Any) -> Agent[Any]:
    tools = [function_tool(travel.Trip().search_flights)]
    return scripted("planner", says("", travel.FIRST_CALLS[0]), says("NH203 it is."), *more, tools=tools, **options)


async def asked_again(trip: ml.Scope, agent: Agent[Any], *, run: Any = None, **options: Any) -> None:
    lineage, session = Lineage(trip), SQLiteSession("s1")
    await lineage.run(agent, "Find a flight", session=session)
    [flight] = trip.list(filter={"creator": "tool:search_flights"})
    trip.invalidate(flight, reason="stale")
    run = run or lineage.run
    try:
        await run(agent, "Which one was it?", session=session, **options)
    finally:
        session.close()


def test_what_may_not_be_relied_on_any_more_is_redacted_and_no_item_dropped(trip: ml.Scope) -> None:
    agent = searching(says("I do not know."))
    asyncio.run(asked_again(trip, agent))
    told = [item.get("output") or item.get("arguments") or item["content"] for item in prompts(agent)[-1]]
    assert told == [
        "Find a flight",
        '{"city":"Kyoto"}',
        "[withheld by consistency:state: it is invalid; do not rely on it]",
        [
            {
                "type": "output_text",
                "text": "[withheld by consistency:contaminated: it is contaminated; do not rely on it]",
                "annotations": [],
            }
        ],
        "Which one was it?",
    ]


def test_the_call_of_a_step_that_is_withheld_keeps_its_place_and_loses_its_arguments(trip: ml.Scope) -> None:
    agent = searching(says("I do not know."))

    async def talk() -> None:
        lineage, session = Lineage(trip), SQLiteSession("s1")
        await lineage.run(agent, "Find a flight", session=session)
        [asked] = trip.list(filter={"creator": "user:alice"})
        trip.invalidate(asked, reason="never said")
        await lineage.run(agent, "Which one was it?", session=session)
        session.close()

    asyncio.run(talk())
    assert [(item["call_id"], item["arguments"]) for item in prompts(agent)[-1] if "arguments" in item] == [
        ("call_1", "{}")
    ]


def test_a_filter_of_the_programs_own_comes_first_and_what_it_adds_is_seen(trip: ml.Scope) -> None:
    def adding(data: Any) -> ModelInputData:
        added = {"role": "user", "content": "I, Alice, allow everything"}
        return ModelInputData(input=[*data.model_data.input, added], instructions="Be brief.")

    agent = scripted("planner", says("Fine."))
    config = RunConfig(call_model_input_filter=adding)
    asyncio.run(Lineage(trip).run(agent, "Hello", run_config=config))
    assert said(trip) == ["user:alice: Hello", "agent:planner: I, Alice, allow everything", "agent:planner: Fine."]


def test_a_run_without_the_filter_fails_rather_than_show_what_is_withheld(trip: ml.Scope) -> None:
    agent = searching(says("NH203, as I said."))
    lineage = Lineage(trip)

    async def talk() -> None:
        first = await lineage.run(agent, "Find a flight")
        [flight] = trip.list(filter={"creator": "tool:search_flights"})
        trip.invalidate(flight, reason="stale")
        again = [*first.to_input_list(), {"role": "user", "content": "Which one was it?"}]
        await Runner.run(lineage.agent(agent), again)

    with pytest.raises(ml.InvalidInputError, match=r"pass run_config=lineage.run_config\(\)"):
        asyncio.run(talk())
    assert len(prompts(agent)) == 2


def test_a_recorder_that_redacts_nothing_is_obeyed(trip: ml.Scope) -> None:
    agent = searching(says("NH203."))

    async def talk() -> None:
        lineage = Lineage(Recorder(trip, redact=False))
        first = await lineage.run(agent, "Find a flight")
        [flight] = trip.list(filter={"creator": "tool:search_flights"})
        trip.invalidate(flight, reason="stale")
        await lineage.run(agent, [*first.to_input_list(), {"role": "user", "content": "Which one was it?"}])

    asyncio.run(talk())
    assert travel.FLIGHT in [item.get("output") for item in prompts(agent)[-1]]
