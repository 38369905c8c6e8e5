"""Spans of other people's instrumentation, turned into lineage after the fact.

Spans end before those around them, so a trace is kept until nothing in it is open any more, and then gone through in
the order in which it happened: `invoke_agent` begins a conversation, `chat` is a step of its model, `execute_tool` and
`retrieval` are calls of tools, and what ran inside a tool belongs to its call.

Spans are told by whoever instrumented the program, with or without what was said. Nobody in them is the user, unless
the program says that its spans can be trusted (`users=True`). What was sampled out is missing: then what follows hangs
on less, and is no better for it, since nothing from a span stands above its creator.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode

from memlineage.capture.calls import ToolCall
from memlineage.capture.conversation import Conversation
from memlineage.capture.messages import Call, Message, Reply, text_of
from memlineage.capture.opentelemetry_out import UNIT
from memlineage.capture.recorder import Recorder, Recorders, Source
from memlineage.errors import MemLineageError

__all__ = ["LineageSpanProcessor"]

_LOG: Final = logging.getLogger(__name__)
_OPERATIONS: Final = frozenset(
    {"invoke_agent", "create_agent", "chat", "generate_content", "text_completion", "execute_tool", "retrieval"}
)
_MODEL: Final = frozenset({"chat", "generate_content", "text_completion"})
_TRACES: Final = 1024
_SPANS: Final = 10_000
"""Spans of one trace that are kept; what is beyond is not recorded."""
_LONGEST: Final = 4_000_000
"""Characters of JSON in one attribute that are read."""


class _Trace:
    """What is known of a trace that has not ended."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.spans: list[ReadableSpan] = []


