"""What is recorded, as OpenTelemetry spans: one per unit, what it rests on as links.

Names and attributes are those of the conventions for generative AI (`gen_ai.*`), as far as these have a word for it,
and `memlineage.*`. A span's parent is the span that is current where it was recorded, or else the one that it rests on
first, so that one lineage is one trace. Links carry the role and the weight of each edge.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    TracerProvider,
    get_current_span,
    get_tracer_provider,
    set_span_in_context,
)

from memlineage.capture.recorder import Recorded, Recorder
from memlineage.lineage.escape import shorten
from memlineage.model.ids import Ref

__all__ = ["UNIT", "export_spans"]

UNIT: Final = "memlineage.unit.id"
"""The attribute by which a span is known to be one of ours."""
_KNOWN: Final = 65_536
_CONTENT: Final = 8_192
_OPERATIONS: Final = {"chat": "chat", "execute_tool": "execute_tool", "refused": "execute_tool"}


def export_spans(
    recorder: Recorder, tracer_provider: TracerProvider | None = None, *, content: bool = False
) -> Callable[[], None]:
    """Make a span of everything that is recorded from now on.

    Args:
        recorder: whose records.
        tracer_provider: where the spans go; the global one if left out.
        content: whether what was said goes into the spans. It may be private, so not unless you say so.

    Returns:
        A function that ends it.
    """
    provider = get_tracer_provider() if tracer_provider is None else tracer_provider
    return recorder.watch(_Spans(provider.get_tracer("memlineage"), content))


class _Spans:
    """Makes the spans, and remembers those of the latest units for links."""

    def __init__(self, tracer: Tracer, content: bool) -> None:
        self._tracer = tracer
        self._content = content
        self._lock = threading.Lock()
        self._known: OrderedDict[Ref, SpanContext] = OrderedDict()

    def __call__(self, recorded: Recorded) -> None:
        unit = recorded.unit
        links = [
            Link(known, {"memlineage.edge.role": edge.role.label, "memlineage.edge.weight": edge.weight})
            for edge in unit.lineage.dependencies
            if (known := self._known.get(edge.parent)) is not None
        ]
        span = self._tracer.start_span(
            _name(recorded), context=_parent(links), links=links, start_time=recorded.started_ns,
            kind=SpanKind.CLIENT if recorded.operation == "chat" else SpanKind.INTERNAL,
            attributes=self._attributes(recorded),
        )  # fmt: skip
        failure = "policy_refused" if recorded.operation == "refused" else recorded.failure
        if failure is not None:
            span.set_attribute("error.type", failure)
            span.set_status(Status(StatusCode.ERROR))
        span.end(recorded.ended_ns)
        with self._lock:
            self._known[unit.ref] = span.get_span_context()
            while len(self._known) > _KNOWN:
                self._known.popitem(last=False)

    def _attributes(self, recorded: Recorded) -> dict[str, Any]:
        unit = recorded.unit
        found = {
            "gen_ai.operation.name": _OPERATIONS.get(recorded.operation),
            "gen_ai.agent.name": recorded.agent,
            "gen_ai.conversation.id": recorded.thread,
            "gen_ai.request.model": recorded.model,
            "gen_ai.tool.name": recorded.name,
            "gen_ai.tool.call.id": recorded.call_id,
            UNIT: unit.id,
            "memlineage.unit.version": unit.version,
            "memlineage.unit.creator": unit.creator,
            "memlineage.unit.kind": unit.kind,
            "memlineage.unit.integrity": unit.integrity.name,
            "memlineage.operation": recorded.operation,
        }
        if self._content:
            found["memlineage.unit.content"] = shorten(unit.content, _CONTENT)
        return {name: value for name, value in found.items() if value is not None}


def _name(recorded: Recorded) -> str:
    if recorded.operation == "chat":
        return f"chat {recorded.model}" if recorded.model else "chat"
    if recorded.operation in ("execute_tool", "refused"):
        return f"execute_tool {recorded.name}"
    return f"{recorded.operation} {recorded.unit.creator.partition(':')[0]}"


def _parent(links: list[Link]) -> Context | None:
    if get_current_span().get_span_context().is_valid or not links:
        return None
    return set_span_in_context(NonRecordingSpan(links[0].context), Context())
