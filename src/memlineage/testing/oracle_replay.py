"""The oracle's replay: semantics.md, section 8, literally, on what the oracle recorded.

Nothing is planned ahead but the order. Every step asks everything anew, and what it writes is an update like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from memlineage.model.content import normal_form
from memlineage.model.principal import is_model_side
from memlineage.model.scope import Scope
from memlineage.model.state import CauseKind, Status
from memlineage.model.unit import Role
from memlineage.testing.history import Handle, Parent, Refused, Version, Writer
from memlineage.testing.reading import Reading

if TYPE_CHECKING:
    from memlineage.testing.oracle import Oracle

__all__ = ["TOOLS", "Failed", "OracleReplays", "Replayed", "is_word", "made_again"]

TOOLS: Final = ("feed", "quotes")
"""Tools that can be asked again; `quotes` does not know everything."""
_SAYS: Final = ("Destination is Kyoto", "Destination is Osaka", "NH203 costs 612 USD")
_DOWN: Final = (Status.PENDING, Status.CONTAMINATED, Status.EXPIRED, Status.INVALID)
_INPUTS: Final = (Role.DEPENDS, Role.ARGUMENT, Role.SUMMARISES)


class Failed(Exception):  # noqa: N818  # what a tool raises, on purpose
    """Who was asked has no answer."""


class Replayed(NamedTuple):
    """What a replay came to: versions, each list in the order of the steps."""

    ran: tuple[Handle, ...]
    kept: tuple[Handle, ...]
    failed: tuple[Handle, ...]
    person: tuple[Handle, ...]
    waiting: tuple[Handle, ...]


def is_word(content: str) -> bool:
    """Whether somebody says by it that he vouches for something."""
    return content.startswith("Verified ")


def made_again(creator: str, inputs: Iterable[str]) -> str:
    """What tools and models answer, in every world: few answers, so that often nothing changes."""
    says = _SAYS[sum(len(normal_form(text)) for text in inputs if not is_word(text)) % len(_SAYS)]
    if creator == "tool:quotes" and says == _SAYS[2]:
        raise Failed(creator)
    return says


class _Source(NamedTuple):
    """A parent as it was written, what stands in its place, and whether that must be in use."""

    parent: Parent
    now: Handle
    needed: bool


class _Step(NamedTuple):
    """A unit that is down, from what it would be made, and whether nobody can."""

    ref: Handle
    sources: tuple[_Source, ...]
    person: bool


class OracleReplays:
    """Replays in the world of an oracle."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._history = oracle.recorded()

    def replay(self, writer: Writer, targets: Sequence[Handle] | None, *, now: int, model: bool) -> Replayed:
        """Make again what is down: below these, or everywhere in sight."""
        ask = Reading(self._history, now)
        if not all(writer.scope.sees(self._history.versions[ref].wall) for ref in targets or ()):
            raise Refused("invisible")
        among = self._history.versions if targets is None else self._below(targets)
        steps = {}
        for ref in sorted(among, key=lambda ref: self._history.versions[ref].seq):
            if ask.current(ref[0]) != ref:
                continue
            status = ask.status(ref)
            reparable = status in (Status.PENDING, Status.CONTAMINATED) or self._maker(ref, model=model)
            if writer.scope.sees(self._history.versions[ref].wall) and status in _DOWN and reparable:
                steps[ref] = self._step(ask, writer, ref, model=model)
        found: dict[str, list[Handle]] = {name: [] for name in Replayed._fields}
        order = _in_order(steps)
        for ref in order:
            what, about = self._one(writer, ref, now=now, model=model)
            if not (what == "person" and is_word(self._history.versions[about[0], 1].content or "")):
                found[what].append(about)  # somebody's word is nothing to repair
        around = [ref for ref in steps if ref not in order]
        return Replayed(**{name: (*refs, *(around if name == "waiting" else ())) for name, refs in found.items()})

    def _below(self, targets: Sequence[Handle]) -> set[Handle]:
        """All that hangs on any version of these units; on what says the same as one hangs what hangs on that."""
        units = {unit for unit, _ in targets}
        found = {ref for ref in self._history.versions if ref[0] in units}
        while True:
            more = {older for older, newer in self._history.verdicts if newer in found}
            for ref, version in self._history.versions.items():
                sets = (version.parents, *self._history.late.get(ref, ()))
                more |= {ref for ps in sets for p in ps if p.role is not Role.REVISES and p.ref in found}
            if more <= found:
                return found
            found |= more

    def _maker(self, ref: Handle, *, model: bool) -> bool:
        """Whether it can be computed: not people's words, not tools that are unknown, not copies."""
        version, first = self._history.versions[ref], self._history.versions[ref[0], 1]
        if is_word(first.content or "") or any(parent.role is Role.SHARED for parent in version.parents):
            return False
        known = version.creator in {f"tool:{name}" for name in TOOLS}
        return known or (model and is_model_side(version.creator))

    def _step(self, ask: Reading, writer: Writer, ref: Handle, *, model: bool) -> _Step:
        """A unit and what its parents are now."""
        version = self._history.versions[ref]
        person, sources = not self._maker(ref, model=model), []
        for parent in version.parents:
            if parent.role is Role.REVISES:
                continue
            current = ask.current(parent.ref[0])
            now = ask.lost_to(current) or current
            if not Scope.of(version.wall).sees(self._history.versions[now].wall):
                now = parent.ref
            above = {unit for unit, _ in ask.ancestors([now], verdicts=False)}
            circle = parent.strong and now != parent.ref and ref[0] in above
            hidden = parent.role in _INPUTS and not writer.scope.sees(self._history.versions[now].wall)
            person |= circle or (hidden and is_model_side(version.creator))
            sources.append(_Source(parent, now, parent.strong and not circle))
        return _Step(ref, tuple(sources), person)

    def _one(self, writer: Writer, planned: Handle, *, now: int, model: bool) -> tuple[str, Handle]:
        """One step, as things are by then."""
        ask = Reading(self._history, now)
        ref = ask.current(planned[0])
        step, status = self._step(ask, writer, ref, model=model), ask.status(ref)
        if status is Status.ACTIVE:
            return "kept", ref
        if status not in _DOWN:
            return "waiting", ref
        if step.person:
            return "person", ref
        if any(s.needed and ask.status(s.now) is not Status.ACTIVE for s in step.sources):
            return "waiting", ref
        old = self._history.versions[ref]
        if not writer.scope.owns(old.wall):
            return "failed", ref
        try:
            made = self._write(ref, old, step, now)
        except (Refused, Failed):
            return "failed", ref
        return "failed" if Reading(self._history, now).holds(made, CauseKind.QUARANTINED) else "ran", made

    def _write(self, ref: Handle, old: Version, step: _Step, now: int) -> Handle:
        """The answer, as an update by the same creator, of the parents as they are now."""
        versions = self._history.versions
        told = [versions[s.now].content or "" for s in step.sources if s.parent.role in _INPUTS]
        parents: dict[tuple[Handle, Role], Parent] = {}
        for source in step.sources:
            edge = source.parent._replace(ref=source.now)
            other = parents.get((edge.ref, edge.role), edge)  # two parents may have become one: the stronger counts
            parents[edge.ref, edge.role] = max(edge, other)
        return self._oracle.update(
            Writer(Scope.of(old.wall)),
            ref[0],
            made_again(old.creator, told),
            now=now,
            creator=old.creator,
            parents=tuple(parents.values()),
            replay=True,
        )


def _in_order(steps: dict[Handle, _Step]) -> list[Handle]:
    """Inputs first, of several the one that was written first; without what is made from itself."""
    order: list[Handle] = []
    while True:
        for ref, step in steps.items():
            inputs = {source.now for source in step.sources if source.needed} & steps.keys()
            if ref not in order and inputs <= set(order):
                order.append(ref)
                break
        else:
            return order
