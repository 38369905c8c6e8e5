"""What writing something would mean: its edges, its integrity, whether it is an echo or an old refuted claim.

Everything here is found out inside the write transaction, before policy decides, and nothing is written
(semantics.md, sections 0, 3 and 10).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.inputs import Draft, Link
from memlineage.engine.snapshot import Known, place_parent, resolve
from memlineage.errors import UnknownUnitError
from memlineage.lineage.graph import Node, shown
from memlineage.lineage.integrity import written_integrity
from memlineage.lineage.paths import ancestry, resting_on
from memlineage.model.ids import Ref
from memlineage.model.principal import Authority, Integrity, authority, is_model_side, kind_of
from memlineage.model.scope import Wall
from memlineage.model.state import CauseKind, Standing, Status
from memlineage.model.unit import MICRO, Role
from memlineage.store.database import fetch, ids
from memlineage.store.graph import StoreGraph
from memlineage.store.records import NewEdge, Said
from memlineage.store.sql import QUERIES
from memlineage.store.states import States
from memlineage.store.writer import Writer

__all__ = [
    "Admission", "Protection", "admit", "echo_of", "equivalent_versions", "exposure_edges", "link_edges", "look_up",
    "protection_of", "same_claim",
]  # fmt: skip

_DEAD = frozenset({CauseKind.INVALID, CauseKind.QUARANTINED, CauseKind.RETRACTED})


class Admission(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a write would be.

    Attributes:
        edges: what it hangs on.
        integrity: what it may justify.
        authority: the rank of its creator at that integrity.
        reassertion: `none`; `linked` to a dead claim that it may repeat; `unsupported` when it may not.
        reasserts: that dead claim.
    """

    edges: tuple[NewEdge, ...]
    integrity: Integrity
    authority: Authority
    reassertion: str
    reasserts: int | None


class Protection(msgspec.Struct, frozen=True):
    """What an update is measured against: the greatest rank among the current and all later versions."""

    authority: int
    integrity: int


def look_up(writer: Writer, drafts: Iterable[Draft]) -> None:
    """Find out together what these drafts will each ask for: the levels of their parents, and who said it before."""
    targets = {link.target for draft in drafts for link in draft.links}
    places = [writer.earlier.place(Ref(one.id, one.version)) for one in targets if one.version is not None]
    writer.earlier.levels([place[0] for place in places if place is not None])
    writer.earlier.load_forms([draft.form for draft in drafts])


def link_edges(writer: Writer, acting: Acting, links: Iterable[Link]) -> tuple[NewEdge, ...]:
    """The edges that links stand for. Every parent must be visible here, originals of a share apart;
    a parent named twice counts once."""
    edges: dict[tuple[int, Role], int] = {}
    for link in links:
        scope = None if link.role is Role.SHARED else acting.scope
        unit, version = link.target.id, link.target.version
        if version is None:
            parent = resolve(writer.connection, writer.names, scope, link.target).n
        else:
            parent = place_parent(writer.earlier, writer.names, scope, Ref(unit, version))
        edges[parent, link.role] = max(link.weight, edges.get((parent, link.role), 0))
    return tuple(NewEdge(parent, int(role), weight) for (parent, role), weight in sorted(edges.items()))


def exposure_edges(
    writer: Writer, acting: Acting, draft: Draft, declared: Iterable[NewEdge], before: Iterable[int] = ()
) -> tuple[NewEdge, ...]:
    """What the model had in front of it and did not name (role `exposed`), and what it wrote before in the same batch.

    Nothing for anyone else's words; but what a tool is called with are the model's, and the record repeats them.
    """
    if acting.exposure is None or not (is_model_side(draft.creator) or draft.kind == "action" or draft.spoken):
        return ()
    known = {edge.parent for edge in declared}
    edges = [NewEdge(n, int(Role.EXPOSED), MICRO) for n in sorted(set(before) - known)]
    known.update(before)
    for ref in acting.exposure.seen():
        try:
            parent = place_parent(writer.earlier, writer.names, acting.scope, ref)
        except UnknownUnitError:  # a share that was revoked since: it is no longer in anyone's sight
            continue
        if parent not in known:
            edges.append(NewEdge(parent, int(Role.EXPOSED), MICRO))
    return tuple(edges)


def echo_of(writer: Writer, acting: Acting, draft: Draft, edges: Sequence[NewEdge]) -> int | None:
    """The unit that a model merely repeats (section 10): active or pending, in its exposure or its parents.

    Its exposure is everything it was ever shown, not only what is new since it last wrote.
    """
    if not is_model_side(draft.creator):
        return None
    parents, exposure = {edge.parent for edge in edges}, acting.exposure
    alike = [n for n, _ in writer.earlier.saying(draft.form) if exposure is not None or n in parents]
    same = [
        (n, subject, key)
        for n, _, unit, version, subject, key in _claims(writer, alike)
        if n in parents or (exposure is not None and exposure.ever(Ref(unit, version)))
    ]
    if not same:
        return None
    nodes = writer.graph().load([n for n, _, _ in same])
    matching = [
        nodes[n] for n, subject, key in same if _usable(nodes[n]) and same_claim(draft.subject, draft.key, subject, key)
    ]
    return max(matching, key=lambda node: node.rank).n if matching else None


