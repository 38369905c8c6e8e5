"""The search answers from arrays what it would answer from the tables: same versions, same order, same scores."""

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import numpy as np
import pytest
from tests.store.naive_search import ranked
from tests.support import Clock, open_memory, run_all

import memlineage as ml
from memlineage.engine import retrieval
from memlineage.engine.snapshot import Snapshot
from memlineage.recall.embedding import embed_query
from memlineage.store.records import EventKind
from memlineage.store.search import Pool, Search, Sight, namespace
from memlineage.store.search.columns import Components
from memlineage.store.sql import QUERIES
from memlineage.store.writer import Writer

POOL = 12
COMMON_FIRST = (
    "time way day flight hotel train price market budget report coffee dinner airport bridge passport cheap late red "
    "0.91 12:30 ns1 航班 酒店 机票 护照 会议 预算 便宜 周末"
)
WORDS = COMMON_FIRST.split()
ASKED = (
    "flight budget",
    "time way day",
    "price 0.91 at 12:30",
    "周末航班",
    "便宜酒店 passport",
    "ns1",
    "nothing known",
    "?!",
)
CREATORS = ("user", "reasoning", "tool:feed", "agent:planner", "external:web")


@pytest.fixture(autouse=True)
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few enough candidates that it matters which ones they are."""
    monkeypatch.setattr(retrieval, "_POOL", POOL)


@pytest.fixture(params=[0, 1, 2])
def chance(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> random.Random:
    if request.param:  # as in a large namespace: vectors are at hand by component
        monkeypatch.setattr(namespace, "_LARGE", 1)
    return random.Random(request.param)


def same_as_from_the_tables(memory: ml.Memory, scope: ml.Scope, query: str, limit: int = 3) -> None:
    wanted = ranked(memory, scope._acting, query, max(POOL, 4 * limit))
    found = scope.retrieve(query, limit=limit, constraints=0)
    considered = list(found.decisions)
    with memory._core.read() as snapshot:
        refs = snapshot.refs([one.n for one in wanted])
    assert considered == [refs[one.n] for one in wanted][: len(considered)]
    assert len(found.units) == limit or len(considered) == len(wanted)
    for one in wanted:
        score = found.scores.get(refs[one.n])
        if score is not None:
            assert (score.total, score.semantic, score.importance) == pytest.approx(one[1:], abs=1e-6)


class World:
    """Memories of two users and of an agent, and everything that is done to them."""

    def __init__(self, memory: ml.Memory, chance: random.Random) -> None:
        self.memory = memory
        self.chance = chance
        self.scopes = [
            memory.scope(user="ann"),
            memory.scope(user="ann", agent="planner", session="one"),
            memory.scope(user="ann", agent="buyer", session="two"),
            memory.scope(user="ben", agent="planner"),
            memory.scope(agent="planner"),
        ]
        self.units: list[tuple[ml.Scope, ml.Unit]] = []

    def text(self) -> str:
        return " ".join(
            self.chance.choices(WORDS, [1 / (i + 1) for i in range(len(WORDS))], k=self.chance.randint(1, 7))
        )

    def step(self) -> None:
        scope = self.chance.choice(self.scopes)
        mine = [unit for _, unit in self.units[-30:] if scope._acting.scope.sees(unit.wall)]
        act = self.chance.choice(["store"] * 6 + ["update", "invalidate", "restore", "corroborate", "pin"])
        with suppress(ml.MemLineageError):  # what is refused changes nothing
            self.act(scope, act, mine)

    def act(self, scope: ml.Scope, act: str, mine: list[ml.Unit]) -> None:
        one = self.chance.choice(mine) if mine else None
        if act == "update" and one is not None:
            self.units.append((scope, scope.update(one.id, self.text(), creator=one.creator)))
        elif act == "invalidate" and one is not None:
            scope.invalidate(one)
        elif act == "restore" and one is not None:
            scope.restore(one)
        elif act == "corroborate" and one is not None:
            scope.corroborate(one, depends_on=self.chance.sample(mine, min(2, len(mine))), creator="user")
        else:
            self.store(scope, mine, pinned=act == "pin")

    def store(self, scope: ml.Scope, mine: list[ml.Unit], *, pinned: bool) -> None:
        who = scope._acting.scope
        creator = self.chance.choice(CREATORS)
        visible = ["user", *(["agent"] if who.agent else []), *(["session"] if who.session else [])]
        unit = scope.store(
            self.text(),
            creator=creator if who.user or creator != "user" else "reasoning",
            depends_on={
                parent: self.chance.choice((0.2, 1.0)) for parent in self.chance.sample(mine, min(len(mine), 2))
            },
            confidence=self.chance.choice((None, 0.2, 0.9)),
            visibility=self.chance.choice(visible),
            kind=self.chance.choice(("fact", "preference", "verification-like")),
            pinned=pinned,
        )
        self.units.append((scope, unit))


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "m.db")


def test_every_answer_is_that_of_the_tables_through_any_history(chance: random.Random) -> None:
    clock = Clock()
    with open_memory(clock=clock) as memory:
        world = World(memory, chance)
        for i in range(330):
            world.step()
            clock.advance(hours=3)
            if i % 11 == 0:
                same_as_from_the_tables(memory, chance.choice(world.scopes), chance.choice(ASKED))
        for scope in world.scopes:
            for query in ASKED:
                same_as_from_the_tables(memory, scope, query)
                same_as_from_the_tables(memory, scope, query, limit=40)


OTHER = """
import random, sys
from datetime import timedelta
sys.path[:0] = sys.argv[3:]
from test_search_exact import World
from tests.support import open_memory
with open_memory(sys.argv[1]) as memory:
    world = World(memory, random.Random(int(sys.argv[2])))
    for scope in world.scopes:
        world.units += [(scope, unit) for unit in scope.list(status=["active", "pending_verification", "invalid"])]
    for _ in range(60):
        world.step()
