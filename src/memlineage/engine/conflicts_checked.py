"""Contradictions that no key shows: pairs of statements put to a check (row C5).

Which pairs: first those about one subject, the latest first; then those whose vectors are nearer than vectors of
unrelated texts, the nearest first. Only what is current and may be relied on is looked at, and nothing that competes
for one key. A check is asked once per pair of contents, in the order in which they were written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from typing import Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.inputs import RESERVED_KINDS
from memlineage.engine.snapshot import Snapshot
from memlineage.errors import InvalidInputError
from memlineage.model.content import form_key
from memlineage.model.state import Status
from memlineage.model.unit import Unit
from memlineage.store.database import ids
from memlineage.store.sql import QUERIES

__all__ = ["Check", "Checking", "Contradiction", "Pairs"]

Check = Callable[[Unit, Unit], bool | float | str]
"""Whether two units contradict each other: yes or no, how likely (from one half on it counts as yes), or the reason."""

_UNITS: Final = 1000
_PAIRS: Final = 2000
_ASKED: Final = 500
_KEPT: Final = 100_000
_NEAR: Final = 0.3
_LIKELY: Final = 0.5
_PLAIN: Final = "the check says so"


class Contradiction(msgspec.Struct, frozen=True):
    """Two versions, by integer id, and what the check said of them."""

    a: int
    b: int
    reason: str


class Pairs(msgspec.Struct, frozen=True):
    """What a check found, and how many pairs it was not asked about for want of time."""

    found: tuple[Contradiction, ...] = ()
    shown: tuple[Unit, ...] = ()
    unasked: int = 0


class Checking:
    """Checks that are registered, and what they have answered."""

    def __init__(self, core: Core, enforcement: Enforcement) -> None:
        self._core = core
        self._enforcement = enforcement
        self._registered: dict[str | None, Check] = {}
        self._answers: dict[tuple[Check, bytes, bytes], str | None] = {}
        self._lock = threading.Lock()

    @property
    def registered(self) -> bool:
        """Whether there is any."""
        return bool(self._registered)

    def register(self, check: Check, kind: str | None) -> None:
        """Ask this check about pairs of a kind, or about all pairs that no other is for."""
        if not callable(check):
            raise InvalidInputError(f"check={check!r:.80} cannot be called; give a function of two units")
        self._registered[kind] = check

    def pairs(self, acting: Acting, subject: str | None, check: Check | None) -> Pairs:
        """Put what this reader may see to the checks, or to the one that is given."""
        if check is not None and not callable(check):
            raise InvalidInputError(f"check={check!r:.80} cannot be called; give a function of two units")
        with self._core.read() as snapshot:
            units = self._usable(acting, snapshot)
            pairs = list(islice(self._pairs(snapshot, units, subject), _PAIRS))
        # Checks may be slow, so nothing is held open while they think.
        found: list[Contradiction] = []
        shown: dict[Unit, None] = {}
        asked = unasked = 0
        for a, b in pairs:
            chosen = check or self._for(units[a], units[b])
            if chosen is None:
                continue
            key = (chosen, form_key(units[a].content), form_key(units[b].content))
            if key not in self._answers:
                if asked == _ASKED:
                    unasked += 1
                    continue
                asked += 1
                self._keep(key, _verdict(chosen(units[a], units[b])))
            shown.update(dict.fromkeys((units[a], units[b])))
            reason = self._answers.get(key)
            if reason is not None:
                found.append(Contradiction(a, b, reason))
        return Pairs(tuple(found), tuple(shown) if check is not None else (), unasked)

    def _for(self, a: Unit, b: Unit) -> Check | None:
        fallback = self._registered.get(None)
        return self._registered.get(a.kind, fallback) if a.kind == b.kind else fallback

    def _keep(self, key: tuple[Check, bytes, bytes], reason: str | None) -> None:
        with self._lock:
            while len(self._answers) >= _KEPT:
                del self._answers[next(iter(self._answers))]
            self._answers[key] = reason

    def _usable(self, acting: Acting, snapshot: Snapshot) -> dict[int, Unit]:
        """The latest that may be relied on, by integer id, as far as this reader may use them; oldest first."""
        from memlineage.store.search import Sight, listed  # numpy, which opening a store does without

        sight = Sight(tuple(snapshot.names.namespaces(acting.scope)), acting.scope)
        numbers = listed(snapshot.connection, sight, current=True)
        reading = self._enforcement.reading(acting, snapshot)
        found: dict[int, Unit] = {}
        for start in range(len(numbers), 0, -_UNITS):
            some = numbers[max(0, start - _UNITS) : start]
            for n, unit in reversed(snapshot.units(some).items()):
                usable = unit.status in (Status.ACTIVE, Status.PENDING) and unit.kind not in RESERVED_KINDS
                if usable and len(found) < _UNITS and self._enforcement.read(reading, unit, n).allowed:
                    found[n] = unit
            if len(found) == _UNITS:
                break
        return dict(reversed(found.items()))

    def _pairs(
        self, snapshot: Snapshot, units: dict[int, Unit], subject: str | None
    ) -> Iterator[tuple[int, int]]:  # fmt: skip
        """Pairs to ask about, each with its earlier unit first."""
        given: set[tuple[int, int]] = set()
        for a, b in (*_about_one_subject(units), *self._near(snapshot, units)):
            pair = (a, b) if a < b else (b, a)
            one, other = units[a], units[b]
            about = subject is None or subject in (one.subject, other.subject)
            compete = one.key is not None and (one.subject, one.key) == (other.subject, other.key)
            if about and not compete and pair not in given and form_key(one.content) != form_key(other.content):
                given.add(pair)
                yield pair

    def _near(self, snapshot: Snapshot, units: dict[int, Unit]) -> Sequence[tuple[int, int]]:
        import numpy as np

        from memlineage.recall.vectors import from_blobs

        rows = dict(snapshot.connection.execute(QUERIES["vectors_of"], (ids(units),))) if units else {}
        numbers = [n for n in units if n in rows]
        if len(numbers) < 2:  # nothing to compare
            return []
        vectors = from_blobs([rows[n] for n in numbers], self._core.embedder.dimension)
        cosine = np.triu(vectors @ vectors.T, 1)
        a, b = np.nonzero(cosine > self._core.embedder.noise + _NEAR)
        order = np.argsort(-cosine[a, b], kind="stable")[: 2 * _PAIRS]
        return [(numbers[i], numbers[j]) for i, j in zip(a[order].tolist(), b[order].tolist(), strict=True)]


def _about_one_subject(units: dict[int, Unit]) -> Iterator[tuple[int, int]]:
    subjects: dict[str, list[int]] = {}
    for n, unit in reversed(units.items()):
        if unit.subject is not None:
            subjects.setdefault(unit.subject, []).append(n)
    for numbers in subjects.values():
        yield from islice(combinations(numbers, 2), _PAIRS)


def _verdict(answer: object) -> str | None:
    """The reason for which two units contradict each other; None if they do not."""
    if isinstance(answer, str):
        return answer.strip() or None
    if answer is True:
        return _PLAIN
    if answer is None or answer is False:
        return None
    if not isinstance(answer, int | float):
        raise InvalidInputError(f"a check answered {answer!r:.80}; it must give a yes or no, a number or a reason")
    return f"{_PLAIN}, with likelihood {answer:g}" if answer >= _LIKELY else None
