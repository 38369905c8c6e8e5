"""Past generations of policy: kept, held against the ledger, mended where something else still knows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import open_memory

import memlineage as ml

HIDE = {"rules": [{"name": "hide", "on": "read", "action": "withhold", "target": {"tags": ["secret"]}}]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three generations, of which the first came back."""
    made = tmp_path / "trip.db"
    with open_memory(made, policies=[]) as memory:
        memory.scope(user="alice").store("Kyoto")
        memory.reload([HIDE])
        memory.reload([HIDE, {"layer": "domain:travel", "rules": [{"name": "x", "on": "read", "action": "flag"}]}])
        memory.reload([])
    return made


def run(memory: ml.Memory, sql: str, *values: object) -> None:
    with memory._core.database.writing() as connection:
        connection.execute(sql, values)


def kept(memory: ml.Memory) -> dict[str, bytes]:
    with memory._core.database.reading() as connection:
        return dict(connection.execute("SELECT revision, body FROM generation"))


OLD = "revision <> (SELECT value FROM meta WHERE name = 'policy')"
NOW = "revision = (SELECT value FROM meta WHERE name = 'policy')"
CHANGES = {
    f"DELETE FROM generation WHERE {OLD}": ("is not there", False),
    f"UPDATE generation SET body = (SELECT body FROM generation WHERE {NOW}) WHERE {OLD}": ("its body is not", False),
    f"UPDATE generation SET body = x'7b7d' WHERE {OLD}": ("its body is not", False),
    "UPDATE generation SET seq = seq + 1": ("was the last that did", True),
    f"DELETE FROM generation WHERE {NOW}": ("is not there", True),
    f"UPDATE generation SET body = x'00' WHERE {NOW}": ("its body is not", True),
    "INSERT INTO generation SELECT 'a' || substr(revision, 2) || 'x', body, seq FROM generation": ("no event", True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_generation_that_is_not_what_it_was_is_found_and_mended_where_that_can_be(path: Path, change: str) -> None:
    problem, mendable = CHANGES[change]
    with open_memory(path) as memory:
        before = kept(memory)
        run(memory, change)
        report = memory.verify()
        assert report.first is not None
        assert report.first.entry.startswith("generation ")
        assert problem in report.first.problem
        assert report.mendable is mendable
        if mendable:
            assert memory.rebuild().repaired.keys() == {"generation"}
            assert kept(memory) == before
            assert memory.verify().ok
        else:
            with pytest.raises(ml.LedgerError, match="generation"):
                memory.rebuild()


def test_what_the_open_memory_still_knows_is_written_again(path: Path) -> None:
    with open_memory(path, policies=[HIDE]) as memory:
        before = kept(memory)
        memory.reload([])
        revision = next(revision for revision, body in before.items() if b'"hide"' in body and b"travel" not in body)
        run(memory, "DELETE FROM generation WHERE revision = ?", revision)
        assert memory.verify().mendable
        memory.rebuild()
        assert kept(memory) == before


def test_the_policy_in_force_is_mended_from_where_it_is_kept_besides(path: Path) -> None:
    with open_memory(path) as memory:
        run(memory, "UPDATE meta SET value = x'00' WHERE name = 'policy_set'")
        memory._core.generations._known.clear()
        memory.rebuild()
        assert memory.verify().ok


def test_a_backup_keeps_them_all(path: Path, tmp_path: Path) -> None:
    with open_memory(path) as memory:
        memory.backup(tmp_path / "copy.db")
        with open_memory(tmp_path / "copy.db") as copy:
            assert kept(copy) == kept(memory)
            assert len(kept(copy)) == 3
