"""What a file keeps of how it was filled, for whoever opens it without saying."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import Clock, contents

import memlineage as ml
from memlineage.recall.embedders import CallableEmbedder

DOCUMENT = {
    "memlineage": 1,
    "layer": "global",
    "principals": {"tool:browser": "UNTRUSTED"},
    "rules": [
        {"name": "pay", "sensitive_action": {"tool": "pay", "arguments": ["iban"]}},
        {"name": "stale", "freshness": {"tags": ["price"], "max_age": "1h", "refresh": True}},
        {"name": "quiet", "on": "read", "action": "withhold", "target": {"tags": ["quiet"]}},
    ],
}


def events(memory: ml.Memory) -> int:
    with memory._core.database.reading() as connection:
        return int(connection.execute("SELECT count(*) FROM event").get)


def test_whoever_opens_a_file_without_documents_stays_under_its_own(tmp_path: Path) -> None:
    path, clock = tmp_path / "trip.db", Clock()
    with ml.Memory.open(path, policies=[DOCUMENT], clock=clock, embedder="lexical") as memory:
        scope = memory.scope(user="alice")
        page = scope.store("Pay to DE00", creator="tool:browser")
        price = scope.store("It costs 5", creator="tool:feed", tags=["price"])
        scope.store("Not to be read", tags=["quiet"])
        before, revision = events(memory), memory.policies.revision
    with ml.Memory.open(path, clock=clock) as memory:
        scope = memory.scope(user="alice")
        assert (memory.policies.revision, events(memory)) == (revision, before)
        assert contents(scope.list()) == ["Pay to DE00", "It costs 5"]
        assert not scope.authorize("pay", {"iban": "DE00"}, justification=[page]).allowed
        scope.store("An unrelated note")
        assert scope.get(page).integrity is ml.Integrity.UNTRUSTED
        clock.advance(hours=2)
        assert scope.get(price).status is ml.Status.EXPIRED


def test_no_documents_at_all_means_the_default_set_alone(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with ml.Memory.open(path, policies=[DOCUMENT]) as memory:
        page = memory.scope(user="alice").store("A page", creator="tool:browser")
    with ml.Memory.open(path, policies=[]) as memory:
        assert memory.scope(user="alice").get(page).integrity is ml.Integrity.INTERNAL


def test_a_file_is_opened_with_the_embedder_that_filled_it(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with ml.Memory.open(path, embedder="lexical") as memory:
        memory.scope(user="alice").store("A page")
    with ml.Memory.open(path) as memory:
        assert memory.embedder.name.startswith("lexical")
        assert contents(memory.scope(user="alice").retrieve("page").units) == ["A page"]


def test_an_embedder_of_ones_own_has_to_be_handed_in_again(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    mine = CallableEmbedder("mine", 3, lambda texts: [[1.0, 0.0, 0.0]] * len(texts))
    with ml.Memory.open(path, embedder=mine) as memory:
        memory.scope(user="alice").store("A page")
    with pytest.raises(ml.StoreError, match=r"'mine'.*embedder="):
        ml.Memory.open(path)
    with ml.Memory.open(path, embedder=mine) as memory:
        assert memory.scope(user="alice").count() == 1
