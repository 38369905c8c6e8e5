"""The oracle's answers: semantics.md, sections 1-3, 5 and 10, in dictionaries and brute force.

Every answer is worked out anew from what was recorded. That the rules have no circle is a matter of three
stages (section 10): contamination comes from causes alone; competition for a key looks at contamination and
integrity alone; pending comes last and may look at both. Inside a stage the recursion follows edges and
recorded equivalences, which are kept acyclic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from memlineage.model.principal import Authority, Integrity, authority, default_level, is_model_side
from memlineage.model.state import CONTAMINATING, OUT_OF_PLAY, CauseKind, Standing, Status
from memlineage.model.unit import Role
from memlineage.testing.history import Group, Handle, History, Parent, State, Version

__all__ = ["Reading"]

_WORST: Final = ("erased", "invalid", "quarantined", "retracted", "expired", "superseded", "archived")
_UNSAID: Final = (CauseKind.INVALID, CauseKind.RETRACTED, CauseKind.QUARANTINED)
_ACTIVE: Final = (Status.ACTIVE, Status.PENDING, Status.CONTAMINATED)


class Recorded:
    """What was recorded, asked at one instant (sections 1 and 5)."""

    def __init__(self, history: History, now: int) -> None:
        self.history = history
        self.now = now

    def holds(self, ref: Handle, *kinds: CauseKind) -> bool:
        """Whether any of those causes is recorded and not restored."""
        return any(kind in kinds for _, kind in self.history.causes.get(ref, ()))

    def expired(self, ref: Handle) -> bool:
        """By a recorded cause, or by its own time unless waived (section 5)."""
        until = self.history.versions[ref].valid_until
        in_time = until is None or until > self.now or ref in self.history.waived
        return not in_time or self.holds(ref, CauseKind.EXPIRED)

    def current(self, unit: int) -> Handle:
        """The highest version that is not quarantined; the highest, if all are."""
        every = sorted(ref for ref in self.history.versions if ref[0] == unit)
        return max([ref for ref in every if not self.holds(ref, CauseKind.QUARANTINED)] or every)

    def later(self, ref: Handle) -> list[Handle]:
        """Later versions that are not quarantined."""
        quarantined = CauseKind.QUARANTINED
        return [r for r in self.history.versions if r[0] == ref[0] and r > ref and not self.holds(r, quarantined)]

    def exempt(self, ref: Handle, child: Handle) -> bool:
        """What replaces a thing may be derived from it: being superseded does not count here."""
        group = self.history.versions[ref].group
        return (child[0] == ref[0] and child > ref) or (
            group is not None and group == self.history.versions[child].group
        )

    def ancestors(self, refs: Iterable[Handle], *, verdicts: bool) -> set[Handle]:
        """Those and all they come from, over every role but `revises`; equivalences count if asked for."""
        found: set[Handle] = set()
        todo = list(refs)
        while todo:
            ref = todo.pop()
            if ref not in found:
                found.add(ref)
                sets = (self.history.versions[ref].parents, *self.history.late.get(ref, ()))
                todo += [p.ref for parents in sets for p in parents if p.role is not Role.REVISES]
                todo += [newer for older, newer in self.history.verdicts if verdicts and older == ref]
        return found


class Ranked(Recorded):
    """Integrity, and the order that follows from it (sections 3 and 10)."""

    def level(self, principal: str) -> Integrity:
        """As registered now."""
        return self.history.registry.get(principal, default_level(principal))

    def earned(self, creator: str, actor: str, parents: Sequence[Parent]) -> Integrity:
        """Integrity without endorsement, of what was or would be written with those parents."""
        model = is_model_side(creator)
        if model and all(parent.role is Role.REVISES for parent in parents):
            return Integrity.UNTRUSTED
        counted = [p.ref for p in parents if model or p.role is not Role.REVISES]
        return min([self.level(creator), self.level(actor), *map(self.integrity, counted)])

    def integrity(self, ref: Handle) -> Integrity:
        """Section 3."""
        version = self.history.versions[ref]
        earned = self.earned(version.creator, version.actor, version.parents)
        return max(earned, self.history.endorsed.get(ref, earned))

    def rank(self, ref: Handle) -> tuple[Integrity, Authority, int, int]:
        """The order of section 10."""
        version, integrity = self.history.versions[ref], self.integrity(ref)
        return integrity, authority(version.creator, integrity), version.timestamp, version.seq


class Reading(Ranked):
    """One question to a history at one instant. It must not outlive the next act."""

    def __init__(self, history: History, now: int) -> None:
        super().__init__(history, now)
        self._standings: dict[tuple[Handle, bool], Standing] = {}

    def condition(self, ref: Handle, child: Handle, competition: bool) -> Standing:
        """What a parent passes to a child over a strong edge."""
        if self.holds(ref, *CONTAMINATING):
            return Standing.CONTAMINATED
        standing = self.standing(ref, competition)
        if self.holds(ref, CauseKind.RETRACTED):
            return max(Standing.PENDING, standing)
        equivalents = [newer for newer in self.later(ref) if (ref, newer) in self.history.verdicts]
        if equivalents:
            return self.condition(max(equivalents), child, competition)
        replaced = bool(self.later(ref)) or (competition and self.replaced_by_other(ref))
        doubtful = self.expired(ref) or (replaced and not self.exempt(ref, child))
        return max(Standing.PENDING if doubtful else Standing.SUPPORTED, standing)

    def standing(self, ref: Handle, competition: bool = True) -> Standing:
        """The worst parent of the best justification. Without competition, only contamination is meant."""
        if (ref, competition) not in self._standings:
            sets = (self.history.versions[ref].parents, *self.history.late.get(ref, ()))
            worst = [[self.condition(p.ref, ref, competition) for p in parents if p.strong] for parents in sets]
            self._standings[ref, competition] = min(max(found, default=Standing.SUPPORTED) for found in worst)
        return self._standings[ref, competition]

    def candidates(self, group: Group) -> list[Handle]:
        """Who competes for a key: current, no copy, not out of play, not contaminated."""
        return [
            ref
            for ref, version in self.history.versions.items()
            if version.group == group
            and all(parent.role is not Role.SHARED for parent in version.parents)
            and self.current(ref[0]) == ref
            and not self.holds(ref, *OUT_OF_PLAY)
            and self.standing(ref, competition=False) is not Standing.CONTAMINATED
        ]

    def winner(self, group: Group) -> Handle | None:
        """The one current value."""
        return max(self.candidates(group), key=self.rank, default=None)

    def doubts(self, group: Group) -> list[Handle]:
        """Losers that are flagged with the winner: they say otherwise, and were said later or tie with another's."""
        winner = self.winner(group)
        if winner is None:
            return []
        (*best, _), stands = self.rank(winner), self.history.versions[winner]
        others = [(ref, self.history.versions[ref]) for ref in self.candidates(group)]
        differ = [(ref, version) for ref, version in others if not version.same_form(stands)]
        return [
            ref
            for ref, version in differ
            if version.timestamp > stands.timestamp
            or ([*self.rank(ref)[:3]] == best and version.creator != stands.creator)
        ]

    def lost_to(self, ref: Handle) -> Handle | None:
        """The winner that this one lost its key to."""
        group = self.history.versions[ref].group
        if group is None or ref not in self.candidates(group):
            return None
        winner = self.winner(group)
        return None if winner == ref else winner

    def replaced_by_other(self, ref: Handle) -> bool:
        """Whether it lost its key to something that says otherwise."""
        winner = self.lost_to(ref)
        return winner is not None and not self.history.versions[ref].same_form(self.history.versions[winner])

    def own_state(self, ref: Handle) -> Status | None:
        """The worst own state; None if live."""
        held = {kind.label for kind in CauseKind if self.holds(ref, kind)}
        held |= {"expired"} if self.expired(ref) else set()
        held |= {"superseded"} if self.later(ref) or self.lost_to(ref) else set()
        return next((Status(word) for word in _WORST if word in held), None)

    def status(self, ref: Handle) -> Status:
        """What a reader is told."""
        return self.own_state(ref) or _ACTIVE[self.standing(ref)]

    def state(self, ref: Handle) -> State:
        """All of it."""
        return State(self.status(ref), self.standing(ref), self.integrity(ref), self.current(ref[0]) == ref)

    def dead(self, new: Version) -> list[Handle]:
        """What the guard of section 10 takes a new version for a repetition of."""
        return [
            ref
            for ref, version in self.history.versions.items()
            if version.wall.group[:3] == new.wall.group[:3] and version.says(new)
            if self.holds(ref, *_UNSAID) or self.standing(ref) is Standing.CONTAMINATED
        ]

    def suspect(self, new: Version, dead: Iterable[Handle]) -> bool:
        """Whether the guard holds a repetition back, users and system apart."""
        parents = [parent.ref for parent in new.parents if parent.role is not Role.REVISES]
        declared = [p.ref for p in new.parents if p.role not in (Role.REVISES, Role.EXPOSED)]
        touched = {unit for unit, _ in self.ancestors(parents, verdicts=False)} & {unit for unit, _ in dead}
        unfounded = is_model_side(new.creator) and all(self.status(p) is not Status.ACTIVE for p in declared)
        untrusted = self.earned(new.creator, new.actor, new.parents) is Integrity.UNTRUSTED
        return bool(touched) or untrusted or unfounded
