"""What the durability tests share: a disk that can fail, and processes that do not outlive their test."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memlineage.testing.faults import FaultyDisk

SOURCE = Path(__file__).resolve().parents[2] / "src"
WRITERS = Path(__file__).with_name("writers.py")
_NUMBERS = itertools.count()

Writers = Callable[..., str]


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk(f"faulty-{next(_NUMBERS)}")
    yield disk
    disk.unregister()


@pytest.fixture
def writers() -> Iterator[Writers]:
    """Run `writers.py` with these arguments; its output. It ends its children, they watch it, and this ends it."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: object, timeout: float = 28) -> str:
        process = subprocess.Popen(
            [sys.executable, str(WRITERS), *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(SOURCE), "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        started.append(process)
        output, errors = process.communicate(timeout=timeout)
        assert process.returncode == 0, errors
        return output

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
