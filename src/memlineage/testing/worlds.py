"""Worlds: one protocol for the oracle and for stores under test, and operations as values that run in any of them.

An operation names versions by picks: numbers taken modulo the versions made so far, so that every list of
operations means something and a shorter list still does. `Play` runs them and keeps the clock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from memlineage.model.principal import Integrity
from memlineage.model.scope import Visibility
from memlineage.model.state import CauseKind
from memlineage.model.unit import Role
from memlineage.testing.history import Group, Handle, History, Parent, Refused, State, Writer
from memlineage.testing.oracle import Oracle
from memlineage.testing.oracle_replay import Replayed

__all__ = [
    "START",
    "WORLDS",
    "AddCause",
    "Corroborate",
    "Endorse",
    "Operation",
    "OracleWorld",
    "Outcome",
    "Pick",
    "Play",
    "Register",
    "Replay",
    "Replays",
    "Restore",
    "Reverify",
    "Store",
    "Update",
    "World",
]

Pick = int
"""A version made so far, modulo their number."""
Outcome = Handle | Replayed | str | None
"""What an operation gave: a version, what was made again, the code of a refusal, `skipped`, or nothing."""
START: Final = 1_700_000_000_000_000
"""When plays begin, in microseconds."""


class World(Protocol):
    """Acts and questions of semantics.md. Instants are microseconds; acts come in the order of `now`.

    An act that is not accepted raises `Refused` and changes nothing.
    """

    def register(self, principal: str, level: Integrity) -> None:
        """Set a principal's level."""

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
        """A new unit, or the one that it echoes."""

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
    ) -> Handle:
        """The next version of a unit."""

    def add_cause(self, writer: Writer, ref: Handle, kind: CauseKind, *, by: str, now: int) -> None:
        """Invalidate, retract, archive, quarantine, expire or erase one version."""

    def restore(self, writer: Writer, ref: Handle, kind: CauseKind | None = None, *, by: str, now: int) -> None:
        """Remove the latest cause of that kind, or of any kind but erased."""

    def reverify(self, writer: Writer, ref: Handle, *, by: str, evidence: Sequence[Handle] = (), now: int) -> Handle:
        """Add word and evidence as a justification; gives the word."""

    def corroborate(self, writer: Writer, ref: Handle, depends_on: Sequence[Parent], *, creator: str, now: int) -> None:
        """Add a justification."""

    def endorse(self, writer: Writer, ref: Handle, level: Integrity, *, by: str, now: int) -> None:
        """Raise one version's integrity."""

    def states(self, now: int) -> dict[Handle, State]:
        """Everything that is derived, of every version."""

    def winner(self, group: Group, now: int) -> Handle | None:
        """Who holds a key."""

    def recorded(self) -> History:
        """Everything that was recorded."""


class Replays(Protocol):
    """Section 8, in one world."""

    def replay(self, writer: Writer, targets: Sequence[Handle] | None, *, now: int, model: bool) -> Replayed:
        """Make again what is down below these, or everywhere; with somebody who stands for the models, or without."""


OracleWorld: Callable[[], World] = Oracle
WORLDS: Final[dict[str, Callable[[], World]]] = {"oracle": OracleWorld}
"""Every world that the laws are tested in, by name."""


