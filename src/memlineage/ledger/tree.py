"""The Merkle tree over leaf hashes (RFC 6962, section 2.1): roots, proofs, and their verification.

Theory. A tree of n leaves is, from left to right, one complete subtree for every bit that is set in n, the largest
first; the root folds them from the right. Hashes of complete subtrees never change again, whatever is appended
later. So the state of a growing tree is one hash per set bit (`CompactRange`), and every proof is made of the
hashes of complete subtrees plus at most one fold of those on the right edge. Whoever makes a proof needs nothing
but a way to ask for the hash of the complete subtree at (level, index), which covers the leaves from
`index << level` on, `1 << level` of them: O(log n) questions per proof.

Verification follows the shape that index and size alone determine. On the way from a leaf to the root, the lowest
`(index ^ (size - 1)).bit_length()` steps are below the point where the path meets the right edge: there the bits of
the index say on which side the sibling is. Above it the path is the right edge itself: siblings are on its left,
one for every bit that is left in the index. A proof of any other length is refused before anything is hashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

from memlineage.errors import LedgerError

__all__ = [
    "EMPTY_ROOT", "HASH_BYTES", "CompactRange", "Subtrees", "complete_root", "consistency_proof", "inclusion_proof",
    "node_hash", "root_from", "root_of", "verify_consistency", "verify_inclusion",
]  # fmt: skip

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()
"""The root of a tree without leaves."""

Subtrees = Callable[[int, int], bytes]
"""Gives the hash of the complete subtree at (level, index)."""

_NODE_PREFIX: Final = b"\x01"  # RFC 6962, section 2.1: a node can never pass for a leaf


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return sha256(_NODE_PREFIX + left + right).digest()


class CompactRange:
    """The state of a growing tree: its size, and the hash of each complete subtree from left to right."""

    __slots__ = ("_hashes", "_size")

    def __init__(self, size: int = 0, hashes: Iterable[bytes] = ()) -> None:
        """An empty tree, or one that goes on from the `size` and `hashes` of another."""
        self._size = size
        self._hashes = list(hashes)
        if size < 0 or len(self._hashes) != size.bit_count():
            wanted = max(size, 0).bit_count()
            raise LedgerError(f"a tree of {size} leaves has {wanted} complete subtrees, not {len(self._hashes)}")
        for place, given in enumerate(self._hashes):
            _refuse_length(given, f"subtree {place}")

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return self._size

    @property
    def hashes(self) -> tuple[bytes, ...]:
        """The hashes of its complete subtrees, the largest first: with `size`, all there is to keep."""
        return tuple(self._hashes)

    def append(self, leaf: bytes) -> None:
        """Add a leaf hash on the right."""
        # Every subtree that the new leaf completes is merged at once: as many as the size ends in ones.
        hashes, size = self._hashes, self._size
        while size & 1:
            leaf = sha256(_NODE_PREFIX + hashes.pop() + leaf).digest()
            size >>= 1
        hashes.append(leaf)
        self._size += 1

    def root(self) -> bytes:
        """The root as it is now."""
        return _folded(self._hashes)

    def __repr__(self) -> str:
        return f"<CompactRange of {self._size} leaves, root {self.root().hex()[:12]}…>"


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The root over leaf hashes, in one pass and O(log n) memory."""
    tree = CompactRange()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root()


def complete_root(hashes: Sequence[bytes]) -> bytes:
    """The root over the hashes of complete subtrees of one level; a power of two of them."""
    if not hashes or len(hashes) & (len(hashes) - 1):
        raise LedgerError(f"{len(hashes)} hashes do not make a complete subtree; a power of two does")
    row = list(hashes)
    while len(row) > 1:
        row = [sha256(_NODE_PREFIX + row[i] + row[i + 1]).digest() for i in range(0, len(row), 2)]
    return row[0]


def root_from(size: int, subtrees: Subtrees) -> bytes:
    """The root of the first `size` leaves, from the hashes of complete subtrees."""
    return _range_hash(0, size, subtrees)


def _folded(hashes: Sequence[bytes]) -> bytes:
    if not hashes:
        return EMPTY_ROOT
    root = hashes[-1]
    for left in reversed(hashes[:-1]):
        root = node_hash(left, root)
    return root


def _range_hash(start: int, end: int, subtrees: Subtrees) -> bytes:
    """The hash over [start, end), where start is a multiple of the largest power of two in its length."""
    return _folded([subtrees(level, index) for level, index in _complete(start, end)])


