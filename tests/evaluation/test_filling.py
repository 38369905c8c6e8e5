"""Filling beneath the public interface: nothing tells the file from one that was filled through it."""

from pathlib import Path

import numpy as np
import pytest
from tests.support import tables

import memlineage as ml
from memlineage.evaluation.corpus import sentences
from memlineage.evaluation.filling import fill_beneath, open_memory
from memlineage.evaluation.floors import sweep
from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.shapes import Block, nested, statements, triples
from memlineage.testing.consistency import assert_consistent

UNITS = 1_000
ANN = statements("ann", sentences("en", UNITS))
ZOE = statements("zoe", sentences("zh", 300))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    with open_memory(folder / "m.db", durability="normal") as memory:
        fill_beneath(memory, [ANN, ZOE])
    return folder


def through_the_front(memory: ml.Memory, block: Block) -> None:
    """The same, unit by unit."""
    scope = memory.scope(user=block.user)
    stored: list[ml.Unit] = []
    for text, parents in zip(block.texts, block.parents, strict=True):
        above = [stored[place] for place in parents]
        stored.append(scope.store(text, creator="reasoning", depends_on=above) if above else scope.store(text))


def test_a_filled_store_is_consistent_in_every_row(folder: Path) -> None:
    with open_memory(folder / "m.db") as memory:
        assert_consistent(memory)


def test_a_filled_store_verifies(folder: Path) -> None:
    with open_memory(folder / "m.db") as memory:
        assert memory.verify().ok


CHANCE = {"id", "salt", "data", "leaf", "hash", "at_us", "ts_us", "recorded_us", "body", "ref"}
"""Columns that hold ids, salts, times, and what is computed from these."""


def columns(memory: ml.Memory) -> dict[str, list[list[object]]]:
    """Every row of every table, without those columns."""
    found = {}
    with memory._core.database.reading() as connection:
        # How the full-text index lays out its segments depends on the size of transactions.
        for name in [name for name in [*tables(memory), "decision"] if not name.startswith("text_")]:
            kept = [
                c for (c,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,)) if c not in CHANCE
            ]
            if "asked" in kept:  # the instant is in it as well
                kept[kept.index("asked")] = "json_remove(CAST(asked AS TEXT), '$.now_us')"
            rows = connection.execute(f"SELECT {', '.join(kept) or 1} FROM {name}").fetchall()
            found[name] = sorted(([*row] for row in rows), key=repr)
    return found


def test_its_rows_are_those_that_storing_one_by_one_writes(tmp_path: Path) -> None:
    small = statements("ann", sentences("en", 40))
    with open_memory(tmp_path / "beneath.db") as memory:
        fill_beneath(memory, [small])
        beneath = columns(memory)
    with open_memory(tmp_path / "front.db") as memory:
        through_the_front(memory, small)
        front = columns(memory)
    assert {name: len(rows) for name, rows in beneath.items()} == {name: len(rows) for name, rows in front.items()}
    assert [name for name in front if beneath[name] != front[name]] == []


def test_a_filled_store_is_searched_and_built_upon_like_any_other(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m.db") as memory:
        refs = fill_beneath(memory, [ANN, ZOE])
        scope = memory.scope(user="ann")
        assert [unit.content for unit in scope.retrieve(ANN.texts[700], limit=1).units] == [ANN.texts[700]]
        scope.store("One more", creator="reasoning", depends_on=[str(refs["ann"][999])])
        scope.invalidate(str(refs["ann"][0]))
        assert scope.get(str(refs["ann"][1])).status is ml.Status.CONTAMINATED
        assert_consistent(memory)


def test_refs_come_in_the_order_of_the_texts(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m.db") as memory:
        refs = fill_beneath(memory, [ZOE])["zoe"]
        scope = memory.scope(user="zoe")
        assert [scope.get(str(refs[place])).content for place in (0, 1, 2, 299)] == [
            ZOE.texts[place] for place in (0, 1, 2, 299)
        ]


def test_a_nest_has_units_with_as_many_descendants_as_asked() -> None:
    nest = nested([50, 10, 1_000])
    assert sorted(nest.roots) == [10, 50, 1_000]
    below = {size: triples(nest.parents, place, size) for size, place in nest.roots.items()}
    assert {size: int(sweep(rows, 0).sum()) - 1 for size, rows in below.items()} == {10: 10, 50: 50, 1_000: 1_000}
    assert all(max(above, default=-1) < place for place, above in enumerate(nest.parents))


def test_a_nest_whose_parts_do_not_fit_into_the_whole_is_larger() -> None:
    assert sorted(nested([60, 70]).roots) == [60, 70]
    assert max(nested([60, 65, 70]).roots) == 127


def test_the_units_of_a_nest_have_three_parents_for_the_most_part() -> None:
    assert 2.8 < np.mean([len(parents) for parents in nested([10_000]).parents]) < 3


def test_a_shelf_fills_once_and_hands_out_copies(tmp_path: Path) -> None:
    filled: list[str] = []

    def fill(memory: ml.Memory) -> dict[str, str]:
        filled.append("once")
        return {"it": str(memory.scope(user="ann").store("It").ref)}

    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        taken = Shelf(tmp_path / run, tmp_path / "kept").take("m", fill)
        with open_memory(taken.path) as memory:
            scope = memory.scope(user="ann")
            assert [unit.content for unit in scope.list()] == ["It"]
            scope.retract(taken.refs["it"])
    assert filled == ["once"]
