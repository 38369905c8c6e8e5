"""Principals and walls as version rows name them, looked up once each while they are met often, and checked when met.

A wall says who may see what stands in it; its fields are part of every record commitment. Its `identity` and the
namespace it belongs to follow from those fields.
"""

from __future__ import annotations

from typing import Final

import msgspec
import orjson

from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.database import Connection

__all__ = ["Places", "WallFields"]

_REMEMBERED: Final = 65_536


class WallFields(msgspec.Struct, frozen=True):
    """A wall row.

    Attributes:
        w: its number.
        ns: the namespace it says it is in.
        fields: tenant, user, agent, session, visibility.
        identity: the same as one text, as the row has it.
    """

    w: int
    ns: int
    fields: tuple[str | None, ...]
    identity: str

    @property
    def owner(self) -> tuple[str | None, ...]:
        """Tenant, user and agent of the namespace that such a wall belongs to."""
        tenant, user, agent = self.fields[:3]
        return (tenant, user, None) if user is not None else (tenant, None, agent)


class Places:
    """Looks up principals and walls; memory is bounded however many there are."""

    def __init__(self, connection: Connection, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults
        self._names: dict[int, str | None] = {}
        self._walls: dict[int, WallFields | None] = {}
        self._met = bytearray()
        self._unsound: set[int] = set()

    def name(self, p: int) -> str | None:
        """The name of a principal; None if there is no such row."""
        if p not in self._names:
            if len(self._names) >= _REMEMBERED:
                self._names.clear()
            self._names[p] = self._connection.execute("SELECT name FROM principal WHERE p = ?", (p,)).get
        return self._names[p]

    def wall(self, w: int, ns: int, seq: int) -> WallFields | None:
        """A wall; None if there is no such row. It is checked when first met, by a version of namespace `ns`."""
        if w not in self._walls:
            if len(self._walls) >= _REMEMBERED:
                self._walls.clear()
            self._walls[w] = self._read(w)
        wall = self._walls[w]
        if wall is not None and self._first_time(w):
            self._check(wall, ns, seq)
        return wall

    def sound(self, w: int) -> bool:
        """Whether nothing was found against a wall."""
        return w not in self._unsound

    def _read(self, w: int) -> WallFields | None:
        row = self._connection.execute(
            "SELECT ns, identity, tenant, user, agent, session, visibility FROM wall WHERE w = ?", (w,)
        ).get
        return None if row is None else WallFields(w, row[0], row[2:], row[1])

    def _first_time(self, w: int) -> bool:
        if not 0 < w < 1 << 32:
            return False
        if w >= len(self._met):
            self._met.extend(bytes(w + 1024 - len(self._met)))
        met, self._met[w] = self._met[w], 1
        return not met

    def _check(self, wall: WallFields, ns: int, seq: int) -> None:
        where = f"wall {wall.w}"
        if orjson.dumps(wall.fields).decode() != wall.identity:
            self._faults.add("wall", where, "identity is not that of its fields", seq=seq, depth=Depth.RECORD)
        if self._owner_of(wall.ns) == wall.owner:
            return
        self._unsound.add(wall.w)
        if self._owner_of(ns) == wall.owner:
            self._faults.add(
                "wall", where, f"namespace {wall.ns} is not that of its fields", seq=seq, depth=Depth.RECORD
            )
        else:
            problem = f"is not that of wall {wall.w}, which belongs to it"
            self._faults.add("namespace", f"namespace {wall.ns}", problem, seq=seq, depth=Depth.RECORD)

    def _owner_of(self, ns: int) -> tuple[str | None, ...] | None:
        row = self._connection.execute("SELECT tenant, user, agent FROM namespace WHERE ns = ?", (ns,)).get
        return None if row is None else tuple(row)

    def check_unused(self, seq: int) -> None:
        """After all versions: a wall that nothing stands in, and a namespace without walls, no write ever made."""
        for (w,) in self._connection.execute("SELECT w FROM wall ORDER BY w"):
            if not (0 < w < len(self._met) and self._met[w]):
                self._faults.add("wall", f"wall {w}", "nothing stands in it", seq=seq, depth=Depth.RECORD)
        for (ns,) in self._connection.execute(
            "SELECT ns FROM namespace n WHERE NOT EXISTS (SELECT 1 FROM wall w WHERE w.ns = n.ns) ORDER BY ns"
        ):
            self._faults.add("namespace", f"namespace {ns}", "no wall belongs to it", seq=seq, depth=Depth.RECORD)
