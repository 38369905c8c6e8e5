"""Filters, languages, embedders, long chains, and what must be kept or provably gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.support import Clock, contents, nothing_written, open_memory

import memlineage as ml


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with open_memory(clock=Clock()) as opened:
        yield opened


@pytest.fixture
def alice(memory: ml.Memory) -> ml.Scope:
    return memory.scope(user="alice")


def test_an_unknown_operator_is_an_error_and_a_range_is_a_range(alice: ml.Scope) -> None:
    """Row 20, mem0#7214 and #6264."""
    alice.store_many([{"content": f"score {n}", "metadata": {"score": n}} for n in (5, 15, 25)])
    within = {"score": {"gte": 10, "lte": 20}}
    assert contents(alice.list(filter=within)) == ["score 15"]
    assert contents(alice.retrieve("score", filter=within).units) == ["score 15"]
    for operator in ("between", "$gte", "like", ">", "GTE"):
        for read in (alice.list, lambda **given: alice.retrieve("score", **given), alice.count):
            with pytest.raises(ml.InvalidInputError, match="operator"):
                read(filter={"score": {operator: 10}})


JAPANESE = "今日は成語しりとりをした"
CHINESE = ["我喜欢喝绿茶", "周末去爬山", "他在银行工作"]
ENGLISH = ["The invoice is due on Friday", "Alice likes hiking in the hills"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (JAPANESE, JAPANESE), ("しりとり", JAPANESE), ("成語", JAPANESE), ("绿茶", CHINESE[0]), ("爬山", CHINESE[1]),
        ("银行", CHINESE[2]), ("invoice", ENGLISH[0]), ("hikes in hills", ENGLISH[1]),
        ("when is the invoice due?", ENGLISH[0]),
    ],
)  # fmt: skip
def test_short_words_of_any_script_are_found(alice: ml.Scope, query: str, expected: str) -> None:
    """Row 37, openclaw#20730."""
    alice.store_many([JAPANESE, *CHINESE, *ENGLISH])
    assert alice.retrieve(query).units[0].content == expected


def test_english_is_ranked_the_same_with_and_without_other_scripts_beside_it() -> None:
    """Row 37, openclaw#20730: English unchanged."""
    answers = []
    for others in ([], [JAPANESE, *CHINESE]):
        with open_memory(clock=Clock()) as memory:
            alice = memory.scope(user="alice")
            alice.store_many([*ENGLISH, *others])
            found = contents(alice.retrieve("when is the invoice due?").units)
            answers.append([content for content in found if content in ENGLISH])
    assert answers[0] == answers[1] == [ENGLISH[0], *answers[0][1:]]


class TinyEmbedder:
    """Eight dimensions: how often each of eight letters occurs."""

    name, dimension, vector_share, noise = "tiny", 8, 0.5, 0.0

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(text.count(letter)) for letter in "aeiourst"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed([text])[0]


def test_another_embedder_is_refused_with_the_command_that_helps(tmp_path: Path) -> None:
    """Row 38, mem0#4985."""
    path = tmp_path / "vectors.db"
    with open_memory(path) as memory:
        memory.scope(user="alice").store("The invoice is due on Friday")
    before = path.read_bytes()
    with pytest.raises(ml.StoreError) as refused:
        open_memory(path, embedder=TinyEmbedder())
    assert [
        word for word in ("lexical", "tiny/8", f"memlineage reembed {path}") if word not in str(refused.value)
    ] == []
    assert path.read_bytes() == before
    with open_memory(path) as memory:
        assert len(memory.scope(user="alice").retrieve("invoice").units) == 1


@pytest.mark.xfail(strict=True, reason="forgetting")
def test_decay_leaves_what_is_pinned(tmp_path: Path) -> None:
    """Row 39, uteke#974."""
    clock = Clock()
    with open_memory(tmp_path / "old.db", clock=clock) as memory:
        alice = memory.scope(user="alice", agent="planner")
        parent, *_ = alice.store_many([f"Declared by the user {n}" for n in range(50)])
        kept = alice.store("Pinned remark", creator="reasoning", depends_on=[parent], pinned=True)
        leaf = alice.store("Passing remark", creator="reasoning", depends_on=[parent])
        clock.advance(days=4000)
        alice.forget(below=0.9)  # type: ignore[attr-defined]
        assert alice.get(kept).status is ml.Status.ACTIVE
        assert alice.get(leaf).status is ml.Status.ARCHIVED