class LineageSpanProcessor(SpanProcessor):
    """Records the runs that foreign spans tell of.

    tracer_provider.add_span_processor(LineageSpanProcessor(memory.scope(user="alice")))
    """

    def __init__(self, source: Source, *, users: bool = False) -> None:
        """A processor.

        Args:
            source: a scope or a `Recorder`; or a function that gives one of these for a trace, from the attributes of
                its first span (a mapping).
            users: whether what spans call a user's message is the scope's user's word. Only where nobody else can make
                spans here, and the source is the host's scope.

        Raises:
            InvalidInputError: the source is none of these.
        """
        self._recorders = Recorders(source)
        self._users = users
        self._lock = threading.Lock()
        self._traces: OrderedDict[int, _Trace] = OrderedDict()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """A span has begun: its trace is not over before it has ended."""
        context = span.get_span_context()
        with self._lock:
            self._traces.setdefault(context.trace_id, _Trace()).open.add(context.span_id)
            while len(self._traces) > _TRACES:
                self._traces.popitem(last=False)

    def on_end(self, span: ReadableSpan) -> None:
        """A span has ended; the last of its trace has it recorded."""
        context = span.get_span_context()
        if context is None:
            return
        with self._lock:
            trace = self._traces.get(context.trace_id)
            if trace is None:  # it was forgotten: there were too many
                return
            trace.open.discard(context.span_id)
            if _is_told(span) and len(trace.spans) < _SPANS:
                trace.spans.append(span)
            if trace.open:
                return
            del self._traces[context.trace_id]
        self._record(trace)

    def shutdown(self) -> None:
        """Record what is known of the traces that have not ended."""
        self.force_flush()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Record what is known of the traces that have not ended."""
        with self._lock:
            traces, self._traces = list(self._traces.values()), OrderedDict()
        for trace in traces:
            self._record(trace)
        return True

    def _record(self, trace: _Trace) -> None:
        if not trace.spans:
            return
        spans = sorted(trace.spans, key=lambda span: (span.start_time or 0, -(span.end_time or 0)))
        try:
            recorder = self._recorders.at(spans[0].attributes or {})
            contextvars.Context().run(_Replay(recorder, spans, self._users).run)
        except MemLineageError:  # the program has done all this, and cannot be told any more
            _LOG.exception("a trace of %d spans could not be recorded", len(spans))


def _is_told(span: ReadableSpan) -> bool:
    attributes = span.attributes or {}
    return UNIT not in attributes and attributes.get("gen_ai.operation.name") in _OPERATIONS


class _Replay:
    """Goes through one trace."""

    def __init__(self, recorder: Recorder, spans: Sequence[ReadableSpan], users: bool) -> None:
        self._recorder = recorder
        self._users = users
        ids = {span.context.span_id for span in spans if span.context is not None}
        self._below: dict[int | None, list[ReadableSpan]] = {}
        for span in spans:
            above = span.parent.span_id if span.parent is not None else None
            self._below.setdefault(above if above in ids else None, []).append(span)
        self._heard: set[int] = set()

    def run(self) -> None:
        """Everything, from what stands below nothing."""
        self._all(None, None, None)

    def _all(self, above: int | None, conversation: Conversation | None, within: ToolCall | None) -> None:
        for span in self._below.get(above, ()):
            attributes = span.attributes or {}
            operation = attributes.get("gen_ai.operation.name")
            inside = None if operation in ("invoke_agent", "create_agent") else conversation
            if inside is None:
                inside = self._begun(attributes, within)
            if operation in _MODEL:
                self._chat(inside, attributes)
            if operation in ("execute_tool", "retrieval"):
                self._tool(inside, span, attributes, str(operation))
            else:
                self._all(_id(span), inside, within)
            if conversation is None and operation not in ("invoke_agent", "create_agent"):
                conversation = inside

    def _begun(self, attributes: Mapping[str, Any], within: ToolCall | None) -> Conversation:
        thread = None if within is not None else _named(attributes, "gen_ai.conversation.id")
        agent = _named(attributes, "gen_ai.agent.name")
        return self._recorder.conversation(thread, agent=agent, within=within)

    def _chat(self, conversation: Conversation, attributes: Mapping[str, Any]) -> None:
        prompt = _messages(attributes.get("gen_ai.input.messages"))
        if id(conversation) not in self._heard:
            self._heard.add(id(conversation))
            conversation.heard(prompt, root=self._users)
        turn = conversation.shown(
            prompt, model=_named(attributes, "gen_ai.request.model"),
            instructions=_instructions(attributes.get("gen_ai.system_instructions")),
        )  # fmt: skip
        answers = _messages(attributes.get("gen_ai.output.messages"))
        turn.said(
            Reply(
                text="\n".join(answer.text for answer in answers if answer.text),
                calls=tuple(call for answer in answers for call in answer.calls),
                id=_named(attributes, "gen_ai.response.id"),
            )
        )

    def _tool(self, conversation: Conversation, span: ReadableSpan, attributes: Mapping[str, Any], kind: str) -> None:
        name = _named(attributes, "gen_ai.tool.name") or _named(attributes, "gen_ai.data_source.id") or kind
        arguments = _json(attributes.get("gen_ai.tool.call.arguments", attributes.get("gen_ai.retrieval.query.text")))
        call_id = _named(attributes, "gen_ai.tool.call.id") or f"{_id(span):016x}"
        given = arguments if isinstance(arguments, Mapping) else {"query": text_of(arguments)} if arguments else {}
        call = conversation.called(Call(id=call_id, name=name, arguments=given))
        with call.inside():
            self._all(_id(span), None, call)
        if span.status.status_code is StatusCode.ERROR:
            call.failed(span.status.description or _named(attributes, "error.type") or "it failed")
            return
        found = attributes.get("gen_ai.tool.call.result", attributes.get("gen_ai.retrieval.documents"))
        text = text_of(_json(found))
        call.returned(text, text)


def _id(span: ReadableSpan) -> int:
    return 0 if span.context is None else span.context.span_id


def _named(attributes: Mapping[str, Any], name: str) -> str | None:
    value = attributes.get(name)
    return value if isinstance(value, str) and value else None


def _json(value: Any) -> Any:
    """What an attribute holds: JSON where it is some, else the text."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        return list(value) if isinstance(value, tuple) else value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def _messages(value: Any) -> list[Message]:
    """Messages as the conventions spell them: a role, and parts."""
    found = _json(value)
    names: dict[str, str] = {}
    messages: list[Message] = []
    for item in found if isinstance(found, list) else ():
        if isinstance(item, dict):
            messages += _message(item, names)
    return messages


def _message(item: dict[str, Any], names: dict[str, str]) -> list[Message]:
    given = item.get("parts")
    parts = [part for part in given if isinstance(part, dict)] if isinstance(given, list) else []
    calls = [
        Call(id=text_of(part.get("id")), name=text_of(part.get("name")) or "unnamed", arguments=_given(part))
        for part in parts
        if part.get("type") == "tool_call"
    ]
    names.update((call.id, call.name) for call in calls)
    answers = [
        Message(
            role="tool",
            text=text_of(part.get("response", part.get("result"))),
            call_id=call_id,
            name=names.get(call_id),
        )
        for part in parts
        if part.get("type") == "tool_call_response" and (call_id := text_of(part.get("id")))
    ]
    text = "\n".join(text_of(part.get("content")) for part in parts if part.get("type") == "text")
    role = item.get("role")
    if answers and not text:
        return answers
    if role == "system":
        return [Message(role="system", text=text)]
    if role == "user":
        return [*answers, Message(role="user", text=text)]
    return [*answers, Message(role="assistant", text=text, calls=tuple(calls))]


def _given(part: dict[str, Any]) -> Mapping[str, Any] | str:
    arguments = _json(part.get("arguments"))
    return arguments if isinstance(arguments, dict) else text_of(arguments)


def _instructions(value: Any) -> str | None:
    found = _json(value)
    if isinstance(found, list):
        return "\n".join(text_of(part.get("content")) for part in found if isinstance(part, dict)) or None
    return found if isinstance(found, str) else None
