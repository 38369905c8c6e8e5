"""A process under load, started by the supervisor and by nobody else.

It writes a line of JSON for each interval: how much memory it holds, how long which verb took, and what was
acknowledged. It ends at its deadline, or when its parent has gone; it can be killed at any moment.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from memlineage.evaluation.soak.latencies import Latencies
from memlineage.evaluation.soak.load import Load, open_memory
from memlineage.testing.workload import Acknowledged

__all__ = ["Order", "Report", "main", "run"]

_STATM: Final = Path("/proc/self/statm")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is to do.

    Attributes:
        path: the shared file.
        log: where its lines go.
        name: what it calls itself in what it says.
        seed: of its choices.
        until: when to end, in seconds of `time.time`.
        interval: seconds between lines.
        pace: seconds from the start of one verb to that of the next, where the verb does not take longer.
        turnover: seconds after which users change.
        reopen: seconds after which it closes the memory and opens it again; 0 for never.
    """

    path: str
    log: str
    name: str
    seed: int
    until: float
    interval: float
    pace: float
    turnover: float
    reopen: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One interval of a worker.

    Attributes:
        at: when it ended, in seconds of `time.time`.
        rss: resident memory then, in bytes.
        reopened: how often the memory was opened again.
        taken: verb -> counts of `Latencies`.
        refused: verb -> how often it was refused.
        acknowledged: what was promised to be there.
    """

    at: float
    rss: int
    reopened: int
    taken: dict[str, dict[int, int]]
    refused: dict[str, int]
    acknowledged: list[Acknowledged]


def resident() -> int:
    """Bytes of this process that are in memory now; where the system does not say, the most there ever were."""
    with suppress(OSError):
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def run(order: Order) -> None:
    """Work until the deadline, one interval at least."""
    parent = os.getppid()
    worker = _Worker(order)
    with Path(order.log).open("ab", buffering=0) as log:
        log.write(b"\n")  # whoever was here before may have been killed in the middle of a line
        while os.getppid() == parent:
            log.write(msgspec.json.encode(worker.interval()) + b"\n")
            if time.time() >= order.until:
                break
    worker.close()


class _Worker:
    """The load of one process, measured."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._load = Load(
            open_memory(order.path), random.Random(order.seed), name=order.name, turnover=order.turnover
        )  # fmt: skip
        self._opened = time.time()

    def interval(self) -> Report:
        """One interval of verbs, one verb at least: whoever starts late has done something all the same."""
        taken: dict[str, Latencies] = defaultdict(Latencies)
        refused: dict[str, int] = defaultdict(int)
        ends = min(self._order.until, time.time() + self._order.interval)
        while True:
            started, before = time.time(), time.perf_counter()
            verb, done = self._load.step()
            taken[verb].add(time.perf_counter() - before)
            refused[verb] += not done
            time.sleep(max(0.0, min(started + self._order.pace, ends) - time.time()))
            if time.time() >= ends:
                break
        acknowledged, self._load.acknowledged = self._load.acknowledged, []
        return Report(
            at=time.time(),
            rss=resident(),
            reopened=self._reopen_if_due(),
            taken={verb: latencies.counts() for verb, latencies in taken.items()},
            refused={verb: count for verb, count in refused.items() if count},
            acknowledged=acknowledged,
        )

    def _reopen_if_due(self) -> int:
        if not self._order.reopen or time.time() - self._opened < self._order.reopen:
            return 0
        self._load.memory.close()
        self._load.reopened(open_memory(self._order.path))
        self._opened = time.time()
        return 1

    def close(self) -> None:
        """Close the memory."""
        self._load.memory.close()


def main() -> None:
    """The order is the only argument, as JSON."""
    run(msgspec.json.decode(sys.argv[1], type=Order))
