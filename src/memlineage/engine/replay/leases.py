"""Who makes which unit again just now: one process in all runs what makes it (table `refresh`).

A lease ends by itself, and is renewed while whoever has it is alive. One of a process on this machine that has ended is
nobody's: a replay that was killed is taken up at once by calling again.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from memlineage.engine.core import Core
from memlineage.errors import StoreError
from memlineage.store.database import Connection

__all__ = ["Leases"]

_TERM_US: Final = 30_000_000
_RENEWED_S: Final = 8.0
_KIND: Final = "replay"


def _place() -> str:
    """Where process numbers mean the same as here."""
    namespace = Path("/proc/self/ns/pid")
    return f"{platform.node()}:{namespace.readlink() if namespace.is_symlink() else ''}".replace("|", "")


_PLACE: Final = _place()


class Leases:
    """The leases of one replay. Ends with it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._token = f"{_KIND}|{_PLACE}|{os.getpid()}|{os.urandom(6).hex()}"
        self._held: set[int] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, connection: Connection, u: int) -> bool:
        """Take a unit, inside a transaction; False if somebody else is at it."""
        now = time.time_ns() // 1000
        row = connection.execute("SELECT holder, until_us FROM refresh WHERE u = ?", (u,)).get
        if row is not None and row[0] is not None and now < row[1] <= now + _TERM_US and not _ended(row[0]):
            return bool(row[0] == self._token)
        connection.execute(
            "INSERT OR REPLACE INTO refresh (u, holder, until_us) VALUES (?, ?, ?)", (u, self._token, now + _TERM_US)
        )
        with self._lock:
            self._held.add(u)
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew, name="memlineage-replay", daemon=True)
                self._thread.start()
        return True

    def give_back(self, u: int, error: str | None) -> None:
        """Let a unit go, and keep what went wrong with it; None if nothing did."""
        with self._lock:
            self._held.discard(u)
        now = time.time_ns() // 1000
        with self._core.database.writing() as connection:
            connection.execute("DELETE FROM refresh WHERE u = ? AND holder = ?", (u, self._token))
            if error is None:
                connection.execute("DELETE FROM failure WHERE u = ?", (u,))
            else:
                connection.execute(
                    "INSERT INTO failure (u, at_us, tries, error) VALUES (?1, ?2, 1, ?3)"
                    " ON CONFLICT (u) DO UPDATE SET at_us = ?2, tries = tries + 1, error = ?3",
                    (u, now, error),
                )

    def end(self) -> None:
        """No more is taken."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWED_S):
            with self._lock:
                held = list(self._held)
            until = time.time_ns() // 1000 + _TERM_US
            with suppress(StoreError), self._core.database.writing() as connection:
                connection.executemany(
                    "UPDATE refresh SET until_us = ? WHERE u = ? AND holder = ?",
                    [(until, u, self._token) for u in held],
                )


def _ended(holder: str) -> bool:
    """Whether the process that has a lease is known to have ended."""
    kind, _, rest = holder.partition("|")
    place, _, rest = rest.partition("|")
    number = rest.partition("|")[0]
    if kind != _KIND or place != _PLACE or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