@pytest.mark.xfail(strict=True, reason="forgetting")
def test_decay_ten_times_in_an_hour_is_as_once(tmp_path: Path) -> None:
    """Row 40, khive#2937."""
    clock = Clock()
    with open_memory(tmp_path / "old.db", clock=clock) as memory:
        alice = memory.scope(user="alice", agent="planner")
        parent, *_ = alice.store_many([f"Declared by the user {n}" for n in range(50)])
        for n in range(5):
            alice.store(f"Passing remark {n}", creator="reasoning", depends_on=[parent])
        clock.advance(days=4000)
        alice.forget(below=0.9)  # type: ignore[attr-defined]
        once = [unit.ref for unit in alice.list(status="archived")]
        for _ in range(9):
            clock.advance(minutes=6)
            alice.forget(below=0.9)  # type: ignore[attr-defined]
        assert [unit.ref for unit in alice.list(status="archived")] == once != []


def test_a_chain_of_fifty_is_accepted_and_followed(alice: ml.Scope) -> None:
    """Row 41, kernle 0.15."""
    chain = [alice.store("Step 0")]
    for n in range(1, 51):
        chain.append(alice.store(f"Step {n}", creator="reasoning", depends_on=[chain[-1]]))
    assert [unit.id for unit in alice.trace(chain[-1], to=chain[0])] == [unit.id for unit in chain]
    assert len(alice.impact(chain[0])) == 50
    alice.invalidate(chain[0])
    assert {alice.get(unit).status for unit in chain[1:]} == {ml.Status.CONTAMINATED}
    alice.restore(chain[0])
    assert {alice.get(unit).status for unit in chain} == {ml.Status.ACTIVE}


def test_a_true_cycle_is_refused(memory: ml.Memory, alice: ml.Scope) -> None:
    """Row 41, kernle 0.15."""
    chain = [alice.store("Step 0")]
    for n in range(1, 51):
        chain.append(alice.store(f"Step {n}", creator="reasoning", depends_on=[chain[-1]]))
    for target, evidence in ((chain[0], chain[50]), (chain[1], chain[2]), (chain[7], chain[7])):
        with nothing_written(memory), pytest.raises(ml.CycleError):
            alice.corroborate(target, depends_on=[evidence])
    alice.corroborate(chain[50], depends_on=[chain[0]])
    assert len(alice.get(chain[50]).lineage.dependencies) == 2


def test_the_first_writing_of_a_unit_keeps_its_date(alice: ml.Scope, memory: ml.Memory) -> None:
    """Row 42, langgraph 1.2: as a unit."""
    clock = Clock()
    with open_memory(clock=clock) as opened:
        scope = opened.scope(user="alice")
        unit = scope.store("One")
        created = unit.lineage.recorded_at
        clock.advance(hours=1)
        changed = scope.update(unit, "Two")
        history = scope.history(unit)
    assert [version.lineage.recorded_at for version in history] == [created, changed.lineage.recorded_at]
    assert changed.lineage.recorded_at > created


def test_putting_the_same_key_twice_keeps_its_date(alice: ml.Scope) -> None:
    """Row 42, langgraph 1.2."""
    from memlineage.langgraph import LineageStore

    store = LineageStore(alice)
    store.put(("notes",), "k", {"text": "one"})
    first = store.get(("notes",), "k")
    store.put(("notes",), "k", {"text": "two"})
    second = store.get(("notes",), "k")
    assert first is not None
    assert second is not None
    assert (second.value, second.created_at) == ({"text": "two"}, first.created_at)
    assert second.updated_at >= first.updated_at


@pytest.mark.xfail(strict=True, reason="erasure")
def test_what_was_erased_is_gone_and_the_record_still_verifies(tmp_path: Path) -> None:
    """Row 43, mem0#4187."""
    path = tmp_path / "audit.db"
    with open_memory(path) as memory:
        alice = memory.scope(user="alice")
        secret = alice.store("The passport number is X1234567")
        child = alice.store("Book with X1234567", creator="reasoning", depends_on=[secret])
        checkpoint = memory.checkpoint()  # type: ignore[attr-defined]
        alice.erase(secret, cascade=True, reason="asked to")  # type: ignore[attr-defined]
        assert [alice.get(unit).status for unit in (secret, child)] == [ml.Status.ERASED] * 2
        assert alice.get(secret).content == ""
        assert memory.verify(against=checkpoint).ok  # type: ignore[attr-defined]
    assert b"X1234567" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_deletion_leaves_what_must_stay_auditable(alice: ml.Scope) -> None:
    """Row 43, mem0#4187: an ordinary deletion destroys nothing and says who, when and why."""
    unit = alice.store("The passport number is X1234567")
    alice.delete(unit, by="user:alice", reason="no longer needed")
    [cause] = alice.get(unit).causes
    assert (cause.kind.label, cause.by, cause.reason) == ("retracted", "user:alice", "no longer needed")
    assert (alice.list(), alice.get(unit).content) == ((), "The passport number is X1234567")
