"""Watched files: what has changed and stays as it is takes force; what is being written, or is faulty, does not."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import open_memory

import memlineage as ml
from memlineage.engine.reloading import PolicyStatus
from memlineage.engine.watching import Watch

HIDE = {"name": "hide", "on": "read", "action": "withhold", "target": {"tags": ["secret"]}}
LIFE_S = 20


def text(*rules: dict[str, Any]) -> str:
    return json.dumps({"memlineage": 1, "rules": list(rules)})


def rule(name: str) -> dict[str, Any]:
    return {**HIDE, "name": name}


def rules(memory: ml.Memory) -> set[str]:
    shipped = {"isolation", "claims"}
    return {rule.name for rule in memory.policies.rules if ":" not in rule.name} - shipped


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "policies"
    made.mkdir()
    (made / "one.json").write_text(text(rule("one")), encoding="utf-8")
    return made


@pytest.fixture
def memory(folder: Path) -> Iterator[ml.Memory]:
    with open_memory(policies=[folder]) as opened:
        yield opened


class ByHand:
    """A watch that looks when it is told to."""

    def __init__(self, memory: ml.Memory) -> None:
        self.memory = memory
        self.told: list[PolicyStatus] = []
        self._watch = Watch(memory._reloading, 1, self.told.append)
        self.look(2)

    def look(self, times: int) -> set[str]:
        for _ in range(times):
            self._watch.look(self.memory._reloading)
        return rules(self.memory)


def test_what_has_changed_takes_force_once_it_stays_the_same(memory: ml.Memory, folder: Path) -> None:
    watch = ByHand(memory)
    (folder / "one.json").write_text(text(rule("other")), encoding="utf-8")
    assert "one" in watch.look(1)
    assert "other" in watch.look(1)
    assert [status.ok for status in watch.told] == [True]


def test_a_file_that_is_still_being_written_takes_no_force(memory: ml.Memory, folder: Path) -> None:
    """What is there of it by then may well be a document: only less of one."""
    watch, file = ByHand(memory), folder / "one.json"
    for number in range(5):
        file.write_text(text(*(rule(f"part{n}") for n in range(number + 1))), encoding="utf-8")
        assert "one" in watch.look(1)
    assert {f"part{n}" for n in range(5)} <= watch.look(1)


def test_a_file_that_changes_while_it_is_read_takes_no_force(
    memory: ml.Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, file = ByHand(memory), folder / "one.json"
    read = type(memory._reloading.sources).read
    file.write_text(text(rule("half")), encoding="utf-8")
    watch.look(1)

    def slowly(sources: Any) -> Any:
        found = read(sources)
        file.write_text(text(rule("half"), rule("whole")), encoding="utf-8")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(type(memory._reloading.sources), "read", slowly)
        assert "one" in watch.look(1)
    assert {"half", "whole"} <= watch.look(2)


def test_new_files_and_removed_ones_count_too(memory: ml.Memory, folder: Path) -> None:
    watch = ByHand(memory)
    (folder / "below").mkdir()
    (folder / "below" / "two.yaml").write_text(text(rule("two")), encoding="utf-8")
    (folder / "notes.txt").write_text("not a policy", encoding="utf-8")
    assert {"one", "two"} <= watch.look(2)
    (folder / "one.json").unlink()
    assert "one" not in watch.look(2)
    assert "two" in rules(memory)


def test_a_fault_leaves_the_last_good_one_in_force_and_is_told_once(memory: ml.Memory, folder: Path) -> None:
    watch = ByHand(memory)
    (folder / "two.json").write_text('{"rules": [{"name": "two"', encoding="utf-8")
    watch.look(5)
    assert "one" in rules(memory)
    [status] = watch.told
    assert not status
    assert Path(status.faults[0].source).name == "two.json"
    assert memory.policy_status() == status
    (folder / "two.json").write_text(text(rule("two")), encoding="utf-8")
    assert "two" in watch.look(2)
    assert memory.policy_status().ok


def test_a_folder_that_is_gone_takes_no_rules_away(memory: ml.Memory, folder: Path) -> None:
    watch = ByHand(memory)
    (folder / "one.json").unlink()
    folder.rmdir()
    assert "one" in watch.look(3)
    assert not memory.policy_status().ok


def test_a_file_that_is_only_touched_is_not_read_again(memory: ml.Memory, folder: Path) -> None:
    watch = ByHand(memory)
    os.utime(folder / "one.json", ns=(1, 1))
    watch.look(3)
    assert watch.told == []


def test_what_has_changed_since_the_memory_was_opened_is_noticed_by_the_first_look(
    memory: ml.Memory, folder: Path
) -> None:
    (folder / "one.json").write_text(text(rule("other")), encoding="utf-8")
    assert "other" in rules(ByHand(memory).memory)


def test_a_store_that_cannot_be_written_is_tried_again(memory: ml.Memory, folder: Path) -> None:
    watch = ByHand(memory)
    (folder / "one.json").write_text(text(rule("other")), encoding="utf-8")
    memory._core.database._writer.set_commit_hook(lambda: True)
    assert "one" in watch.look(2)
    assert not memory.policy_status().ok
    memory._core.database._writer.set_commit_hook(None)
    assert "other" in watch.look(1)
    assert memory.policy_status().ok


def test_a_memory_without_files_has_nothing_to_watch() -> None:
    with open_memory(policies=[{"rules": [HIDE]}]) as memory, pytest.raises(ml.InvalidInputError, match="policy files"):
        memory.watch()


@pytest.mark.parametrize("interval", [0, -1, "1", True, float("nan"), float("inf"), None])
def test_an_interval_is_a_span_of_time(memory: ml.Memory, interval: Any) -> None:
    with pytest.raises(ml.InvalidInputError, match="interval="):
        memory.watch(interval)


# With its thread -----------------------------------------------------------------------------------------------------


def test_a_watch_reloads_by_itself_and_ends_with_its_block(memory: ml.Memory, folder: Path) -> None:
    reloaded = threading.Event()
    with memory.watch(0.005, lambda status: reloaded.set()) as watch:
        assert memory.policy_status().watching
        (folder / "one.json").write_text(text(rule("other")), encoding="utf-8")
        assert reloaded.wait(LIFE_S)
        assert "other" in rules(memory)
    assert not watch.running
    assert not memory.policy_status().watching


def test_whoever_is_told_may_stop_it_and_may_fail(
    memory: ml.Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda told: failed.append(str(told.exc_value)))
    told: list[PolicyStatus] = []
    stopped = threading.Event()

    def fail_then_stop(status: PolicyStatus) -> None:
        told.append(status)
        if len(told) == 1:
            (folder / "one.json").write_text(text(rule("third")), encoding="utf-8")
            raise RuntimeError("not today")
        watch.stop()
        stopped.set()

    watch = memory.watch(0.005, fail_then_stop)
    (folder / "one.json").write_text(text(rule("second")), encoding="utf-8")
    assert stopped.wait(LIFE_S)
    assert failed == ["not today"]
    watch.stop()
    assert not watch.running


def test_a_watch_ends_with_its_memory(folder: Path) -> None:
    with open_memory(policies=[folder]) as memory:
        watch = memory.watch(0.005)
    assert not watch.running
    watch.stop()


def test_a_memory_that_is_forgotten_takes_its_watch_with_it(folder: Path) -> None:
    memory = open_memory(policies=[folder])
    watch = memory.watch(0.005)
    database = memory._core.database
    del memory
    watch._thread.join(LIFE_S)
    assert not watch.running
    database.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_forked_child_has_no_watch_and_can_let_go_of_it(tmp_path: Path, folder: Path) -> None:
    with open_memory(tmp_path / "trip.db", policies=[folder]) as memory:
        watch = memory.watch(0.005)
        watch.stop()  # a fork with threads under way is another matter
        watch = Watch(memory._reloading, 1)
        memory._reloading.watches.add(watch)
        pid = os.fork()
        if pid == 0:
            memory.close()
            os._exit(0 if not watch.running else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
