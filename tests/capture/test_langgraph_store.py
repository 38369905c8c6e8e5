"""`LineageStore` keeps the contract of LangGraph's stores: what LangGraph checks of its own, checked of this one.

Each test runs twice: through the methods that block, and through those that are awaited.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from tests.support import Clock, open_memory

import memlineage as ml
from memlineage.langgraph import LineageStore

ANIMALS = ("pets", "cats")


class Awaited:
    """The same store by the methods that are awaited."""

    def __init__(self, store: LineageStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, f"a{name}")
        return lambda *args, **options: asyncio.run(method(*args, **options))


class Letters:
    """How often each letter occurs: texts of the same letters are alike."""

    name, dimension, vector_share, noise = "letters", 26, 1.0, 0.0

    def embed(self, texts: Any) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        counts = [float(text.lower().count(chr(ord("a") + place))) for place in range(26)]
        length = math.sqrt(sum(count * count for count in counts)) or 1.0
        return [count / length for count in counts]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Iterator[ml.Memory]:
    with open_memory(clock=clock, embedder=Letters()) as opened:
        yield opened


@pytest.fixture(params=[lambda store: store, Awaited], ids=["sync", "async"])
def way(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def store(memory: ml.Memory, way: Any) -> Any:
    return way(LineageStore(memory.scope(user="alice")))


def keys(items: Any) -> list[str]:
    return [item.key for item in items]


def found(store: Any, namespace: tuple[str, ...], **options: Any) -> list[str]:
    return keys(store.search(namespace, **options))


# One item ------------------------------------------------------------------------------------------------------


def test_what_is_put_is_got_and_what_is_deleted_is_not(store: Any, clock: Clock) -> None:
    value = {"name": "Tom", "age": 3, "deep": {"list": [1, None, True, "é", {"x": 0.5}]}}
    store.put(ANIMALS, "tom", value)
    first = store.get(ANIMALS, "tom")
    clock.advance(minutes=1)
    store.put(ANIMALS, "tom", {"name": "Thomas"})
    second = store.get(ANIMALS, "tom")
    store.delete(ANIMALS, "tom")
    assert (first.namespace, first.key, first.value) == (ANIMALS, "tom", value)
    assert (second.value, second.created_at) == ({"name": "Thomas"}, first.created_at)
    assert (second.updated_at - first.updated_at).total_seconds() == 60
    assert (store.get(ANIMALS, "tom"), store.search(ANIMALS)) == (None, [])


def test_what_was_never_put_is_none_and_may_be_deleted(store: Any) -> None:
    store.put(ANIMALS, "tom", {"name": "Tom"})
    store.delete(ANIMALS, "rex")
    store.delete(("nowhere",), "tom")
    missing = [(("pets", "dogs"), "tom"), (ANIMALS, "rex"), (("pets",), "tom"), (("pets", "cats", "tom"), "tom")]
    assert [store.get(*name) for name in missing] == [None] * 4


def test_what_is_put_after_a_deletion_is_new(store: Any, clock: Clock) -> None:
    store.put(ANIMALS, "tom", {"n": 1})
    store.delete(ANIMALS, "tom")
    clock.advance(minutes=1)
    store.put(ANIMALS, "tom", {"n": 2})
    item, since = store.get(ANIMALS, "tom"), clock.now
    clock.advance(minutes=1)
    store.put(ANIMALS, "tom", {"n": 3})
    assert (item.value, item.created_at == item.updated_at == since) == ({"n": 2}, True)
    assert store.get(ANIMALS, "tom").created_at == since


def test_items_are_of_the_kinds_that_langgraph_returns(store: Any) -> None:
    store.put(ANIMALS, "tom", {"name": "Tom"})
    [one] = store.search(ANIMALS)
    assert (type(store.get(ANIMALS, "tom")), type(one), one.score) == (Item, SearchItem, None)
    assert one.dict()["namespace"] == ["pets", "cats"]


def test_any_script_and_any_punctuation_is_kept_as_it_is(store: Any) -> None:
    names = ["a%", "a_", "*", "?", "[a]", "'; drop table unit; --", "a b", "用户", "é", "e\u0301", "\n", '"', "\\"]
    for place, name in enumerate(names):
        store.put((name,), f"{name}.", {name: place, "text": name})
    assert [store.get((name,), f"{name}.").value for name in names] == [
        {name: place, "text": name} for place, name in enumerate(names)
    ]
    assert [found(store, (name,)) for name in names] == [[f"{name}."] for name in names]
    assert [found(store, (), filter={"text": name}) for name in names] == [[f"{name}."] for name in names]


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("a", ""), ("langgraph", "x"), ("a", 1), ("a\x00",)])
def test_a_namespace_that_langgraph_refuses_is_refused_here(store: Any, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k", {"v": 1})
    assert store.search(()) == []


def test_names_that_only_batch_lets_through_are_kept_apart(store: Any) -> None:
    odd = [("langgraph", "x"), ("a.b",), ("a", "b"), ("",), ()]
    store.batch([PutOp(namespace, "k", {"v": place}) for place, namespace in enumerate(odd)])
    assert [item.value["v"] for item in store.batch([GetOp(namespace, "k") for namespace in odd])] == [0, 1, 2, 3, 4]
    assert len(store.search(())) == 5
    store.delete(("langgraph", "x"), "k")
    assert store.get(("langgraph", "x"), "k") is None


def put(value: Any = None, *, namespace: Any = ("a",), key: str = "k", **options: Any) -> PutOp:
    return PutOp(namespace, key, value or {"v": 1}, **options)


@pytest.mark.parametrize(
    "op",
    [
        put({"v": object()}), put({"v": math.nan}), put(["v"]), put(ttl=0), put(ttl=-1), put(ttl="soon"),
        put(index=[1]), put(index="v"), put(key=""), put(key="k" * 5000), put(namespace=(1,)), GetOp((1,), "k"),  # type: ignore[arg-type]
        SearchOp(("a",), limit=-1), SearchOp(("a",), offset=-1), SearchOp(("a",), ["v"]),  # type: ignore[arg-type]
        SearchOp(("a",), {"v": {"$in": [1]}}), SearchOp(("a",), {"v": {"$gt": None}}), "get",
        ListNamespacesOp((MatchCondition("infix", ("a",)),)),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_an_error_and_nothing_of_the_batch_is(store: Any, op: Any) -> None:
    store.put(("a",), "there", {"v": 0})
    with pytest.raises(ml.InvalidInputError):
        store.batch([PutOp(("a",), "before", {"v": 1}), op])
    assert found(store, ("a",)) == ["there"]


# Batches -------------------------------------------------------------------------------------------------------


def test_a_batch_answers_in_order_and_its_reads_see_what_was_there_before(store: Any) -> None:
    store.put(("a", "x"), "1", {"v": 1})
    store.put(("a", "y"), "2", {"v": 2})
    answers = store.batch(
        [
            GetOp(("a", "x"), "1"),
            PutOp(("a", "z"), "3", {"v": 3}),
            SearchOp(("a",), {"v": {"$gte": 1}}),
            PutOp(("a", "x"), "1", None),
            ListNamespacesOp(),
            GetOp(("a", "z"), "3"),
        ]
    )
    one, put, several, deleted, namespaces, missing = answers
    assert (one.value, put, deleted, missing) == ({"v": 1}, None, None, None)
    assert (keys(several), namespaces) == (["1", "2"], [("a", "x"), ("a", "y")])
    assert found(store, ("a",)) == ["2", "3"]


def test_of_puts_under_one_name_in_a_batch_the_last_counts(store: Any) -> None:
    store.batch([PutOp(("a",), "k", {"v": n}) for n in (1, 2, 3)] + [PutOp(("a",), "x", {"v": 1})])
    store.batch([PutOp(("a",), "x", {"v": 2}), PutOp(("a",), "x", None), PutOp(("a",), "never", None)])
    assert [(item.key, item.value) for item in store.search(("a",))] == [("k", {"v": 3})]


def test_the_same_question_twice_in_a_batch_is_answered_twice(store: Any) -> None:
    store.put(("a",), "k", {"v": 1})
    ops: list[Op] = [GetOp(("a",), "k"), SearchOp(("a",), {"v": 1}), GetOp(("a",), "k"), SearchOp(("a",), {"v": 1})]
    first, second, third, fourth = store.batch(ops)
    assert (first, second) == (third, fourth)


def test_a_batch_may_be_empty_or_large(store: Any) -> None:
    many = [PutOp(("n", str(n % 7)), f"k{n}", {"n": n}) for n in range(1000)]
    assert (store.batch([]), store.batch(iter(many))) == ([], [None] * 1000)
    assert [item.value["n"] for item in store.batch([GetOp(op.namespace, op.key) for op in many])] == list(range(1000))
    assert len(store.search((), limit=2000)) == 1000
    assert store.list_namespaces() == [("n", str(n)) for n in range(7)]


# Namespaces ----------------------------------------------------------------------------------------------------

PLACES = [
    ("team", "docs", "public"), ("team", "docs", "private"), ("team", "docs", "old", "public"), ("team", "images"),
    ("teams",), ("other", "docs", "public"), ("other", "docs"), ("te%m", "docs"), ("Team", "docs"), ("team", "docs\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, sorted(PLACES)),
        ({"prefix": ("team",)}, [p for p in sorted(PLACES) if p[0] == "team"]),
        ({"prefix": ["team", "docs"]}, [p for p in sorted(PLACES) if p[:2] == ("team", "docs")]),
        ({"prefix": ("te%m",)}, [("te%m", "docs")]),
        ({"prefix": ("t*",)}, []),
        ({"prefix": ("tea",)}, []),
        ({"prefix": ("nowhere",)}, []),
        ({"suffix": ("public",)}, [p for p in sorted(PLACES) if p[-1] == "public"]),
        ({"suffix": ("ublic",)}, []),
        ({"suffix": ("docs",)}, [("Team", "docs"), ("other", "docs"), ("te%m", "docs")]),
        ({"prefix": ("team",), "suffix": ("public",)}, [("team", "docs", "old", "public"), ("team", "docs", "public")]),
        ({"prefix": ("*", "docs", "public")}, [("other", "docs", "public"), ("team", "docs", "public")]),
        ({"prefix": ("*", "docs", "*", "public")}, [("team", "docs", "old", "public")]),
        ({"suffix": ("docs", "*")}, [p for p in sorted(PLACES) if len(p) == 3 and p[1] == "docs"]),
        ({"suffix": ("*",)}, sorted(PLACES)),
        ({"max_depth": 1}, [("Team",), ("other",), ("te%m",), ("team",), ("teams",)]),
        ({"max_depth": 2, "prefix": ("team", "docs")}, [("team", "docs")]),
        ({"max_depth": 3, "suffix": ("old", "*")}, [("team", "docs", "old")]),
        ({"limit": 3}, sorted(PLACES)[:3]),
        ({"limit": 3, "offset": 8}, sorted(PLACES)[8:]),
        ({"offset": 50}, []),
        ({"limit": 0}, []),
        ({"max_depth": 1, "limit": 2, "offset": 1}, [("other",), ("te%m",)]),
    ],
    ids=str,
)  # fmt: skip
def test_namespaces_are_listed_whole_labels_at_a_time(store: Any, asked: Any, expected: Any) -> None:
    store.batch([PutOp(place, "k", {"v": 1}) for place in PLACES])
    assert store.list_namespaces(**asked) == expected


def test_a_namespace_of_which_everything_was_deleted_is_not_listed(store: Any) -> None:
    store.put(("a",), "1", {"v": 1})
    store.put(("b",), "1", {"v": 1})
    store.delete(("b",), "1")
    store.get(("c",), "1")
    assert store.list_namespaces() == [("a",)]


@pytest.mark.parametrize("prefix", [(), *PLACES, ("team", "docs"), ("tea",), ("t%",), ("TEAM",)], ids=str)
def test_a_search_goes_below_its_prefix_and_nowhere_else(store: Any, prefix: tuple[str, ...]) -> None:
    store.batch([PutOp(place, "k", {"v": 1}) for place in PLACES])
    within = [item.namespace for item in store.search(prefix, limit=50)]
    assert within == [place for place in PLACES if place[: len(prefix)] == prefix]


# Filters -------------------------------------------------------------------------------------------------------

NOTES: dict[str, dict[str, Any]] = {
    "a": {"n": 2, "name": "apple", "tags": ["x", "y"], "at": {"city": "Kyoto", "day": 3}, "ok": True},
    "b": {"n": 9, "name": "banana", "tags": ["x"], "at": {"city": "Oslo", "day": 9}, "ok": False},
    "c": {"n": 10, "name": "2026-03-01", "tags": [], "at": None, "access-level": "1", "123": 4},
    "d": {"n": "11", "name": "O'Brien", "tags": "x", "at.city": "Kyoto"},
    "e": {"n": 9.5, "name": None},
}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, "abcde"), ({}, "abcde"), ({"n": 2}, "a"), ({"n": "2"}, ""), ({"n": {"$eq": 9}}, "b"),
        ({"n": {"$ne": 9}}, "acde"), ({"n": {"$gt": 9}}, "cde"), ({"n": {"$gte": 10}}, "cd"),
        ({"n": {"$lt": 10}}, "abe"), ({"n": {"$lte": 9}}, "ab"), ({"n": {"$gt": 2, "$lt": 10}}, "be"),
        ({"n": {"$gte": "10"}}, "cd"), ({"n": {"$lt": math.inf}}, "abcde"), ({"n": {"$gt": -math.inf}}, "abcde"),
        ({"n": {"$lt": 10**400}}, "abcde"), ({"n": {"$eq": math.nan}}, ""), ({"n": {"$gt": math.nan}}, ""),
        ({"n": {"$lt": 0}}, ""), ({"name": {"$gt": "apple"}}, "b"), ({"name": {"$lte": "apple"}}, "acd"),
        ({"name": {"$gte": "2026-02-28"}}, "abcd"), ({"name": "apple"}, "a"), ({"name": None}, "e"),
        ({"missing": None}, "abcde"), ({"name": "O'Brien"}, "d"), ({"name": "x' OR '1'='1"}, ""),
        ({"n') OR 1=1 --": 1}, ""), ({"ok": True}, "a"), ({"ok": False}, "b"), ({"tags": ["x", "y"]}, "a"),
        ({"tags": ["x"]}, "b"), ({"tags": []}, "c"), ({"tags": "x"}, "d"), ({"tags": ["x", {"$ne": "z"}]}, "a"),
        ({"at": {"city": "Kyoto"}}, "a"), ({"at": {"city": "Kyoto", "day": 3}}, "a"),
        ({"at": {"city": "Kyoto", "day": 4}}, ""), ({"at": {"day": {"$gt": 3}}}, "b"), ({"at": {}}, "ab"),
        ({"at": None}, "cde"), ({"at.city": "Kyoto"}, "d"), ({"access-level": "1"}, "c"), ({"123": 4}, "c"),
        ({"n": {"$gte": 3}, "tags": ["x"]}, "b"), ({"n": {"$gte": 3}, "name": "apple"}, ""),
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_finds_what_has_all_of_its_fields(store: Any, wanted: Any, expected: str) -> None:
    store.batch([PutOp(("notes",), key, value) for key, value in NOTES.items()])
    assert found(store, ("notes",), filter=wanted) == list(expected)


def test_pages_follow_one_another_in_the_order_of_first_putting(store: Any) -> None:
    store.batch([PutOp(("n",), f"k{n}", {"even": n % 2 == 0}) for n in range(10)])
    store.put(("n",), "k0", {"even": True, "again": 1})
    pages = [found(store, ("n",), filter={"even": True}, limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert pages == [["k0", "k2"], ["k4", "k6"], ["k8"], []]
    assert len(store.search(("n",))) == 10
    assert found(store, ("n",), limit=0) == []


# Likeness ------------------------------------------------------------------------------------------------------


def scores(items: Any) -> dict[str, float | None]:
    return {item.key: item.score and round(item.score, 3) for item in items}


def test_a_query_ranks_by_likeness_within_filter_and_page(store: Any) -> None:
    for key, text in {"a": "zany zebra", "b": "dogs", "c": "a bird", "d": "zebra zoo"}.items():
        store.put(("t",), key, {"text": text, "z": "z" in text})
    ranked = store.search(("t",), query="zzz")
    assert found(store, ("t",), query="dogs")[0] == "b"
    assert [item.score for item in ranked] == sorted((item.score for item in ranked), reverse=True)
    assert (keys(ranked)[:2], len(ranked)) == (found(store, ("t",), query="zzz", filter={"z": True}), 4)
    assert found(store, ("t",), query="zzz", limit=2, offset=2) == keys(ranked)[2:]


def test_putting_again_changes_what_it_is_like(store: Any) -> None:
    store.put(("t",), "a", {"text": "zany zebra"})
    before = store.search(("t",), query="zebra")[0].score
    store.put(("t",), "a", {"text": "dogs"})
    after = store.search(("t",), query="zebra")[0].score
    assert store.search(("t",), query="dogs")[0].score > after < before


@pytest.mark.parametrize("query", ["", None])
def test_an_empty_query_ranks_nothing(store: Any, query: Any) -> None:
    store.put(("t",), "a", {"text": "x"})
    assert scores(store.search(("t",), query=query)) == {"a": None}


@pytest.mark.parametrize("query", ["long " * 4000, "?!@#$%^&*()", "\x00", "'\"", "这是中文", "🙂"])
def test_any_query_is_answered(store: Any, query: str) -> None:
    store.put(("t",), "a", {"text": "test"})
    assert found(store, ("t",), query=query) == ["a"]


def test_fields_are_searched_one_by_one_and_the_best_counts(memory: ml.Memory, way: Any) -> None:
    store = way(LineageStore(memory.scope(user="alice"), fields=["title", "deep.x", "list[*].t"]))
    store.put(("t",), "a", {"title": "xxx", "other": "qqq", "deep": {"x": "zzz"}})
    store.put(("t",), "b", {"title": "vvv", "list": [{"t": "uuu"}, {"t": "xxx"}], "other": "www"})
    assert scores(store.search(("t",), query="xxx")) == {"a": 1.0, "b": 1.0}
    assert scores(store.search(("t",), query="uuu")) == {"b": 1.0, "a": 0.0}
    assert scores(store.search(("t",), query="zzz")) == {"a": 1.0, "b": 0.0}
    assert scores(store.search(("t",), query="qqq")) == {"a": 0.0, "b": 0.0}


def test_an_item_may_say_itself_what_of_it_is_searched(memory: ml.Memory, way: Any) -> None:
    store = way(LineageStore(memory.scope(user="alice"), fields=["nothing"]))
    store.put(("t",), "a", {"x": "aaa", "y": "bbb", "z": "ccc"}, index=["x", "y"])
    store.put(("t",), "b", {"x": "eee", "y": "bbb", "z": "ggg"}, index=["y", "z"])
    store.put(("t",), "c", {"x": "aaa"}, index=False)
    assert scores(store.search(("t",), query="aaa")) == {"a": 1.0, "b": 0.0, "c": None}
    assert scores(store.search(("t",), query="bbb")) == {"a": 1.0, "b": 1.0, "c": None}
    assert scores(store.search(("t",), query="ggg")) == {"b": 1.0, "a": 0.0, "c": None}
    assert found(store, ("t",), query="aaa", limit=2) == ["a", "b"]
    assert scores(store.search(("t",))) == {"a": None, "b": None, "c": None}


def test_what_is_not_searched_comes_behind_all_that_is(store: Any) -> None:
    store.put(("t",), "hidden", {"text": "zebra"}, index=False)
    store.put(("t",), "shown", {"text": "dogs"})
    assert [(item.key, item.score is None) for item in store.search(("t",), query="zebra")] == [
        ("shown", False), ("hidden", True)
    ]  # fmt: skip


# Time to live --------------------------------------------------------------------------------------------------


def test_reading_prolongs_what_has_a_time_to_live(store: Any, clock: Clock) -> None:
    store.put(("t",), "a", {"v": 1}, ttl=10)
    put = store.get(("t",), "a")
    clock.advance(minutes=8)
    assert store.get(("t",), "a") == put
    clock.advance(minutes=8)
    assert store.search(("t",), refresh_ttl=True)[0].updated_at == put.updated_at
    clock.advance(minutes=8)
    assert store.get(("t",), "a", refresh_ttl=False) == put
    clock.advance(minutes=3)
    assert (store.get(("t",), "a"), store.search(("t",)), store.list_namespaces()) == (None, [], [])


def test_a_store_has_its_own_rules_of_time_to_live(memory: ml.Memory, way: Any, clock: Clock) -> None:
    config: Any = {"default_ttl": 10, "refresh_on_read": False}
    store = way(LineageStore(memory.scope(user="alice"), ttl=config))
    store.put(("t",), "a", {"v": 1})
    store.put(("t",), "b", {"v": 1}, ttl=None)
    store.put(("t",), "c", {"v": 1}, ttl=30)
    clock.advance(minutes=8)
    store.search(("t",))
    clock.advance(minutes=8)
    assert found(store, ("t",)) == ["b", "c"]


def test_putting_again_begins_a_new_time_to_live(store: Any, clock: Clock) -> None:
    store.put(("t",), "a", {"v": 1}, ttl=10)
    clock.advance(minutes=8)
    store.put(("t",), "a", {"v": 2}, ttl=10)
    clock.advance(minutes=8)
    kept = store.get(("t",), "a")
    store.put(("t",), "a", {"v": 3})
    clock.advance(minutes=60)
    assert (kept.value, store.get(("t",), "a").value) == ({"v": 2}, {"v": 3})


# Many at once --------------------------------------------------------------------------------------------------


def test_tasks_that_put_and_delete_and_search_at_once_lose_nothing(memory: ml.Memory) -> None:
    store = LineageStore(memory.scope(user="alice"))

    async def everything() -> list[Any]:
        names = [(("n", str(n % 5)), f"k{n}") for n in range(50)]
        await asyncio.gather(*(store.aput(*name, {"n": 0}) for name in names))
        await asyncio.gather(*(store.adelete(*name) for name in names))
        await asyncio.gather(*(store.aput(*name, {"n": n}) for n, name in enumerate(names)))
        return await asyncio.gather(*(store.asearch(("n", str(n)), query=f"k{n}", limit=50) for n in range(5)))

    by_namespace = asyncio.run(everything())
    values = [sorted(item.value["n"] for item in items) for items in by_namespace]
    assert values == [list(range(n, 50, 5)) for n in range(5)]


def test_the_blocking_methods_work_in_a_running_loop(memory: ml.Memory) -> None:
    store = LineageStore(memory.scope(user="alice"))

    async def both() -> Any:
        store.put(("t",), "a", {"v": 1})
        return await store.aget(("t",), "a"), store.get(("t",), "a")

    awaited, blocked = asyncio.run(both())
    assert awaited == blocked


def test_a_store_over_an_asynchronous_scope_is_the_same_store(tmp_path: Path) -> None:
    async def run() -> Any:
        async with await ml.AsyncMemory.open(tmp_path / "a.db", embedder="lexical") as memory:
            store = LineageStore(memory.scope(user="alice"))
            await store.aput(("t",), "a", {"v": 1})
            return store.get(("t",), "a"), await store.aget(("t",), "a")

    blocked, awaited = asyncio.run(run())
    assert (awaited, awaited.value) == (blocked, {"v": 1})
