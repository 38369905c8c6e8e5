"""Entry checks: what is not certain enough is taken in, and held back until independent sources say it too (row C7).

A write that a check is about is quarantined in its own transaction, with the check's name beside the cause in table
`awaiting`. Whenever something is written that says the same (same normal form, or the kind's comparer says so; same
subject and key where both name one; same walls), what waits is counted again, and is released together once there are
enough independent sources: in that transaction, and of that cause only.

A source is a statement that is current, against which nothing is held but that it waits too, and whose roots were all
said by principals of level INTERNAL at least, and written by such actors: a model may claim any `external:` name. Two
sources are independent if they share no origin (`lineage/credibility.py`). What was concluded from another shares one.
The word of a user or of the host is enough by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Any, Final

import msgspec
import orjson

from memlineage.engine.admission import same_claim
from memlineage.engine.core import Core
from memlineage.engine.credence.believing import voices_of
from memlineage.engine.credence.registered import Entry, EntryCheck, Matched
from memlineage.engine.enforcement import Enforcement, background
from memlineage.engine.inputs import Draft, Target
from memlineage.errors import PolicyViolationError
from memlineage.lineage.credibility import ConfidenceModel, Voice, beginnings, judge, judged_by, origins_of
from memlineage.lineage.paths import ancestry, closes_cycle
from memlineage.lineage.quorum import independent
from memlineage.model.principal import HOST, Integrity, kind_of
from memlineage.model.scope import Scope, Visibility, Wall
from memlineage.model.state import CauseKind, Standing
from memlineage.model.unit import MICRO, Role
from memlineage.store.database import fetch, ids
from memlineage.store.graph import StoreGraph
from memlineage.store.records import NewEdge, NewVersion
from memlineage.store.sql import QUERIES
from memlineage.store.units import read_units
from memlineage.store.writer import Writer

__all__ = ["alike_forms", "entered", "entry_of"]

_TRUSTED_KINDS: Final = frozenset({"user", "system"})
_MOST: Final = 5
"""Statements of one principal that are looked at: nobody crowds out others by repeating what they say."""


class _Source(msgspec.Struct, frozen=True):
    """A statement that says the same: integer id, creator, origins, and how far it is believed by itself."""

    n: int
    creator: str
    origins: frozenset[str]
    worth: float


def entry_of(core: Core, draft: Draft, revised: Target | None) -> Entry:
    """What a check is told of a write; labels carry over from what it revises unless given."""
    kept: Sequence[Any] = (None, None, None, None)
    if revised is not None:
        with core.read() as snapshot:
            kept = snapshot.connection.execute(QUERIES["labels_of"], (revised.id,)).fetchone() or kept
    kind, tags, subject, key = kept
    return Entry(
        content=draft.content,
        creator=draft.creator,
        kind=draft.kind or kind or "fact",
        tags=draft.tags if draft.tags is not None else tuple(orjson.loads(tags or "[]")),
        subject=subject if draft.subject is None else draft.subject,
        key=key if draft.key is None else draft.key,
        confidence=None if draft.confidence is None else draft.confidence / MICRO,
    )


def alike_forms(core: Core, kind: str, content: str) -> frozenset[bytes]:
    """Forms of what waits that the kind's comparer finds to say the same; it may think, so nothing is held open."""
    compare = core.comparers.get(kind)
    if compare is None:
        return frozenset()
    with core.read() as snapshot:
        rows = fetch(snapshot.connection, QUERIES["awaited_forms"])
    return frozenset(form for form, said, of in rows if of == kind and compare(said, content))


def entered(
    writer: Writer, core: Core, enforcement: Enforcement, n: int, new: NewVersion,
    matched: Sequence[Matched], forms: Iterable[bytes],
) -> None:  # fmt: skip
    """A version was written: hold it back, or release with it what waited for its like."""
    saying = {m for form in forms for m, _ in writer.earlier.saying(form)} - {n}
    alike = _alike(writer, new, sorted(saying))
    awaited = _awaited(writer, alike)
    if not matched and not awaited:
        return
    writer.settle()
    counting = _Counting(writer, core.confidence)
    found = [counting.source(m) for m in (n, *counting.candidates(alike))]  # what may change something first
    chosen, worth = independent([source for source in found if source is not None]), counting.worth(n)
    about = {one.check.name: one for one in matched}
    for name in sorted({*awaited, *about}):
        check = core.entry_checks.get(name)
        if name in about and about[name].error is not None:
            _hold(writer, n, name, f"entry check {name!r} failed: {about[name].error}")
        elif check is None:  # registered in another process: what it asks for is not known here
            continue
        elif _enough(check, chosen, worth):
            _release(writer, enforcement, awaited.get(name, {}), chosen)
        elif name in about:
            _hold(writer, n, name, _reason(check, chosen, worth))


