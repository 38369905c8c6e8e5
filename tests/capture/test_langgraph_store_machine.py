"""`LineageStore` against LangGraph's `InMemoryStore`: whatever is done to both, both answer the same.

Four differences are meant, and this is where they are written down:

- `created_at` survives putting again, which it does not there.
- A comparison of what is no number matches nothing, where `InMemoryStore` raises.
- A namespace in which nothing is left is not listed, where `InMemoryStore` lists even one that was only asked for.
- The order is that of first putting, where it groups by namespace. What its own agent or tool deleted comes back to
  its old place.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from tests.support import open_memory

from memlineage.langgraph import LineageStore

Name = tuple[tuple[str, ...], str]

LABELS = ["a", "A", "ab", "a%", "a_", "%", "_", "*", "é", "e\u0301", "用户", "a b", '"', "\\", ",", "[]", "a,b", "\n"]
KEYS = ["k", "K", "k.1", "k%", "k_", "-", "用户", "é", "e\u0301", "creator"]

namespaces = st.lists(st.sampled_from(LABELS[:3]), min_size=1, max_size=2).map(tuple) | st.lists(
    st.sampled_from(LABELS), min_size=1, max_size=3
).map(tuple)
names = st.tuples(namespaces, st.sampled_from(KEYS))
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 2.0, "2", "x", "", "a\x00b", "用户", "é"])
)
fields = st.sampled_from(["n", "text", "creator", "deep", "list"])
values = st.dictionaries(
    fields, st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(fields, scalars, max_size=2)), max_size=3
)
operators = st.dictionaries(st.sampled_from(["$eq", "$ne"]), scalars, min_size=1) | st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.sampled_from([-1, 0, 0.5, 2, "2"]), min_size=1
)
wanted = st.one_of(
    scalars, operators, st.lists(scalars, max_size=2), st.dictionaries(fields, scalars | operators, max_size=2)
)
filters = st.none() | st.dictionaries(fields, wanted, max_size=2)
paths = st.lists(st.sampled_from([*LABELS, "*"]), max_size=3).map(tuple)
conditions = st.none() | st.lists(
    st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), paths), max_size=2
).map(tuple)
pages = {"limit": st.integers(0, 5), "offset": st.integers(0, 3)}
unranked = {"query": st.none() | st.just(""), "refresh_ttl": st.booleans()}
puts = st.builds(lambda name, value: PutOp(*name, value), names, st.none() | values)
asked = st.one_of(
    names.map(lambda name: GetOp(*name)),
    st.builds(SearchOp, namespaces | st.just(()), filters, **pages, **unranked),
    st.builds(ListNamespacesOp, conditions, st.none() | st.integers(0, 3), **pages),
)


class Agreement(RuleBasedStateMachine):
    """Puts, deletions and reads, alone and in batches, with the memory opened again in between."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.theirs = InMemoryStore()
        self.places: dict[Name, int] = {}
        """What was ever there, in the order of first putting."""
        self.count = 0
        self.names: dict[Name, datetime | None] = {}
        """What is there, and since when."""

    @initialize(creator=st.sampled_from([None, "user:alice", "tool:notes"]))
    def begin(self, creator: str | None) -> None:
        self.creator = creator
        self.open()

    def open(self) -> None:
        self.memory = open_memory(Path(self.folder.name) / "store.db", durability="normal")
        self.ours = LineageStore(self.memory.scope(user="alice"), creator=self.creator)

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.open()

    def teardown(self) -> None:
        self.memory.close()
        self.folder.cleanup()

    @rule(name=names, value=values)
    def put(self, name: Name, value: dict[str, Any]) -> None:
        self.same([PutOp(*name, value)])

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.same([PutOp(*data.draw(st.sampled_from(list(self.names))), None)])

    @precondition(lambda self: self.names)
    @rule(data=st.data(), value=values)
    def put_again(self, data: st.DataObject, value: dict[str, Any]) -> None:
        self.same([PutOp(*data.draw(st.sampled_from(list(self.names))), value)])

    @rule(op=asked)
    def ask(self, op: Op) -> None:
        self.same([op])

    @rule(ops=st.lists(st.one_of(puts, asked), max_size=6))
    def batch(self, ops: list[Op]) -> None:
        self.same(ops)

    def same(self, ops: list[Op]) -> None:
        """Both do it, and answer the same; both answer the same about everything afterwards."""
        expected = [None if isinstance(op, PutOp) else self.expected(op) for op in ops]
        assert [plain(answer) for answer in self.ours.batch(ops)] == expected
        self.theirs.batch([op for op in ops if isinstance(op, PutOp)])
        for name, op in {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}.items():
            if op.value is not None:
                self.names.setdefault(name, None)
                self.places.setdefault(name, self.count)
                self.count += 1
            elif self.names.pop(name, self) is not self and self.creator == "user:alice":
                del self.places[name]
        found = self.ours.search((), limit=1000)
        assert plain(found) == plain(self.ordered(self.theirs.search((), limit=1000)))
        self.names = {name: self.dated(item) for item in found if (name := (item.namespace, item.key))}

    def dated(self, item: Item) -> datetime:
        since = self.names[item.namespace, item.key] or item.created_at
        assert item.updated_at >= item.created_at == since
        return since

    def expected(self, op: Any) -> Any:
        """What `InMemoryStore` answers, but for the differences."""
        if not isinstance(op, SearchOp):
            for namespace in [known for known, kept in self.theirs._data.items() if not kept]:
                del self.theirs._data[namespace]
            return plain(self.theirs.batch([op])[0])
        within = self.ordered(self.theirs.search(op.namespace_prefix, limit=1000))
        matching = [item for item in within if chosen(item, op.filter)]
        return plain(matching[op.offset : op.offset + op.limit])

    def ordered(self, items: Iterable[Item]) -> list[Item]:
        """In the order of first putting."""
        return sorted(items, key=lambda item: self.places[item.namespace, item.key])


def chosen(item: Item, wanted: dict[str, Any] | None) -> bool:
    """Whether `InMemoryStore` finds it where nothing else is; where it raises, it is not found."""
    alone = InMemoryStore()
    alone.put(item.namespace, item.key, item.value)
    try:
        return bool(alone.search((), filter=wanted))
    except (TypeError, ValueError):
        return False


def plain(answer: Any) -> Any:
    """An answer without its dates, every value as what it is: `True` is not 1 here."""
    if isinstance(answer, Item):
        return answer.namespace, answer.key, repr(answer.value)
    return [plain(part) for part in answer] if isinstance(answer, list) else answer


TestAgreement = Agreement.TestCase
TestAgreement.settings = settings(max_examples=80, stateful_step_count=15, deadline=None)
