"""Rules in async mode: after the answer, once, whatever happens to the process (row B8)."""

import gc
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import memlineage as ml
from memlineage.engine import later
from memlineage.testing.consistency import assert_consistent

WEB = {"target": {"creators": "tool:web"}}


def rule(action: str, **more: object) -> dict[str, object]:
    return {"name": "late", "mode": "async", "action": action, **more}


def opened(*rules: dict[str, object], path: Path | str = ":memory:", **more: object) -> ml.Memory:
    more = {"background": False, "embedder": "lexical", **more}
    return ml.Memory.open(path, policies=[{"rules": list(rules)}] if rules else None, **more)


@pytest.mark.parametrize(
    ("action", "status", "flags"),
    [
        ("flag", "active", ("late",)),
        ("quarantine", "quarantined", ("late",)),
        ("deny", "quarantined", ("late",)),
        ("withhold", "quarantined", ("late",)),
        ("downgrade", "quarantined", ("late",)),
        ("notify_owner", "quarantined", ("late",)),
        ("deactivate_and_trigger_refresh", "expired", ("late",)),
    ],
)
def test_what_a_rule_asks_for_is_done_after_the_answer(action, status, flags):
    with opened(rule(action, on="write", **WEB)) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("Kyoto: carry cash", creator="tool:web")
        own = scope.store("I like trains")
        assert (unit.status, scope.get(unit).flags) == ("active", ())
        done = memory.catch_up()
        assert (done.judged, done.left) == (1, 0)
        assert (scope.get(unit).status, scope.get(unit).flags) == (status, flags)
        assert (scope.get(own).status, scope.get(own).flags) == ("active", ())
        assert memory.catch_up().judged == 0
        assert_consistent(memory)


def test_what_does_not_fire_leaves_nothing_behind():
    with opened(rule("deny", on="write", condition=[{"field": "content_length"}, ">", 100], **WEB)) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("short", creator="tool:web")
        assert memory.catch_up().judged == 1
        assert (scope.get(unit).status, scope.get(unit).flags) == ("active", ())


def test_the_unknown_fires_it_like_any_rule_that_restricts():
    with opened(rule("quarantine", on="write", condition=[{"field": "confidence"}, "<", 0.5], **WEB)) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("short", creator="tool:web")
        memory.catch_up()
        assert scope.get(unit).status == "quarantined"


def test_the_log_has_what_was_put_off_and_what_came_of_it():
    with opened(rule("quarantine", on="write", reason="from the web", **WEB)) as memory:
        memory.scope(user="alice").store("x", creator="tool:web")
        memory.catch_up()
        logged = {line["id"]: line for line in memory.decisions()}
        [put_off] = [line for line in logged.values() if line["deferred"]]
        [found] = [line for line in logged.values() if line["rules"] == ["late"]]
        assert (put_off["effect"], found["effect"], found["unit"]) == ("allow", "withhold", put_off["unit"])
        assert found["reasons"] == [f"late: from the web; judged after decision {put_off['id']}"]


def test_a_finding_is_acted_upon_once_so_what_is_restored_stays():
    with opened(rule("quarantine", on=["read", "write"], **WEB)) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("x", creator="tool:web")
        memory.catch_up()
        scope.restore(unit, reason="looked at it")
        scope.get(unit)
        assert memory.catch_up().judged == 1
        assert (scope.get(unit).status, scope.get(unit).flags) == ("active", ("late",))


def test_a_rule_that_says_something_else_now_is_acted_upon_again(tmp_path):
    path = tmp_path / "m.db"
    with opened(rule("flag", on="write", **WEB), path=path) as memory:
        unit = memory.scope(user="alice").store("x", creator="tool:web")
        memory.catch_up()
    with opened(rule("quarantine", on=["read", "write"], **WEB), path=path) as memory:
        scope = memory.scope(user="alice")
        assert scope.get(unit).flags == ("late",)
        assert memory.catch_up().quarantined == 1
        assert scope.get(unit).status == "quarantined"