"""


def test_what_other_processes_write_is_found_as_it_stands_in_the_tables(file: str, chance: random.Random) -> None:
    here = Path(__file__).parent
    with open_memory(file) as memory:
        world = World(memory, chance)
        for _ in range(80):
            world.step()
        for round_ in range(3):
            for scope in world.scopes:
                same_as_from_the_tables(memory, scope, chance.choice(ASKED))
            run_all(OTHER, [[file, str(round_), str(here), str(here.parent.parent)]])
        for scope in world.scopes:
            for query in ASKED:
                same_as_from_the_tables(memory, scope, query)


def test_an_act_in_another_process_shows_in_the_next_answer(file: str) -> None:
    script = """
import sys
import memlineage as ml
with ml.Memory.open(sys.argv[1], embedder="lexical") as memory:
    scope = memory.scope(user="ann")
    {}
"""
    acts = {
        "scope.invalidate(sys.argv[2])": ({"Gate four"}, {"The train to Kyoto"}),
        "scope.restore(sys.argv[2])": ({"Gate four", "The train to Kyoto"}, set()),
        "scope.update(sys.argv[2], 'The train to Osaka', creator='user')": (
            {"Gate four", "The train to Osaka"},
            {"The train to Kyoto"},
        ),
        "scope.store('The train to Nara')": (
            {"Gate four", "The train to Osaka", "The train to Nara"},
            {"The train to Kyoto"},
        ),
    }
    with open_memory(file) as memory:
        scope = memory.scope(user="ann")
        train = scope.store("The train to Kyoto")
        scope.store("Gate four")
        scope.retrieve("train to Kyoto")
        for act, (shown, withheld) in acts.items():
            run_all(script.format(act), [[file, train.id]])
            found = scope.retrieve("train to Kyoto")
            assert {unit.content for unit in found.units} == shown
            assert {scope.get(item.ref).content for item in found.withheld} == withheld


def pool_of(memory: ml.Memory, search: Search, user: str = "ann", *, alone: bool = False) -> list[int] | None:
    with memory._core.read() as snapshot:
        return drawn(memory, search, snapshot, user, alone=alone)


def drawn(memory: ml.Memory, search: Search, snapshot: Snapshot, user: str, *, alone: bool = False) -> list[int] | None:
    scope = memory.scope(user=user)._acting.scope
    sight = Sight(tuple(snapshot.names.namespaces(scope)), scope)
    vector = embed_query(memory.embedder, "train")
    pool = search.pool(snapshot.connection, sight, "train", vector, POOL, alone=alone)
    return None if pool is None else pool.n.tolist()


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_snapshot_that_is_behind_is_told_so_and_can_search_alone(file: str) -> None:
    with open_memory(file) as memory:
        scope = memory.scope(user="ann")
        scope.store("The first train")
        search = memory._parts.retrieval._search
        with memory._core.read() as old:
            assert drawn(memory, search, old, "ann") == [1]
            in_a_thread(lambda: (scope.store("A later train"), scope.retrieve("train")))
            assert drawn(memory, search, old, "ann") is None
            assert drawn(memory, search, old, "ann", alone=True) == [1]
            # This thread goes on reading its old snapshot until it leaves it.
            assert [unit.content for unit in scope.retrieve("train")] == ["The first train"]
        assert {unit.content for unit in scope.retrieve("train")} == {"The first train", "A later train"}


def test_what_is_rolled_back_was_never_found(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class ChangedError(Exception):
        pass

    with open_memory(file) as memory:
        scope = memory.scope(user="ann")
        scope.store("The first train")
        scope.retrieve("train")

        def settle(writer: Writer) -> None:
            assert pool_of(memory, memory._parts.retrieval._search) == [1, 2]
            raise ChangedError

        with monkeypatch.context() as patch:
            patch.setattr(Writer, "settle", settle)
            with pytest.raises(ChangedError):
                scope.store("A train that never was")
        scope.store("The second train")
        same_as_from_the_tables(memory, scope, "second train")
        assert {unit.content for unit in scope.retrieve("train")} == {"The first train", "The second train"}


def test_answers_are_right_while_others_write_and_search(file: str) -> None:
    with open_memory(file, durability="normal") as memory:
        scope = memory.scope(user="ann")
        root = scope.store("The train to Kyoto leaves at nine")
        stop = threading.Event()
        faults: list[str] = []

        def read() -> None:
            while not stop.is_set():
                before = confirmed[0]
                found = scope.retrieve("train number", limit=1000)
                if not before <= {unit.content for unit in found.units}:
                    faults.append("a committed unit was not found")

        confirmed = [frozenset({root.content})]
        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for i in range(150):
            unit = scope.store(f"train number {i}", creator="reasoning", depends_on=root)
            confirmed[0] |= {unit.content}
        stop.set()
        for reader in readers:
            reader.join()
        assert faults == []
        same_as_from_the_tables(memory, scope, "train number")


def test_memory_stays_within_its_bytes_and_answers_stay_the_same() -> None:
    with open_memory() as memory:
        for user in range(12):
            scope = memory.scope(user=f"u{user}")
            scope.store_many([f"train {i} of {user}" for i in range(100)])
        roomy, tight = Search(256, 1 << 30), Search(256, 500_000)
        one = Search(256, 1 << 30)
        pool_of(memory, one, "u0")
        largest = one.nbytes
        for user in [0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 9, 10, 11, 0]:
            assert pool_of(memory, tight, f"u{user}") == pool_of(memory, roomy, f"u{user}")
            assert tight.nbytes <= 500_000
        assert (largest < 250_000, roomy.nbytes > 1_000_000) == (True, True)


def test_vectors_by_component_are_kept_in_large_namespaces_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace, "_LARGE", 100)
    with open_memory() as memory:
        scope = memory.scope(user="ann")
        scope.store_many([f"train {i}" for i in range(99)])
        small, small_and_tight = Search(256, 1 << 20), Search(256, 100_000)
        assert pool_of(memory, small) == pool_of(memory, small_and_tight)
        assert small.nbytes == small_and_tight.nbytes
        scope.store("The last train")
        large, large_and_tight = Search(256, 1 << 20), Search(256, 100_000)
        assert pool_of(memory, large) == pool_of(memory, large_and_tight) == pool_of(memory, small)
        assert large.nbytes - large_and_tight.nbytes == 100 * 256 * 4


def test_vectors_by_component_grow_and_what_was_given_stays() -> None:
    turned = Components(3)
    rows = np.arange(9_000, dtype=np.float32).reshape(3_000, 3)
    first = turned.of(rows[:5])
    second = turned.of(rows[:2_500])
    assert first.tolist() == rows[:5].T.tolist()
    assert second.tolist() == rows[:2_500].T.tolist()
    assert turned.of(rows).tolist() == rows.T.tolist()
    assert second.tolist() == rows[:2_500].T.tolist()


def test_one_namespace_may_take_more_than_the_bound_but_it_alone() -> None:
    with open_memory() as memory:
        for user in ("ann", "ben"):
            memory.scope(user=user).store_many([f"train {i}" for i in range(100)])
        search = Search(256, 1)
        for user in ("ann", "ben", "ann"):
            assert pool_of(memory, search, user)
        one = Search(256, 1 << 30)
        pool_of(memory, one)
        assert search.nbytes == one.nbytes


def test_rows_that_leave_the_text_index_no_longer_count(chance: random.Random) -> None:
    with open_memory() as memory:
        scope = memory.scope(user="ann")
        scope.store_many([f"{chance.choice(WORDS)} {chance.choice(WORDS)}" for _ in range(240)])
        same_as_from_the_tables(memory, scope, "flight budget passport")
        with memory._core.write() as writer:
            writer.connection.execute("DELETE FROM text WHERE rowid % 3 = 0")
            writer.event(EventKind.SETTING, {})
        same_as_from_the_tables(memory, scope, "flight budget passport")


def test_what_a_search_was_given_stays_as_it_was() -> None:
    with open_memory() as memory:
        scope = memory.scope(user="ann")
        heard = scope.store("The first train", creator="tool:feed")
        search = memory._parts.retrieval._search
        sight = Sight((1,), scope._acting.scope)
        vector = embed_query(memory.embedder, "train")

        def told() -> tuple[Pool, list[int]]:
            with memory._core.read() as snapshot:
                pool = search.pool(snapshot.connection, sight, "train", vector, POOL)
                assert pool is not None
                return pool, pool.searched[0].fan_out.tolist()

        before, at_first = told()
        scope.store("So we leave early", creator="reasoning", depends_on=heard)
        assert (at_first, told()[1]) == ([0], [1, 0])
        assert before.searched[0].fan_out.tolist() == [0]


def test_what_was_read_once_is_not_read_again_and_what_is_new_is(file: str) -> None:
    with open_memory(file) as memory:
        scope = memory.scope(user="ann")
        scope.store_many([f"train {i}" for i in range(20)])
        pool_of(memory, memory._parts.retrieval._search)

        def derived_from() -> list[str]:
            asked: list[str] = []
            with memory._core.read() as snapshot:
                snapshot.connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: asked.append(event["sql"]))
                drawn(memory, memory._parts.retrieval._search, snapshot, "ann")
                snapshot.connection.trace_v2(0, None)
            return [name for name in ("columns", "ways_up", "term_rows", "term_count") if QUERIES[name] in asked]

        assert derived_from() == []
        scope.store("The last train")
        assert derived_from() == ["columns", "ways_up", "term_rows", "term_count"]
        assert derived_from() == []


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "512 MB"])
def test_memory_for_searching_is_a_number_of_bytes(wrong: object) -> None:
    with pytest.raises(ml.InvalidInputError, match="search_memory="):
        open_memory(search_memory=wrong)


def test_memory_for_searching_is_bounded_as_asked() -> None:
    with open_memory(search_memory=400_000) as memory:
        scopes = [memory.scope(user=f"u{user}") for user in range(4)]
        for scope in scopes:
            scope.store_many([f"train {i}" for i in range(100)])
        for scope in scopes * 2:
            assert len(scope.retrieve("train 7").units) == 10
        assert 200_000 < memory._parts.retrieval._search.nbytes <= 400_000
