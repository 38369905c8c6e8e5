"""Pages that are damaged are named before anything is read from them."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.ledger.filled import Clock, filled

import memlineage as ml


def damaged(path: Path, structure: str) -> ml.Memory:
    """A store in whose file one structure has a page of zeros."""
    with filled(path) as memory:
        policies = memory.policies
    connection = apsw.Connection(str(path))
    connection.pragma("wal_checkpoint", "truncate")
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (structure,)).get
    size = connection.pragma("page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    return ml.Memory.open(path, embedder="lexical", clock=Clock(), policies=policies)


@pytest.mark.parametrize(("structure", "mended"), [("edge_down", True), ("alike", True), ("cause", False)])
def test_the_structure_is_named_and_whether_it_can_be_made_anew(tmp_path: Path, structure: str, mended: bool) -> None:
    with damaged(tmp_path / "filled.db", structure) as memory:
        report = memory.verify()
        assert (report.ok, report.derived_only, report.first and report.first.entry) == (False, mended, structure)
        if mended:
            assert structure in memory.rebuild().repaired
            assert memory.verify().ok
        else:
            with pytest.raises(ml.StoreError, match="restore a backup"):
                memory.rebuild()


def declare(path: str, name: str, before: str, after: str) -> None:
    """Change what the schema says of a structure, and nothing else."""
    with closing(apsw.Connection(path)) as connection:
        connection.pragma("writable_schema", 1)
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = ?", (before, after, name))


def test_an_index_that_has_other_rows_than_its_table_is_named(tmp_path: Path) -> None:
    with filled(tmp_path / "filled.db") as memory:
        declare(memory.path, "version_contest", "g <> 0", "g > 1")
        with closing(apsw.Connection(memory.path)) as connection:
            connection.execute("REINDEX version_contest")
        declare(memory.path, "version_contest", "g > 1", "g <> 0")
        report = memory.verify()
        assert (report.derived_only, report.first and report.first.entry) == (True, "version_contest")
        assert (memory.rebuild().repaired, memory.verify().ok) == ({"version_contest": 1}, True)


def test_a_declaration_that_is_not_ours_is_named(tmp_path: Path) -> None:
    with filled(tmp_path / "filled.db") as memory:
        declare(memory.path, "edge_late", "justification > 0", "justification > 5")  # no row has either
        assert str(memory.verify().first).startswith("index edge_late: is declared otherwise: CREATE INDEX")
        with memory._core.database.writing() as connection:
            connection.execute("CREATE TRIGGER spy AFTER INSERT ON version BEGIN DELETE FROM refresh; END")
        assert "trigger spy: does not belong" in "\n".join(map(str, memory.verify().findings))
        assert (memory.rebuild().repaired, memory.verify().ok) == ({"schema": 2}, True)
