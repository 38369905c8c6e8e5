"""Oracle and SQLite side by side, act by act: status, standing, integrity and currency of everything, always.

300 histories per run; `MEMLINEAGE_HISTORIES=10000` runs more.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from memlineage.model.unit import Role
from memlineage.testing.consistency import assert_consistent
from memlineage.testing.lockstep import Lockstep
from memlineage.testing.sqlite_world import SqliteReplays, SqliteWorld
from memlineage.testing.strategies import ROLES, errands, operations, replays
from memlineage.testing.worlds import Operation

HISTORIES = int(os.environ.get("MEMLINEAGE_HISTORIES", "150"))
ACTS = operations(most=4, roles=(*ROLES, Role.SHARED))


class Machine(RuleBasedStateMachine):
    """A store that is told what the oracle is told. Each rule is a handful of acts."""

    in_file = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory() if self.in_file else None
        self.world = SqliteWorld(Path(self.folder.name) / "store.db" if self.folder else ":memory:")
        self.pair = Lockstep(self.world, SqliteReplays(self.world))

    @initialize(acts=operations(most=8, roles=(*ROLES, Role.SHARED)))
    def begin(self, acts: list[Operation]) -> None:
        self.pair.run(acts)

    @rule(acts=ACTS)
    def act(self, acts: list[Operation]) -> None:
        self.pair.run(acts)

    @rule(acts=errands())
    def work(self, acts: list[Operation]) -> None:
        self.pair.run(acts)

    @rule(act=replays())
    def make_again(self, act: Operation) -> None:
        self.pair.run([act])

    @rule(span=st.integers(1, 9))
    def wait(self, span: int) -> None:
        """Time passes and nobody writes: readers must see what has run out."""
        self.pair.oracle.now += span
        self.pair.store.now += span
        self.pair.compare("waiting")

    @precondition(lambda self: self.in_file)
    @rule()
    def reopen(self) -> None:
        self.world.reopen()
        self.pair.compare("reopening")

    def teardown(self) -> None:
        assert_consistent(self.world.memory)
        self.world.memory.close()
        if self.folder is not None:
            self.folder.cleanup()


class InFile(Machine):
    """The same on a file that is closed and opened again in between."""

    in_file = True


class InArrays(Machine):
    """The same with every change settled over arrays, however little it reaches."""


# A mutant only has to be noticed: no time is spent on the smallest history that shows it.
PHASES = (Phase.generate,) if os.environ.get("MEMLINEAGE_SHRINK") == "0" else tuple(Phase)
CHECKS = settings(
    max_examples=HISTORIES, stateful_step_count=8, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck)
)


@pytest.mark.timeout(0 if HISTORIES > 150 else 120)
@pytest.mark.parametrize("machine", [Machine, InFile, InArrays], ids=["in memory", "in a file", "over arrays"])
def test_the_store_answers_as_the_oracle_does(machine: type[Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    checks = CHECKS
    if machine is InArrays:
        monkeypatch.setattr("memlineage.store.kept_index.KeptIndex.patience", lambda *_: 0)
        monkeypatch.setattr("memlineage.lineage.bulk._FEW", 3)  # waves are small here: some in arrays, some one by one
        checks = settings(CHECKS, max_examples=max(1, HISTORIES // 3))
    run_state_machine_as_test(machine, settings=checks)
