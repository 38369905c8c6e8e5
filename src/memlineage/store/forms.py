"""Which versions say a thing, as one write transaction sees them: by the key of the normal form.

Before anything is stored, two rules ask who has said it before (semantics.md, section 10), and most often nobody
has. The index alone answers that, for a whole batch at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import apsw

from memlineage.store.database import Connection
from memlineage.store.sql import QUERIES

__all__ = ["Forms"]


class Forms:
    """Pairs (version, namespace) by form; what this transaction writes is added to what it found."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[bytes, list[tuple[int, int]]] = {}

    def load(self, forms: Collection[bytes]) -> None:
        """Look these up together."""
        wanted = tuple({form for form in forms if form not in self._known})
        if wanted:
            self._known.update({form: [] for form in wanted})
            for form, n, ns in self._connection.execute(QUERIES["said"], (apsw.carray(wanted),)):
                self._known[form].append((n, ns))

    def of(self, form: bytes) -> Sequence[tuple[int, int]]:
        """Who says it, in whatever walls, the erased included."""
        if form not in self._known:
            rows: Iterable[tuple[Any, ...]] = self._connection.execute(QUERIES["said_once"], (form,))
            self._known[form] = [(n, ns) for n, ns in rows]
        return self._known[form]

    def add(self, form: bytes, n: int, ns: int) -> None:
        """A version was written that says it."""
        if form in self._known:
            self._known[form].append((n, ns))
