"""The decision log: in order, bounded, and nothing lost where a transaction fails."""

from __future__ import annotations

import msgspec
import pytest
from tests.support import open_memory

import memlineage as ml


def logged(memory):
    return [entry["unit"] for entry in memory.decisions(limit=10_000)]


def test_decisions_are_listed_newest_first():
    with open_memory() as memory:
        scope = memory.scope(user="ann")
        stored = [str(scope.store(f"fact {number}").ref) for number in range(5)]
        assert logged(memory) == stored[::-1]


def test_only_the_latest_are_kept():
    with open_memory(decision_log=ml.DecisionLogging(keep=20)) as memory:
        scope = memory.scope(user="ann")
        stored = [scope.store(f"fact {number}") for number in range(75)]
        stored += scope.store_many([f"more {number}" for number in range(7)])
        kept = logged(memory)
        assert 20 <= len(kept) <= 22
        assert kept == [str(unit.ref) for unit in stored[: -len(kept) - 1 : -1]]


def test_what_a_failed_transaction_carried_waits_on_in_its_place():
    with open_memory() as memory:
        scope, core = memory.scope(user="ann"), memory._core
        fact = scope.store("fact")
        made = [memory._parts.enforcement.refuse(verb, fact, 1, "no").id for verb in ("erase", "share")]
        core.database._writer.set_commit_hook(lambda: True)
        with pytest.raises(ml.StoreError):
            core.write_log()
        core.database._writer.set_commit_hook(None)
        made.append(memory._parts.enforcement.refuse("export", fact, 2, "no").id)
        assert [decision.id for decision in core.log.waiting] == made
        assert [entry["id"] for entry in memory.decisions(limit=3)] == made[::-1]
        assert not core.log.waiting


def test_a_line_that_was_written_twice_is_listed_once():
    with open_memory() as memory:
        fact = memory.scope(user="ann").store("fact")
        memory._parts.enforcement.refuse("erase", fact, 1, "no")
        with memory._core.database.writing() as connection:  # committed, and then an error all the same
            memory._core.log.put_back(memory._core.log.flush(connection))
        assert len(logged(memory)) == 2


def test_of_a_line_that_was_written_twice_what_was_said_last_is_listed():
    with open_memory() as memory:
        log, fact = memory._core.log, memory.scope(user="ann").store("fact")
        made = memory._parts.enforcement.refuse("erase", fact, 1, "no")
        with memory._core.database.writing() as connection:
            log.put_back(log.flush(connection))
        log.settle(msgspec.structs.replace(made, reasons=("on second thoughts",)))
        assert [entry["reasons"] for entry in memory.decisions(action="erase")] == [["on second thoughts"]]


def test_a_refusal_is_logged_though_its_act_was_rolled_back():
    with open_memory() as memory:
        agent = memory.scope(user="ann").acting_as("agent:x")
        with pytest.raises(ml.PolicyViolationError) as refused:
            agent.store("I may say this", creator="user:ann")
        assert [entry["id"] for entry in memory.decisions()] == [refused.value.decision.id]