def test_what_is_not_shown_is_not_looked_at_again():
    everything = {"name": "closed", "on": "all", "action": "deny"}
    with opened(rule("flag", on="read")) as memory:
        scope = memory.scope(user="alice")
        scope.store("x")
        memory.reload([{"rules": [rule("flag", on="read"), everything]}])
        assert [held.rule for held in scope.list().withheld] == ["closed"]
        assert memory.catch_up() == ml.CaughtUp()


def test_a_memory_that_nobody_closes_leaves_no_thread_behind():
    memory = opened(rule("flag", on="write"), background=True)
    memory.scope(user="alice").store("x")
    [thread] = [one for one in threading.enumerate() if one.name == "memlineage-afterwards"]
    del memory
    until(lambda: gc.collect() >= 0 and not thread.is_alive())


def test_the_next_version_is_judged_anew_and_knows_what_it_replaced():
    raised = {"all": [[{"new": "confidence"}, "<", {"old": "confidence"}]]}
    with opened(rule("flag", on="update", condition=raised)) as memory:
        scope = memory.scope(user="alice")
        first = scope.store("a", confidence=0.9)
        less = scope.update(first, "b", confidence=0.5)
        more = scope.update(less, "c", confidence=0.8)
        assert memory.catch_up().judged == 2
        assert [unit.flags for unit in scope.history(first)] == [(), ("late",), ()]
        assert scope.get(more).flags == ()


def test_reading_puts_off_too_and_not_twice_a_minute():
    now = datetime(2026, 3, 1, tzinfo=UTC)
    old = [{"time_since": "lineage.timestamp"}, ">", "1h"]
    with opened(rule("flag", on="read", condition=old), clock=lambda: now) as memory:
        scope = memory.scope(user="alice")
        scope.store("the train leaves at nine")
        for _ in range(3):
            assert scope.retrieve("when does the train leave?").units[0].flags == ()
        assert memory.catch_up().judged == 1
        scope.retrieve("train")
        assert memory.catch_up().judged == 0
        now += timedelta(hours=2)
        scope.retrieve("train")
        assert memory.catch_up() == ml.CaughtUp(judged=1, flagged=1)
        [unit] = scope.retrieve("train").units
        assert unit.flags == ("late",)
        assert scope.list()[0].flags == ("late",)


ADS = [{"context": "purpose"}, "==", "ads"]


def test_who_reads_for_something_else_first_hides_nothing():
    with opened(rule("quarantine", on="read", condition=ADS)) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("the train leaves at nine")
        scope.retrieve("train", purpose="trip")
        assert memory.catch_up() == ml.CaughtUp(judged=1)
        scope.retrieve("train", purpose="trip")
        scope.retrieve("train", purpose="ads")
        assert memory.catch_up() == ml.CaughtUp(judged=1, quarantined=1)
        assert scope.get(unit).status == "quarantined"


def test_what_was_judged_by_an_earlier_policy_is_judged_again():
    with opened(rule("flag", on="read", condition=[{"context": "purpose"}, "==", "trip"])) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("the train leaves at nine")
        scope.retrieve("train", purpose="ads")
        assert memory.catch_up() == ml.CaughtUp(judged=1)
        memory.reload([{"rules": [rule("flag", on="read", condition=ADS)]}])
        scope.retrieve("train", purpose="ads")
        assert memory.catch_up() == ml.CaughtUp(judged=1, flagged=1)
        assert scope.get(unit).flags == ("late",)


def test_a_read_that_could_not_be_written_down_is_asked_again(monkeypatch):
    with opened(rule("flag", on="read")) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("the train leaves at nine")
        scope.retrieve("train")
        with monkeypatch.context() as patched:
            patched.setattr(later, "MOST_TASKS", 0)
            assert memory.catch_up() == ml.CaughtUp()
        scope.retrieve("train")
        with monkeypatch.context() as patched:
            patched.setattr(memory._parts.afterwards, "_judge", lambda *_: (_ for _ in ()).throw(ml.StoreError("full")))
            with pytest.raises(ml.StoreError, match="full"):
                memory.catch_up()
        scope.retrieve("train")
        assert memory.catch_up() == ml.CaughtUp(judged=1, flagged=1)
        assert scope.get(unit).flags == ("late",)


