"""Processes that work on one file, for the tests beside this: run as a script, never imported.

The script itself opens nothing while it has children to make; it forks them, so that each starts in a millisecond.
A child ends with its work, with its parent, or after its time; whatever happens to it, it never outlives the test.
"""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

import memlineage as ml
from memlineage.testing.workload import Workload

_LIFE_S = 25
_WRITERS = 8


def fork(work: Callable[[], None]) -> int:
    """Do some work in a child; its exit code says whether it went well."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.alarm(_LIFE_S)
        if os.getppid() == parent:
            work()
            code = 0
    finally:
        if code:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)


def wait(children: list[int]) -> None:
    """Wait for children that ought to succeed."""
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    if any(codes):
        sys.exit(f"children ended with {codes}")


@contextmanager
def starting_gun() -> Iterator[Callable[[], None]]:
    """Children that call what this gives start at once, when the block ends."""
    ready, go = os.pipe()

    def wait_for_it() -> None:
        os.close(go)
        os.read(ready, 1)

    yield wait_for_it
    os.close(go)
    os.close(ready)


def open_memory(path: str) -> ml.Memory:
    return ml.Memory.open(path, embedder="lexical")


# kill: writers under SIGKILL ------------------------------------------------------------------------------------


def write_until_killed(path: str, acknowledged: Path, seed: int) -> None:
    """Verbs one after the other, each written down and synced once it has returned."""
    parent = os.getppid()
    memory = open_memory(path)
    workload = Workload(memory.scope(user="alice"), random.Random(seed), f"writer {seed}")
    log = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    while os.getppid() == parent:
        os.write(log, msgspec.json.encode(workload.step()) + b"\n")
        os.fsync(log)


def kill(path: str, seed: int, kills: int) -> None:
    """Eight writers; kill one of them or all at random times, again and again, in the end all."""
    rng = random.Random(seed)
    living: dict[int, Path] = {}
    for round_ in range(kills):
        for number in range(_WRITERS - len(living)):
            log = Path(f"{path}.{seed}-{round_}-{number}.ack")
            own = rng.randrange(10**9)
            living[fork(lambda log=log, own=own: write_until_killed(path, log, own))] = log
        await_work(list(living.values()))
        time.sleep(rng.uniform(0, 0.3))
        doomed = list(living) if rng.random() < 0.3 or round_ == kills - 1 else [rng.choice(list(living))]
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        for pid in doomed:
            os.waitpid(pid, 0)
            del living[pid]


def await_work(logs: list[Path]) -> None:
    """Until half of them have something to lose; the others are opening the file, or wait for its lock."""
    deadline = time.monotonic() + _LIFE_S
    while sum(log.exists() and log.stat().st_size > 0 for log in logs) < len(logs) // 2:
        if time.monotonic() > deadline:
            sys.exit("the writers acknowledged nothing in time")
        time.sleep(0.002)


# together: nobody is killed, nothing may be lost ----------------------------------------------------------------


def together(path: str, processes: int, writes: int) -> None:
    """Processes that open the file at the same moment and store so many units each."""

    def work(number: int, start: Callable[[], None]) -> None:
        start()
        with open_memory(path) as memory:
            scope = memory.scope(user="alice")
            for count in range(writes):
                scope.store(f"process {number}, unit {count}", creator="tool:counter")

    with starting_gun() as start:
        children = [fork(lambda number=number: work(number, start)) for number in range(processes)]
    wait(children)


def contend(path: str, ids: str, processes: int, acts: int) -> None:
    """Processes that invalidate, restore and update the same units, each in its own random order."""

    def work(seed: int, start: Callable[[], None]) -> None:
        rng = random.Random(seed)
        start()
        with open_memory(path) as memory:
            scope = memory.scope(user="alice")
            for count in range(acts):
                contend_once(scope, rng.choice(ids.split(",")), rng, f"process {seed}, act {count}")

    with starting_gun() as start:
        children = [fork(lambda seed=seed: work(seed, start)) for seed in range(processes)]
    wait(children)


def contend_once(scope: ml.Scope, unit: str, rng: random.Random, text: str) -> None:
    act = rng.randrange(4)
    if act == 0:
        scope.invalidate(unit)
    elif act == 1:
        try:
            scope.restore(unit)
        except ml.InvalidInputError:
            return  # nothing is held against it: somebody else restored it
    elif act == 2:
        scope.update(unit, text, creator="user:alice")
    else:
        try:
            scope.update(unit, text, creator="user:alice", if_version=scope.get(unit).version)
        except ml.ConflictError:
            return  # somebody else was faster


# watch: readers while a writer toggles a root -------------------------------------------------------------------


def watch(path: str, root: str, whole: str, seconds: float) -> None:
    """What two readers saw in their snapshots, as numbers of active descendants; the writer toggles the root, or with
    `halves` its descendants one by one. Readers go on until they have seen something change.
    """

    def read(found: Path) -> None:
        seen = set()
        end = time.monotonic() + seconds
        with open_memory(path) as memory:
            scope = memory.scope(user="alice")
            while time.monotonic() < end or len(seen) < 2:
                seen.add(sum(unit.id != root for unit in scope.list()))
        found.write_text(" ".join(map(str, sorted(seen))))

    def toggle() -> None:
        parent = os.getppid()
        with open_memory(path) as memory:
            scope = memory.scope(user="alice")
            units = [root] if whole == "whole" else [unit.id for unit in scope.list() if unit.id != root]
            while os.getppid() == parent:
                for verb in (scope.invalidate, scope.restore):
                    for unit in units:
                        verb(unit)
                    time.sleep(0.005)  # both states last long enough to be seen

    writer = fork(toggle)
    results = [Path(f"{path}.seen-{number}") for number in range(2)]
    wait([fork(lambda found=found: read(found)) for found in results])
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    print(" ".join(found.read_text() for found in results))


if __name__ == "__main__":
    command, target, *rest = sys.argv[1:]
    if command == "kill":
        kill(target, int(rest[0]), int(rest[1]))
    elif command == "together":
        together(target, int(rest[0]), int(rest[1]))
    elif command == "contend":
        contend(target, rest[0], int(rest[1]), int(rest[2]))
    elif command == "watch":
        watch(target, rest[0], rest[1], float(rest[2]))
    else:
        sys.exit(f"{command!r} is unknown")
