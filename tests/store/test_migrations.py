"""A file of an earlier format, made by the program of that time, opens with everything in it."""

import lzma
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import memlineage as ml
from memlineage.store import database, migrations
from memlineage.store.database import FORMAT
from memlineage.testing.consistency import assert_consistent

FIRST, SECOND, THIRD = "format_1.db.xz", "format_2.db.xz", "format_3.db.xz"
"""By every verb of their time: equal updates, lost keys, causes, late justifications, quarantines; in the second, two
generations of policy, the later with rules of every mode, and what was decided under both; in the third, an action that
was run, and a version that a rule has yet to judge."""


def unpacked(name: str, folder: Path) -> Path:
    path = folder / "old.db"
    path.write_bytes(lzma.decompress(Path(__file__).with_name(name).read_bytes()))
    return path


@pytest.fixture(params=[FIRST, SECOND, THIRD])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpacked(request.param, tmp_path)


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return unpacked(FIRST, tmp_path)


@pytest.fixture
def second(tmp_path: Path) -> Path:
    return unpacked(SECOND, tmp_path)


def told(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute(sql).fetchall()


def test_a_file_of_an_earlier_format_is_brought_to_the_present_one_and_is_consistent(old: Path) -> None:
    with ml.Memory.open(old) as memory:
        assert_consistent(memory)
        assert memory.verify().findings == ()
    assert told(old, "PRAGMA user_version") == [(FORMAT,)]


def test_no_event_changes_on_the_way(old: Path) -> None:
    before = told(old, "SELECT seq, ts_us, kind, data, leaf FROM event ORDER BY seq")
    with ml.Memory.open(old):
        pass
    assert told(old, "SELECT seq, ts_us, kind, data, leaf FROM event ORDER BY seq") == before


def test_every_status_is_what_it_was(first: Path) -> None:
    was = dict(told(first, "SELECT n, own * 100 + standing * 10 + (winner <> 0) FROM state"))
    with ml.Memory.open(first) as memory, memory._core.read() as snapshot:
        numbers = [n for (n,) in snapshot.connection.execute("SELECT n FROM version")]
        states = {n: snapshot.states.state(n) for n in numbers}
    now = {n: s.own * 100 + s.standing * 10 + s.lost for n, s in states.items()}
    assert {n: code for n, code in now.items() if code} == was


def test_its_tables_are_those_of_a_new_file(old: Path, tmp_path: Path) -> None:
    with ml.Memory.open(old), ml.Memory.open(tmp_path / "new.db"):
        pass
    schema = "SELECT type, name, tbl_name FROM sqlite_schema WHERE name NOT LIKE 'text%' ORDER BY name"
    assert told(old, schema) == told(tmp_path / "new.db", schema)
    for (table,) in told(old, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'text%'"):
        columns = f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{table}')"
        assert told(old, columns) == told(tmp_path / "new.db", columns), table


def test_memory_goes_on_in_a_file_that_was_brought_up(old: Path) -> None:
    with ml.Memory.open(old) as memory:
        trip = memory.scope(user="alice", agent="planner", session="s1")
        [price] = trip.list(filter={"subject": "trip", "key": "destination"})
        for _ in range(3):
            trip.update(price, "Destination is Kyoto!", creator="user:alice")
        trip.invalidate(price, reason="not going")
        assert_consistent(memory)


def test_states_and_decisions_of_format_2_stay_as_they_are(second: Path) -> None:
    kept = ("SELECT * FROM state", "SELECT d, id, at_us, action, effect, ref, body FROM decision ORDER BY d")
    before = [told(second, sql) for sql in kept]
    with ml.Memory.open(second):
        pass
    assert [told(second, sql) for sql in kept] == before


def test_of_the_generations_of_format_2_the_last_is_kept(second: Path) -> None:
    was = told(second, "SELECT value FROM meta WHERE name IN ('policy', 'policy_set') ORDER BY name")
    [[last]] = told(second, "SELECT max(seq) FROM event WHERE kind = 7")
    with ml.Memory.open(second) as memory:
        assert memory.verify().findings == ()  # that the one before is not there is no finding
        assert memory.policy_status().own
        memory.reload([])
        memory.reload([{"rules": [{"name": "x", "on": "read", "action": "flag"}]}])
        assert memory.verify().findings == ()
    kept = told(second, "SELECT revision, body, seq FROM generation ORDER BY seq")
    assert kept[0] == (*(value for [value] in was), last)
    assert len(kept) == 3


def test_a_decision_from_before_format_2_was_left_says_nothing_of_what_was_asked(second: Path) -> None:
    with ml.Memory.open(second) as memory:
        memory.scope(user="alice").store("From here on it does")
    asked = told(second, "SELECT asked IS NULL FROM decision ORDER BY d")
    assert asked[-1] == (0,)
    assert set(asked[:-1]) == {(1,)}


def test_a_step_that_fails_leaves_the_old_file_as_it_was(first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half_way(connection: apsw.Connection) -> None:
        migrations.format_2.upgrade(connection)
        connection.execute("INSERT INTO nowhere VALUES (1)")

    steps: dict[int, Callable[[apsw.Connection], None]] = {1: half_way}
    monkeypatch.setattr(migrations, "_STEPS", steps)
    before = told(first, "SELECT count(*), sum(standing) FROM state")
    with pytest.raises(ml.StoreError, match="no such table: nowhere"):
        ml.Memory.open(first)
    assert told(first, "PRAGMA user_version") == [(1,)]
    assert told(first, "SELECT count(*), sum(standing) FROM state") == before


def test_every_earlier_format_has_a_step() -> None:
    assert sorted(migrations._STEPS) == list(range(1, database.FORMAT))