def test_an_age_is_judged_as_of_the_answer_however_late_that_is():
    now = datetime(2026, 3, 1, tzinfo=UTC)
    old = [{"time_since": "lineage.timestamp"}, ">", "1h"]
    with opened(rule("flag", on="write", condition=old), clock=lambda: now) as memory:
        unit = memory.scope(user="alice").store("x")
        now += timedelta(hours=2)
        assert memory.catch_up() == ml.CaughtUp(judged=1)
        assert memory.scope(user="alice").get(unit).flags == ()


def test_a_refresh_asked_for_afterwards_fetches_again():
    with opened(rule("deactivate_and_trigger_refresh", on="write", **WEB)) as memory:
        asked = []
        memory.register_tool("web", refresh=lambda unit: asked.append(unit.ref) or f"fresh {len(asked)}")
        scope = memory.scope(user="alice")
        unit = scope.store("stale", creator="tool:web")
        done = memory.catch_up(limit=1)
        assert (done.refreshed, asked) == (1, [unit.ref])
        assert (scope.get(unit.id).content, scope.get(unit.ref).status) == ("fresh 1", "expired")


def test_a_tool_that_is_down_leaves_the_version_expired():
    def down(unit: ml.Unit) -> str:
        raise OSError("no route to host")

    with opened(rule("deactivate_and_trigger_refresh", on="write", **WEB)) as memory:
        memory.register_tool("web", refresh=down)
        scope = memory.scope(user="alice")
        unit = scope.store("stale", creator="tool:web")
        done = memory.catch_up()
        assert (done.judged, done.refreshed, done.left) == (1, 0, 0)
        assert scope.get(unit.ref).status == "expired"


