"""The event of a write is canonical as it is encoded."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from memlineage.ledger.hashing import canonical
from memlineage.store.records import NewEdge, WriteEvent

NUMBERS = st.integers(0, 2**63 - 1)
HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
EDGES = st.lists(st.builds(NewEdge, NUMBERS, st.integers(0, 5), st.integers(1, 1_000_000)), max_size=5).map(tuple)
SPANS = st.lists(st.lists(NUMBERS, min_size=2, max_size=2), max_size=3)
EVENTS = st.builds(
    WriteEvent,
    content=HEX, edges=EDGES, kind=st.just(1), n=NUMBERS, record=HEX, same=NUMBERS | SPANS, seq=NUMBERS, ts_us=NUMBERS,
    unit=st.uuids().map(str), version=NUMBERS,
)  # fmt: skip


def test_its_fields_stand_in_the_order_of_their_names():
    assert list(WriteEvent.__struct_fields__) == sorted(WriteEvent.__struct_fields__)


@given(EVENTS)
def test_its_bytes_are_those_of_the_same_mapping(event):
    plain = {**msgspec.structs.asdict(event), "edges": [[e.parent, e.role, e.weight] for e in event.edges]}
    assert msgspec.json.encode(event) == canonical(plain)
