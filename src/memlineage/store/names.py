"""Names kept once: principals, walls and contests become small integers in the rows that use them.

The maps are read through to the tables, where they only ever grow, so a cache of them cannot be wrong; registered
levels can change in another process, so they are reread when the file has changed.
"""

from __future__ import annotations

from typing import Final

import orjson

from memlineage.model.principal import Integrity, default_level
from memlineage.model.scope import Scope, Visibility, Wall
from memlineage.store.database import Connection
from memlineage.store.wake import Registered

__all__ = ["Names"]

_KEPT: Final = 65_536
"""Names of one sort that a process keeps, some 500 bytes each: every session that has walls of its own has a name."""


class NameCache:
    """Names that never change once given, shared by the connections of one process."""

    def __init__(self) -> None:
        self.principals: dict[int, str] = {}
        self.principal_ids: dict[str, int] = {}
        self.walls: dict[int, Wall] = {}
        self.wall_ids: dict[Wall, tuple[int, int]] = {}

    def absorb(self, fresh: NameCache) -> None:
        """Take over what a finished transaction learned; begin anew when there are too many."""
        for known in (self.principals, self.principal_ids, self.walls, self.wall_ids):
            if len(known) > _KEPT:
                known.clear()
        self.principals.update(fresh.principals)
        self.principal_ids.update(fresh.principal_ids)
        self.walls.update(fresh.walls)
        self.wall_ids.update(fresh.wall_ids)


class Names:
    """What the integers in the rows stand for, as one transaction sees it.

    What it learns is kept apart until `keep()`: a write that rolls back takes its new integers with it.
    """

    def __init__(self, connection: Connection, shared: NameCache, registered: Registered | None = None) -> None:
        self._connection = connection
        self._shared = shared
        self._fresh = NameCache()
        self.registered = Registered() if registered is None else registered

    def keep(self) -> None:
        """The transaction is committed, or only read: share what it learned."""
        self._shared.absorb(self._fresh)

    def principal(self, p: int) -> str:
        """The canonical spelling of a principal."""
        name = self._shared.principals.get(p) or self._fresh.principals.get(p)
        if name is None:
            name = str(self._connection.execute("SELECT name FROM principal WHERE p = ?", (p,)).get)
            self._fresh.principals[p] = name
        return name

    def find_principal(self, name: str) -> int | None:
        """The integer of a principal, if it was ever named here."""
        known = self._shared.principal_ids.get(name) or self._fresh.principal_ids.get(name)
        if known is None:
            known = self._connection.execute("SELECT p FROM principal WHERE name = ?", (name,)).get
            if known is not None:
                self._fresh.principal_ids[name] = known
        return known

    def level(self, p: int) -> Integrity:
        """The level of a principal as registered now, else its default."""
        level = self.registered.levels.get(p)
        if level is None:
            level = self._connection.execute("SELECT level FROM principal WHERE p = ?", (p,)).get
            level = self.registered.levels[p] = int(default_level(self.principal(p)) if level is None else level)
        return Integrity(level)

    def forget_level(self, p: int) -> None:
        """A level was registered in this transaction: read it again, and leave alone what other writes go by."""
        self.registered = self.registered.without(p)

    def level_of(self, name: str) -> Integrity:
        """The level of a principal by name; one never seen has its default."""
        p = self.find_principal(name)
        return default_level(name) if p is None else self.level(p)

    def is_verifier(self, name: str) -> bool:
        """Whether a principal was registered as a verifier."""
        known = self.registered.verifiers.get(name)
        if known is None:
            found = self._connection.execute("SELECT verifier FROM principal WHERE name = ?", (name,)).get
            known = self.registered.verifiers[name] = bool(found)
        return known

    def wall(self, w: int) -> Wall:
        """The wall behind an integer."""
        wall = self._shared.walls.get(w) or self._fresh.walls.get(w)
        if wall is None:
            row = self._connection.execute(
                "SELECT tenant, user, agent, session, visibility FROM wall WHERE w = ?", (w,)
            ).get
            tenant, user, agent, session, visibility = row
            wall = Wall(tenant=tenant, user=user, agent=agent, session=session, visibility=Visibility(visibility))
            self._fresh.walls[w] = wall
        return wall

    def namespaces(self, scope: Scope) -> list[int]:
        """The namespaces a scope can see into: its user's, and its agent's own."""
        found = self._connection.execute(
            "SELECT ns FROM namespace WHERE tenant = ?1 AND user IS NOT NULL AND user = ?2"
            " UNION ALL SELECT ns FROM namespace WHERE tenant = ?1 AND user IS NULL AND agent = ?3",
            (scope.tenant, scope.user, scope.agent),
        )
        return [ns for (ns,) in found]

    def intern_wall(self, wall: Wall) -> tuple[int, int]:
        """The integers of a wall and of its namespace, made on first use. Writers only."""
        known = self._shared.wall_ids.get(wall) or self._fresh.wall_ids.get(wall)
        if known is None:
            known = self._fresh.wall_ids[wall] = self._find_or_make_wall(wall)
        return known

    def find_namespace(self, wall: Wall) -> int | None:
        """The namespace of a wall, if anything was ever stored there."""
        known = self._shared.wall_ids.get(wall) or self._fresh.wall_ids.get(wall)
        if known is not None:
            return known[1]
        # Each in words by which its index is found.
        asked = "user IS NULL AND agent = ?2" if wall.user is None else "user IS NOT NULL AND user = ?2"
        who = wall.agent if wall.user is None else wall.user
        found: int | None = self._connection.execute(
            f"SELECT ns FROM namespace WHERE tenant = ?1 AND {asked}", (wall.tenant, who)
        ).get
        return found

    def _find_or_make_wall(self, wall: Wall) -> tuple[int, int]:
        fields = (wall.tenant, wall.user, wall.agent, wall.session, wall.visibility.value)
        identity = orjson.dumps(fields).decode()
        row = self._connection.execute("SELECT w, ns FROM wall WHERE identity = ?", (identity,)).get
        if row is None:
            ns = self._intern_namespace(wall)
            row = self._connection.execute(
                "INSERT INTO wall (ns, tenant, user, agent, session, visibility, identity)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING w, ns",
                (ns, *fields, identity),
            ).get
        w, ns = row
        return w, ns

    def _intern_namespace(self, wall: Wall) -> int:
        found = self.find_namespace(wall)
        if found is None:
            found = self._connection.execute(
                "INSERT INTO namespace (tenant, user, agent) VALUES (?, ?, ?) RETURNING ns",
                (wall.tenant, wall.user, wall.agent if wall.user is None else None),
            ).get
        return int(found)

    def intern_contest(self, wall: Wall, subject: str | None, key: str | None) -> int:
        """The integer of what a unit competes in; 0 without subject and key. Writers only."""
        if subject is None or key is None:
            return 0
        identity = orjson.dumps([*wall.group, subject, key]).decode()
        found = self._connection.execute("SELECT g FROM contest WHERE identity = ?", (identity,)).get
        if found is None:
            found = self._connection.execute("INSERT INTO contest (identity) VALUES (?) RETURNING g", (identity,)).get
        return int(found)
