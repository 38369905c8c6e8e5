"""A store with something in every table, every column, and every kind of event."""

import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import memlineage as ml
from memlineage.engine.memory import Memory

POLICY = {
    "memlineage": 1,
    "principals": {"tool:feed": "UNTRUSTED", "tool:quotes": "INTERNAL"},
    "rules": [  # they change nothing, and make masks differ
        {"name": "quoted", "target": {"creators": ["tool:quotes"]}, "action": "flag", "mode": "shadow"},
        {
            "name": "unsure",
            "on": "read",
            "action": "flag",
            "mode": "shadow",
            "condition": [{"field": "confidence"}, "<", 0.5],
        },
        {
            "name": "first",
            "on": "read",
            "action": "flag",
            "mode": "shadow",
            "condition": [{"field": "version"}, "==", 1],
        },
    ],
}
CREATORS = ["user:alice", "tool:quotes", "tool:feed", "reasoning", "agent:planner", "external:mail"]
LEVELS = ["UNTRUSTED", "INTERNAL", "TRUSTED"]
REFUSED = (ml.PolicyViolationError, ml.InvalidInputError, ml.CycleError, ml.ConflictError)


class Clock:
    """Moves by itself, so that instants differ."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    @classmethod
    def of(cls, memory: Memory) -> "Clock":
        """The clock of a store that was filled here."""
        clock = memory._core._clock
        assert isinstance(clock, cls)
        return clock

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=250)
        return self.now


class Acts:
    """Random acts on few units with few contents, so that they meet one another."""

    def __init__(self, memory: Memory, clock: Clock, seed: int) -> None:
        self._memory = memory
        self._clock = clock
        self._rng = random.Random(seed)
        self._host = memory.scope(user="alice", agent="planner", session="s1")
        self._agent = self._host.acting_as("agent:planner", tools=("tool:quotes",))
        self._known: list[ml.Ref] = []
        self._most = 40
        self._choices = [
            *[self._store] * 4, *[self._update] * 4, self._invalidate, self._retract, *[self._restore] * 2,
            self._release, self._reverify, *[self._corroborate] * 2, self._endorse, self._register,
        ]  # fmt: skip

    def act(self) -> None:
        """One act, if it is allowed."""
        self._clock.now += timedelta(seconds=self._rng.randrange(3))
        with suppress(*REFUSED):
            (self._rng.choice(self._choices) if self._known else self._store)()

    def _some(self, most: int) -> list[ml.Ref]:
        return self._rng.sample(self._known, min(len(self._known), self._rng.randrange(most)))

    def _one(self) -> ml.Ref:
        return self._rng.choice(self._known[-self._most :])

    def _wrote(self, unit: ml.Unit) -> None:
        self._known.append(unit.ref)

    def _options(self) -> dict[str, object]:
        rng = self._rng
        options: dict[str, object] = {"depends_on": [(ref, rng.choice([1, 1, 0.6, 0.3])) for ref in self._some(4)]}
        if rng.random() < 0.4:
            options |= {"subject": "s", "key": f"k{rng.randrange(3)}"}
        if rng.random() < 0.2:
            options["expires_at"] = self._clock.now + timedelta(seconds=rng.randrange(1, 30))
        if rng.random() < 0.2:
            options |= {"exposed": self._some(2), "confidence": rng.random(), "tags": ["b", "a"]}
        if rng.random() < 0.2:
            options |= {"metadata": {"run": rng.randrange(9), "share": rng.random()}, "pinned": rng.random() < 0.5}
        return options

    def _store(self) -> None:
        rng = self._rng
        options = self._options()
        if rng.random() < 0.3:
            options["visibility"] = rng.choice(["agent", "session"])
        if rng.random() < 0.1:
            options["context"] = {"prompt": f"asked {rng.randrange(5)} times"}
        scope = rng.choice([self._host, self._host, self._agent])
        self._wrote(scope.store(f"c{rng.randrange(6)}", creator=rng.choice(CREATORS), **options))

    def _update(self) -> None:
        text = f"c{self._rng.randrange(4)}"
        self._wrote(self._host.update(self._one().id, text, creator=self._rng.choice(CREATORS[:4]), **self._options()))

    def _invalidate(self) -> None:
        self._host.invalidate(self._one(), reason=self._rng.choice([None, "wrong", "out of date"]))

    def _retract(self) -> None:
        self._host.retract(self._one(), reason=self._rng.choice([None, "said twice"]))

    def _restore(self) -> None:
        self._host.restore(self._one(), reason=self._rng.choice([None, "right after all"]))

    def _release(self) -> None:
        self._host.restore(self._one(), cause="quarantined")

    def _reverify(self) -> None:
        self._host.reverify(self._one(), by="user:alice", evidence=self._some(2))

    def _corroborate(self) -> None:
        self._host.corroborate(self._one(), depends_on=self._some(3), creator=self._rng.choice(CREATORS[:2]))

    def _endorse(self) -> None:
        self._host.endorse(self._one(), reason="checked", level=self._rng.choice(LEVELS))

    def _register(self) -> None:
        self._memory.register(self._rng.choice(CREATORS[1:]), level=self._rng.choice(LEVELS))


def near(one: str, other: str) -> bool:
    """Says the same, if numbers differ by one at most: not transitive, so classes of equals do not suffice."""
    return abs(int(one.removeprefix("costs ")) - int(other.removeprefix("costs "))) <= 1


def fill(memory: Memory, clock: Clock) -> None:
    """The acts that random ones seldom make, and some of each table."""
    trip = memory.scope(user="alice")
    memory.register_comparer("price", near)
    city = trip.store("Destination is Kyoto 京都", creator="user:alice", subject="trip", key="destination")
    later = clock.now + timedelta(days=1)
    flight = trip.store(
        "NH203 costs 612 USD", creator="tool:quotes", creator_id="call 7", depends_on=[city], tags=["price", "air"],
        idempotency_key="retry", context={"prompt": "find flights"}, confidence=0.5, metadata={"run": 1.5},
        expires_at=later, valid_to=later + timedelta(days=1),
    )  # fmt: skip
    price = trip.store("costs 1", creator="user:alice", kind="price")
    for text in ("costs 2", "costs 3", "costs 3", "costs 9"):
        trip.update(price, text, creator="user:alice")
    for text in ("Destination is Osaka", "Destination is  Kyoto 京都.", "Destination is Kyoto 京都！"):
        trip.update(city, text, creator="user:alice")
    soon = trip.store("Gate 12", creator="tool:feed", expires_at=clock.now + timedelta(seconds=1))
    clock.now += timedelta(seconds=5)
    trip.store("The lounge is open", creator="tool:feed", subject="trip", key="destination")
    trip.restore(soon, cause="expired", reason="still the gate")
    trip.endorse(flight, reason="checked by hand", level="TRUSTED")
    trip.endorse(flight, reason="for one day", level="TRUSTED", expires=later)
    trip.endorse(flight, reason="for one act", level="TRUSTED", action="book " + "0" * 59)
    memory.register("tool:hotels", level="UNTRUSTED", verifier=True)
    rumour = trip.store("The airport is shut", creator="external:mail")
    trip.invalidate(rumour, reason="it is open", by="user:alice")
    trip.store("The airport is shut", creator="external:web", timestamp=clock.now - timedelta(hours=1))
    for scope in (memory.scope(user="bob", tenant="other"), memory.scope(agent="scout"), memory.scope(user="bob")):
        scope.store("A note of somebody else", creator="system", context=["seen", "before"])
    memory.checkpoint()
    memory.rotate_key()


def filled(path: str | Path = ":memory:", *, acts: int = 0, seed: int = 1, policies: Sequence[object] = ()) -> Memory:
    """An open store with all of it, and so many random acts on top."""
    clock = Clock()
    memory = Memory.open(path, embedder="lexical", clock=clock, policies=[])
    memory.reload([POLICY, *policies])
    fill(memory, clock)
    history = Acts(memory, clock, seed)
    for _ in range(acts):
        history.act()
    memory.checkpoint()
    memory.scope(user="alice").store("The last word", creator="user:alice")
    return memory
