"""Event bytes (semantics.md, section 7), the registry in documents, and one file under two embedders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from tests.support import contents, open_memory

import memlineage as ml
from memlineage.errors import MemLineageError
from memlineage.ledger.hashing import commitment
from memlineage.recall.embedding import CallableEmbedder
from memlineage.store.records import EventKind


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with open_memory() as opened:
        yield opened


def events(memory: ml.Memory, kind: EventKind) -> list[dict[str, Any]]:
    with memory._core.database.reading() as connection:
        rows = connection.execute("SELECT data FROM event WHERE kind = ? ORDER BY seq", (int(kind),)).fetchall()
    return [orjson.loads(data) for (data,) in rows]


def test_every_commitment_to_the_name_of_a_principal_can_be_opened(memory: ml.Memory) -> None:
    memory.scope(user="alice").store("It costs 5", creator="tool:feed")
    memory.register("tool:feed", level="UNTRUSTED")
    with memory._core.database.reading() as connection:
        [(p, salt)] = connection.execute("SELECT p, salt FROM principal WHERE name = 'tool:feed'").fetchall()
    named = [event["name"] for event in events(memory, EventKind.PRINCIPAL) if event["p"] == p]
    assert named == [commitment(salt, b"tool:feed")] * 2


def test_what_somebody_typed_as_the_action_of_an_endorsement_is_not_in_the_ledger(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    unit = trip.store("It costs 5", creator="tool:feed")
    try:
        trip.endorse(unit, reason="seen", action="pay Bob Smith 100 EUR")
    except ml.InvalidInputError:
        return
    assert "Bob" not in str(events(memory, EventKind.ENDORSE))


def test_the_ledger_says_who_added_a_justification(memory: ml.Memory) -> None:
    trip = memory.scope(user="alice")
    claim, other = trip.store("It costs 5", creator="tool:feed"), trip.store("Yes, 5", creator="user:bob")
    trip.corroborate(claim, depends_on=[other], creator="user:bob")
    with memory._core.database.reading() as connection:
        bob = connection.execute("SELECT p FROM principal WHERE name = 'user:bob'").get
    assert [event.get("by") for event in events(memory, EventKind.JUSTIFY)] == [bob]


def test_a_pattern_among_the_principals_of_a_document_is_in_force_or_refused() -> None:
    document = {"memlineage": 1, "layer": "global", "principals": {"tool:*": "UNTRUSTED"}, "rules": []}
    try:
        memory = open_memory(policies=[document])
    except MemLineageError:
        return
    with memory:
        assert memory.scope(user="alice").store("A page", creator="tool:web").integrity.name == "UNTRUSTED"


def test_a_level_that_a_document_no_longer_grants_is_no_longer_in_force(tmp_path: Path) -> None:
    document = {"memlineage": 1, "layer": "global", "principals": {"tool:web": "TRUSTED"}, "rules": []}
    with open_memory(tmp_path / "trip.db", policies=[document]) as memory:
        page = memory.scope(user="alice").store("A page", creator="tool:web")
    with open_memory(tmp_path / "trip.db", policies=[]) as memory:
        assert memory.scope(user="alice").get(page).integrity.name == "INTERNAL"


def of_text(dimension: int, seed: int) -> Any:
    """Vectors that depend on the text and a seed."""

    def embed(texts: Any) -> Any:
        codes = [sum(map(ord, text)) * 31 + seed for text in texts]
        return np.array([np.random.default_rng(code).normal(size=dimension) for code in codes])

    return embed


def test_vectors_computed_anew_are_searched_at_once() -> None:
    seeds = [1]

    def embed(texts: Any) -> Any:
        return of_text(16, seeds[0])(texts)

    changing = CallableEmbedder("mine", 16, embed, query_fn=lambda texts: embed(["word 3"]))
    with open_memory(embedder=changing) as memory:
        trip = memory.scope(user="alice")
        trip.store_many([f"word {place}" for place in range(20)])
        found = []
        for seeds[0] in range(1, 5):
            memory.reembed()
            found += contents(trip.retrieve("nothing like it", limit=1))
        assert found == ["word 3"] * 4


def test_a_memory_that_was_open_does_not_mix_its_vectors_into_those_of_another_embedder(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with open_memory(path, embedder=CallableEmbedder("old", 16, of_text(16, 1))) as before:
        before.scope(user="alice").store("word one")
        with before._core.database.writing() as connection:  # what `memlineage reembed` does from another process
            vector = of_text(8, 1)(["word one"]).astype("<f2").tobytes()
            connection.execute("UPDATE version SET vector = ?", (vector,))
            connection.execute("UPDATE meta SET value = 'new/8' WHERE name = 'embedder'")
        with suppress(ml.StoreError):
            before.scope(user="alice").store("word two")
        with open_memory(path, embedder=CallableEmbedder("new", 8, of_text(8, 1))) as after:
            assert after.scope(user="alice").retrieve("word").units
