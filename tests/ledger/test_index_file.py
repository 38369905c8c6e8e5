"""The index beside a large database is derived as well: `verify` compares it, `rebuild` has it made again."""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from tests.ledger.filled import filled

import memlineage as ml
from memlineage.lineage.arrays import Pairs, Rows
from memlineage.store.index import LineageIndex, build
from memlineage.store.index_file import save
from memlineage.store.kept_index import file_of, position_of

PARTS = [f.name for f in fields(LineageIndex) if f.name not in ("at", "since")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ml.Memory]:
    with filled(tmp_path_factory.mktemp("kept") / "kept.db", acts=150) as memory:
        yield memory


def index_of(store: ml.Memory) -> LineageIndex:
    with store._core.database.reading() as connection:
        return build(connection, position_of(connection))


def changed(index: LineageIndex, name: str) -> LineageIndex:
    """One number of one part made another; still a file that can be read."""
    part = getattr(index, name)
    if isinstance(part, Rows):
        ends = part.ends.copy()
        ends[-1] = ends[-1] % index.at.n + 1
        return replace(index, **{name: Rows(part.starts, ends)})
    if isinstance(part, Pairs):
        one = np.array([2], np.int32)
        return replace(index, **{name: Pairs(np.append(part.keys[:0], one), np.append(part.values[:0], one))})
    part = part.copy() if part.size else np.array([1], np.int32)
    flat = part.reshape(-1)
    flat[flat.size // 2] = flat[flat.size // 2] % index.at.n + 1
    return replace(index, **{name: part})


def test_one_that_is_what_the_tables_say_is_found_sound(store: ml.Memory) -> None:
    save(index_of(store), store.path)
    assert (file_of(store.path).exists(), store.verify().ok) == (True, True)


@pytest.mark.parametrize("name", PARTS)
def test_one_that_says_something_else_is_found_and_made_again(store: ml.Memory, name: str) -> None:
    save(changed(index_of(store), name), store.path)
    report = store.verify()
    assert (report.ok, report.derived_only, report.first is not None) == (False, True, True)
    assert str(report.first).startswith(f"{Path(store.path).name}-lineage: ")
    assert store.rebuild().repaired == {"index file": 1}
    assert (file_of(store.path).exists(), store.verify().ok) == (False, True)


def test_a_damaged_one_is_no_index_at_all(store: ml.Memory) -> None:
    save(index_of(store), store.path)
    file = file_of(store.path)
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\1")
    assert store.verify().ok
