"""An event that was made to say something else, by somebody who can hash: what it wrote, or what was signed, tells."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from tests.ledger.filled import filled

import memlineage as ml
from memlineage.ledger.hashing import canonical, leaf_hash
from memlineage.store.records import EventKind
from memlineage.store.tiles import fill_tiles

# What no row repeats: only the tree over the ledger, once it was signed, keeps these.
ONLY_SIGNED = {
    ("CAUSE", "actor"), ("ENDORSE", "actor"), ("JUSTIFY", "actor"), ("JUSTIFY", "by"), ("LIFT", "actor"),
    ("LIFT", "by"), ("SETTING", "format"),
}  # fmt: skip
# Rows keep what was registered last and which policy is in force; of what was before, only the tree tells.
EITHER = {("PRINCIPAL", "level"), ("PRINCIPAL", "verifier"), ("POLICY", "revision")}


@pytest.fixture(scope="module")
def store() -> Iterator[ml.Memory]:
    with filled(acts=120) as memory:
        yield memory


def other(field: str, value: Any) -> Any:
    """Another value of the same shape."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return ("0" if value[0] != "0" else "1") + value[1:]
        case list():
            return [[1, 1], *value] if field == "same" else [[1, 0, 1_000_000], *value]
    return None


def test_every_field_of_every_kind_of_event_is_held_by_a_row_or_a_signature(store: ml.Memory) -> None:
    wrong = []
    with store._core.database.writing() as connection:
        events = connection.execute("SELECT seq, kind, data FROM event ORDER BY seq").fetchall()
        of_kind = {EventKind(kind).name: (seq, orjson.loads(data)) for seq, kind, data in reversed(events[:-3])}
        for kind, (seq, body) in of_kind.items():
            for field in body.keys() - {"kind", "seq", "ts_us"}:
                changed = other(field, body[field])
                if changed is None:
                    continue
                connection.execute("SAVEPOINT one")
                data = canonical(body | {field: changed})
                connection.execute("UPDATE event SET data = ?, leaf = ? WHERE seq = ?", (data, leaf_hash(data), seq))
                fill_tiles(connection)
                first = store.verify(vectors=False).first
                signed = first is not None and first.entry.startswith("checkpoint")
                if first is None or ((kind, field) not in EITHER and signed != ((kind, field) in ONLY_SIGNED)):
                    wrong.append((kind, field, first))
                connection.execute("ROLLBACK TO one")
                connection.execute("RELEASE one")
        assert of_kind.keys() == {kind.name for kind in EventKind}
    assert [str(item) for item in wrong] == []


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"note": 1}, "canonical"),
        ({"seq": 4}, "another kind, seq or ts_us"),
        ({"version": 1.5}, "canonical"),
    ],
)
def test_an_event_of_another_shape_is_named(store: ml.Memory, fields: dict[str, Any], problem: str) -> None:
    with store._core.database.writing() as connection:
        seq, data = connection.execute("SELECT seq, data FROM event WHERE kind = 1 LIMIT 1").get
        changed = orjson.dumps(orjson.loads(data) | fields, option=orjson.OPT_SORT_KEYS)
        connection.execute("SAVEPOINT one")
        connection.execute("UPDATE event SET data = ?, leaf = ? WHERE seq = ?", (changed, leaf_hash(changed), seq))
        first = store.verify(vectors=False).first
        connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
    assert first is not None
    assert (first.entry, problem in first.problem) == (f"event {seq}", True)


def test_an_event_in_another_spelling_is_named(store: ml.Memory) -> None:
    with store._core.database.writing() as connection:
        data = connection.execute("SELECT data FROM event WHERE seq = 2").get.replace(b",", b", ", 1)
        connection.execute("SAVEPOINT one")
        connection.execute("UPDATE event SET data = ?, leaf = ? WHERE seq = 2", (data, leaf_hash(data)))
        first = store.verify(vectors=False).first
        connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
    assert str(first).startswith("event 2: its data are not the canonical bytes")
