"""Which rules can matter for versions whose rows do not say so by the generation in force.

A version is written with its mask (policy/fast/fields.py). Where its row has none, or one of an earlier generation,
the mask is worked out when somebody asks about the version, kept here, and put into the row by a later write: reads
write nothing, and neither do writes that are refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import apsw

from memlineage.policy.fast.form import FastForm
from memlineage.store.database import Connection
from memlineage.store.sql import QUERIES

__all__ = ["Masks"]

_KEPT: Final = 32_768
"""Masks that a process keeps for rows that lack them, some 150 bytes each, and a bit for each rule."""
_AT_ONCE: Final = 64
"""Masks that one write takes along: each is a page of the file that the write would not have touched."""


class Masks:
    """The masks of one generation that rows do not have yet. Threads may share it."""

    def __init__(self, form: FastForm) -> None:
        self._form = form
        self._lock = threading.Lock()
        self._known: dict[int, bytes] = {}

    def of(self, connection: Connection, n: int, stored: bytes | None, unit: Mapping[str, Any]) -> bytes:
        """The mask of a version with these fields: as its row has it, as it is kept here, else worked out."""
        if stored is not None and self._form.is_current(stored):
            return stored
        known = self._known.get(n)
        if known is None:
            known = self._form.mask(unit)
            # Inside a write the version may be one that this write made: if it is undone, another one gets its number.
            if connection.txn_state("main") != apsw.SQLITE_TXN_WRITE:
                self._keep(n, known)
        return known

    def flush(self, connection: Connection) -> Sequence[int]:
        """Put some of what is kept into its rows, inside the caller's transaction; returns them, for `written`."""
        if not self._known:
            return ()
        with self._lock:
            rows = list(islice(self._known.items(), _AT_ONCE))
        connection.executemany(QUERIES["put_mask"], rows)
        return [n for n, _ in rows]

    def written(self, numbers: Iterable[int]) -> None:
        """These are in their rows: the transaction was committed."""
        with self._lock:
            for n in numbers:
                self._known.pop(n, None)

    def forget(self) -> None:
        """Rows were written anew, with their masks."""
        with self._lock:
            self._known.clear()

    def _keep(self, n: int, mask: bytes) -> None:
        with self._lock:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[n] = mask
