"""What a process remembers between transactions is of what was committed, and of what is there now."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest
from tests.support import open_memory

import memlineage as ml
from memlineage.engine.core import Core
from memlineage.model.scope import Visibility, Wall
from memlineage.store import names, wake

WALL = Wall(tenant="other", user="bob", agent=None, session=None, visibility=Visibility.USER)


class UndoneError(Exception):
    """What ends a write half way."""


def undone(core: Core) -> None:
    """A write that names a principal and walls, looks at them from inside, and ends half way."""
    with core.write() as writer:
        p = writer.register_principal("tool:new")
        w, _ = writer.names.intern_wall(WALL)
        with core.read() as snapshot:
            assert snapshot.names.find_principal("tool:new") == p
            assert snapshot.names.wall(w) == WALL
        raise UndoneError


@pytest.mark.parametrize("place", [":memory:", "file"])
def test_what_a_read_inside_a_write_saw_is_not_remembered_if_that_is_undone(place: str, tmp_path: Path) -> None:
    with open_memory(place if place == ":memory:" else tmp_path / "a.db") as memory:
        trip = memory.scope(user="alice")
        with pytest.raises(UndoneError):
            undone(memory._core)
        unit = trip.store("NH203 costs 612 USD", creator="tool:new")
        assert trip.get(unit.id).creator == "tool:new"
        memory.scope(user="bob", tenant="other").store("Destination is Kyoto")
        assert memory.verify().ok


def test_places_that_a_rebuild_corrected_are_looked_up_again(tmp_path: Path) -> None:
    with open_memory(tmp_path / "a.db") as memory:
        trip = memory.scope(user="alice")
        one, other = trip.store("Destination is Kyoto"), trip.store("Budget is 900 USD")
    with open_memory(tmp_path / "a.db") as memory:
        trip = memory.scope(user="alice")
        with memory._core.database.writing() as connection:
            connection.execute("UPDATE unit SET id = id || 'x' WHERE id = ?", (one.id,))
            connection.execute("UPDATE unit SET id = ? WHERE id = ?", (one.id, other.id))
            connection.execute("UPDATE unit SET id = ? WHERE id = ?", (other.id, one.id + "x"))
        trip.store("A plan", creator="reasoning", depends_on=[one.ref])
        assert set(memory.rebuild().repaired) == {"unit"}
        plan = trip.store("Another plan", creator="reasoning", depends_on=[one.ref])
        assert [edge.parent for edge in trip.get(plan.id).lineage.dependencies] == [one.ref]


def test_names_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_KEPT", 20)
    monkeypatch.setattr(wake, "_KEPT", 20)
    with open_memory() as memory:
        for number in range(60):
            scope = memory.scope(user=f"u{number}", session="s")
            unit = scope.store("Destination is Kyoto", visibility=Visibility.SESSION.value)
            scope.store("Destination is Osaka")
            assert scope.get(unit.id).content == "Destination is Kyoto"
            assert memory._core._wake is not None
            registered = memory._core._wake.registered
            assert max(len(registered.levels), len(registered.verifiers)) <= 20
        kept = memory._core._names
        assert max(map(len, (kept.walls, kept.wall_ids, kept.principals, kept.principal_ids))) < 30
        assert memory.verify().ok


def test_a_store_named_from_where_the_program_was_stays_that_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        with open_memory("a.db") as memory:
            memory.scope(user="alice").store(f"Stored {name}")
    monkeypatch.chdir(tmp_path / "here")
    with open_memory("a.db") as memory:
        monkeypatch.chdir(tmp_path / "there")
        found: list[str] = []
        looking = Thread(target=lambda: found.extend(unit.content for unit in memory.scope(user="alice").list()))
        looking.start()
        looking.join()
        assert found == [unit.content for unit in memory.scope(user="alice").list()] == ["Stored here"]
        memory.checkpoint()
        assert memory.path == "a.db"
    assert sorted(file.name for file in tmp_path.glob("*/*")) == ["a.db", "a.db", "a.db.key"]
    assert (tmp_path / "here" / "a.db.key").exists()


@pytest.mark.parametrize("gone", [False, True])
def test_what_was_put_in_place_of_an_open_store_is_opened_once_that_is_closed(tmp_path: Path, *, gone: bool) -> None:
    """Before, the log of the one that is open would have been taken for its own."""
    path = tmp_path / "a.db"
    with open_memory(path) as memory:
        memory.scope(user="alice").store("Destination is Kyoto")
        memory.backup(tmp_path / "backup.db")
        memory.scope(user="alice").store("Destination is Osaka")
        (path if gone else tmp_path / "backup.db").replace(tmp_path / "elsewhere.db" if gone else path)
        with pytest.raises(ml.StoreError, match=r"close that memory first, delete .*a\.db-wal and .*a\.db-shm"):
            open_memory(path)
        assert path.exists() is not gone
    if gone:
        (tmp_path / "backup.db").replace(path)
    for end in ("-wal", "-shm"):
        path.with_name(f"a.db{end}").unlink(missing_ok=True)
    with open_memory(path) as memory:
        assert [unit.content for unit in memory.scope(user="alice").list()] == ["Destination is Kyoto"]
        assert memory.verify().ok
