"""Which versions say the same, against the events: classes in `alike`, pairs in `verdict` (schema.sql).

Versions of a unit form a class while each says the same as all of it so far, and as nothing else; a class is named by
its first member. Its rows follow from the events of its later members: the newest one that an event names tells the
class, and the first member is there if anything joined it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memlineage.store.checking.events import Write
from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.database import Connection

__all__ = ["AlikeCheck"]


class AlikeCheck:
    """Checks both tables in the order of versions.

    Attributes:
        found: how many rows were accounted for.
    """

    def __init__(self, connection: Connection, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults
        self._rows: Iterator[tuple[int, int]] = connection.execute("SELECT n, c FROM alike ORDER BY n")
        self._next = next(self._rows, None)
        self._joined: dict[int, int] = {}
        self._unjoined: dict[int, int] = {}
        self.found: Counter[str] = Counter()

    def check(self, said: Write) -> None:
        """The rows of one version."""
        alike = self._take(said)
        if not said.same:
            if alike == said.n:
                self._unjoined[said.n] = said.seq
            elif alike is not None:
                self._add(said.n, f"is of class {alike}; event {said.seq} says it is like none", said.seq)
            return
        olders = self._olders(said)
        if not olders or None in olders or olders[-1] == said.n:
            problem = "is like versions that are not there"  # or are not found, where a unit or its versions are wrong
            self._faults.add("event", f"event {said.seq}", problem, seq=said.seq, depth=Depth.RECORD)
            return
        known = [n for n in olders if n is not None]
        wanted = self._class_of(known, said)
        if wanted is None:
            self._check_pairs(known, said)
        if alike != wanted:
            self._add(said.n, f"is of class {alike}; by event {said.seq} it is of {wanted}", said.seq)

    def _take(self, said: Write) -> int | None:
        """The class of this version, as the table has it; rows passed over belong to no version."""
        while self._next is not None and self._next[0] < said.n:
            self._add(self._next[0], "no event wrote this row", said.seq)
            self._next = next(self._rows, None)
        if self._next is None or self._next[0] != said.n:
            return None
        alike: int = self._next[1]
        self._next = next(self._rows, None)
        return alike

    def _olders(self, said: Write) -> list[int | None]:
        """The versions that the event calls the same; of a class, only the newest."""
        u = self._connection.execute("SELECT u FROM unit WHERE id = ?", (said.unit,)).get
        spans = [(said.same, said.same)] if isinstance(said.same, int) else said.same
        found: list[int | None] = []
        for first, last in spans:
            rows = self._connection.execute(
                "SELECT n FROM version WHERE u = ? AND version BETWEEN ? AND ? ORDER BY version", (u, first, last)
            )
            numbers = [n for (n,) in rows]
            found += numbers if len(numbers) == last - first + 1 else [None]
        return found

    def _class_of(self, olders: list[int], said: Write) -> int | None:
        """The class that the version joined; None if it is like some of one, or like several."""
        first = self._joined_class(olders[-1])
        if not isinstance(said.same, int):
            rows = self._connection.execute("SELECT n FROM alike WHERE c = ? AND n < ?", (first, said.n))
            if sorted({first, *(n for (n,) in rows)}) != olders:
                return None
        self._joined.setdefault(first, said.seq)
        return first

    def _joined_class(self, n: int) -> int:
        """The class of an earlier version: what its own event made it, or itself."""
        found: int | None = self._connection.execute("SELECT c FROM alike WHERE n = ?", (n,)).get
        return n if found is None or found not in self._joined else found

    def _check_pairs(self, olders: list[int], said: Write) -> None:
        rows = {n for (n,) in self._connection.execute("SELECT older FROM verdict WHERE newer = ?", (said.n,))}
        self.found["verdict"] += len(rows)
        for older in sorted(rows ^ set(olders)):
            problem = "no event wrote this row" if older in rows else f"is not there, event {said.seq} wrote it"
            self._faults.add(
                "verdict", f"verdict {older} = {said.n}", problem, seq=said.seq, depth=Depth.RECORD
            )  # fmt: skip

    def _add(self, n: int, problem: str, seq: int) -> None:
        self._faults.add("alike", f"alike {n}", problem, seq=seq, depth=Depth.RECORD)

    def finish(self, seq: int) -> None:
        """After all versions: first members that nothing joined, or that are missing, and rows of no version."""
        while self._next is not None:
            self._add(self._next[0], "no event wrote this row", seq)
            self._next = next(self._rows, None)
        for n in self._unjoined.keys() - self._joined.keys():
            self._add(n, "is a class of its own, and no version joined it", seq)
        for n in self._joined.keys() - self._unjoined.keys():
            if self._connection.execute("SELECT c FROM alike WHERE n = ?", (n,)).get != n:
                self._add(n, "is the first of its class, and the row is not there", self._joined[n])
