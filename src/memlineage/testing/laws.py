"""The laws of semantics.md, each checked on its own: none of them asks the oracle, all of them can fail it.

A law takes what a world recorded and what it answers, and gives the faults it found, in words. Expectations are
formulated differently from the oracle's recursion on purpose: values iterated to a fixpoint, and searches from
parents to children.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from memlineage.model.principal import HOST, Integrity
from memlineage.model.scope import Scope, Wall
from memlineage.model.state import CauseKind, Standing, Status
from memlineage.model.unit import Role
from memlineage.testing.fixpoint import blind, expected_states, integrities, level, sources
from memlineage.testing.history import Group, Handle, History, State, Writer
from memlineage.testing.worlds import Operation, Pick, Play, World

__all__ = [
    "adding_never_worsens",
    "attack_fails",
    "cascade_is_exact",
    "integrity_never_rises",
    "keeper",
    "one_current_value",
    "same_answers",
    "taint_persists",
    "undo_is_exact",
    "undo_leaves_the_rest",
]

_SERVED: Final = (Status.ACTIVE, Status.PENDING, Status.ARCHIVED)
_DEAD: Final = {Status.ERASED, Status.INVALID, Status.QUARANTINED, Status.RETRACTED}


def keeper(wall: Wall) -> Writer:
    """The host program, inside those walls."""
    return Writer(Scope(tenant=wall.tenant, user=wall.user, agent=wall.agent, session=wall.session))


def _differences(what: str, expected: dict[Handle, State], found: dict[Handle, State]) -> list[str]:
    refs = sorted(expected.keys() | found.keys())
    return [
        f"{what}: {ref} is {found.get(ref)}, not {expected.get(ref)}"
        for ref in refs
        if expected.get(ref) != found.get(ref)
    ]


def cascade_is_exact(play: Play) -> list[str]:
    """Cascade misses nothing and flags nothing more than an independent fixpoint does."""
    expected = expected_states(play.world.recorded(), play.now)
    return _differences("cascade", expected, play.world.states(play.now))


def same_answers(make: Callable[[], World], operations: Sequence[Operation]) -> list[str]:
    """Determinism: the same operations give the same outcomes and the same answers."""
    one, two = Play(make()), Play(make())
    outcomes = zip(operations, one.run(operations), two.run(operations), strict=True)
    faults = [f"{operation} gave {a}, then {b}" for operation, a, b in outcomes if a != b]
    return faults + _differences("second run", one.world.states(one.now), two.world.states(two.now))


def _answers(play: Play) -> tuple[dict[Handle, State], dict[Group, Handle | None]]:
    groups = {version.group for version in play.world.recorded().versions.values() if version.group}
    return play.world.states(play.now), {group: play.world.winner(group, play.now) for group in groups}


def _undoable(play: Play, acts: Iterable[tuple[Pick, CauseKind]]) -> list[tuple[Writer, Handle, CauseKind]]:
    """Acts that an undo takes back whole. Restoring `expired` also waives the version's own time (section 2), so
    it is an undo only where that time is not set. Nothing more is held against what was erased."""
    history = play.world.recorded()
    versions = history.versions
    erased = {ref for ref, causes in history.causes.items() if any(kind is CauseKind.ERASED for _, kind in causes)}
    meant = [(play.ref(pick), kind) for pick, kind in acts]
    return [
        (keeper(versions[ref].wall), ref, kind)
        for ref, kind in meant
        if ref not in erased and (kind is not CauseKind.EXPIRED or versions[ref].valid_until is None)
    ]


def undo_is_exact(play: Play, acts: Iterable[tuple[Pick, CauseKind]]) -> list[str]:
    """After each act is restored, last first, all is as it was before that act."""
    trail = []
    for writer, ref, kind in _undoable(play, acts):
        trail.append((writer, ref, kind, _answers(play)))
        play.world.add_cause(writer, ref, kind, by=HOST, now=play.now)
    faults = []
    for writer, ref, kind, before in reversed(trail):
        play.world.restore(writer, ref, kind, by=HOST, now=play.now)
        states, winners = _answers(play)
        faults += _differences(f"undo of {kind.label} {ref}", before[0], states)
        faults += [f"undo of {kind.label} {ref}: winners {winners}, not {before[1]}"] * (winners != before[1])
    return faults


def undo_leaves_the_rest(play: Play, first: tuple[Pick, CauseKind], second: tuple[Pick, CauseKind]) -> list[str]:
    """After two acts, undoing the first leaves what the second alone would have left."""
    acts = _undoable(play, [first, second])
    if len(acts) < 2:
        return []
    (writer, ref, kind), (writer2, ref2, kind2) = acts
    play.world.add_cause(writer2, ref2, kind2, by=HOST, now=play.now)
    alone = play.world.states(play.now)
    play.world.restore(writer2, ref2, kind2, by=HOST, now=play.now)
    play.world.add_cause(writer, ref, kind, by=HOST, now=play.now)
    play.world.add_cause(writer2, ref2, kind2, by=HOST, now=play.now)
    play.world.restore(writer, ref, kind, by=HOST, now=play.now)
    return _differences(f"undo of {kind.label} {ref}", alone, play.world.states(play.now))


def _reached(roots: Collection[Handle], children: dict[Handle, set[Handle]], stop: Collection[Handle]) -> set[Handle]:
    found: set[Handle] = set()
    todo = [root for root in roots if root not in stop]
    while todo:
        ref = todo.pop()
        if ref not in found:
            found.add(ref)
            todo += [child for child in children.get(ref, ()) if child not in stop]
    return found


def taint_persists(play: Play) -> list[str]:
    """What a path from something of low integrity leads to is no higher, and nothing else is as low."""
    history, states = play.world.recorded(), play.world.states(play.now)
    children: dict[Handle, set[Handle]] = {}
    for ref, version in history.versions.items():
        for source in sources(version):
            children.setdefault(source, set()).add(ref)
    faults = []
    for limit in (Integrity.UNTRUSTED, Integrity.INTERNAL):
        raised = {ref for ref, level in history.endorsed.items() if level > limit}
        roots = {
            ref
            for ref, version in history.versions.items()
            if min(level(history, version.creator), level(history, version.actor)) <= limit or blind(version)
        }
        expected = _reached(roots, children, raised)
        found = {ref for ref, state in states.items() if state.integrity <= limit}
        faults += [f"{ref} is not held to {limit.name}" for ref in sorted(expected - found)]
        faults += [f"{ref} is held to {limit.name} by no path" for ref in sorted(found - expected)]
    return faults


def integrity_never_rises(play: Play, act: Operation) -> list[str]:
    """No act but an endorsement or a change of the registry raises anything that is there."""
    before = play.world.states(play.now)
    play.do(act)
    after = play.world.states(play.now)
    return [f"{act} raised {ref}" for ref, state in before.items() if after[ref].integrity > state.integrity]


def one_current_value(play: Play) -> list[str]:
    """Of the current versions with one wall, subject and key at most one is served: the winner, which holds the
    key by right. Copies apart."""
    states, winners = _answers(play)
    served: dict[Group, list[Handle]] = {group: [] for group in winners}
    for ref, version in play.world.recorded().versions.items():
        copied = any(p.role is Role.SHARED for p in version.parents)
        state = states[ref]
        good = state.status in _SERVED and state.standing is not Standing.CONTAMINATED
        if version.group and not copied and state.current and good:
            served[version.group].append(ref)
    faults = [
        f"{group}: served {refs}, won by {winners[group]}"
        for group, refs in served.items()
        if not set(refs) <= {winners[group]}
    ]
    return faults + [
        f"{group}: the winner {winner} is {states[winner]}"
        for group, winner in winners.items()
        if winner is not None and (states[winner].status is Status.SUPERSEDED or _is_dead(states[winner]))
    ]


def adding_never_worsens(play: Play, act: Operation, target: Pick) -> list[str]:
    """One more justification leaves its unit as well supported as before, or better, and no more trusted."""
    play.now += act.pause  # what expires meanwhile is not the act's doing
    ref, before = play.ref(target), play.world.states(play.now)
    play.do(dataclasses.replace(act, pause=0))
    old, new = before[ref], play.world.states(play.now)[ref]
    worse = new.standing > old.standing or _dimmed(new.status) > _dimmed(old.status)
    return [f"{act} made {old} of {new}"] * (worse or new.integrity != old.integrity)


def _dimmed(status: Status) -> int:
    return (Status.ACTIVE, Status.PENDING).index(status) if status in (Status.ACTIVE, Status.PENDING) else 2


def _sheltered(history: History) -> set[Handle]:
    """What the law on attackers leaves out: units endorsed above their own parents, and their descendants; and
    those that stand through an equivalent of lower integrity than their own parent had."""
    levels = integrities(history)
    bare = History(**{**vars(history), "endorsed": {}})
    apart = {ref for ref in history.endorsed if levels[ref] > integrities(bare)[ref]}
    apart |= {older for older, newer in history.verdicts if levels[newer] < levels[older]}
    children: dict[Handle, set[Handle]] = {}
    for ref, version in history.versions.items():
        for edge in (*version.parents, *(e for parents in history.late.get(ref, ()) for e in parents)):
            children.setdefault(edge.ref, set()).add(ref)
    for older, newer in history.verdicts:
        children.setdefault(newer, set()).add(older)
    return _reached(apart, children, ())


def attack_fails(play: Play, attempts: Sequence[Operation], claims: Collection[str], actor: str) -> list[str]:
    """An attacker who writes under those claims neither raises, suppresses nor revives what is not his own.

    Higher integrity means higher than any that he can give to what he writes. Attempts take no time, so that
    nothing expires meanwhile.
    """
    old, before = play.world.recorded().versions.copy(), play.world.states(play.now)
    history = play.world.recorded()
    strength = max(min(level(history, claim), level(history, actor)) for claim in claims)
    apart = _sheltered(history) | {r for r, v in old.items() if v.actor == actor and (v.creator in claims)}
    play.run(attempts)
    after, faults = play.world.states(play.now), []
    for ref in old.keys() - apart:
        was, now = before[ref], after[ref]
        if now.integrity > was.integrity:
            faults.append(f"{ref} gained integrity: {was} -> {now}")
        if was.integrity > strength and (_dimmed(now.status) > _dimmed(was.status) or now.standing > was.standing):
            faults.append(f"{ref} was suppressed: {was} -> {now}")
        if _is_dead(was) and not _is_dead(now):
            faults.append(f"{ref} was revived: {was} -> {now}")
    return faults


def _is_dead(state: State) -> bool:
    return state.status in _DEAD or state.standing is Standing.CONTAMINATED
