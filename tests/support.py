"""What tests of the whole engine share: a clock to move, a dump of every table, processes that end by themselves,
a search for what breaks a law.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

import memlineage as ml

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
DENY_ALL = {"memlineage": 1, "layer": "global", "rules": [{"name": "nothing", "on": "all", "action": "deny"}]}
LOG = "decision"
_VIRTUAL = ("text", "vocabulary")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **span: float) -> datetime:
        """Move it, e.g. `advance(hours=1)`; returns the new present."""
        self.now += timedelta(**span)
        return self.now


def open_memory(path: str | Path = ":memory:", **options: Any) -> ml.Memory:
    """A memory with the embedder that is always there."""
    return ml.Memory.open(path, **{"embedder": "lexical", **options})


def tables(memory: ml.Memory) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table but the decision log; full-text rows by the tables that hold them."""
    with memory._core.database.reading() as connection:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            if name != LOG and name not in _VIRTUAL
        ]
        return {name: sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr) for name in names}


@contextmanager
def nothing_written(memory: ml.Memory) -> Any:
    """Whatever happens inside leaves every table but the decision log as it was."""
    before = tables(memory)
    yield
    after = tables(memory)
    changed = [name for name in before if before[name] != after[name]]
    assert not changed, f"written all the same: {changed}"


def contents(units: Any) -> list[str]:
    """What these units say, in their order."""
    return [unit.content for unit in units]


def run_all(script: str, arguments: Sequence[Sequence[str]], *, seconds: float = 25) -> list[str]:
    """Run a Python text in one fresh process per list of arguments, all at once; what each printed."""
    source = str(Path(ml.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": source}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, *given],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for given in arguments
    ]  # fmt: skip
    try:
        ended = [process.communicate(timeout=seconds) for process in running]
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
    for process, (_, errors) in zip(running, ended, strict=True):
        assert process.returncode == 0, errors
    return [output for output, _ in ended]


def caught(strategies: Mapping[str, SearchStrategy[Any]], faults: Callable[..., Any], examples: int) -> bool:
    """Whether random examples make a law fail. No shrinking: one fault is enough."""

    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(**strategies)
    def search(**drawn: Any) -> None:
        if faults(**drawn):
            raise NoSuchExample("found")

    try:
        search()
    except NoSuchExample:
        return True
    return False
