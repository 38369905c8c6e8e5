"""The oracle: the acts of semantics.md (sections 0, 2, 3, 6, 10) and the rules under which they are accepted.

What it answers is in `reading.py`. Both implement the page literally and slowly, keep nothing that can be
worked out, and are what a fast store is compared with.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from memlineage.model.principal import HOST, Integrity, authority, is_model_side, kind_of, parse_principal
from memlineage.model.scope import Visibility
from memlineage.model.state import CauseKind, Status
from memlineage.model.unit import Role
from memlineage.testing.history import Group, Handle, History, Parent, Refused, State, Version, Writer
from memlineage.testing.reading import Reading

__all__ = ["Oracle"]

_OWNERS: Final = ("user", "system")
_JUDGES: Final = ("user", "system", "tool")


class Oracle:
    """Acts and questions. An act raises `Refused` and writes nothing, or is recorded under the next `seq`."""

    def __init__(self, history: History | None = None, verifiers: Collection[str] = ()) -> None:
        self.history = History() if history is None else history
        self.verifiers = frozenset(verifiers)

    def clone(self) -> Oracle:
        """The same world, from here on its own."""
        return Oracle(self.history.clone(), self.verifiers)

    def recorded(self) -> History:
        """What was recorded so far. Not a copy: leave it alone."""
        return self.history

    def states(self, now: int) -> dict[Handle, State]:
        """Everything derived, of every version."""
        ask = Reading(self.history, now)
        return {ref: ask.state(ref) for ref in self.history.versions}

    def winner(self, group: Group, now: int) -> Handle | None:
        """Who holds a key."""
        return Reading(self.history, now).winner(group)

    def register(self, principal: str, level: Integrity) -> None:
        """The operator's word on a principal (section 3); it counts for what was written before, too."""
        self._tick()
        self.history.registry[principal] = level

    def store(
        self,
        writer: Writer,
        content: str,
        *,
        now: int,
        creator: str,
        parents: Sequence[Parent] = (),
        exposed: Sequence[Handle] = (),
        subject: str | None = None,
        key: str | None = None,
        timestamp: int | None = None,
        valid_until: int | None = None,
        visibility: Visibility = Visibility.USER,
    ) -> Handle:
        """A new unit, or, if it only echoes one in the writer's sight, that one (section 10)."""
        creator, edges = self._inputs(writer, creator, parents, exposed)
        said = now if timestamp is None else timestamp
        wall = writer.scope.wall(visibility)
        new = Version(content, creator, writer.actor, wall, subject, key, said, valid_until, 0, edges, None)
        ask = Reading(self.history, now)
        said_before = [p.ref for p in edges if self.history.versions[p.ref].says(new)]
        echoed = [ref for ref in said_before if ask.status(ref) in (Status.ACTIVE, Status.PENDING)]
        if echoed and is_model_side(creator):
            return max(echoed, key=ask.rank)
        return self._write(self._new_unit(), new, now)

    def update(
        self,
        writer: Writer,
        unit: int,
        content: str,
        *,
        now: int,
        creator: str,
        parents: Sequence[Parent] = (),
        exposed: Sequence[Handle] = (),
        subject: str | None = None,
        key: str | None = None,
        timestamp: int | None = None,
        valid_until: int | None = None,
        replay: bool = False,
    ) -> Handle:
        """The next version of a unit, unless what is there is protected (section 3)."""
        last = max((ref for ref in self.history.versions if ref[0] == unit), default=(unit, 0))
        creator, edges = self._inputs(writer, creator, parents, exposed)
        self._see(writer, [last])
        edges = (*edges, Parent(last, 1.0, Role.REVISES))
        self._protect(writer, unit, creator, edges)
        old = self.history.versions[Reading(self.history, now).current(unit)]
        said = now if timestamp is None else timestamp
        names = (subject or old.subject, key or old.key)
        new = Version(content, creator, writer.actor, old.wall, *names, said, valid_until, 0, edges, None)
        return self._write((unit, last[1] + 1), new, now, replay=replay)

    def add_cause(self, writer: Writer, ref: Handle, kind: CauseKind, *, by: str, now: int) -> None:
        """`invalidate`, `retract`, `archive`, `quarantine`, `expire` or `erase` one version (section 2)."""
        self._empower(writer, ref, by, own=kind is CauseKind.RETRACTED)
        self.history.causes[ref] = (*self.history.causes.get(ref, ()), (self._tick(), kind))
        if kind is CauseKind.ERASED:
            self.history.versions[ref] = self.history.versions[ref]._replace(content=None)

    def restore(self, writer: Writer, ref: Handle, kind: CauseKind | None = None, *, by: str, now: int) -> None:
        """Remove the latest cause of a kind, or of any kind but erased."""
        self._empower(writer, ref, by)
        causes = self.history.causes.get(ref, ())
        found = [cause for cause in causes if cause[1] is not CauseKind.ERASED and kind in (None, cause[1])]
        lapsed = kind in (None, CauseKind.EXPIRED) and Reading(self.history, now).expired(ref)
        if not found and not lapsed:
            raise Refused("nothing")
        self._tick()
        self.history.causes[ref] = tuple(cause for cause in causes if cause not in found[-1:])
        if not self.history.causes[ref]:
            del self.history.causes[ref]
        if not found or found[-1][1] is CauseKind.EXPIRED:
            self.history.waived.add(ref)

    def corroborate(self, writer: Writer, ref: Handle, depends_on: Sequence[Parent], *, creator: str, now: int) -> None:
        """One more justification (section 2)."""
        creator = self._empower(writer, ref, creator)
        self._support(writer, ref, tuple(depends_on), creator, now)

    def reverify(self, writer: Writer, ref: Handle, *, by: str, evidence: Sequence[Handle] = (), now: int) -> Handle:
        """One's own word, a root that can itself fall, and evidence as one justification. Gives the word."""
        by = self._empower(writer, ref, by)
        wall = self.history.versions[ref].wall
        text = f"Verified {ref[0]}@{ref[1]}"
        word = Version(text, by, writer.actor, wall, None, None, now, None, 0, (), None)
        return self._support(writer, ref, tuple(Parent(e) for e in evidence), by, now, word)

    def endorse(self, writer: Writer, ref: Handle, level: Integrity, *, by: str, now: int) -> None:
        """Raise one version (section 3)."""
        by = self._empower(writer, ref, by)
        ask = Reading(self.history, now)
        if min(ask.level(by), ask.level(writer.actor)) < level:
            raise Refused("integrity")
        self._tick()
        self.history.endorsed[ref] = max(level, self.history.endorsed.get(ref, level))

    def _tick(self) -> int:
        self.history.seq += 1
        return self.history.seq

    def _claim(self, writer: Writer, claim: str) -> str:
        principal = parse_principal(claim, user=writer.scope.user)
        below = principal in (writer.actor, *writer.tools) or kind_of(principal) in ("reasoning", "external")
        if writer.actor != HOST and not below:
            raise Refused("claim")
        return principal

    def _see(self, writer: Writer, refs: Collection[Handle]) -> None:
        versions = self.history.versions
        if not all(ref in versions and writer.scope.sees(versions[ref].wall) for ref in refs):
            raise Refused("invisible")

    def _inputs(
        self, writer: Writer, creator: str, parents: Sequence[Parent], exposed: Sequence[Handle]
    ) -> tuple[str, tuple[Parent, ...]]:
        creator = self._claim(writer, creator)
        self._see(writer, [*exposed, *(parent.ref for parent in parents if parent.role is not Role.SHARED)])
        context = exposed if is_model_side(creator) else ()
        return creator, (*parents, *(Parent(ref, 1.0, Role.EXPOSED) for ref in context))

    def _empower(self, writer: Writer, ref: Handle, by: str, *, own: bool = False) -> str:
        """Default policy: user, system and verifiers; what one wrote oneself, if that is enough."""
        by = self._claim(writer, by)
        self._see(writer, [ref])
        version = self.history.versions[ref]
        may = kind_of(by) in _OWNERS or by in self.verifiers
        may |= own and (by, writer.actor) == (version.creator, version.actor)
        if not may or not writer.scope.owns(version.wall):
            raise Refused("authority")
        return by

    def _protect(self, writer: Writer, unit: int, creator: str, edges: tuple[Parent, ...]) -> None:
        """An update ranks no lower than the current version and those after it; than any, if none is free."""
        ask = Reading(self.history, 0)
        integrity, current = ask.earned(creator, writer.actor, edges), ask.current(unit)
        first = (unit, 1) if ask.holds(current, CauseKind.QUARANTINED) else current
        for ref in (ref for ref in self.history.versions if ref[0] == unit and ref >= first):
            lower = integrity < ask.integrity(ref) and kind_of(creator) not in _OWNERS
            away = not writer.scope.owns(self.history.versions[ref].wall)
            if lower or away or authority(creator, integrity) < ask.rank(ref)[1]:
                raise Refused("protection")

    def _support(
        self,
        writer: Writer,
        ref: Handle,
        parents: tuple[Parent, ...],
        by: str,
        now: int,
        word: Version | None = None,
    ) -> Handle:
        self._see(writer, [parent.ref for parent in parents])
        ask = Reading(self.history, now)
        if word is None and not any(parent.strong for parent in parents):
            raise Refused("weak")
        words = [] if word is None else [ask.earned(by, writer.actor, ())]
        inputs = [ask.integrity(parent.ref) for parent in parents]
        if min([ask.level(by), ask.level(writer.actor), *words, *inputs]) < ask.integrity(ref):
            raise Refused("integrity")
        if ref in ask.ancestors([parent.ref for parent in parents], verdicts=True):
            raise Refused("cycle")
        given = ref
        if word is not None:
            given = self._write(self._new_unit(), word, now)
            parents = (Parent(given), *parents)
        self._tick()
        self.history.late[ref] = (*self.history.late.get(ref, ()), parents)
        return given

    def _write(self, ref: Handle, new: Version, now: int, *, replay: bool = False) -> Handle:
        """Guard, verdicts, record: one event."""
        ask, versions = Reading(self.history, now), self.history.versions
        dead = ask.dead(new)
        held = bool(dead) and kind_of(new.creator) not in _OWNERS and ask.suspect(new, dead)
        earlier = [old for old in versions if old[0] == ref[0] and versions[old].same_form(new)]
        sources = ask.ancestors([p.ref for p in new.parents if p.role is not Role.REVISES], verdicts=True)
        if replay or kind_of(new.creator) in _JUDGES:
            self.history.verdicts |= {(old, ref) for old in earlier if old not in sources}
        reasserts = max(dead, key=lambda old: versions[old].seq, default=None)
        versions[ref] = new._replace(seq=self._tick(), reasserts=reasserts)
        if held:
            self.history.causes[ref] = ((self.history.seq, CauseKind.QUARANTINED),)
        return ref

    def _new_unit(self) -> Handle:
        return 1 + max((unit for unit, _ in self.history.versions), default=-1), 1