class _Counting:
    """Which statements count as sources, and for how much."""

    def __init__(self, writer: Writer, model: ConfidenceModel) -> None:
        self._writer = writer
        self._model = model
        self._graph: StoreGraph = writer.graph()

    def candidates(self, numbers: Collection[int]) -> list[int]:
        """The latest few of each principal, or agent that wrote them, of level INTERNAL at least."""
        kept: dict[str, list[int]] = {}
        for n, voice in sorted(self._voices(numbers).items(), reverse=True) if numbers else ():
            of = kept.setdefault(voice.creator if voice.actor == HOST else voice.actor, [])
            if len(of) < _MOST and self._known(voice):
                of.append(n)
        return sorted(n for of in kept.values() for n in of)

    def _known(self, voice: Voice) -> bool:
        level_of = self._writer.names.level_of
        return min(level_of(voice.creator), level_of(voice.actor)) >= Integrity.INTERNAL

    def source(self, n: int) -> _Source | None:
        """A statement as a source; None if it does not count."""
        node = self._graph.node(n)
        causes = list(self._writer.connection.execute(QUERIES["causes_awaiting"], (n,)))
        wrong = not all(awaits for _, awaits in causes) or node.own not in (0, CauseKind.QUARANTINED)
        if wrong or node.standing != Standing.SUPPORTED:
            return None
        begins = beginnings(self._graph, n)
        written = self._graph.written({*begins, n})
        if any(min(written[m].creator_level, written[m].actor_level) < Integrity.INTERNAL for m in {*begins, n}):
            return None
        voices = self._voices(begins)
        origins = frozenset[str]().union(*(origins_of(voices[m]) for m in begins))
        return _Source(n, written[n].creator, origins, self.worth(n))

    def worth(self, n: int) -> float:
        """How far a statement is believed by what it was written with."""
        voices = self._voices(judged_by(self._graph, n))
        return judge(self._graph, n, voices, self._model, self._writer.now_us).written

    def _voices(self, numbers: Collection[int]) -> dict[int, Voice]:
        return voices_of(self._writer.connection, self._writer.names, numbers)


def _alike(writer: Writer, new: NewVersion, numbers: Sequence[int]) -> list[int]:
    """Those of these versions that are about the same, in the same walls, and not erased."""
    if not numbers:
        return []
    walls = {n: writer.names.wall(w) for n, w in fetch(writer.connection, QUERIES["walls_of"], (ids(numbers),))}
    rows = fetch(writer.connection, QUERIES["claims"], (ids(numbers),))
    return [
        n
        for n, _, _, _, subject, key in sorted(rows)
        if same_claim(new.subject, new.key, subject, key) and _same_walls(walls[n], new.wall)
    ]


def _same_walls(a: Wall, b: Wall) -> bool:
    place = (a.tenant, a.user, a.visibility) == (b.tenant, b.user, b.visibility)
    private = a.user is None or a.visibility is Visibility.AGENT
    session = a.visibility is not Visibility.SESSION or a.session == b.session
    return place and session and (not private or a.agent == b.agent)


def _awaited(writer: Writer, numbers: Sequence[int]) -> dict[str, dict[int, int]]:
    """Per check, which of these versions wait for it, and by which cause."""
    found: dict[str, dict[int, int]] = {}
    for n, name, cause in writer.connection.execute(QUERIES["awaited"], (ids(numbers),)) if numbers else ():
        found.setdefault(name, {})[n] = cause
    return found


def _enough(check: EntryCheck, chosen: Sequence[_Source], worth: float) -> bool:
    if any(kind_of(source.creator) in _TRUSTED_KINDS for source in chosen):
        return True
    sure = check.least_confidence is None or max(worth, _together(chosen)) >= check.least_confidence
    return sure and (check.sources <= 1 or len(chosen) >= check.sources)


def _together(chosen: Sequence[_Source]) -> float:
    return 1.0 - prod(1.0 - source.worth for source in chosen)


def _reason(check: EntryCheck, chosen: Sequence[_Source], worth: float) -> str:
    said = []
    if check.sources > 1 and len(chosen) < check.sources:
        said.append(f"{len(chosen)} of {check.sources} independent sources say so")
    together = max(worth, _together(chosen))
    if check.least_confidence is not None and together < check.least_confidence:
        said.append(f"it is believed {together:.2f}, and {check.least_confidence:.2f} is needed")
    return f"entry check {check.name!r}: {'; '.join(said)}"


def _hold(writer: Writer, n: int, name: str, reason: str) -> None:
    cause = writer.add_cause(n, CauseKind.QUARANTINED, by=HOST, reason=reason)
    writer.connection.execute("INSERT INTO awaiting (n, name, cause) VALUES (?, ?, ?)", (n, name, cause))


def _release(
    writer: Writer, enforcement: Enforcement, held: Mapping[int, int], chosen: Sequence[_Source]
) -> None:  # fmt: skip
    """Lift what these were held by, as far as policy lets the system, and let each later source support the earlier."""
    if not held:
        return
    units = read_units(writer.connection, writer.names, writer.states, list(held))
    many = f"{len(chosen)} independent source{'s' if len(chosen) > 1 else ''}"
    for n, cause in sorted(held.items()):
        acting = background(Scope.of(units[n].wall))
        try:
            enforcement.act_on("restore", acting, units[n], by=HOST, now_us=writer.now_us, names=writer.names)
        except PolicyViolationError:
            continue  # logged; it stays held
        writer.lift_cause(n, cause, by=HOST, reason=f"{many} said the same")
        for source in chosen:
            if source.n > n:
                _support(writer, n, source.n)


def _support(writer: Writer, n: int, source: int) -> None:
    """Let a later statement justify an earlier one, where that closes no cycle and lowers nothing."""
    graph = writer.graph()
    nodes = graph.load([n, source])
    if nodes[n].unit == nodes[source].unit or nodes[source].integrity < nodes[n].integrity:
        return
    if closes_cycle(graph, below=n, parents=[source]) or n in ancestry(graph, [source]):
        return
    writer.add_justification(n, [NewEdge(source, int(Role.DEPENDS), MICRO)], by=HOST)
