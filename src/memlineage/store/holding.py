"""One process's hold on one file: SQLite survives neither a fork nor a file that is exchanged under it.

SQLite's locks belong to a process. A child made by `fork` inherits connections that believe in locks which the
child does not have, and so does every new connection to the same file, since SQLite shares what it knows of a file
between the connections of a process: the parent then closes as if it were the last one and deletes the write-ahead
log that the child writes to. So a child may neither use what it inherited nor open that file anew, and its copies
of the connections are never closed (https://sqlite.org/howtocorrupt.html, section 2.6).

A file that is moved, deleted or replaced stays open under its old name, and everything written to it is lost; whoever
opens it by name sees another one. So before each transaction the name is looked up again; that takes a microsecond.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import apsw

from memlineage.errors import StoreError

__all__ = ["Hold"]

_Identity = tuple[int, int]
_HELD: Final[weakref.WeakSet[Hold]] = weakref.WeakSet()
_INHERITED: Final[set[_Identity]] = set()


class Hold:
    """Which file it is that a path named when it was opened, and the process that opened it."""

    def __init__(self, path: str, *, on_disk: bool) -> None:
        """Before anything is opened.

        Raises `StoreError` if the parent process has the file open, or this one the file that had its name before.
        """
        self._shown = path
        self._path = str(Path(path).absolute()) if on_disk else None
        self._process = os.getpid()
        self._file: _Identity | None = None
        self._connections: list[weakref.ref[apsw.Connection]] = []
        self._foreign = False
        if self._identity() in _INHERITED:
            raise StoreError(
                f"{path} was open in process {os.getppid()} when it forked this one, which cannot share it; "
                "open it after the fork in each process, or start processes with 'spawn'"
            )

        self._refuse_successor()

    def _refuse_successor(self) -> None:
        """The write-ahead log of a file that is open lies where its successor would look for its own."""
        if self._path is None:
            return
        for other in list(_HELD):
            if other._path == self._path and not other._foreign and other._file != self._identity():
                raise StoreError(
                    f"{self._shown} was moved, deleted or replaced while this program had it open, and its log would "
                    "be taken for that of the new one; nothing was opened: close that memory first, delete "
                    f"{self._shown}-wal and {self._shown}-shm, then open it again"
                )

    def take(self) -> None:
        """The file is open now: this one is meant from here on."""
        self._file = self._identity()
        _HELD.add(self)

    def release(self) -> None:
        """Nothing of it is open any more: a child may open it."""
        _HELD.discard(self)

    def add(self, connection: apsw.Connection) -> None:
        """Another connection to it."""
        self._connections = [known for known in self._connections if known() is not None]
        self._connections.append(weakref.ref(connection))

    @property
    def inherited(self) -> bool:
        """Whether this is a forked child's copy of what its parent opened."""
        return self._foreign

    def check_process(self) -> None:
        """Raise `StoreError` in a forked child. Before any lock is taken: in the child it may never be free."""
        if self._foreign:
            raise StoreError(
                f"the memory on {self._shown} was opened by process {self._process} and cannot be used in a process "
                "forked from it; nothing was written: call Memory.open after the fork, in each process"
            )

    def check_file(self) -> None:
        """Raise `StoreError` if the name does not lead to this file any more."""
        if self._file is not None and self._identity() != self._file:
            raise StoreError(
                f"{self._shown} was moved, deleted or replaced while it was open; nothing was written: put the right "
                "file there, then close this memory and open it again"
            )

    def _identity(self) -> _Identity | None:
        if self._path is None:
            return None
        try:
            found = os.stat(self._path)  # noqa: PTH116 - in every transaction; Path.stat takes twice as long
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def leave_to_the_parent(self) -> None:
        """In the child: nothing of this is ours, and nothing of it may be closed."""
        self._foreign = True
        if self._file is not None:
            _INHERITED.add(self._file)
        _keep_for_ever(c for known in self._connections if (c := known()) is not None)


def _keep_for_ever(connections: Iterable[apsw.Connection]) -> None:
    """A connection that Python collects is closed by SQLite, which checkpoints under locks that it does not have."""
    import ctypes

    for connection in connections:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _after_fork() -> None:
    for hold in list(_HELD):
        hold.leave_to_the_parent()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork)
