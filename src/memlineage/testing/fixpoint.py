"""Everything derived, a second time: values iterated over all versions until nothing changes.

Written from semantics.md and not from the oracle, whose recursion it checks; they share recorded values only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from memlineage.model.principal import Integrity, authority, default_level, is_model_side
from memlineage.model.state import CauseKind, Standing, Status
from memlineage.model.unit import Role
from memlineage.testing.history import Group, Handle, History, State, Version

__all__ = ["blind", "expected_states", "integrities", "level", "sources"]

T = TypeVar("T")
_DEADLY: Final = {CauseKind.ERASED, CauseKind.INVALID, CauseKind.QUARANTINED}


def _settle(values: dict[Handle, T], step: Callable[[Handle, dict[Handle, T]], T]) -> dict[Handle, T]:
    """Apply a rule to all versions at once until nothing changes."""
    while True:
        following = {ref: step(ref, values) for ref in values}
        if following == values:
            return values
        values = following


def _kinds(history: History, ref: Handle) -> set[CauseKind]:
    return {kind for _, kind in history.causes.get(ref, ())}


def _newer(history: History, ref: Handle) -> list[Handle]:
    """Later versions that are not quarantined, newest first."""
    unit, version = ref
    found = [(unit, n) for n in range(version + 1, version + len(history.versions)) if (unit, n) in history.versions]
    return [r for r in reversed(found) if CauseKind.QUARANTINED not in _kinds(history, r)]


def _stands_for(history: History, ref: Handle) -> Handle:
    """Follow recorded equivalences to the version whose condition counts."""
    while not _kinds(history, ref) & (_DEADLY | {CauseKind.RETRACTED}):
        equal = [newer for newer in _newer(history, ref) if (ref, newer) in history.verdicts]
        if not equal:
            break
        ref = equal[0]
    return ref


def level(history: History, principal: str) -> Integrity:
    """As registered now."""
    return history.registry.get(principal, default_level(principal))


def blind(version: Version) -> bool:
    """A model's words from unknown inputs."""
    return is_model_side(version.creator) and {p.role for p in version.parents} <= {Role.REVISES}


def sources(version: Version) -> list[Handle]:
    """What integrity is inherited from."""
    model = is_model_side(version.creator)
    return [p.ref for p in version.parents if model or p.role is not Role.REVISES]


def integrities(history: History) -> dict[Handle, Integrity]:
    """Section 3, lowered from the top until it holds everywhere."""

    def step(ref: Handle, values: dict[Handle, Integrity]) -> Integrity:
        version = history.versions[ref]
        known = [level(history, version.creator), level(history, version.actor)]
        known += [values[source] for source in sources(version)]
        known += [Integrity.UNTRUSTED] if blind(version) else []
        return max(min(known), history.endorsed.get(ref, Integrity.UNTRUSTED))

    return _settle(dict.fromkeys(history.versions, Integrity.TRUSTED), step)


def _supports(history: History, ref: Handle) -> list[list[Handle]]:
    """The strong parents of each justification."""
    carrying = (Role.DEPENDS, Role.ARGUMENT, Role.SUMMARISES, Role.SHARED)
    sets = [history.versions[ref].parents, *history.late.get(ref, ())]
    return [[p.ref for p in parents if p.weight >= 0.5 and p.role in carrying] for parents in sets]


def _contaminated(history: History) -> set[Handle]:
    dead = {ref for ref in history.versions if _kinds(history, ref) & _DEADLY}

    def step(ref: Handle, fallen: dict[Handle, bool]) -> bool:
        return all(
            any(stand in dead or fallen[stand] for stand in (_stands_for(history, p) for p in parents))
            for parents in _supports(history, ref)
        )

    return {ref for ref, fallen in _settle(dict.fromkeys(history.versions, False), step).items() if fallen}


def _winners(history: History) -> dict[Handle, Handle]:
    """For each version that competes for a key, who holds it."""
    contaminated, levels = _contaminated(history), integrities(history)
    groups: dict[Group, list[tuple[tuple[int, int, int, int], Handle]]] = {}
    for ref, version in history.versions.items():
        hidden = {CauseKind.QUARANTINED, CauseKind.RETRACTED, *_DEADLY} & _kinds(history, ref)
        copied = any(p.role is Role.SHARED for p in version.parents)
        if version.group and not (copied or hidden or ref in contaminated or _newer(history, ref)):
            mine = levels[ref]
            order = (mine, authority(version.creator, mine), version.timestamp, version.seq)
            groups.setdefault(version.group, []).append((order, ref))
    return {ref: max(rivals)[1] for rivals in groups.values() for _, ref in rivals}


def _own_state(history: History, ref: Handle, now: int, *, lost: bool) -> Status | None:
    kinds = _kinds(history, ref)
    until = history.versions[ref].valid_until
    if until is not None and now >= until and ref not in history.waived:
        kinds.add(CauseKind.EXPIRED)
    worst = min(kinds, default=None)
    if worst is not None and worst <= CauseKind.EXPIRED:
        return Status(worst.label)
    if lost or _newer(history, ref):
        return Status.SUPERSEDED
    return None if worst is None else Status.ARCHIVED


def expected_states(history: History, now: int) -> dict[Handle, State]:
    """Everything derived, by iteration to a fixpoint over all versions, in three stages."""
    contaminated, winners, versions = _contaminated(history), _winners(history), history.versions
    own = {ref: _own_state(history, ref, now, lost=winners.get(ref, ref) != ref) for ref in versions}

    def replaced(parent: Handle, child: Handle) -> bool:
        same_group = versions[parent].group is not None and versions[parent].group == versions[child].group
        if same_group or (parent[0] == child[0] and parent[1] < child[1]):
            return False
        winner = winners.get(parent, parent)
        return bool(_newer(history, parent)) or not versions[parent].same_form(versions[winner])

    def shaky(parent: Handle, child: Handle) -> bool:
        doubted = own[parent] in (Status.EXPIRED, Status.RETRACTED) or CauseKind.RETRACTED in _kinds(history, parent)
        return doubted or replaced(parent, child)

    def step(ref: Handle, pending: dict[Handle, bool]) -> bool:
        pairs = [[_stands_for(history, p) for p in parents] for parents in _supports(history, ref)]
        firm = (all(not pending[p] and not shaky(p, ref) and p not in lost for p in parents) for parents in pairs)
        return not any(firm)

    lost = contaminated | {ref for ref in versions if _kinds(history, ref) & _DEADLY}
    pending = _settle(dict.fromkeys(versions, False), step)
    levels = integrities(history)
    states = {}
    for ref in versions:
        standing = Standing.CONTAMINATED if ref in contaminated else Standing(int(pending[ref]))
        shown = (Status.ACTIVE, Status.PENDING, Status.CONTAMINATED)[standing]
        free = [v for v in versions if v[0] == ref[0] and CauseKind.QUARANTINED not in _kinds(history, v)]
        current = max(free or [v for v in versions if v[0] == ref[0]])
        states[ref] = State(own[ref] or shown, standing, levels[ref], ref == current)
    return states
