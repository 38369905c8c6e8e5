"""How SQLite goes about our queries: by an index, never through a table that grows with the memory.

Without statistics the planner goes by the text of a query alone, so an empty store shows what a large one would do. A
partial index is taken only where the query repeats its condition word for word, and a join is done in the order
written only where it says CROSS.
"""

import re
from typing import Any, Final

import apsw
import pytest
from tests.support import open_memory

import memlineage as ml
from memlineage.store.database import Database, ids
from memlineage.store.sql import QUERIES

ALL_OF_IT: Final = {
    "acted": "actions and approvals, from an index that has nothing else",
    "awaited_forms": "what waits for others to say the same, asked for where a comparer is registered",
    "by_principal": "another level of a principal concerns whatever it said",
    "corroborated_at_all": "another quorum concerns whatever was corroborated",
    "free_tasks": "a queue of at most some thousands, taken from its front",
    "current_versions": "standing checks are about whatever is current",
    "ended_by_time": "another policy concerns whatever has ended by time",
    "notices": "the outbox, shown whole",
    "said_between": "distrust concerns whatever a principal said",
    "index_all_actions": "made once from all of the lineage, and then extended",
    "index_group_of": "made once from all of the lineage, and then extended",
    "index_late": "made once from all of the lineage, and then extended",
    "index_unit_of": "made once from all of the lineage, and then extended",
    "subscribed_owners": "there are as many as somebody made by hand",
    "subscriptions": "there are as many as somebody made by hand",
}
FROM_ITS_END: Final = {
    "SELECT id, body FROM (SELECT * FROM decision ORDER BY d DESC LIMIT ?) ORDER BY at_us DESC, d DESC",
    "SELECT EXISTS (SELECT 1 FROM finding)",
    "SELECT s, name, owner, kinds, at_us FROM subscription ORDER BY s",  # made by hand, so there are few
    "SELECT seq, ts_us FROM event ORDER BY seq DESC LIMIT 1",
}
"""Statements that go through a table from one of its ends, and stop at a limit."""
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


def acts(memory: ml.Memory) -> None:
    """Everything that is done every day, by somebody who was never here before as well."""
    trip = memory.scope(user="alice", agent="planner", session="s")
    city, quote = trip.store_many(["Destination is Kyoto", {"content": "612 USD", "creator": "tool:gds", "key": "k"}])
    flight = trip.store("NH203 costs 612 USD", creator="tool:flight_api", depends_on=[city], idempotency_key="once")
    planner = trip.acting_as("agent:planner")
    planner.retrieve("Kyoto", filter={"kind": "fact"}, focus=[city])
    planner.store("Fly to Kyoto", depends_on=[flight], subject="trip", key="plan", visibility="session")
    trip.store("Go to Osaka", subject="trip", key="plan")
    trip.update(city, "Destination is Osaka")
    trip.corroborate(flight, depends_on=[quote])
    trip.reverify(flight, by="user:alice")
    trip.endorse(flight, level="TRUSTED", reason="seen")
    trip.invalidate(quote, reason="wrong")
    trip.restore(quote)
    trip.retract(quote)
    trip.list(status=["active"])
    for look in (trip.get, trip.history, trip.trace, trip.impact, trip.explain):
        look(flight)
    trip.authorize("book", {"flight": "NH203"}, justification=[flight])
    memory.scope(agent="planner").store("A note")
    memory.decisions()


def test_no_statement_of_everyday_acts_goes_through_a_table_that_grows() -> None:
    with open_memory() as memory:
        connection = memory._core.database._writer
        said: set[str] = set()
        connection.exec_trace = lambda _, sql, __: said.add(sql) is None
        acts(memory)
        connection.exec_trace = None
        asked = {sql for sql in said if sql.split(maxsplit=1)[0] in {"SELECT", "WITH", "UPDATE", "DELETE", "INSERT"}}
        found = {sql: steps for sql in asked - FROM_ITS_END if (steps := plan(connection, sql))}
    assert not found
    assert len(asked) > 60


@pytest.mark.parametrize("name", ["by_principal", "said_between"])
def test_what_a_principal_said_is_found_without_a_walk_through_the_rows(name: str) -> None:
    database = Database(":memory:")
    with database.reading() as connection:
        assert plan(connection, QUERIES[name]) == ["SCAN version USING COVERING INDEX version_ns"]
    database.close()