class Play:
    """A world, the time in it, and the versions made so far in order of creation."""

    def __init__(self, world: World, now: int = START, replays: Replays | None = None) -> None:
        self.world = world
        self.replays = replays
        self.now = now
        self.handles: list[Handle] = []

    def ref(self, pick: Pick) -> Handle:
        """The version meant by a pick."""
        return self.handles[pick % len(self.handles)]

    def refs(self, picks: Iterable[Pick]) -> list[Handle]:
        """Distinct versions meant by picks; none while there are none."""
        return list(dict.fromkeys(self.ref(pick) for pick in picks)) if self.handles else []

    def parents(self, edges: Iterable[tuple[Pick, float, Role]]) -> list[Parent]:
        """Edges to distinct versions; of several to one version, the last."""
        made = {self.ref(pick): (weight, role) for pick, weight, role in edges} if self.handles else {}
        return [Parent(ref, weight, role) for ref, (weight, role) in made.items()]

    def do(self, operation: Operation) -> Outcome:
        """Let time pass, then act."""
        self.now += operation.pause
        if not self.handles and not isinstance(operation, Store | Register):
            return "skipped"
        if self.replays is None and isinstance(operation, Replay):
            return "skipped"
        try:
            made = operation.act(self)
        except Refused as refusal:
            return refusal.code
        new = (*made.ran, *made.failed) if isinstance(made, Replayed) else () if made is None else (made,)
        self.handles += [ref for ref in new if ref not in self.handles]
        return made

    def run(self, operations: Iterable[Operation]) -> list[Outcome]:
        """One after the other."""
        return [self.do(operation) for operation in operations]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Operation:
    """One act, to come `pause` microseconds after the one before."""

    pause: int = 1

    def act(self, play: Play) -> Handle | Replayed | None:
        """Perform it; gives the version that it made or found, or all of a replay."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Register(Operation):
    """`register`."""

    principal: str
    level: Integrity

    def act(self, play: Play) -> None:
        play.world.register(self.principal, self.level)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Write(Operation):
    """What `store` and `update` share; `age` and `life` are how long ago it was said and how long it is good."""

    writer: Writer
    content: str
    creator: str
    parents: tuple[tuple[Pick, float, Role], ...] = ()
    exposed: tuple[Pick, ...] = ()
    subject: str | None = None
    key: str | None = None
    age: int = 0
    life: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Store(_Write):
    """`store`."""

    visibility: Visibility = Visibility.USER

    def act(self, play: Play) -> Handle:
        return play.world.store(
            self.writer,
            self.content,
            now=play.now,
            creator=self.creator,
            parents=play.parents(self.parents),
            exposed=play.refs(self.exposed),
            subject=self.subject,
            key=self.key,
            timestamp=play.now - self.age,
            valid_until=None if self.life is None else play.now + self.life,
            visibility=self.visibility,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Update(_Write):
    """`update` of the unit of a version; `again` says what that version said, if it is not erased."""

    target: Pick
    again: bool = False

    def act(self, play: Play) -> Handle:
        target = play.ref(self.target)
        said = play.world.recorded().versions[target].content if self.again else None
        return play.world.update(
            self.writer,
            target[0],
            self.content if said is None else f"{said}.",
            now=play.now,
            creator=self.creator,
            parents=play.parents(self.parents),
            exposed=play.refs(self.exposed),
            subject=self.subject,
            key=self.key,
            timestamp=play.now - self.age,
            valid_until=None if self.life is None else play.now + self.life,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Act(Operation):
    """What acts on one version share."""

    writer: Writer
    target: Pick
    by: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddCause(_Act):
    """`add_cause`."""

    kind: CauseKind

    def act(self, play: Play) -> None:
        play.world.add_cause(self.writer, play.ref(self.target), self.kind, by=self.by, now=play.now)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Restore(_Act):
    """`restore`."""

    kind: CauseKind | None = None

    def act(self, play: Play) -> None:
        play.world.restore(self.writer, play.ref(self.target), self.kind, by=self.by, now=play.now)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reverify(_Act):
    """`reverify`."""

    evidence: tuple[Pick, ...] = ()

    def act(self, play: Play) -> Handle:
        evidence = play.refs(self.evidence)
        return play.world.reverify(self.writer, play.ref(self.target), by=self.by, evidence=evidence, now=play.now)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corroborate(_Act):
    """`corroborate`."""

    parents: tuple[tuple[Pick, float, Role], ...]

    def act(self, play: Play) -> None:
        parents = play.parents(self.parents)
        play.world.corroborate(self.writer, play.ref(self.target), parents, creator=self.by, now=play.now)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Endorse(_Act):
    """`endorse`."""

    level: Integrity

    def act(self, play: Play) -> None:
        play.world.endorse(self.writer, play.ref(self.target), self.level, by=self.by, now=play.now)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Replay(Operation):
    """`replay` below some versions; of everything in sight, if there are none."""

    writer: Writer
    targets: tuple[Pick, ...] = ()
    model: bool = False

    def act(self, play: Play) -> Replayed:
        assert play.replays is not None
        targets = play.refs(self.targets) if self.targets else None
        return play.replays.replay(self.writer, targets, now=play.now, model=self.model)
