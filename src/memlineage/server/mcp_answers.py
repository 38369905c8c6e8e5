"""What the MCP server answers: bounded values that a program can walk, and the same in words for a model.

An answer has two forms. The structured one is a frozen value with a published schema. The text is what most clients
put in front of their model: content stands in it as quoted lines under a label that says where it comes from, so that
no memory can pass for an instruction of the server. Every list ends somewhere, and says how many it left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from memlineage.lineage.escape import shorten
from memlineage.model.unit import Role, Unit
from memlineage.recall.prompt import neutral, prompt_block, prompt_frame

if TYPE_CHECKING:
    from memlineage.engine.found import Found
    from memlineage.engine.results import Consequences, Impact, Trace
    from memlineage.policy import Decision

__all__ = [
    "LISTED", "Answer", "Explained", "Judged", "Known", "Remembered", "Retrieved", "Told", "Traced", "Undone",
    "Versions", "Way", "explained", "found", "impact_of", "judged", "remembered", "undone", "versions", "way",
]  # fmt: skip

LISTED: Final = 50
"""Most units in one answer."""
_CONTENT: Final = 4000
"""Most characters of one unit's content in an answer."""
_TEXT: Final = 24_000
"""Most characters of one explanation."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A unit, as an answer shows it.

    Attributes:
        ref: `id@version`; other tools take it.
        content: its text.
        cut: how many characters of it were left out.
        kind: `fact`, `preference`, …
        creator: who said it.
        status: `active`, or why it may not be relied on.
        integrity: TRUSTED, INTERNAL or UNTRUSTED: what it may justify.
        said: when, in ISO 8601.
        subject, key: what it is about, and which property of that it states.
        tags: labels.
        confidence: in [0, 1]; null if nobody said.
        rests_on: refs of what it was concluded from.
        flags: rules that flagged it in this read.
    """

    ref: str
    content: str
    cut: int
    kind: str
    creator: str
    status: str
    integrity: str
    said: str
    subject: str | None
    key: str | None
    tags: tuple[str, ...]
    confidence: float | None
    rests_on: tuple[str, ...]
    flags: tuple[str, ...]


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that policy held back: which, by which rule, and why."""

    ref: str
    rule: str
    reason: str


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """What `store` did: the unit that was written, or the one that it merely repeats."""

    unit: Known


class Retrieved(msgspec.Struct, frozen=True, kw_only=True):
    """What bears on a query, best first, with what binds the answer and what was withheld."""

    units: tuple[Known, ...]
    constraints: tuple[Known, ...]
    withheld: tuple[Held, ...]
    withheld_count: int


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Versions of a unit, oldest first; `left_out` older ones are not shown."""

    versions: tuple[Known, ...]
    left_out: int


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """Where a unit came from and what holds it down, in words; `hidden` ancestors are out of sight."""

    ref: str
    status: str
    text: str
    hidden: int


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A descendant: the shortest path down to it, and its status if the unit asked about were wrong."""

    unit: Known
    path: tuple[str, ...]
    would_be: str


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What descends from a unit, parents before children."""

    ref: str
    affected: tuple[Way, ...]
    actions: int
    left_out: int


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """What a unit was concluded from, parents before children, itself last."""

    ref: str
    units: tuple[Known, ...]
    hidden: int
    left_out: int


class Turned(msgspec.Struct, frozen=True, kw_only=True):
    """A version whose status changed."""

    ref: str
    before: str
    after: str


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """What an act on a unit did: its status now, and what else changed."""

    ref: str
    status: str
    changed: tuple[Turned, ...]
    count: int


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an action may be taken: `allow`, `deny`, `ask`, …; why; and the arguments that nothing supports."""

    effect: str
    allowed: bool
    rule: str | None
    reasons: tuple[str, ...]
    unsupported: tuple[str, ...]
    decision: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Both forms of an answer."""

    data: msgspec.Struct
    text: str


def _known(unit: Unit) -> Known:
    cut = max(0, len(unit.content) - _CONTENT)
    parents = (edge.parent for edge in unit.lineage.dependencies if edge.role is not Role.REVISES)
    return Known(
        ref=str(unit.ref), content=unit.content[:_CONTENT], cut=cut, kind=unit.kind, creator=unit.creator,
        status=unit.status.value, integrity=unit.integrity.name, said=unit.lineage.timestamp.isoformat(),
        subject=unit.subject, key=unit.key, tags=unit.tags, confidence=unit.confidence,
        rests_on=tuple(dict.fromkeys(str(parent) for parent in parents))[:LISTED], flags=unit.flags,
    )  # fmt: skip


