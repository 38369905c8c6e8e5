"""A store under another policy, without a word of it being written.

Where the other policy moves nothing that is stored (time limits, levels and quorum are as before), it is asked about
the rows as they are. Else it is taken into force in a private copy, by the code that would do it in the store: so what
has expired, lost its key or its standing under it is what would have.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import orjson

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement, Reading
from memlineage.engine.generation import Generation
from memlineage.engine.inputs import Limits
from memlineage.engine.opening import admit_policy
from memlineage.engine.snapshot import Snapshot
from memlineage.errors import StoreError
from memlineage.model.principal import default_level
from memlineage.model.scope import Scope, Wall
from memlineage.model.time import from_us
from memlineage.model.unit import Unit
from memlineage.policy import Decision, PolicySet
from memlineage.policy.freshness import same_limits
from memlineage.recall.embedding import Embedder
from memlineage.store.copying import copy_pages
from memlineage.store.database import MEMORY, Connection, Database
from memlineage.store.kept_index import KeptIndex
from memlineage.store.names import NameCache, Names

__all__ = ["Pair", "World", "changes_what_is_stored", "worlds"]


class World:
    """A store as it is under one policy, or as it would be."""

    def __init__(self, core: Core, snapshot: Snapshot, like: World | None = None) -> None:
        """`like` is a world whose rows are the same: what is read of them is read once."""
        self.snapshot = snapshot
        self._enforcement = Enforcement(core)
        self._like = like
        self._readings: dict[tuple[Wall, bool], Reading] = {}
        self._batch: tuple[Sequence[int], dict[int, Unit]] = ((), {})

    @property
    def policies(self) -> PolicySet:
        """What is in force here."""
        return self.snapshot.generation.policies

    def units(self, numbers: Sequence[int]) -> dict[int, Unit]:
        """Versions by number; those asked for last are at hand."""
        if self._like is not None:
            return self._like.units(numbers)
        if self._batch[0] != numbers:
            self.snapshot.masks.clear()
            self._batch = numbers, self.snapshot.units(numbers)
        return self._batch[1]

    def read(self, n: int, unit: Unit, *, critical: bool) -> Decision:
        """What its own user is answered who reads a unit: from where it was stored, by no name but their own."""
        key = unit.wall, critical
        reading = self._readings.get(key)
        if reading is None:
            acting = Acting(scope=Scope.of(unit.wall))
            reading = self._readings[key] = self._enforcement.reading(acting, self.snapshot, critical=critical)
        return self._enforcement.read(reading, unit, n)


class Pair(NamedTuple):
    """A store under the old policy and under the new one."""

    before: World
    after: World
    copied: bool

    @property
    def worlds(self) -> tuple[World, World]:
        """Both."""
        return self.before, self.after


@contextmanager
def worlds(database: Database, embedder: Embedder, old: PolicySet, new: PolicySet, *, now_us: int) -> Iterator[Pair]:
    """The store in one snapshot, under both policies."""
    with ExitStack() as stack:
        connection = stack.enter_context(database.reading())

        def under(policies: PolicySet, like: World | None) -> tuple[World, bool]:
            if changes_what_is_stored(connection, policies):
                return stack.enter_context(_switched(database, embedder, policies, now_us)), True
            names = Names(connection, NameCache())
            # Reading may keep the lineage beside the file; this must leave no trace, so it keeps it nowhere.
            index = KeptIndex(MEMORY)
            snapshot = Snapshot(connection, names, now_us, Generation.of(policies), index=index)
            return World(_core(database, embedder, policies, now_us), snapshot, like), False

        before, moved = under(old, None)
        after, copied = under(new, None if moved else before)
        yield Pair(before, after, copied or moved)


def changes_what_is_stored(connection: Connection, policies: PolicySet) -> bool:
    """Whether taking a policy into force would change rows: when versions expire, or what principals are worth."""
    known = connection.execute("SELECT value FROM meta WHERE name = 'policy_set'").get
    if known is None:
        return True
    try:
        stored = PolicySet.from_kept(known)
    except msgspec.DecodeError:
        raise StoreError(
            "the policy that this store keeps cannot be read: find out more with memlineage verify"
        ) from None
    if stored.revision == policies.revision:
        return False
    if stored.quorum != policies.quorum or not same_limits(stored, policies):
        return True
    granted = connection.execute("SELECT value FROM meta WHERE name = 'policy_levels'").get
    ended = set(orjson.loads(str(granted))) - set(policies.principals) if granted is not None else set()
    names = Names(connection, NameCache())
    levels = {**{name: default_level(name) for name in ended}, **policies.principals}
    return any(
        names.find_principal(name) is not None and names.level_of(name) != level for name, level in levels.items()
    )


@contextmanager
def _switched(database: Database, embedder: Embedder, policies: PolicySet, now_us: int) -> Iterator[World]:
    """A private copy of the store, really under another policy. It is gone at the end, and nobody else can read it."""
    with _folder() as folder:
        path = Path(folder) / "copy.db"
        path.touch(mode=0o600)
        copy_pages(database, path, None)
        copy = Database(str(path), durability="normal")
        try:
            core = _core(copy, embedder, policies, now_us)
            admit_policy(core)
            with core.read() as snapshot:
                yield World(core, snapshot)
        finally:
            copy.close()


def _folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="memlineage-")
    except OSError as error:
        raise StoreError(
            f"a copy of the store cannot be made ({error}); set TMPDIR to a folder with room for it"
        ) from None


def _core(database: Database, embedder: Embedder, policies: PolicySet, now_us: int) -> Core:
    return Core(database, policies=policies, embedder=embedder, limits=Limits(), clock=lambda: from_us(now_us))
