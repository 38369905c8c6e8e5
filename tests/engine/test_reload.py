"""Documents are read again while the memory is open: whole or not at all, for everybody who has the file open."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support import Clock, contents, open_memory, run_all

import memlineage as ml
from memlineage.policy import PolicySet, defaults
from memlineage.testing.consistency import assert_consistent

HIDE = {"name": "hide", "on": "read", "action": "withhold", "target": {"tags": ["secret"]}}
BRIEF = {"name": "brief", "freshness": {"tags": ["price"], "max_age": "1m"}}


def document(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"memlineage": 1, "layer": "global", "rules": list(rules), **more}


def write(path: Path, *rules: dict[str, Any], **more: Any) -> Path:
    path.write_text(json.dumps(document(*rules, **more)), encoding="utf-8")
    return path


def count(memory: ml.Memory, what: str) -> int:
    with memory._core.database.reading() as connection:
        return int(connection.execute(f"SELECT count(*) FROM {what}").get)


def test_what_is_written_into_a_file_takes_force_with_a_reload(tmp_path: Path) -> None:
    path = write(tmp_path / "rules.json")
    with open_memory(tmp_path / "trip.db", policies=[path]) as memory:
        scope = memory.scope(user="alice")
        scope.store("The code is 1234", tags=["secret"])
        write(path, HIDE)
        assert contents(scope.list()) == ["The code is 1234"]
        found = memory.reload()
        assert found.revision == memory.policies.revision == memory.policy_status().revision
        assert contents(scope.list()) == []
        assert_consistent(memory)
        assert memory.verify().findings == ()


def test_the_same_documents_again_change_nothing(tmp_path: Path) -> None:
    with open_memory(policies=[write(tmp_path / "rules.json", HIDE)]) as memory:
        before = count(memory, "event")
        memory.reload()
        assert count(memory, "event") == before


def test_a_bad_document_leaves_the_last_good_one_in_force_here_and_in_the_file(tmp_path: Path) -> None:
    one, two, db = write(tmp_path / "one.json", HIDE), write(tmp_path / "two.json"), tmp_path / "trip.db"
    with open_memory(db, policies=[tmp_path]) as memory:
        scope = memory.scope(user="alice")
        scope.store("The code is 1234", tags=["secret"])
        good, before = memory.policies, count(memory, "event")
        one.write_text('{"rules": [{"name": "hide", "on": "raed"}]}', encoding="utf-8")
        two.write_text('{"rules": [{"nme": "x"}]}', encoding="utf-8")
        with pytest.raises(ml.PolicyDocumentError) as refused:
            memory.reload()
        assert {Path(str(fault).partition(":")[0]).name for fault in refused.value.faults} == {"one.json", "two.json"}
        assert (memory.policies, count(memory, "event")) == (good, before)
        assert contents(scope.list()) == []
        status = memory.policy_status()
        assert not status.ok
        assert status.faults == refused.value.faults
        assert status.revision == good.revision
        write(one, HIDE)
        write(two)
        memory.reload()
        assert memory.policy_status().ok
    with ml.Memory.open(db) as memory:
        assert memory.policies.revision == good.revision


def test_other_documents_become_what_later_reloads_read(tmp_path: Path) -> None:
    path = write(tmp_path / "rules.json")
    with open_memory(policies=[]) as memory:
        memory.reload([path])
        write(path, HIDE)
        memory.reload()
        assert "hide" in {rule.name for rule in memory.policies.rules}
        bad = {"rules": [{"name": "x"}]}
        with pytest.raises(ml.PolicyDocumentError):
            memory.reload([bad])
        memory.reload()  # what was refused is not what is read again
        assert memory.policy_status().sources == (str(path),)


def test_a_memory_without_documents_has_nothing_to_read_again() -> None:
    with open_memory() as memory, pytest.raises(ml.InvalidInputError, match=r"reload\(policies="):
        memory.reload()


def test_a_path_is_the_one_it_was_when_the_memory_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "rules.json")
    monkeypatch.chdir(tmp_path)
    with open_memory(policies=["rules.json"]) as memory:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        write(tmp_path / "rules.json", HIDE)
        memory.reload()
        assert "hide" in {rule.name for rule in memory.policies.rules}


def test_levels_limits_and_the_quorum_follow_a_reload() -> None:
    clock = Clock()
    with open_memory(policies=[], clock=clock) as memory:
        scope = memory.scope(user="alice")
        price = scope.store("It costs 5", creator="tool:feed", tags=["price"])
        clock.advance(minutes=5)
        memory.reload([document(BRIEF, principals={"tool:feed": "UNTRUSTED"})])
        found = scope.get(price.ref)
        assert (found.status, found.integrity) == (ml.Status.EXPIRED, ml.Integrity.UNTRUSTED)
        scope.store("Another note")  # time passes
        memory.reload([])
        found = scope.get(price.ref)
        assert (found.status, found.integrity) == (ml.Status.ACTIVE, ml.Integrity.INTERNAL)
        assert_consistent(memory)


def test_every_generation_that_was_in_force_is_kept_with_the_event_that_last_put_it_there() -> None:
    with open_memory(policies=[]) as memory:
        first = memory.policies.revision
        second = memory.reload([document(HIDE)]).revision
        memory.reload([])
        with memory._core.database.reading() as connection:
            kept = dict(connection.execute("SELECT revision, seq FROM generation"))
            told = dict(connection.execute("SELECT seq, data FROM event WHERE kind = 7"))
        assert kept.keys() == {first, second}
        assert all(revision in told[seq].decode() for revision, seq in kept.items())
        assert kept[first] > kept[second]


def test_a_failed_commit_leaves_the_old_generation_deciding() -> None:
    with open_memory(policies=[]) as memory:
        scope = memory.scope(user="alice")
        scope.store("The code is 1234", tags=["secret"])
        before = memory.policies.revision
        memory._core.database._writer.set_commit_hook(lambda: True)
        with pytest.raises(ml.StoreError):
            memory.reload([document(HIDE)])
        memory._core.database._writer.set_commit_hook(None)
        assert not memory.policy_status().ok
        assert contents(scope.list()) == ["The code is 1234"]
        scope.store("Another", tags=["secret"])
        assert memory.decisions(limit=1)[0]["revision"] == before == memory.policies.revision


# Other processes and other memories ----------------------------------------------------------------------------------


def test_whoever_has_the_file_open_goes_by_what_another_put_into_force(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with open_memory(path, policies=[]) as here, open_memory(path) as there:
        scope = there.scope(user="alice")
        scope.store("The code is 1234", tags=["secret"])
        here.reload([document(HIDE)])
        assert contents(scope.list()) == []
        agent = {"name": "still", "on": "write", "action": "deny", "target": {"tags": ["loud"]}}
        here.reload([document(HIDE, agent)])
        with pytest.raises(ml.PolicyViolationError) as refused:
            scope.store("A shout", tags=["loud"])
        assert decided(refused.value).revision == here.policies.revision
        status = there.policy_status()
        assert (status.revision, status.own) == (here.policies.revision, False)
        assert here.policy_status().own


def test_rules_in_async_mode_are_judged_from_then_on_whoever_put_them_there(tmp_path: Path) -> None:
    late = {"name": "late", "on": "write", "action": "flag", "mode": "async"}
    with open_memory(tmp_path / "trip.db", policies=[]) as here, open_memory(tmp_path / "trip.db") as there:
        here.reload([document(late)])
        scopes = [memory.scope(user="alice") for memory in (there, here)]
        for number, scope in enumerate(scopes):
            scope.store(f"Kyoto {number}")
        here.catch_up()
        there.catch_up()
        assert [unit.flags for unit in scopes[0].list()] == [("late",)] * 2


def test_another_process_does_too(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with open_memory(path, policies=[]) as memory:
        memory.scope(user="alice").store("The code is 1234", tags=["secret"])
        script = "import sys, json, memlineage as ml\nml.Memory.open(sys.argv[1], policies=[json.loads(sys.argv[2])])"
        run_all(script, [[str(path), json.dumps(document(HIDE))]])
        assert contents(memory.scope(user="alice").list()) == []


def test_a_generation_that_cannot_be_read_decides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with open_memory(path, policies=[]) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("The code is 1234")
        other = PolicySet.of(defaults())
        with memory._core.database.writing() as connection:
            connection.execute("UPDATE meta SET value = ? WHERE name = 'policy'", ("0" * 64,))
        for act in (scope.list, lambda: scope.get(unit), lambda: scope.store("More")):
            with pytest.raises(ml.StoreError, match="policies="):
                act()
        assert not memory.verify().ok
        memory.reload(other)  # says which one it is
        scope.store("More")


# Many threads --------------------------------------------------------------------------------------------------------


SETS = [
    PolicySet.of(
        defaults(),
        ml.Document.from_dict(
            document(
                {"name": "held", "on": "read", "action": "withhold", "target": {"tags": [hidden]}},
                {"name": "refused", "on": "write", "action": "deny", "target": {"tags": [shown]}},
            )
        ),
    )
    for hidden, shown in (("secret", "loud"), ("loud", "secret"))
]
HIDDEN = {SETS[0].revision: "secret", SETS[1].revision: "loud"}
"""What may be written and not read; the other tag may be read and not written."""


class Crowd:
    """Threads that read and write, and look at each decision."""

    def __init__(self, memory: ml.Memory) -> None:
        self.wrong: list[str] = []
        self._done = threading.Event()
        self._scope = memory.scope(user="alice")
        self._tags = {}
        for policies in SETS:
            memory.reload(policies)
            tag = HIDDEN[policies.revision]
            self._tags[str(self._scope.store(f"It is {tag}", tags=[tag]).ref)] = tag
        self._threads = [threading.Thread(target=work) for work in (self._read, self._read, self._write)]

    def _read(self) -> None:
        while not self._done.is_set():
            decisions = self._scope.retrieve("what is it?").decisions
            if len({decision.revision for decision in decisions.values()}) != 1:
                self.wrong.append("one answer by several generations")
            for ref, tag in self._tags.items():
                decision = next(found for known, found in decisions.items() if str(known) == ref)
                if decision.allowed is (HIDDEN[decision.revision] == tag):
                    self.wrong.append(repr(decision))

    def _write(self) -> None:
        while not self._done.is_set():
            for tag in ("secret", "loud"):
                try:
                    self._scope.store("It is said again", tags=[tag], idempotency_key=tag)
                except ml.PolicyViolationError as refused:
                    if HIDDEN[decided(refused).revision] == tag:
                        self.wrong.append(repr(refused.decision))

    def __enter__(self) -> Crowd:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()


def decided(refused: ml.PolicyViolationError) -> ml.Decision:
    assert isinstance(refused.decision, ml.Decision)
    return refused.decision


def test_every_decision_is_by_one_generation_and_right_for_it(tmp_path: Path) -> None:
    with open_memory(tmp_path / "trip.db", policies=[]) as memory:
        with Crowd(memory) as crowd:
            for number in range(200):
                memory.reload(SETS[number % 2])
        assert crowd.wrong == []
        written = [entry for entry in memory.decisions(limit=100_000) if entry["action"] == "write"]
        assert {entry["revision"] for entry in written} == HIDDEN.keys()
        assert_consistent(memory)
        assert memory.verify(vectors=False).ok


def test_a_long_read_stays_with_the_generation_that_it_began_with(tmp_path: Path) -> None:
    with open_memory(tmp_path / "trip.db", policies=[]) as memory:
        scope = memory.scope(user="alice")
        scope.store("The code is 1234", tags=["secret"])
        with memory._core.read():  # whoever reads inside an older read stays there
            reloading = threading.Thread(target=memory.reload, args=([document(HIDE)],))
            reloading.start()
            reloading.join()
            assert contents(scope.list()) == ["The code is 1234"]
        assert contents(scope.list()) == []
