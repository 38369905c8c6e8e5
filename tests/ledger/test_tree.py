"""The tree against a naive recursive one, written down from RFC 6962, section 2.1, as it stands there."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlineage.errors import LedgerError
from memlineage.ledger.hashing import leaf_hash
from memlineage.ledger.tree import (
    EMPTY_ROOT,
    CompactRange,
    complete_root,
    consistency_proof,
    inclusion_proof,
    root_from,
    root_of,
    verify_consistency,
    verify_inclusion,
)

MOST = 300


@cache
def leaf(index: int) -> bytes:
    return leaf_hash(b"event %d" % index)


@cache
def naive_root(start: int, end: int) -> bytes:
    """MTH of RFC 6962, section 2.1."""
    if start == end:
        return sha256(b"").digest()
    if end - start == 1:
        return leaf(start)
    k = split(end - start)
    return sha256(b"\x01" + naive_root(start, start + k) + naive_root(start + k, end)).digest()


def split(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def naive_path(m: int, start: int, end: int) -> list[bytes]:
    """PATH of section 2.1.1."""
    if end - start == 1:
        return []
    k = split(end - start)
    if m < k:
        return [*naive_path(m, start, start + k), naive_root(start + k, end)]
    return [*naive_path(m - k, start + k, end), naive_root(start, start + k)]


def naive_subproof(m: int, start: int, end: int, known: bool) -> list[bytes]:
    """SUBPROOF of section 2.1.2."""
    if m == end - start:
        return [] if known else [naive_root(start, end)]
    k = split(end - start)
    if m <= k:
        return [*naive_subproof(m, start, start + k, known), naive_root(start + k, end)]
    return [*naive_subproof(m - k, start + k, end, False), naive_root(start, start + k)]


def subtrees(level: int, index: int) -> bytes:
    return naive_root(index << level, (index + 1) << level)


def refused(check: Callable[[], None]) -> bool:
    try:
        check()
    except LedgerError:
        return True
    return False


sizes = st.integers(1, MOST)


@given(st.data(), sizes)
def test_an_inclusion_proof_is_the_one_of_the_rfc_and_verifies(data: st.DataObject, size: int) -> None:
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(index, size, subtrees)
    assert proof == naive_path(index, 0, size)
    verify_inclusion(leaf(index), index, size, proof, naive_root(0, size))


@given(st.data(), sizes)
def test_a_consistency_proof_is_the_one_of_the_rfc_and_verifies(data: st.DataObject, new: int) -> None:
    old = data.draw(st.integers(1, new))
    proof = consistency_proof(old, new, subtrees)
    assert proof == naive_subproof(old, 0, new, True)
    verify_consistency(old, new, proof, naive_root(0, old), naive_root(0, new))


def test_every_proof_of_every_small_tree_verifies() -> None:
    for size in range(1, 40):
        for other in range(size):
            root = naive_root(0, size)
            verify_inclusion(leaf(other), other, size, inclusion_proof(other, size, subtrees), root)
            proof = consistency_proof(other + 1, size, subtrees)
            verify_consistency(other + 1, size, proof, naive_root(0, other + 1), root)


@given(st.integers(0, MOST))
def test_a_growing_tree_has_the_root_of_the_whole_at_every_size(size: int) -> None:
    tree = CompactRange()
    for index in range(size):
        tree.append(leaf(index))
    assert (tree.root(), tree.size) == (naive_root(0, size), size)
    assert root_of(map(leaf, range(size))) == root_from(size, subtrees) == tree.root()


@given(st.integers(0, MOST), st.integers(0, 40))
def test_a_tree_goes_on_from_the_hashes_it_gave_away(size: int, more: int) -> None:
    tree = CompactRange()
    for index in range(size):
        tree.append(leaf(index))
    kept = tree.hashes
    again = CompactRange(size, kept)
    for index in range(size, size + more):
        again.append(leaf(index))
    assert (again.root(), len(kept)) == (naive_root(0, size + more), size.bit_count())


def test_an_empty_tree_has_the_root_of_nothing() -> None:
    assert (CompactRange().root(), root_of([]), root_from(0, subtrees)) == (EMPTY_ROOT,) * 3
    assert EMPTY_ROOT.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_complete_root_wants_a_power_of_two() -> None:
    assert complete_root([leaf(index) for index in range(64)]) == naive_root(0, 64)
    with pytest.raises(LedgerError, match="3 hashes do not make a complete subtree"):
        complete_root([leaf(0)] * 3)


@pytest.mark.parametrize(
    ("size", "hashes", "words"),
    [(3, [b""], "has 2 complete subtrees, not 1"), (-1, [], "-1 leaves"), (1, [b"short"], "5 bytes, not 32")],
)
def test_a_tree_refuses_a_state_that_is_none(size: int, hashes: list[bytes], words: str) -> None:
    with pytest.raises(LedgerError, match=words):
        CompactRange(size, hashes)


@pytest.mark.parametrize("old", [0, 6])
def test_no_proof_is_made_of_what_cannot_be_shown(old: int) -> None:
    with pytest.raises(LedgerError, match=f"a tree of 5 leaves cannot be shown to extend one of {old}"):
        consistency_proof(old, 5, subtrees)
    with pytest.raises(LedgerError, match="there is no leaf 5 in a tree of 5 leaves"):
        inclusion_proof(5, 5, subtrees)


# Whatever is changed about a proof, it fits no longer ---------------------------------------------------------------


def changed_bytes(rng: random.Random, given: bytes) -> bytes:
    place = rng.randrange(len(given) * 8)
    number = int.from_bytes(given, "big") ^ (1 << place)
    return number.to_bytes(len(given), "big")


def changed_proof(rng: random.Random, proof: list[bytes]) -> list[bytes]:
    """One change to a list of hashes that makes it another."""
    place = rng.randrange(len(proof) + 1)
    chosen = rng.randrange(5)
    if chosen == 0 or not proof:
        return [*proof[:place], rng.randbytes(32), *proof[place:]]
    place = min(place, len(proof) - 1)
    if chosen == 1:
        return [*proof[:place], *proof[place + 1 :]]
    if chosen == 2:
        return [*proof[:place], proof[place][:-1], *proof[place + 1 :]]
    if chosen == 3 and len(proof) > 1:
        return [*proof[1:], proof[0]]
    return [*proof[:place], changed_bytes(rng, proof[place]), *proof[place + 1 :]]


def test_no_single_change_to_an_inclusion_proof_verifies() -> None:
    rng = random.Random(7)
    for _ in range(3000):
        size = rng.randint(1, MOST)
        index = rng.randrange(size)
        proof, root = naive_path(index, 0, size), naive_root(0, size)
        others = [
            lambda i=index, n=size, p=proof, r=root: verify_inclusion(changed_bytes(rng, leaf(i)), i, n, p, r),
            lambda i=index, n=size, p=proof, r=root: verify_inclusion(leaf(i), i ^ 1 << rng.randrange(9), n, p, r),
            lambda i=index, n=size, p=proof, r=root: verify_inclusion(leaf(i), i, n, changed_proof(rng, p), r),
            lambda i=index, n=size, p=proof, r=root: verify_inclusion(leaf(i), i, n, p, changed_bytes(rng, r)),
            lambda i=index, n=size, p=proof, r=root: verify_inclusion(leaf(i)[:-1], i, n, p, r),
        ]
        assert all(map(refused, others)), (size, index)


def test_no_single_change_to_a_consistency_proof_verifies() -> None:
    rng = random.Random(11)
    for _ in range(3000):
        new = rng.randint(1, MOST)
        old = rng.randint(1, new)
        proof, before, after = naive_subproof(old, 0, new, True), naive_root(0, old), naive_root(0, new)
        others = [
            lambda a=old, b=new, p=proof, x=before, y=after: verify_consistency(a, b, changed_proof(rng, p), x, y),
            lambda a=old, b=new, p=proof, x=before, y=after: verify_consistency(a, b, p, changed_bytes(rng, x), y),
            lambda a=old, b=new, p=proof, x=before, y=after: verify_consistency(a, b, p, x, changed_bytes(rng, y)),
            lambda b=new, p=proof, x=before, y=after: verify_consistency(0, b, p, x, y),
            lambda a=old, b=new, p=proof, x=before, y=after: verify_consistency(b + 1, a, p, x, y),
        ]
        assert all(map(refused, others)), (old, new)


def test_a_leaf_cannot_pass_for_a_node() -> None:
    forged = sha256(b"\x00" + leaf(0) + leaf(1)).digest()
    assert forged != naive_root(0, 2)


def test_what_does_not_fit_is_named() -> None:
    proof, root = naive_path(3, 0, 7), naive_root(0, 7)
    with pytest.raises(LedgerError, match="a proof for leaf 3 of 7 has 3 hashes, this one 2"):
        verify_inclusion(leaf(3), 3, 7, proof[:2], root)
    with pytest.raises(LedgerError, match="hash 1 of the proof has 31 bytes"):
        verify_inclusion(leaf(3), 3, 7, [proof[0], proof[1][1:], proof[2]], root)
    with pytest.raises(
        LedgerError, match=f"from leaf 3 the proof leads to [0-9a-f]{{64}}, not to the root {root.hex()}"
    ):
        verify_inclusion(leaf(2), 3, 7, proof, root)
    steps = naive_subproof(3, 0, 7, True)
    with pytest.raises(LedgerError, match=f"not to the root {leaf(0).hex()} of 3 leaves"):
        verify_consistency(3, 7, steps, leaf(0), root)
    with pytest.raises(LedgerError, match=f"not to the root {leaf(0).hex()} of 7 leaves"):
        verify_consistency(3, 7, steps, naive_root(0, 3), leaf(0))
    with pytest.raises(LedgerError, match="two roots for the same 7 leaves"):
        verify_consistency(7, 7, [], naive_root(0, 3), root)
