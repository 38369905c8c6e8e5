"""What a write asks of the versions before it: where they stand, what they may justify, and who says the same.

Three questions come with every store, about its parents and about its text. What never changes of a version is looked
up once in the life of a process; the rest is read anew in every transaction, for a whole batch at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import apsw

from memlineage.model.ids import Ref
from memlineage.store.database import Connection, ids
from memlineage.store.sql import QUERIES

__all__ = ["Earlier", "Place", "PlaceCache"]

Place = tuple[int, int, int]
"""What never changes of a version: its own integer id, its unit's, and its wall's."""
PlaceCache = dict[Ref, Place]
"""Places that writers of one process have found; some 300 bytes each, `_KEPT` at most."""
_KEPT: Final = 16_384


class Earlier:
    """Answers as one write transaction sees them. What it finds out is shared by `keep`, once that is committed."""

    def __init__(self, connection: Connection, shared: PlaceCache) -> None:
        self._connection = connection
        self._shared = shared
        self._fresh: PlaceCache = {}
        self._refs: dict[int, Ref] = {}
        self._levels: dict[int, int] = {}
        self._forms: dict[bytes, list[tuple[int, int]]] = {}

    def keep(self) -> None:
        """The transaction is committed."""
        if len(self._shared) > _KEPT:
            self._shared.clear()
        self._shared.update(self._fresh)

    def place(self, ref: Ref) -> Place | None:
        """Where a version stands, if there is such a one."""
        known = self._shared.get(ref) or self._fresh.get(ref)
        if known is None:
            known = self._connection.execute(QUERIES["place_of"], ref).get
            if known is None:
                return None
            self._fresh[ref] = known
        self._refs[known[0]] = ref
        return known

    def refs(self, numbers: Iterable[int]) -> Mapping[int, Ref]:
        """The refs of these versions, and of all others that were met in this transaction."""
        missing = [n for n in numbers if n not in self._refs]
        if missing:
            for n, unit, version in self._connection.execute(QUERIES["refs"], (ids(missing),)):
                self._refs[n] = Ref(unit, version)
        return self._refs

    def levels(self, numbers: Collection[int]) -> Mapping[int, int]:
        """Integrity of these versions, and of others."""
        missing = [n for n in numbers if n not in self._levels]
        if missing:
            self._levels.update(self._connection.execute(QUERIES["levels"], (ids(missing),)))
        return self._levels

    def forget_levels(self) -> None:
        """Integrity was settled anew."""
        self._levels.clear()

    def load_forms(self, forms: Iterable[bytes]) -> None:
        """Look these up together."""
        wanted = tuple({form for form in forms if form not in self._forms})
        if wanted:
            self._forms.update({form: [] for form in wanted})
            for form, n, ns in self._connection.execute(QUERIES["said"], (apsw.carray(wanted),)):
                self._forms[form].append((n, ns))

    def saying(self, form: bytes) -> Sequence[tuple[int, int]]:
        """Versions of a normal form, each with its namespace, in whatever walls, the erased included."""
        if form not in self._forms:
            rows: Iterable[tuple[Any, ...]] = self._connection.execute(QUERIES["said_once"], (form,))
            self._forms[form] = [(n, ns) for n, ns in rows]
        return self._forms[form]

    def add(self, ref: Ref, place: Place, form: bytes, ns: int, level: int) -> None:
        """A version is about to be written; it may be a while before the tables have it."""
        n = place[0]
        self.saying(form)
        self._forms[form].append((n, ns))
        self._fresh[ref] = place
        self._refs[n] = ref
        self._levels[n] = level
