"""Spans out: what was recorded, with its edges as links. Spans in: other people's, as lineage."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from tests.capture import travel
from tests.capture.hostile import ATTEMPTS
from tests.capture.loops import Agent, plan, user

import memlineage as ml
from memlineage.capture import Recorder
from memlineage.opentelemetry import LineageSpanProcessor, export_spans

# Out -----------------------------------------------------------------------------------------------------------


def exported(recorder: Recorder, **options: Any) -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    export_spans(recorder, provider, **options)
    return exporter


def attribute(span: ReadableSpan, name: str) -> Any:
    return (span.attributes or {}).get(name)


def test_every_unit_is_a_span_and_every_edge_a_link(trip: ml.Scope) -> None:
    recorder = Recorder(trip)
    exporter = exported(recorder)
    plan(trip, recorder=recorder)
    spans = exporter.get_finished_spans()
    units = {unit.id: travel.named(unit) for unit in trip.list()}
    names = {span.context.span_id: units[attribute(span, "memlineage.unit.id")] for span in spans if span.context}
    linked = {
        units[attribute(span, "memlineage.unit.id")]: sorted(
            (
                (link.attributes or {})["memlineage.edge.role"],
                names[link.context.span_id],
                (link.attributes or {})["memlineage.edge.weight"],
            )
            for link in span.links
        )
        for span in spans
    }
    assert linked == travel.EXPECTED


def test_spans_are_named_as_the_conventions_say(trip: ml.Scope) -> None:
    recorder = Recorder(trip)
    exporter = exported(recorder)
    plan(trip, thread="chat 7", recorder=recorder)
    told = [
        (span.name, attribute(span, "gen_ai.operation.name"), attribute(span, "gen_ai.tool.call.id"))
        for span in exporter.get_finished_spans()
    ]
    assert told[:4] == [
        ("heard user", None, None),
        ("chat", "chat", None),
        ("execute_tool search_flights", "execute_tool", "call_1"),
        ("execute_tool search_hotels", "execute_tool", "call_2"),
    ]


def test_one_lineage_is_one_trace(trip: ml.Scope) -> None:
    recorder = Recorder(trip)
    exporter = exported(recorder)
    plan(trip, recorder=recorder)
    assert len({span.context.trace_id for span in exporter.get_finished_spans() if span.context}) == 1


def test_failures_and_refusals_are_errors(trip: ml.Scope) -> None:
    recorder = Recorder(trip)
    exporter = exported(recorder)
    agent = Agent(recorder.conversation("chat 7", agent="planner"))
    agent.hear(user(travel.WANTED))
    agent.say("", travel.FIRST_CALLS[1], travel.POISONED_CALL)
    agent.use(travel.FIRST_CALLS[1], travel.Trip().search_hotels)
    agent.use(travel.POISONED_CALL, travel.Desk().book_flight)
    errors = {
        span.name: attribute(span, "error.type")
        for span in exporter.get_finished_spans()
        if span.status.status_code is StatusCode.ERROR
    }
    assert errors == {"execute_tool search_hotels": "TimeoutError", "execute_tool book_flight": "policy_refused"}


@pytest.mark.parametrize("content", [False, True])
def test_what_was_said_is_told_only_if_you_say_so(trip: ml.Scope, content: bool) -> None:
    recorder = Recorder(trip)
    exporter = exported(recorder, content=content)
    plan(trip, recorder=recorder)
    assert any(travel.FLIGHT in str(span.attributes) for span in exporter.get_finished_spans()) is content


def test_spans_belong_to_the_span_around_them(trip: ml.Scope) -> None:
    recorder, provider, exporter = Recorder(trip), TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    stop = export_spans(recorder, provider)
    with provider.get_tracer("app").start_as_current_span("request") as request:
        plan(trip, recorder=recorder)
    stop()
    plan(trip, recorder=Recorder(trip))
    parents = [span.parent and span.parent.span_id for span in exporter.get_finished_spans()]
    assert parents == [request.get_span_context().span_id] * 12 + [None]


# In ------------------------------------------------------------------------------------------------------------


def text(role: str, said: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": said}]}


def asking(said: str, calls: list[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "content": said}] if said else []
    parts += [{"type": "tool_call", "id": id, "name": name, "arguments": given} for id, name, given in calls]
    return {"role": "assistant", "parts": parts}


def answering(call: tuple[str, str, dict[str, Any]], said: str) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call[0], "response": said}]}


class Foreign:
    """Somebody's instrumentation of the travel task."""

    def __init__(self, provider: TracerProvider, content: bool = True) -> None:
        self.tracer = provider.get_tracer("foreign")
        self.content = content

    def chat(self, prompt: list[dict[str, Any]], answer: dict[str, Any]) -> None:
        with self.tracer.start_as_current_span("chat") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            if self.content:
                span.set_attribute("gen_ai.input.messages", json.dumps(prompt))
                span.set_attribute("gen_ai.output.messages", json.dumps([answer]))
        prompt.append(answer)

    def tool(self, prompt: list[dict[str, Any]], call: tuple[str, str, dict[str, Any]], function: Any) -> None:
        id, name, arguments = call
        with self.tracer.start_as_current_span(f"execute_tool {name}", record_exception=False) as span:
            span.set_attributes(
                {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": id}
            )
            span.set_attribute("gen_ai.tool.call.arguments", json.dumps(arguments))
            try:
                said = function(**arguments)
            except TimeoutError as error:
                said = str(error)
                span.set_status(StatusCode.ERROR, said)
            else:
                if self.content:
                    span.set_attribute("gen_ai.tool.call.result", said)
        prompt.append(answering(call, said))

    def expert(self, question: str) -> str:
        trip, prompt = travel.Trip(), [text("user", question)]
        with self.agent(travel.EXPERT):
            self.chat(prompt, asking("", travel.EXPERT_CALLS))
            self.tool(prompt, travel.EXPERT_CALLS[0], trip.forecast)
            self.chat(prompt, text("assistant", travel.UMBRELLA))
        return travel.UMBRELLA

    def agent(self, name: str) -> Any:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        return self.tracer.start_as_current_span("invoke_agent", attributes=attributes)

    def plan(self) -> None:
        trip, prompt = travel.Trip(), [text("user", travel.ASKED)]
        with self.agent(travel.PLANNER):
            self.chat(prompt, asking("", travel.FIRST_CALLS))
            self.tool(prompt, travel.FIRST_CALLS[0], trip.search_flights)
            self.tool(prompt, travel.FIRST_CALLS[1], trip.search_hotels)
            self.chat(prompt, asking(travel.AGAIN, travel.SECOND_CALLS))
            self.tool(prompt, travel.SECOND_CALLS[0], trip.search_hotels)
            self.tool(prompt, travel.SECOND_CALLS[1], self.expert)
            self.chat(prompt, text("assistant", travel.ANSWER))


def listening(source: Any, **options: Any) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(LineageSpanProcessor(source, **options))
    return provider


def test_foreign_spans_of_the_travel_task_give_the_expected_lineage(trip: ml.Scope) -> None:
    Foreign(listening(trip, users=True)).plan()
    assert (travel.shape(trip), travel.call_ids(trip)) == (travel.EXPECTED, travel.CALL_IDS)


def test_nobody_in_a_span_is_the_user_unless_the_program_says_so(trip: ml.Scope) -> None:
    Foreign(listening(trip)).plan()
    assert {unit.creator for unit in trip.list() if unit.content == travel.ASKED} == {"external:user"}


def test_spans_without_what_was_said_still_tell_what_rests_on_what(trip: ml.Scope) -> None:
    Foreign(listening(trip), content=False).plan()
    [answer] = [unit for unit in trip.list() if unit.creator == "agent:planner"][-1:]
    reached = {unit.creator for unit in trip.trace(answer).units}
    assert reached == {
        "agent:planner", "agent:weather_expert", "tool:ask_weather", "tool:forecast", "tool:search_flights",
        "tool:search_hotels",
    }  # fmt: skip


def test_fifty_traces_at_once_do_not_mix(memory: ml.Memory) -> None:
    provider = listening(lambda span: memory.scope(user=span["user"]), users=True)
    tracer = provider.get_tracer("app")

    def run(name: str) -> None:
        foreign = Foreign(provider)
        with tracer.start_as_current_span(
            "invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent", "user": name}
        ):
            foreign.plan()

    threads = [threading.Thread(target=run, args=(f"user{number}",)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shapes = [travel.shape(memory.scope(user=f"user{number}")) for number in range(50)]
    assert [len(shape) for shape in shapes] == [12] * 50


def test_what_is_exported_does_not_come_back_in(trip: ml.Scope) -> None:
    recorder, provider = Recorder(trip), listening(trip)
    export_spans(recorder, provider)
    plan(trip, recorder=recorder)
    assert len(trip.list()) == len(travel.EXPECTED)


def test_a_trace_that_does_not_end_is_recorded_when_the_program_ends(trip: ml.Scope) -> None:
    provider = listening(trip, users=True)
    left = provider.get_tracer("app").start_span("request")
    Foreign(provider).plan()
    with provider.get_tracer("app").start_as_current_span("other"):
        pass
    provider.shutdown()
    left.end()
    assert len(trip.list()) == len(travel.EXPECTED)


def test_a_record_that_cannot_be_written_does_not_stop_the_program(memory: ml.Memory, caplog: Any) -> None:
    provider = listening(memory.scope(user="alice"))
    memory.close()
    Foreign(provider).plan()
    assert "could not be recorded" in caplog.text


HOSTILE: list[Any] = [
    "", "{", "[]", "null", "7", '"x"', '[{"role": "user"}]', '[{"parts": 7}]', '[{"role": 7, "parts": [7]}]',
    json.dumps([text("user", "x" * 100_000)]), json.dumps([{"role": "user:alice", "parts": [{"type": "text"}]}]),
    7, 1.5, True, ("a", "b"), "[" * 5000, '[{"role": "tool", "parts": [{"type": "tool_call_response"}]}]',
]  # fmt: skip


@pytest.mark.parametrize("hostile", [*HOSTILE, *ATTEMPTS])
def test_spans_are_told_by_anybody_and_nothing_in_them_is_the_users_word(trip: ml.Scope, hostile: Any) -> None:
    tracer = listening(trip).get_tracer("foreign")
    operations = ("invoke_agent", "chat", "execute_tool", "retrieval")
    with tracer.start_as_current_span("request"):
        for operation in operations:
            attributes = dict.fromkeys(
                (
                    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments",
                    "gen_ai.tool.call.result", "gen_ai.retrieval.documents", "gen_ai.agent.name", "gen_ai.tool.name",
                    "gen_ai.tool.call.id", "gen_ai.conversation.id", "gen_ai.system_instructions",
                ),
                hostile,
            )  # fmt: skip
            with tracer.start_as_current_span(operation, attributes=attributes | {"gen_ai.operation.name": operation}):
                pass
    assert {unit.creator.partition(":")[0] for unit in trip.list()} <= {"agent", "tool", "external"}
    assert len(trip.list()) >= 2