def _complete(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The complete subtrees that make up such a range, from left to right."""
    length = end - start
    while length:
        level = length.bit_length() - 1
        yield level, start >> level
        start += 1 << level
        length -= 1 << level


# Making proofs -------------------------------------------------------------------------------------------------


def inclusion_proof(index: int, size: int, subtrees: Subtrees) -> list[bytes]:
    """The hashes that lead from leaf `index` to the root of the first `size` leaves, lowest first (RFC 6962, 2.1.1).

    Raises:
        LedgerError: there is no such leaf.
    """
    _refuse_outside(index, size)
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_range_hash(middle, end, subtrees))
            end = middle
        else:
            path.append(_range_hash(start, middle, subtrees))
            start = middle
    return path[::-1]


def consistency_proof(old: int, new: int, subtrees: Subtrees) -> list[bytes]:
    """The hashes that show the first `old` leaves to be a prefix of the first `new`, lowest first (RFC 6962, 2.1.2).

    Raises:
        LedgerError: `old` is none of 1 to `new`: every tree extends the empty one, so there is nothing to show.
    """
    _refuse_order(old, new)
    path: list[bytes] = []
    start, end = 0, new
    while old != end:  # the old tree reaches from 0 into [start, end)
        middle = start + _split(end - start)
        if old <= middle:
            path.append(_range_hash(middle, end, subtrees))
            end = middle
        else:
            path.append(_range_hash(start, middle, subtrees))
            start = middle
    if start:  # else the last part is the whole old tree, whose root the verifier has
        path.append(_range_hash(start, end, subtrees))
    return path[::-1]


def _split(length: int) -> int:
    """The largest power of two smaller than `length`: how many leaves lie to the left."""
    return 1 << ((length - 1).bit_length() - 1)


# Verifying proofs ----------------------------------------------------------------------------------------------


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> None:
    """Check that a leaf hash stands at `index` of the tree of `size` leaves with this root (RFC 9162, 2.1.3.2).

    Raises:
        LedgerError: saying what does not fit: place, number of hashes, a hash's length, or the root.
    """
    _refuse_outside(index, size)
    _refuse_length(leaf, "the leaf hash")
    inner, border = _shape(index, size)
    _refuse_shape(proof, inner + border, f"leaf {index} of {size}")
    found = _climb_border(_climb(leaf, proof[:inner], index), proof[inner:])
    _refuse_root(found, root, f"from leaf {index} the proof leads to", size)


def verify_consistency(old: int, new: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes) -> None:
    """Check that the tree of `old` leaves is a prefix of the tree of `new` leaves (RFC 9162, 2.1.4.2).

    Raises:
        LedgerError: saying what does not fit: sizes, number of hashes, a hash's length, or which root.
    """
    _refuse_order(old, new)
    if old == new:
        _refuse_shape(proof, 0, f"a tree of {old} leaves and itself")
        if old_root != new_root:
            raise LedgerError(f"two roots for the same {old} leaves: {old_root.hex()} and {new_root.hex()}")
        return
    # The climb starts at the lowest complete subtree on the right edge of the old tree.
    shift = (old & -old).bit_length() - 1
    inner, border = _shape(old - 1, new)
    inner -= shift
    whole = old == 1 << shift
    _refuse_shape(proof, inner + border + (not whole), f"{old} of {new} leaves")
    seed, path = (old_root, proof) if whole else (proof[0], proof[1:])
    turns = (old - 1) >> shift
    lefts = [given for step, given in enumerate(path[:inner]) if turns >> step & 1]
    _refuse_root(_climb_border(_climb_border(seed, lefts), path[inner:]), old_root, "the proof leads to", old)
    _refuse_root(_climb_border(_climb(seed, path[:inner], turns), path[inner:]), new_root, "the proof leads to", new)


def _shape(index: int, size: int) -> tuple[int, int]:
    """How many steps of the path from a leaf are below the right edge, and how many are on it."""
    inner = (index ^ (size - 1)).bit_length()
    return inner, (index >> inner).bit_count()


def _climb(found: bytes, siblings: Sequence[bytes], turns: int) -> bytes:
    """Up from a node whose position's bits are `turns`: where a bit is set, the sibling is on the left."""
    for step, sibling in enumerate(siblings):
        found = node_hash(sibling, found) if turns >> step & 1 else node_hash(found, sibling)
    return found


def _climb_border(found: bytes, siblings: Sequence[bytes]) -> bytes:
    """Up along a right edge: every sibling is on the left."""
    for sibling in siblings:
        found = node_hash(sibling, found)
    return found


def _refuse_outside(index: int, size: int) -> None:
    if not 0 <= index < size:
        raise LedgerError(f"there is no leaf {index} in a tree of {size} leaves")


def _refuse_order(old: int, new: int) -> None:
    if not 1 <= old <= new:
        raise LedgerError(f"a tree of {new} leaves cannot be shown to extend one of {old}")


def _refuse_length(given: bytes, what: str) -> None:
    if len(given) != HASH_BYTES:
        raise LedgerError(f"{what} has {len(given)} bytes, not {HASH_BYTES}")


def _refuse_shape(proof: Sequence[bytes], wanted: int, what: str) -> None:
    if len(proof) != wanted:
        raise LedgerError(f"a proof for {what} has {wanted} hashes, this one {len(proof)}")
    for place, given in enumerate(proof):
        _refuse_length(given, f"hash {place} of the proof")


def _refuse_root(found: bytes, wanted: bytes, what: str, size: int) -> None:
    if found != wanted:
        raise LedgerError(f"{what} {found.hex()}, not to the root {wanted.hex()} of {size} leaves")
