"""Whatever happens to a store, in whatever order, it is consistent after every act."""

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

import memlineage as ml
from memlineage.testing.consistency import assert_consistent

CREATORS = ["user:alice", "tool:t", "tool:u", "reasoning", "agent:p", "external:w"]
LEVELS = ["UNTRUSTED", "INTERNAL", "TRUSTED"]
REFUSED = (ml.PolicyViolationError, ml.InvalidInputError, ml.CycleError, ml.ConflictError)


class History:
    """Random acts on few units with few contents, so that they meet one another."""

    def __init__(self, seed: int, *policies: dict[str, object]) -> None:
        self._rng = random.Random(seed)
        self._now = datetime(2030, 1, 1, tzinfo=UTC)
        self.memory = ml.Memory.open(embedder="lexical", clock=lambda: self._now, policies=policies)
        self._host = self.memory.scope(user="alice")
        self._agent = self._host.acting_as("agent:p", tools=("tool:t",))
        self._known: list[ml.Ref] = []
        self._acts: list[Callable[[], object]] = [
            *[self._store] * 4, *[self._update] * 3, self._invalidate, self._retract, self._restore, self._release,
            self._reverify, *[self._corroborate] * 2, self._endorse, self._register,
        ]  # fmt: skip

    def act(self) -> None:
        """One act, if it is allowed."""
        self._now += timedelta(seconds=self._rng.randrange(3))
        with suppress(*REFUSED):
            (self._rng.choice(self._acts) if self._known else self._store)()

    def corroborate(self) -> None:
        """Somebody's own word for one of a few things that are known; now and then that word is taken back."""
        word = self._host.store(f"said {len(self._known)}", creator=self._rng.choice(CREATORS[:3])).ref
        self._known.append(word)
        with suppress(*REFUSED):
            self._host.corroborate(self._rng.choice(self._known[:4]), depends_on=[word], creator="user:alice")
        if self._rng.random() < 0.4:
            self._host.invalidate(word, reason="wrong")

    def _some(self, most: int) -> list[ml.Ref]:
        return self._rng.sample(self._known, min(len(self._known), self._rng.randrange(most)))

    def _one(self) -> ml.Ref:
        return self._rng.choice(self._known)

    def _store(self) -> None:
        rng = self._rng
        options: dict[str, object] = {"depends_on": [(ref, rng.choice([1, 1, 0.6, 0.3])) for ref in self._some(4)]}
        if rng.random() < 0.4:
            options |= {"subject": "s", "key": f"k{rng.randrange(2)}"}
        if rng.random() < 0.2:
            options["expires_at"] = self._now + timedelta(seconds=rng.randrange(1, 30))
        if rng.random() < 0.2:
            options["exposed"] = self._some(2)
        scope = rng.choice([self._host, self._host, self._agent])
        self._known.append(scope.store(f"c{rng.randrange(6)}", creator=rng.choice(CREATORS), **options).ref)

    def _update(self) -> None:
        creator, text = self._rng.choice(CREATORS[:4]), f"c{self._rng.randrange(6)}"
        self._known.append(self._host.update(self._one().id, text, creator=creator, depends_on=self._some(3)).ref)

    def _invalidate(self) -> None:
        self._host.invalidate(self._one(), reason="wrong")

    def _retract(self) -> None:
        self._host.retract(self._one())

    def _restore(self) -> None:
        self._host.restore(self._one())

    def _release(self) -> None:
        self._host.restore(self._one(), cause="quarantined")

    def _reverify(self) -> None:
        self._host.reverify(self._one(), by="user:alice", evidence=self._some(2))

    def _corroborate(self) -> None:
        self._host.corroborate(self._one(), depends_on=self._some(3), creator=self._rng.choice(CREATORS[:2]))

    def _endorse(self) -> None:
        self._host.endorse(self._one(), reason="checked", level=self._rng.choice(LEVELS))

    def _register(self) -> None:
        self.memory.register(self._rng.choice(CREATORS[1:]), level=self._rng.choice(LEVELS))


@pytest.mark.parametrize("seed", range(25))
def test_a_store_is_consistent_after_every_act(seed: int) -> None:
    history = History(seed)
    for _ in range(40):
        history.act()
        assert_consistent(history.memory)
    history.memory.close()


@pytest.mark.parametrize("seed", range(10))
def test_a_store_with_a_quorum_is_consistent_after_every_act(seed: int) -> None:
    history = History(seed, {"memlineage": 1, "rules": [{"quorum": 2}]})
    for step in range(60):
        history.corroborate() if step % 2 else history.act()
        assert_consistent(history.memory)
    history.memory.close()


def test_a_replaced_version_does_not_count_against_an_earlier_version_of_its_own_group() -> None:
    with ml.Memory.open(embedder="lexical") as memory:
        trip = memory.scope(user="alice")
        source = trip.store("a guide book", creator="user:alice")
        kyoto = trip.store("Kyoto", creator="tool:t", depends_on=[source], subject="trip", key="city")
        osaka = trip.update(kyoto, "Osaka", creator="user:alice")
        trip.corroborate(kyoto.ref, depends_on=[osaka.ref], creator="user:alice")
        trip.update(kyoto, "Nara", creator="user:alice")
        trip.retract(source)
        assert_consistent(memory)
        assert trip.get(kyoto.ref).standing is ml.Standing.SUPPORTED


def raised_by_a_quorum(memory: ml.Memory) -> tuple[ml.Scope, ml.Unit, ml.Unit]:
    """A rumour supported by a summary of a report, and by the user's word: INTERNAL or better by two supports."""
    scope = memory.scope(user="alice")
    report = scope.store("report", creator="tool:t")
    scope.endorse(report, reason="checked", level="TRUSTED")
    summary = scope.store("summary", creator="tool:t", depends_on=[report])
    scope.endorse(summary, reason="checked", level="TRUSTED")
    rumour = scope.store("rumour", creator="external:w")
    scope.corroborate(rumour, depends_on=[summary], creator="user:alice")
    scope.reverify(rumour, by="user:alice")
    assert scope.get(rumour).integrity > ml.Integrity.UNTRUSTED
    return scope, report, rumour


@pytest.fixture
def with_quorum() -> ml.Memory:
    return ml.Memory.open(embedder="lexical", policies=[{"memlineage": 1, "rules": [{"quorum": 2}]}])


def test_a_quorum_is_counted_again_when_one_of_its_origins_loses_its_level(with_quorum: ml.Memory) -> None:
    scope, _, rumour = raised_by_a_quorum(with_quorum)
    with_quorum.register("tool:t", level="UNTRUSTED")
    assert scope.get(rumour).integrity is ml.Integrity.UNTRUSTED
    assert_consistent(with_quorum)


def test_a_quorum_is_counted_again_when_its_supports_come_to_share_an_origin(with_quorum: ml.Memory) -> None:
    scope, report, rumour = raised_by_a_quorum(with_quorum)
    scope.reverify(report, by="user:alice")  # now the user's word is behind both supports
    assert scope.get(rumour).integrity is ml.Integrity.UNTRUSTED
    assert_consistent(with_quorum)
