"""How SQLite goes about our queries: by an index, never through a table that grows with the memory.

Without statistics the planner goes by the text of a query alone, so an empty store shows what a large one would do. A
partial index is taken only where the query repeats its condition word for word, and a join is done in the order
written only where it says CROSS.
"""

import re
from typing import Any, Final

import apsw
import pytest

from memlineage.store.database import Database, ids
from memlineage.store.sql import QUERIES

ALL_OF_IT: Final = {
    "by_principal": "another level of a principal concerns whatever it said",
    "corroborated_at_all": "another quorum concerns whatever was corroborated",
    "ended_by_time": "another policy concerns whatever has ended by time",
    "said_between": "distrust concerns whatever a principal said",
    "index_all_actions": "made once from all of the lineage, and then extended",
    "index_group_of": "made once from all of the lineage, and then extended",
    "index_late": "made once from all of the lineage, and then extended",
    "index_unit_of": "made once from all of the lineage, and then extended",
}
SCAN: Final = re.compile(r"SCAN (?!\w+ VIRTUAL TABLE|CONSTANT ROW|\()|AUTOMATIC")


def plan(connection: apsw.Connection, sql: str) -> list[str]:
    """The steps of a query that go through a whole table, or index one to get by without."""
    for count in range(40):
        given: list[Any] = [ids([1]) if f"carray(?{place})" in sql else 1 for place in range(1, count + 1)]
        try:
            steps = connection.execute(f"EXPLAIN QUERY PLAN {sql}", given).fetchall()
        except apsw.BindingsError:
            continue
        return [str(step[3]) for step in steps if SCAN.search(str(step[3]))]
    raise AssertionError(sql)


@pytest.mark.parametrize("name", QUERIES)
def test_no_query_goes_through_a_table_that_grows(name: str) -> None:
    database = Database(":memory:")
    with database.reading() as connection:
        found = plan(connection, QUERIES[name])
    database.close()
    assert bool(found) == (name in ALL_OF_IT), found


@pytest.mark.parametrize("name", ["by_principal", "said_between"])
def test_what_a_principal_said_is_found_without_a_walk_through_the_rows(name: str) -> None:
    database = Database(":memory:")
    with database.reading() as connection:
        assert plan(connection, QUERIES[name]) == ["SCAN version USING COVERING INDEX version_ns"]
    database.close()
