"""Every fault at every point of an act: for people who write stores, and for this one.

Theory. An act on a copy of a prepared file is run once without faults, which gives its points (see `FaultyDisk`) and
the states of the file: before the act, and after each of its commits. Then it is run again for each point and fault,
in a child process that repeats the same ids, salts and instants. After that

- the file, opened by nobody but SQLite, is in one of those states, not behind what was acknowledged;
- an error that the caller saw is a `StoreError` with a cure, and if it says that nothing was written, nothing was;
- the store opens and is consistent, and the act, asked for again, succeeds.

A child ends where the fault struck, or as soon as it has seen the error, or goes on: the disk is mended and the act
asked for again in the same memory. Processes are forked, so this needs a POSIX system, and no memory open in whoever
calls it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

import apsw
import msgspec

from memlineage.engine.memory import Memory
from memlineage.errors import MemLineageError, StoreError
from memlineage.store.database import Database
from memlineage.testing.consistency import inconsistencies
from memlineage.testing.faults import KILLED, Fault, FaultyDisk

__all__ = ["Case", "Cell", "Run", "Trial", "rehearse", "state_of", "try_out"]

_LIFE_S: Final = 25
_DISK: Final = "fault-table"
_CURES: Final = (
    "try again", "restore a backup", "check the permissions", "check that its folder", "open it again",
    "before running it again",
)  # fmt: skip
_OPEN: Final[list[Memory]] = []
"""Memories of a child: one that is dropped is closed, and a process that ends closes nothing."""
_NOTHING: Final = "nothing was written"
_DERIVED: Final = ("text", "vocabulary", "sqlite_")
_PART: Final = {"refresh": "u, until_us, failed", "decision": "count(*)"}
"""Of these only what every run repeats: a lease is named by its process."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """An act to be tried out.

    Attributes:
        name: of the row of the table.
        open: opens the memory, given its path and the name of the disk; None for the real one.
        act: what is done to it then; None if opening is the act.
        source: the file to begin with, with its key beside it if it has one; None for a file that is not there yet.
        once: whether the act, asked for a second time, has still been done once.
        closes: whether the memory is closed after the act.
        mends: whether the file is inconsistent until the act is done.
    """

    name: str
    open: Callable[[Path, str | None], Memory]
    act: Callable[[Memory], object] | None = None
    source: Path | None = None
    once: Callable[[Memory], bool] = lambda _: True
    closes: bool = False
    mends: bool = False


class Run(msgspec.Struct, frozen=True):
    """How an act goes without faults.

    Attributes:
        points: what can be struck, in order.
        states: digests of the file: before the act, and after each of its commits.
    """

    points: tuple[str, ...]
    states: tuple[str, ...]


class Trial(msgspec.Struct, frozen=True):
    """One fault at one point.

    Attributes:
        point: its number.
        fault: the way in which it fails.
        goes_on: whether the process goes on after the error, or ends.
    """

    point: int
    fault: Fault
    goes_on: bool


class Cell(msgspec.Struct, frozen=True):
    """What came of a trial.

    Attributes:
        trial: it.
        state: how many of the act's commits the file had; -1 if it was in no state that a run without faults passes.
        told: the error that the caller saw; empty if there was none, or nobody left to see it.
        wrong: what is not as it must be; empty if all is well.
    """

    trial: Trial
    state: int
    told: str
    wrong: str


class _Told(msgspec.Struct):
    """What a child saw: how many commits returned, the error, and what it found if it went on."""

    acknowledged: int = 0
    kind: str = ""
    error: str = ""
    state: str = ""
    wrong: str = ""


def rehearse(case: Case, folder: Path) -> Run:
    """Run an act without faults, in that folder."""
    path = _copied(case, folder)
    answer = _in_child(lambda: _rehearsed(case, path))
    if not isinstance(answer, dict):
        raise AssertionError(f"{case.name} fails without any fault: {answer}")
    return msgspec.convert(answer, Run)


def try_out(case: Case, run: Run, trial: Trial, folder: Path) -> Cell:
    """Run an act with a fault, in that folder, and look at what is left."""
    path = _copied(case, folder)
    answer = _in_child(lambda: _suffered(case, path, trial))
    if isinstance(answer, str):
        return Cell(trial, -1, "", answer)
    told = _Told() if answer is None else msgspec.convert(answer, _Told)
    state = _last(run.states, told.state or state_of(path))
    wrong = told.wrong or _verdict(case, run, told, state)
    done = trial.goes_on or state == len(run.states) - 1
    return Cell(trial, state, told.error, wrong or _afterwards(case, path, done=done))


def state_of(path: Path) -> str:
    """A digest of every row; of a file that is not there yet, of nothing."""
    digest = hashlib.sha256()
    if not path.exists():
        return digest.hexdigest()
    with closing(apsw.Connection(str(path))) as connection:
        named = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        for table in [str(name) for (name,) in named]:
            if not table.startswith(_DERIVED):
                rows = connection.execute(f'SELECT {_PART.get(table, "*")} FROM "{table}"').fetchall()
                digest.update(repr((table, sorted(rows, key=repr))).encode())
    return digest.hexdigest()


def _last(states: tuple[str, ...], found: str) -> int:
    return max((number for number, state in enumerate(states) if state == found), default=-1)


# In the child ----------------------------------------------------------------------------------------------------


def _rehearsed(case: Case, path: Path) -> Run:
    disk = FaultyDisk(_DISK)
    states: list[str] = []

    def note() -> None:
        disk.flush()
        states.append(state_of(path))

    with _repeatable(), _told_of_commits(note):
        note()
        memory = case.open(path, disk.name)
        if case.act is not None:
            del states[:]
            note()
            disk.watch()
            case.act(memory)
        points = tuple(disk.points)
    return Run(points, tuple(states))


def _suffered(case: Case, path: Path, trial: Trial) -> _Told:
    """The act with its fault. Once this is told to the parent, the child ends without closing anything."""
    disk, told, memory = FaultyDisk(_DISK), _Told(), None

    def count() -> None:
        told.acknowledged += 1

    with _repeatable(), _told_of_commits(count):
        if case.act is not None:
            memory = case.open(path, disk.name)
            _OPEN.append(memory)
            told.acknowledged = 0
        disk.watch()
        disk.strike(trial.point, trial.fault)
        try:
            if memory is None:
                memory = case.open(path, disk.name)
            elif case.act is not None:
                case.act(memory)
        except MemLineageError as error:
            told.kind, told.error = type(error).__name__, str(error)
        disk.flush()
        seen = msgspec.structs.replace(told)
        if trial.goes_on:
            disk.mend()
            seen.state = state_of(path)
            seen.wrong = _gone_on(case, memory or case.open(path, disk.name))
            disk.flush()
    return seen


def _gone_on(case: Case, memory: Memory) -> str:
    """The disk is well again: the same memory serves, and the act can be asked for again."""
    if case.closes:
        return ""
    if not case.mends and (found := inconsistencies(memory)):
        return f"afterwards, in the same process: {found[0]}"
    if case.act is not None:
        try:
            memory._core.write_log()  # something else is committed in between
            case.act(memory)
        except StoreError as error:
            return f"asked for again in the same process: {error}"
        except MemLineageError:
            pass  # by its own rules it is done
        if found := inconsistencies(memory):
            return f"after it was asked for again in the same process: {found[0]}"
    return "" if case.once(memory) else "asked for again in the same process, it was done twice"


@contextmanager
def _repeatable() -> Iterator[None]:
    """The same ids, salts and leases in every run."""
    source, instants = random.Random(0), itertools.count(1_900_000_000_000_000_000, 1000)
    with mock.patch("os.urandom", source.randbytes), mock.patch("time.time_ns", instants.__next__):
        yield


@contextmanager
def _told_of_commits(committed: Callable[[], object]) -> Iterator[None]:
    """Have something called whenever a transaction has ended well."""
    writing = Database.writing

    @contextmanager
    def told(self: Database) -> Iterator[apsw.Connection]:
        with writing(self) as connection:
            yield connection
        committed()

    with mock.patch.object(Database, "writing", told):
        yield


# In the parent ---------------------------------------------------------------------------------------------------


def _verdict(case: Case, run: Run, told: _Told, state: int) -> str:
    """What the file says of what the child was told. Opening goes on where it was stopped: its steps may be there."""
    if told.error and told.kind != StoreError.__name__:
        return f"the error is a {told.kind}: {told.error}"
    if told.error and not any(cure in told.error for cure in _CURES):
        return f"the error names no cure: {told.error}"
    if state < 0:
        return "the act is there in part"
    if state < min(told.acknowledged, len(run.states) - 1):
        return f"{told.acknowledged} commits were acknowledged, {state} are there"
    if case.act is not None and _NOTHING in told.error and run.states[state] != run.states[0]:
        return f"{state} commits are there, and the error says: {told.error}"
    return ""


def _afterwards(case: Case, path: Path, *, done: bool) -> str:
    """Whoever opens the file next finds it consistent and verified, and can ask for the act again."""
    try:
        with case.open(path, None) as memory:
            found = "" if case.mends else _unsound(memory) or _unverified(memory)
            if found or case.act is None or case.closes:
                return f"afterwards: {found}" if found else ""
            try:
                case.act(memory)
            except StoreError as error:
                return f"asked for again: {error}"
            except MemLineageError as error:
                if not done:
                    return f"it was not done, and asked for again it is refused: {error}"
            if found := _unsound(memory):
                return f"after it was asked for again: {found}"
            return "" if case.once(memory) else "asked for twice, it was done twice"
    except MemLineageError as error:
        return f"opening it afterwards: {error}"


def _unsound(memory: Memory) -> str:
    return next(iter(inconsistencies(memory)), "")


def _unverified(memory: Memory) -> str:
    report = memory.verify()
    return "" if report.ok else str(report.first)


def _copied(case: Case, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = folder / "memory.db"
    if case.source is not None:
        for ending in ("", ".key"):
            if Path(f"{case.source}{ending}").exists():
                shutil.copy(f"{case.source}{ending}", f"{path}{ending}")
    return path


def _in_child(work: Callable[[], object]) -> Any:
    """What some work returns in a process of its own; None if a fault ended that, a text if it failed otherwise."""
    ready, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(_LIFE_S)
        told = b""
        try:
            told = msgspec.json.encode(work())
        finally:
            os.write(answer, told or msgspec.json.encode(traceback.format_exc()[-4000:]))
            os._exit(0)
    os.close(answer)
    with os.fdopen(ready, "rb") as reading:
        said = reading.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == KILLED:
        return None
    return msgspec.json.decode(said) if said and not code else f"the process ended with {code}"
