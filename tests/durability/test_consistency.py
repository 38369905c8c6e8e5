"""`assert_consistent` is held to what it promises: a sound store passes, one changed value anywhere is named."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import apsw
import orjson
import pytest

import memlineage as ml
from memlineage.ledger.hashing import canonical, leaf_hash
from memlineage.model.state import pack
from memlineage.store.records import EventKind
from memlineage.store.states import States
from memlineage.testing.consistency import assert_consistent, inconsistencies


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    """A store with something in every table, every cause, and every derived state."""
    with ml.Memory.open(embedder="lexical") as memory:
        fill(memory)
        yield memory


def fill(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    later = datetime.now(UTC) + timedelta(days=1)
    city = trip.store("Destination is Kyoto 京都", creator="user:alice", subject="trip", key="destination")  # 1
    flight = trip.store(  # 2
        "NH203 costs 612 USD", creator="tool:flights", depends_on=[city], idempotency_key="retry",
        context={"prompt": "find flights"}, tags=["b", "a"], confidence=0.5, metadata={"run": 1.5}, expires_at=later,
    )  # fmt: skip
    hotel = trip.store("Ryokan Aoi, 3 nights", creator="tool:hotels", depends_on=[(city, 0.7)])  # 3
    trip.store("NH203 and Ryokan Aoi", creator="reasoning", depends_on=[flight, hotel])  # 4
    trip.store("Destination is Nara", creator="tool:web", subject="trip", key="destination")  # 5: lost its key
    rumour = trip.store("The airport is shut", creator="external:web")  # 6
    trip.store("Take the train", creator="reasoning", depends_on=[rumour])  # 7
    trip.invalidate(rumour, reason="it is open", by="user:alice")
    trip.endorse(flight, reason="checked by hand", level="TRUSTED")
    trip.reverify(hotel, by="user:alice", evidence=[flight])  # 8: the word
    trip.update(city, "Destination is Osaka", creator="user:alice")  # 9
    trip.update(city, "Destination is  Kyoto 京都.", creator="user:alice")  # 10: says the same as 1
    wrong = trip.store("Carry cash", creator="tool:web")  # 11
    trip.retract(wrong, reason="said twice")
    trip.restore(wrong)
    trip.retract(wrong)
    trip.store("The airport is shut", creator="external:mail")  # 12: quarantined
    memory.register("tool:hotels", level="UNTRUSTED", verifier=True)
    with pytest.raises(ml.PolicyViolationError):
        trip.acting_as("agent:planner").update(city, "Destination is Rome")  # a line in the decision log


def change(memory: ml.Memory, sql: str) -> None:
    with memory._core.database.writing() as connection:
        connection.execute(sql)


def test_a_store_with_everything_in_it_is_consistent(memory: ml.Memory) -> None:
    assert inconsistencies(memory) == []


def test_every_finding_is_in_the_error(memory: ml.Memory) -> None:
    change(memory, "UPDATE version SET form = x'00' WHERE n IN (2, 3)")
    with pytest.raises(AssertionError, match=r"2 inconsistencies:\n- version 2 .*: form.*\n- version 3 .*: form"):
        assert_consistent(memory)


CHANGES = {
    "DELETE FROM event WHERE seq = 3": "event 4: it is number 3",
    "UPDATE event SET ts_us = ts_us - 5000000 WHERE seq = 9": "event 9: ts_us",
    "UPDATE event SET leaf = zeroblob(32) WHERE seq = 4": "event 4: leaf",
    "UPDATE event SET kind = 8 WHERE seq = 4": "event 4: data has other kind",
    "UPDATE principal SET level = 2 WHERE name = 'tool:web'": "level 2",
    "UPDATE principal SET verifier = 1 WHERE name = 'tool:web'": "verifier 1",
    "UPDATE principal SET name = 'tool:evil' WHERE name = 'tool:web'": "its name does not fit",
    "INSERT INTO principal VALUES (99, 'tool:new', NULL, 0, zeroblob(16))": "principal 99: no event wrote this row",
    "DELETE FROM principal WHERE name = 'tool:web'": "creator=",
    "UPDATE namespace SET user = 'bob'": "is not that of",
    "UPDATE wall SET user = 'bob'": "a column does not fit",
    "UPDATE wall SET identity = 'x' || identity": "identity",
    "UPDATE wall SET visibility = 'nobody'": "a column cannot be read",
    "UPDATE version SET tags = 'x' WHERE n = 2": "a column cannot be read",
    "UPDATE contest SET identity = replace(identity, 'trip', 'work')": "competes in",
    "INSERT INTO contest (g, identity) VALUES (9, '[]')": "contest 9: nothing competes",
    "UPDATE unit SET latest = 2 WHERE u = 2": "latest is 2",
    "UPDATE unit SET current = 1 WHERE u = 1": "current is version 1",
    "INSERT INTO unit VALUES (99, 'x', 1, 1, 1)": "unit 99: has no version",
    "UPDATE version SET content = 'NH203 costs 1 USD' WHERE n = 2": "content does not fit",
    "UPDATE version SET kind = 'goal' WHERE n = 2": "a column does not fit",
    "UPDATE version SET tags = '[]' WHERE n = 2": "a column does not fit",
    "UPDATE version SET subject = 'trip' WHERE n = 2": "a column does not fit",
    "UPDATE version SET g = 0 WHERE n = 5": "a column does not fit",
    "UPDATE version SET creator = actor WHERE n = 2": "a column does not fit",
    "UPDATE version SET owner = actor WHERE n = 2": "a column does not fit",
    "UPDATE version SET ts_us = ts_us - 1 WHERE n = 2": "a column does not fit",
    "UPDATE version SET confidence = 900000 WHERE n = 2": "a column does not fit",
    "UPDATE version SET pinned = 1 WHERE n = 2": "a column does not fit",
    """UPDATE version SET metadata = '{"run":2}' WHERE n = 2""": "a column does not fit",
    "UPDATE version SET expires_us = NULL WHERE n = 2": "a column does not fit",
    "UPDATE version SET reasserts = 2 WHERE n = 11": "a column does not fit",
    "UPDATE version SET recorded_us = recorded_us + 1 WHERE n = 2": "seq, recorded_us",
    "UPDATE version SET seq = 1 WHERE n = 2": "seq, recorded_us",
    "UPDATE version SET salt = zeroblob(32) WHERE n = 2": "content does not fit",
    "UPDATE version SET salt = NULL WHERE n = 2": "erased together",
    "UPDATE version SET content = NULL, salt = NULL WHERE n = 2": "has no content",
    "UPDATE version SET form = zeroblob(16) WHERE n = 2": "form",
    "UPDATE version SET waived = 1 WHERE n = 2": "waived version 2",
    "UPDATE version SET valid_until = valid_until + 1 WHERE n = 2": "valid_until",
    "UPDATE version SET integrity = 2 WHERE n = 4": "integrity is 2, must be 0",
    "UPDATE version SET vector = NULL WHERE n = 2": "its vector",
    "UPDATE version SET vector = (SELECT vector FROM version WHERE n = 3) WHERE n = 2": "its vector",
    "DELETE FROM version WHERE n = 7": "child=7 is not there",
    "UPDATE edge SET weight = 1 WHERE child = 3": "an event wrote it",
    "UPDATE edge SET role = 1 WHERE child = 3 AND justification = 0": "no event wrote this row",
    "DELETE FROM edge WHERE child = 4": "an event wrote it",
    "INSERT INTO edge VALUES (7, 0, 1, 0, 1000000)": "(7, 0, 1, 0, 1000000): no event wrote this row",
    "INSERT INTO edge VALUES (7, 0, 999, 0, 1000000)": "parent=999 is not there",
    "DELETE FROM alike WHERE n = 10": "verdict (older, newer) (1, 10)",
    "UPDATE alike SET c = 9 WHERE n = 10": "verdict (older, newer) (1, 10)",
    "INSERT INTO alike VALUES (9, 1)": "verdict (older, newer) (1, 9)",
    "INSERT INTO verdict VALUES (1, 9)": "verdict (older, newer) (1, 9)",
    "UPDATE cause SET kind = 4 WHERE n = 6": "kind, by or at_us",
    "UPDATE cause SET reason = 'no' WHERE n = 6": "its reason does not fit",
    "UPDATE cause SET lifted = NULL WHERE lifted IS NOT NULL": "lifted cause",
    "UPDATE cause SET lifted = seq WHERE n = 6": "lifted cause",
    "DELETE FROM cause WHERE n = 6": "cause (n, seq)",
    "UPDATE endorsement SET level = 1": "endorsement",
    "UPDATE endorsement SET reason = 'no'": "its reason does not fit",
    "DELETE FROM endorsement": "endorsement",
    "DELETE FROM state; DELETE FROM lost": "version 7",
    "UPDATE lost SET winner = 1 WHERE n = 5": "version 5",
    "DELETE FROM lost WHERE n = 5": "n=5",
    "INSERT INTO lost VALUES (2, 1)": "n=2",
    "DELETE FROM context": "is not there",
    "INSERT INTO context VALUES (x'00', x'00')": "no version names it",
    "UPDATE context SET body = x'00'": "is not the hash of its body",
    "UPDATE version SET retry = 'system other' WHERE retry IS NOT NULL": "does not fit the record commitment",
    "INSERT INTO refresh VALUES (999, NULL, 0, 0)": "refresh 999",
    "INSERT INTO task (n, at_us, decision, asked) VALUES (999, 0, 'd', x'7b7d')": "task: version n=999",
    "INSERT INTO finding VALUES (999, 'late', x'00', 0, 'd')": "finding: version n=999",
    "UPDATE decision SET effect = 'allow'": "decision",
    "UPDATE decision SET body = x'00'": "decision",
    "DELETE FROM text WHERE rowid = 2": "is not in the text index",
    "INSERT INTO text (rowid, ns, terms) VALUES (999, 'ns1', 'x')": "is in the text index, and must not be",
    "DELETE FROM text WHERE rowid = 2; INSERT INTO text (rowid, ns, terms) VALUES (2, 'ns1', 'NH203 costs 1 USD')":
        "its words in the text index",
    "DELETE FROM text WHERE rowid = 2; INSERT INTO text (rowid, ns, terms) SELECT 2, 'ns9', 'nh203 costs 612 usd'":
        "its words in the text index",
    "UPDATE meta SET value = 'other/1' WHERE name = 'embedder'": "meta embedder",
    "UPDATE meta SET value = '00' WHERE name = 'policy'": "meta policy",
}  # fmt: skip


STATES = {
    (7, "standing", 1): "version 7",
    (7, "standing", 0): "version 7",
    (6, "own", 4): "version 6",
    (5, "lost", False): "n=5",
    (5, "differs", False): "version 5",
    (12, "quarantined", False): "version 12",
    (2, "differs", True): "version 2",
    (999, "own", 1): "n=999 is not there",
}


@pytest.mark.parametrize(("n", "field", "value"), list(STATES))
def test_one_changed_state_is_found_and_its_version_named(
    memory: ml.Memory, n: int, field: str, value: int | bool
) -> None:
    with memory._core.database.writing() as connection:
        states = States(connection)
        states.put({n: pack(**(states.state(n)._asdict() | {field: value}))})
    with pytest.raises(AssertionError) as found:
        assert_consistent(memory)
    assert STATES[n, field, value] in str(found.value)


@pytest.mark.parametrize("sql", list(CHANGES))
def test_one_changed_value_is_found_and_its_row_named(memory: ml.Memory, sql: str) -> None:
    change(memory, sql)
    with pytest.raises(AssertionError) as found:
        assert_consistent(memory)
    assert CHANGES[sql] in str(found.value)


def rewrite_event(memory: ml.Memory, seq: int, fields: dict[str, object]) -> None:
    """As someone would who can compute leaf hashes."""
    with memory._core.database.writing() as connection:
        body = orjson.loads(connection.execute("SELECT data FROM event WHERE seq = ?", (seq,)).get)
        try:
            data = canonical(body | fields)
        except ml.LedgerError:
            data = orjson.dumps(body | fields, option=orjson.OPT_SORT_KEYS)
        connection.execute("UPDATE event SET data = ?, leaf = ? WHERE seq = ?", (data, leaf_hash(data), seq))


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        ({"content": "NH203 costs 612 USD"}, "data holds the text 'NH203 costs 612 USD'"),
        ({"version": 1.5}, "is the float 1.5"),
        ({"note": 1}, "has no fields"),
        ({"seq": 4}, "has other kind, seq or ts_us"),
    ],
)
def test_an_event_that_holds_what_it_must_not_is_named(
    memory: ml.Memory, fields: dict[str, object], finding: str
) -> None:
    seq = memory._core.database._writer.execute("SELECT seq FROM version WHERE n = 2").get
    rewrite_event(memory, seq, fields)
    with pytest.raises(AssertionError, match=f"event {seq}: .*{finding}"):
        assert_consistent(memory)


def test_an_event_in_another_spelling_is_named(memory: ml.Memory) -> None:
    with memory._core.database.writing() as connection:
        data = connection.execute("SELECT data FROM event WHERE seq = 2").get.replace(b",", b", ", 1)
        connection.execute("UPDATE event SET data = ?, leaf = ? WHERE seq = 2", (data, leaf_hash(data)))
    with pytest.raises(AssertionError, match="event 2: data is not in canonical form"):
        assert_consistent(memory)


def test_a_cycle_is_named_instead_of_running_for_ever(memory: ml.Memory) -> None:
    with memory._core.write() as writer:
        writer.event(EventKind.JUSTIFY, {"actor": 1, "by": 1, "edges": [[4, 0, 1000000]], "justification": 1, "n": 2})
        writer.connection.execute("INSERT INTO edge VALUES (2, 1, 4, 0, 1000000)")
    with pytest.raises(AssertionError, match=r"version 2 .*: is its own ancestor"):
        assert_consistent(memory)


def test_checking_writes_nothing(memory: ml.Memory) -> None:
    writer: apsw.Connection = memory._core.database._writer
    before = writer.total_changes()
    assert_consistent(memory)
    assert writer.total_changes() == before
