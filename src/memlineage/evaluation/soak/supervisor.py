"""Starts the workers, kills one now and then, acts as the operator meanwhile, and looks at everything at the end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from memlineage.errors import MemLineageError
from memlineage.evaluation.soak.load import open_memory
from memlineage.evaluation.soak.summary import Operated, Sample, Summary, summarise
from memlineage.evaluation.soak.worker import Order, Report
from memlineage.testing.consistency import inconsistencies
from memlineage.testing.workload import missing

__all__ = ["Plan", "soak"]

_WORKER: Final = "from memlineage.evaluation.soak.worker import main; main()"
_GRACE: Final = 60
"""Seconds that a worker may take to end after its deadline."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How long, and how hard.

    Attributes:
        minutes: how long.
        processes: how many work on the file.
        pace: seconds from one verb of a process to the next.
        kills: how often one of them is killed, and another started in its place.
        checkpoints: how often a checkpoint is signed, and a backup made and opened.
    """

    minutes: float = 30.0
    processes: int = 4
    pace: float = 0.02
    kills: int = 6
    checkpoints: int = 10

    @property
    def seconds(self) -> float:
        """The whole of it."""
        return self.minutes * 60

    @property
    def interval(self) -> float:
        """Seconds between two looks: ninety to a run, thirty to each third of it."""
        return self.seconds / 90


def soak(plan: Plan, folder: Path, say: Callable[[str], None] = lambda _: None) -> Summary:
    """Run the load on a new file in `folder`; `say` gets a line when something happens."""
    path = folder / "soak.db"
    open_memory(str(path)).close()
    crew = _Crew(plan, folder, path, time.time() + plan.seconds)
    with crew.at_work():
        samples, operated = _watched(plan, path, crew, say)
    say("the workers are done; looking at everything")
    return summarise(plan.seconds, crew.reports(), samples, operated, _final_look(path, crew, operated), crew.failures)


class _Crew:
    """The workers, by slot; a killed one is replaced in its slot. The first is never killed and never reopens."""

    def __init__(self, plan: Plan, folder: Path, path: Path, until: float) -> None:
        self._plan = plan
        self._folder = folder
        self._path = path
        self.until = until
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._started = 0
        self.killed = 0
        self.failures: list[str] = []

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """All at work; whatever happens, none is left behind."""
        try:
            for slot in range(self._plan.processes):
                self._start(slot)
            yield
            for slot, process in self._running.items():
                self._ended(slot, process)
        finally:
            for process in self._running.values():
                if process.poll() is None:
                    process.kill()
                process.wait()

    def kill_one(self) -> None:
        """Kill the worker of one slot, as a power cut would, and start another. The first is never killed."""
        slot = 1 + self.killed % max(1, self._plan.processes - 1)
        if slot in self._running:
            self._running[slot].kill()
            self._running[slot].wait()
            self.killed += 1
            self._start(slot)

    def check(self) -> None:
        """Nobody may have ended by himself yet."""
        for slot, process in list(self._running.items()):
            if process.poll() not in (None, 0) and time.time() < self.until:
                self.failures.append(f"worker {slot} ended with {process.returncode}: {self._complaint(slot)}")
                self._start(slot)

    def reports(self) -> dict[int, list[Report]]:
        """What each slot has written down; of a line that a kill cut short, nothing."""
        return {slot: list(_read(self._log(slot))) for slot in range(self._plan.processes)}

    def _start(self, slot: int) -> None:
        plan = self._plan
        self._started += 1
        order = Order(
            path=str(self._path), log=str(self._log(slot)), name=f"process {self._started}", seed=self._started,
            until=self.until, interval=plan.interval, pace=plan.pace, turnover=max(1.0, plan.seconds / 12),
            reopen=plan.seconds / 8 if slot else 0,
        )  # fmt: skip
        with self._log(slot).with_suffix(".err").open("wb") as errors:
            self._running[slot] = subprocess.Popen(
                [sys.executable, "-c", _WORKER, msgspec.json.encode(order).decode()],
                stderr=errors,
            )

    def _ended(self, slot: int, process: subprocess.Popen[bytes]) -> None:
        try:
            code = process.wait(max(1.0, self.until - time.time()) + _GRACE)
        except subprocess.TimeoutExpired:
            self.failures.append(f"worker {slot} did not end within {_GRACE} s of its deadline")
        else:
            if code:
                self.failures.append(f"worker {slot} ended with {code}: {self._complaint(slot)}")

    def _log(self, slot: int) -> Path:
        return self._folder / f"worker-{slot}.jsonl"

    def _complaint(self, slot: int) -> str:
        text = self._log(slot).with_suffix(".err").read_text(errors="replace").strip()
        return text.splitlines()[-1] if text else "it said nothing"


def _read(path: Path) -> Iterator[Report]:
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            yield msgspec.json.decode(line, type=Report)
        except msgspec.DecodeError:
            continue


def _watched(plan: Plan, path: Path, crew: _Crew, say: Callable[[str], None]) -> tuple[list[Sample], Operated]:
    """Until the deadline: sizes sampled, workers killed, checkpoints signed and backups opened, all evenly spread."""
    begun = time.time()
    samples: list[Sample] = []
    operator = _Operator(path)
    while (now := time.time()) < crew.until:
        share = (now - begun) / plan.seconds
        crew.check()
        samples.append(Sample(at=now - begun, file=_size(path), wal=_size(path.with_name(path.name + "-wal"))))
        if crew.killed < share * (plan.kills + 1) - 1:
            crew.kill_one()
            say(f"{share:4.0%}  one process killed, another started")
        if len(operator.backups) < share * (plan.checkpoints + 1) - 1:
            say(f"{share:4.0%}  {operator.act()}")
        time.sleep(max(0.0, min(plan.interval, crew.until - time.time())))
    return samples, operator.done(crew.killed)


class _Operator:
    """Signs checkpoints and makes backups while the others write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._witness = path.with_suffix(".witness")
        self.backups: list[float] = []
        self._failed: list[str] = []

    def act(self) -> str:
        """A checkpoint for the witness, and a backup, which is opened and checked."""
        copy = self._path.with_name("backup.db")
        started = time.perf_counter()
        with open_memory(str(self._path)) as memory:
            size = memory.checkpoint(self._witness).size
            memory.backup(copy)
        self.backups.append(time.perf_counter() - started)
        try:
            with open_memory(str(copy)) as restored:
                report = restored.verify(against=self._witness)
            if not report.ok:
                self._failed.append(f"backup {len(self.backups)}: {report}")
        except MemLineageError as error:
            self._failed.append(f"backup {len(self.backups)}: {error}")
        for left in self._path.parent.glob("backup.db*"):
            left.unlink()
        return f"checkpoint over {size:,} events; backup made and verified"

    def done(self, killed: int) -> Operated:
        """What was done."""
        return Operated(
            kills=killed, backups=tuple(self.backups), failed=tuple(self._failed), witness=str(self._witness)
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _final_look(path: Path, crew: _Crew, operated: Operated) -> tuple[str, ...]:
    """Everything that is wrong with the file that is left."""
    with open_memory(str(path)) as memory:
        found = list(inconsistencies(memory))
        witness = Path(operated.witness)
        report = memory.verify(against=witness) if witness.exists() else memory.verify()
        if not report.ok:
            found.append(f"verify: {report}")
        for slot, reports in crew.reports().items():
            acts = [act for report in reports for act in report.acknowledged]
            found += [
                f"worker {slot}: {act.verb} of {act.ref} was acknowledged and is not there"
                for act in missing(memory, acts)
            ]
    return tuple(found)