def test_a_fetch_that_a_crash_cut_short_is_done_when_its_lease_ends(monkeypatch):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    with opened(rule("deactivate_and_trigger_refresh", on="write", **WEB), clock=lambda: now) as memory:
        memory.register_tool("web", refresh=lambda unit: "fresh")
        scope = memory.scope(user="alice")
        unit = scope.store("stale", creator="tool:web")
        with monkeypatch.context() as patched:
            patched.setattr(memory._parts.refreshing, "refresh", lambda stale: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                memory.catch_up()
        assert (memory.catch_up().judged, scope.get(unit.ref).status) == (0, "expired")
        now += timedelta(minutes=2)
        assert memory.catch_up().refreshed == 1
        assert scope.get(unit.id).content == "fresh"


def test_a_fetch_that_always_crashes_is_given_up(monkeypatch):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    with opened(rule("deactivate_and_trigger_refresh", on="write", **WEB), clock=lambda: now) as memory:
        memory.register_tool("web", refresh=lambda unit: "fresh")
        unit = memory.scope(user="alice").store("stale", creator="tool:web")
        monkeypatch.setattr(memory._parts.refreshing, "refresh", lambda stale: (_ for _ in ()).throw(KeyboardInterrupt))
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                memory.catch_up()
            now += timedelta(minutes=2)
        assert memory.catch_up() == ml.CaughtUp(judged=1)
        assert memory.scope(user="alice").get(unit).status == "expired"


def test_a_full_queue_judges_at_once_and_loses_nothing(monkeypatch):
    monkeypatch.setattr(later, "MOST_TASKS", 3)
    with opened(rule("flag", on="write", **WEB)) as memory:
        scope = memory.scope(user="alice")
        units = [scope.store(f"page {n}", creator="tool:web") for n in range(4)]
        units += scope.store_many([{"content": f"more {n}", "creator": "tool:web"} for n in range(3)])
        assert [scope.get(unit).flags for unit in units] == [()] * 3 + [("late",)] * 4
        assert memory.catch_up().judged == 3
        assert {scope.get(unit).flags for unit in units} == {("late",)}


def test_what_waits_outlives_its_process(tmp_path):
    path = tmp_path / "m.db"
    program = f"""
import os, memlineage as ml
late = {{"name": "late", "mode": "async", "action": "quarantine", "on": "write"}}
memory = ml.Memory.open({str(path)!r}, policies=[{{"rules": [late]}}], embedder="lexical", background=False)
memory.scope(user="alice").store("x", creator="tool:web")
os._exit(9)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, env={**os.environ}, timeout=25)
    assert ended.returncode == 9
    with opened(path=path) as memory:
        [unit] = memory.scope(user="alice").list()
        assert unit.status == "active"
        assert memory.catch_up().quarantined == 1
        assert memory.scope(user="alice").get(unit).status == "quarantined"


def until(holds, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.01)


@pytest.mark.parametrize("place", [":memory:", "m.db"])
def test_a_thread_of_the_memory_does_it_by_itself(place, tmp_path):
    path = place if place == ":memory:" else tmp_path / place
    with opened(rule("quarantine", on="write", **WEB), path=path, background=True) as memory:
        scope = memory.scope(user="alice")
        units = [scope.store(f"page {n}", creator="tool:web") for n in range(50)]
        until(lambda: all(scope.get(unit).status == "quarantined" for unit in units))
    assert not [thread for thread in threading.enumerate() if thread.name == "memlineage-afterwards"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_clock_that_failed_once_does_not_end_what_happens_afterwards(tmp_path):
    failures = []

    def clock() -> datetime:
        if threading.current_thread().name == "memlineage-afterwards" and not failures:
            failures.append("no time")
            raise OSError(failures[0])
        return datetime.now(UTC)

    with opened(rule("flag", on="write"), path=tmp_path / "m.db", background=True, clock=clock) as memory:
        scope = memory.scope(user="alice")
        first = scope.store("one")
        until(lambda: failures and memory._parts.afterwards._thread.is_alive() is False)
        second = scope.store("two")
        until(lambda: [scope.get(unit).flags for unit in (first, second)] == [("late",)] * 2)


def test_a_memory_can_be_closed_by_what_runs_in_its_thread(tmp_path):
    done = []

    def clock() -> datetime:
        if threading.current_thread().name == "memlineage-afterwards" and not done:
            done.append("closing")
            memory.close()
            done.append("closed")
        return datetime.now(UTC)

    memory = opened(rule("flag", on="write"), path=tmp_path / "m.db", background=True, clock=clock)
    memory.scope(user="alice").store("one")
    until(lambda: len(done) == 2)
    memory.close()
    until(lambda: not any(thread.name == "memlineage-afterwards" for thread in threading.enumerate()))


def test_without_rules_in_async_mode_no_thread_starts():
    with opened({"name": "now", "action": "flag"}, background=True):
        assert not [thread for thread in threading.enumerate() if thread.name == "memlineage-afterwards"]


def test_closing_does_the_last_of_it(tmp_path):
    with opened(rule("flag", on="write"), path=tmp_path / "m.db", background=True) as memory:
        unit = memory.scope(user="alice").store("x")
    with opened(path=tmp_path / "m.db") as memory:
        assert memory.catch_up().judged == 0
        assert memory.scope(user="alice").get(unit).flags == ("late",)


def test_several_that_catch_up_at_once_judge_each_task_once(tmp_path):
    with opened(rule("quarantine", on="write"), path=tmp_path / "m.db") as memory:
        memory.scope(user="alice").store_many([{"content": f"page {n}"} for n in range(300)])
        done: list[ml.CaughtUp] = []
        threads = [threading.Thread(target=lambda: done.append(memory.catch_up())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(one.judged for one in done) == sum(one.quarantined for one in done) == 300
        assert_consistent(memory)
        assert memory.verify().ok


def test_what_may_not_be_done_is_not_done_and_is_logged():
    no_invalidating = {"name": "stands", "on": "invalidate", "action": "deny"}
    with opened(rule("quarantine", on="write"), no_invalidating) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("x")
        assert memory.catch_up().quarantined == 0
        assert (scope.get(unit).status, scope.get(unit).flags) == ("active", ("late",))
        assert any(line["determining"] == ["stands"] for line in memory.decisions())


def test_limits_are_checked():
    with opened() as memory, pytest.raises(ml.InvalidInputError, match="limit"):
        memory.catch_up(0)