def _block(label: str, unit: Unit, more: Mapping[str, str] | None = None) -> str:
    shown = unit
    if len(unit.content) > _CONTENT:
        left = f" [… {len(unit.content) - _CONTENT} characters more]"
        shown = msgspec.structs.replace(unit, content=unit.content[:_CONTENT] + left)
    return prompt_block(label, shown, {"ref": str(unit.ref), **(more or {})})


def _frame(units: Iterable[Unit], left: int = 0) -> str:
    return prompt_frame([_block("memory", unit) for unit in units], omitted=left)


def remembered(unit: Unit) -> Answer:
    """What was written. Its words are the client's own: the text does not repeat them."""
    said = "" if unit.lineage.reasserts is None else f" It repeats {unit.lineage.reasserts}, which was refused."
    text = f"Remembered as {unit.ref}, {unit.status.value}, by {neutral(unit.creator)}.{said}"
    return Answer(data=Remembered(unit=_known(unit)), text=text)


def found(answer: Found) -> Answer:
    """What was retrieved."""
    held = [Held(ref=str(item.ref), rule=item.rule, reason=shorten(item.reason, 300)) for item in answer.withheld]
    data = Retrieved(
        units=tuple(_known(unit) for unit in answer.units),
        constraints=tuple(_known(unit) for unit in answer.constraints),
        withheld=tuple(held[:LISTED]), withheld_count=len(held),
    )  # fmt: skip
    bound = {unit.ref for unit in answer.constraints}
    blocks = [_block("constraint", unit) for unit in answer.constraints]
    blocks += [_block("memory", unit) for unit in answer.units if unit.ref not in bound]
    outdated = sum(item.outdated for item in answer.withheld)
    return Answer(data=data, text=prompt_frame(blocks, withheld=len(held), outdated=outdated))


def versions(page: Sequence[Unit]) -> Answer:
    """The history of a unit."""
    shown, left = page[-LISTED:], max(0, len(page) - LISTED)
    return Answer(
        data=Versions(versions=tuple(_known(unit) for unit in shown), left_out=left), text=_frame(shown, left)
    )  # fmt: skip


def explained(told: Any) -> Answer:
    """An explanation; its text escapes what units say."""
    text = str(told)
    if len(text) > _TEXT:
        text = f"{text[:_TEXT]} [… {len(text) - _TEXT} characters more]"
    target: Unit = told.target
    data = Explained(ref=str(target.ref), status=target.status.value, text=text, hidden=told.hidden)
    return Answer(data=data, text=text)


def impact_of(impact: Impact) -> Answer:
    """What would become of everything that descends from a unit."""
    shown, left = impact.affected[:LISTED], max(0, len(impact) - LISTED)
    affected = tuple(
        Way(unit=_known(item.unit), path=tuple(map(str, item.path)), would_be=item.would_be.value) for item in shown
    )
    data = Told(ref=str(impact.root.ref), affected=affected, actions=len(impact.actions), left_out=left)
    blocks = [_block("memory", item.unit, {"would_be": item.would_be.value}) for item in shown]
    counted = f"{len(impact)} descend from {impact.root.ref}; actions that were run among them: {len(impact.actions)}."
    return Answer(data=data, text=f"{counted}\n{prompt_frame(blocks, omitted=left)}")


def way(trace: Trace) -> Answer:
    """What a unit was concluded from."""
    shown, left = trace.units[-LISTED:], max(0, len(trace) - LISTED)
    data = Traced(
        ref=str(trace.target.ref), units=tuple(_known(unit) for unit in shown), hidden=trace.hidden, left_out=left
    )  # fmt: skip
    return Answer(data=data, text=_frame(shown, left))


def undone(done: Consequences) -> Answer:
    """What an act did."""
    changed = tuple(
        Turned(ref=str(item.ref), before=item.before.value, after=item.after.value) for item in done.changed[:LISTED]
    )
    data = Undone(ref=str(done.ref), status=done.status.value, changed=changed, count=done.count)
    lines = [f"{done.ref} is {done.status.value} now; {done.count} more changed."]
    lines += [f"{item.ref}: {item.before} -> {item.after}" for item in changed]
    return Answer(data=data, text="\n".join(lines))


def judged(decision: Decision) -> Answer:
    """Whether an action may be taken, and what to do where it may not."""
    missing = tuple(support.argument for support in decision.support if not support.supported)
    reasons = tuple(shorten(reason, 300) for reason in decision.reasons[:LISTED])
    data = Judged(
        effect=decision.effect.value, allowed=decision.allowed, rule=decision.rule, reasons=reasons,
        unsupported=missing[:LISTED], decision=decision.id,
    )  # fmt: skip
    lines = [f"{neutral(decision.action)}: {decision.effect.value}", *reasons]
    if missing:
        lines.append(f"Nothing that may justify it supports: {neutral(', '.join(missing[:LISTED]))}")
    return Answer(data=data, text="\n".join(lines))
