"""The decision log: bounded, written with the act it belongs to, or on its own when the act was refused."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from memlineage.engine.asking import Asked
from memlineage.engine.checks import check_count, check_instant
from memlineage.engine.decision_logging import DecisionLogging, Line, Row, row_of
from memlineage.errors import InvalidInputError
from memlineage.model.unit import Unit
from memlineage.policy import Decision, Effect, Verb
from memlineage.store.database import Connection

__all__ = ["DecisionLog", "Wanted", "read_decisions"]

_WAITING: Final = 10_000
_CROWDED: Final = 9_000
_RECENT: Final = 2_000
"""Reads that were plainly allowed, and are not logged: this process remembers the latest."""
_PRUNED: Final = 1_000
"""Lines that go at a time, at most."""
_LATELY: Final = 64
"""How far back a decision is looked for that has become another."""

_PUT: Final = "INSERT INTO decision (id, at_us, action, effect, ref, body, asked) VALUES (?, ?, ?, ?, ?, ?, ?)"


class DecisionLog:
    """Decisions that wait to be written. Reads only remember; the next write carries them along. Thread-safe."""

    def __init__(self, options: DecisionLogging | None = None) -> None:
        self._options = options or DecisionLogging()
        self._every_read = self._options.reads == "all"
        self._pruned = min(_PRUNED, -(-self._options.keep // 10))
        self._lock = threading.Lock()
        self._waiting: deque[Line] = deque(maxlen=_WAITING)
        self._recent: deque[Line] = deque(maxlen=_RECENT)

    def add(self, now_us: int, decision: Decision, asked: Asked | None = None) -> None:
        """Remember a decision, and have it written."""
        with self._lock:
            self._waiting.append(Line(now_us, decision, asked))

    def add_read(self, now_us: int, decision: Decision, asked: Asked) -> None:
        """The same of a read; one that was plainly allowed, and obliges to nothing, is written only where all are."""
        if self._every_read or decision.effect is not Effect.ALLOW or decision.obligations:
            self.add(now_us, decision, asked)
        else:
            with self._lock:
                self._recent.append(Line(now_us, decision, asked))

    def settle(self, decision: Decision) -> None:
        """What was just remembered under this id has become this: a refresh failed, or was not affordable."""
        with self._lock:
            for lines in (self._waiting, self._recent):
                for back in range(1, 1 + min(_LATELY, len(lines))):
                    if lines[-back].decision.id == decision.id:
                        lines[-back] = lines[-back]._replace(decision=decision)
                        break

    def flush(self, connection: Connection) -> Sequence[Line]:
        """Write what waits, inside the caller's transaction; returns it, for `put_back` should that fail."""
        with self._lock:
            lines = tuple(self._waiting)
            self._waiting.clear()
        rows: list[Row] = [row for line in lines if (row := row_of(line, self._options)) is not None]
        if rows:
            connection.executemany(_PUT, rows)
            self._prune(connection, connection.last_insert_rowid(), len(rows))
        return lines

    def _prune(self, connection: Connection, last: int, fresh: int) -> None:
        if last // self._pruned > (last - fresh) // self._pruned:
            connection.execute("DELETE FROM decision WHERE d <= ?", (last - self._options.keep,))

    def put_back(self, lines: Sequence[Line]) -> None:
        """Their transaction failed: they wait on, before what came since."""
        if lines:
            with self._lock:
                self._waiting = deque((*lines, *self._waiting), maxlen=_WAITING)

    @property
    def waiting(self) -> tuple[Decision, ...]:
        """Decisions that nobody is writing to the table yet, oldest first."""
        with self._lock:
            return tuple(line.decision for line in self._waiting)

    @property
    def crowded(self) -> bool:
        """Whether so many wait that the oldest may soon be dropped, unwritten."""
        return len(self._waiting) >= _CROWDED

    def recent(self, ending: str) -> dict[str, Line]:
        """Reads that were not logged, and whose ids end so, by id."""
        with self._lock:
            return {line.decision.id: line for line in self._recent if line.decision.id.endswith(ending)}


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which decisions of a log are asked for.

    Attributes:
        limit: most of them.
        action: of this request only.
        effect: with this effect only.
        unit: about this version, or about all versions of the unit with this id.
        since_us: not before this instant.
    """

    limit: int
    action: str | None = None
    effect: str | None = None
    unit: str | None = None
    since_us: int | None = None

    @classmethod
    def of(cls, *, limit: Any, action: Any, effect: Any, unit: Any, since: Any) -> Wanted:
        """Checked. Raises `InvalidInputError`."""
        return cls(
            limit=check_count(limit, name="limit", least=1),
            action=None if action is None else _one_of(action, list(Verb), name="action"),
            effect=None if effect is None else _one_of(effect, list(Effect), name="effect"),
            unit=None if unit is None else _about(unit),
            since_us=None if since is None else _instant(since),
        )


def _one_of(given: Any, known: Sequence[str], *, name: str) -> str:
    if given not in known:
        raise InvalidInputError(f"{name}={given!r:.80} is unknown; choose one of {', '.join(known)}")
    return str(given)


def _about(unit: Any) -> str:
    named = str(unit.ref) if isinstance(unit, Unit) else str(unit)
    if not named.strip():
        raise InvalidInputError("unit='' names nothing; give a unit, its ref or its id")
    return named


def _instant(since: Any) -> int:
    if not isinstance(since, datetime):
        raise InvalidInputError(f"since={since!r:.80} is not a datetime; pass an aware one")
    return check_instant(since, name="since")


def read_decisions(connection: Connection, wanted: Wanted) -> list[dict[str, Any]]:
    """The latest of these decisions, newest first, as plain mappings."""
    conditions = list(_conditions(wanted))
    where = f"WHERE {' AND '.join(condition for condition, _ in conditions)} " if conditions else ""
    rows = connection.execute(
        f"SELECT id, body FROM (SELECT * FROM decision {where}ORDER BY d DESC LIMIT ?) ORDER BY at_us DESC, d DESC",
        (*(value for _, values in conditions for value in values), wanted.limit),
    )
    found: dict[str, bytes] = {}
    for decision, body in rows:  # where it was not sure whether a line had been written, it was written again
        found.setdefault(decision, body)
    return [msgspec.json.decode(body) for body in found.values()]


def _conditions(wanted: Wanted) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if wanted.action is not None:
        yield "action = ?", (wanted.action,)
    if wanted.effect is not None:
        yield "effect = ?", (wanted.effect,)
    if wanted.unit is not None and "@" in wanted.unit:
        yield "ref = ?", (wanted.unit,)
    elif wanted.unit is not None:
        yield "ref >= ? AND ref < ?", (f"{wanted.unit}@", f"{wanted.unit}A")
    if wanted.since_us is not None:
        yield "at_us >= ?", (wanted.since_us,)
