"""A view of the store at one moment: what a name means, what a unit says, how it hangs together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

import msgspec

from memlineage.engine.generation import Generation
from memlineage.engine.inputs import Target
from memlineage.errors import UnknownUnitError
from memlineage.lineage.settling import settle
from memlineage.model.ids import Ref
from memlineage.model.scope import Scope, Wall
from memlineage.model.state import OWN_MASK, CauseKind
from memlineage.model.unit import Unit
from memlineage.store.database import Connection
from memlineage.store.earlier import Earlier
from memlineage.store.graph import StoreGraph
from memlineage.store.kept_index import KeptIndex
from memlineage.store.names import Names
from memlineage.store.sql import QUERIES
from memlineage.store.states import States
from memlineage.store.units import NO_SHIFT, Shift, read_refs, read_units

__all__ = ["Known", "Snapshot", "named", "place_parent", "resolve"]


class Known(msgspec.Struct, frozen=True):
    """A version that was found.

    Attributes:
        n: integer id of the version.
        unit: integer id of its unit.
        wall: where it stands.
        latest: the unit's highest version number.
    """

    n: int
    unit: int
    wall: Wall
    latest: int


def resolve(connection: Connection, names: Names, scope: Scope | None, target: Target) -> Known:
    """Find what a caller named, if this scope may see it. What it may not see does not exist for it.

    No scope means no walls: for what the engine itself named.
    """
    if target.version is None:
        row = connection.execute(QUERIES["find_current"], (target.id,)).get
    else:
        row = connection.execute(QUERIES["find_version"], (target.id, target.version)).get
    if row is not None:
        n, unit, w, latest = row
        wall = names.wall(w)
        if scope is None or scope.sees(wall):
            return Known(n, unit, wall, latest)
    raise _unknown(target)


def place_parent(earlier: Earlier, names: Names, scope: Scope | None, ref: Ref) -> int:
    """The integer id of a version, as `resolve` finds it, without looking up again what never changes."""
    place = earlier.place(ref)
    if place is None or not (scope is None or scope.sees(names.wall(place[2]))):
        raise _unknown(Target(*ref))
    return place[0]


def named(target: Target) -> str:
    """A target as callers write it."""
    return target.id if target.version is None else f"{target.id}@{target.version}"


def _unknown(target: Target) -> UnknownUnitError:
    return UnknownUnitError(
        f"no unit {named(target)} is visible in this scope; check the id, and whose scope you read from"
    )


class Snapshot:
    """What is true at `now_us`, and by which generation of policy, without writing anything."""

    def __init__(
        self,
        connection: Connection,
        names: Names,
        now_us: int,
        generation: Generation,
        *,
        states: States | None = None,
        index: KeptIndex | None = None,
    ) -> None:
        self.connection = connection
        self.names = names
        self.states = states or States(connection)
        self.now_us = now_us
        self.generation = generation
        self._index = index
        self.masks: dict[int, bytes] = {}  # as the rows have them, of the units that were read

    @cached_property
    def shift(self) -> Shift:
        """What time alone has changed since the last event (section 5)."""
        due = [n for (n,) in self.connection.execute(QUERIES["due"], (self.now_us,))]
        if not due:
            return NO_SHIFT
        codes = self.states.codes(due)
        own = {n: int(CauseKind.EXPIRED) for n in due if not 0 < codes[n] & OWN_MASK < CauseKind.EXPIRED}
        settled = settle(self.supposing(own), own)  # integrity stays: time only expires, which contaminates nothing
        return Shift(own, settled.standing, settled.winner)

    @cached_property
    def graph(self) -> StoreGraph:
        """The lineage, as it stands in the tables."""
        return self.supposing({})

    def supposing(self, causes: Mapping[int, int]) -> StoreGraph:
        """The lineage, as if these causes were in force as well: a kind per version."""
        return StoreGraph(
            self.connection,
            self.names,
            self.states,
            supposed=causes,
            quorum=self.generation.quorum,
            index=self._index,
        )

    def resolve(self, scope: Scope, target: Target) -> Known:
        """See `resolve`."""
        return resolve(self.connection, self.names, scope, target)

    def resolve_anywhere(self, ref: Ref) -> int:
        """The integer id of a version that the engine itself names, in whatever walls."""
        return resolve(self.connection, self.names, None, Target(*ref)).n

    def units(self, wanted: Collection[int]) -> dict[int, Unit]:
        """Units by integer id, in the order asked."""
        return read_units(self.connection, self.names, self.states, wanted, self.shift, self.masks)

    def unit(self, n: int) -> Unit:
        """One unit."""
        return self.units([n])[n]

    def refs(self, wanted: Collection[int]) -> dict[int, Ref]:
        """Refs by integer id."""
        return read_refs(self.connection, wanted)