def _usable(node: Node) -> bool:
    return shown(node.own, node.winner, node.standing) in {Status.ACTIVE, Status.PENDING}


def same_claim(subject: str | None, key: str | None, other_subject: str | None, other_key: str | None) -> bool:
    """Subject and key are equal, a missing one matching any."""
    subjects = subject is None or other_subject is None or subject == other_subject
    return subjects and (key is None or other_key is None or key == other_key)


def admit(
    writer: Writer, acting: Acting, draft: Draft, edges: tuple[NewEdge, ...], wall: Wall, *, revises: int | None = None
) -> Admission:
    """What this write would be, given what it hangs on. An update also hangs on the version it revises."""
    all_edges = edges if revises is None else (*edges, NewEdge(revises, int(Role.REVISES), MICRO))
    known = writer.earlier.levels({edge.parent for edge in all_edges})
    levels = [(known[edge.parent], edge.role) for edge in all_edges]
    integrity = written_integrity(
        draft.creator, writer.names.level_of(draft.creator), writer.names.level_of(acting.actor), levels
    )
    reassertion, dead = "none", None
    if draft.kind != "action":  # a call that ran has run, whatever was thought of an earlier one
        reassertion, dead = _reassertion(writer, draft, edges, wall, integrity)
    return Admission(
        edges=all_edges,
        integrity=integrity,
        authority=authority(draft.creator, integrity),
        reassertion=reassertion,
        reasserts=dead,
    )


def _reassertion(
    writer: Writer, draft: Draft, edges: Sequence[NewEdge], wall: Wall, integrity: Integrity
) -> tuple[str, int | None]:
    """The guard of section 10: what was found wrong stays out unless someone independent says it again."""
    # The walls are tenant and user: what is dead for one agent or session of a user is dead for all of them.
    ns = writer.names.find_namespace(wall)
    troubled = writer.states.troubled([n for n, here in writer.earlier.saying(draft.form) if here == ns])
    dead = [
        (n, unit)
        for n, unit, _, _, subject, key in _claims(writer, [n for n in troubled if _dead(writer, n)])
        if same_claim(draft.subject, draft.key, subject, key)
    ]
    if not dead:
        return "none", None
    newest = dead[0][0]
    if kind_of(draft.creator) in {"user", "system"}:
        return "linked", newest
    if integrity is Integrity.UNTRUSTED:
        return "unsupported", newest
    graph, parents = writer.graph(), {edge.parent for edge in edges}
    nodes = graph.load(ancestry(graph, parents))
    if {nodes[n].unit for n in ancestry(graph, parents)} & {unit for _, unit in dead}:
        return "unsupported", newest
    if is_model_side(draft.creator) and not _has_active_parent(edges, nodes):
        return "unsupported", newest
    return "linked", newest


def _claims(writer: Writer, alike: Sequence[int]) -> Sequence[tuple[Any, ...]]:
    """What these versions are about, the newest first, without what was erased."""
    return fetch(writer.connection, QUERIES["claims"], (ids(alike),)) if alike else ()


def _dead(writer: Writer, n: int) -> bool:
    """Whether a version was found wrong. What an entry check holds back was not: it waits for others to say it."""
    state = writer.states.state(n)
    if state.standing == Standing.CONTAMINATED or not (state.own in _DEAD or state.quarantined):
        return state.standing == Standing.CONTAMINATED
    causes = list(writer.connection.execute(QUERIES["causes_awaiting"], (n,)))
    return not causes or not all(awaits for _, awaits in causes)


def _has_active_parent(edges: Iterable[NewEdge], nodes: Mapping[int, Node]) -> bool:
    declared = (nodes[edge.parent] for edge in edges if edge.role != Role.EXPOSED)
    return any(shown(node.own, node.winner, node.standing) is Status.ACTIVE for node in declared)


def protection_of(states: States, graph: StoreGraph, known: Known) -> Protection:
    """The versions that an update must not rank below: the current and all later ones, or all if none is current."""
    rows = list(graph.connection.execute(QUERIES["unit_versions"], (known.unit,)))
    standing = [version for n, version in rows if not states.state(n).quarantined]
    first = max(standing, default=0)
    guarded = [n for n, version in rows if version >= first]
    nodes = graph.load(guarded)
    return Protection(max(nodes[n].authority for n in guarded), max(nodes[n].integrity for n in guarded))


def equivalent_versions(
    writer: Writer, known: Known, forms: Mapping[bytes, bool], edges: Iterable[NewEdge]
) -> tuple[Said, ...]:
    """Earlier versions that the new one says again, as judged per form, where recording it closes no cycle."""
    rows = fetch(
        writer.connection,
        "SELECT n, version, form FROM version WHERE u = ? AND content IS NOT NULL ORDER BY version",
        (known.unit,),
    )
    alike = [Said(n, version) for n, version, form in rows if forms.get(form, False)]
    parents = {edge.parent for edge in edges if edge.role != Role.REVISES}
    above = resting_on(writer.graph(), parents) if alike and parents else set()
    return tuple(said for said in alike if said.n not in above)
