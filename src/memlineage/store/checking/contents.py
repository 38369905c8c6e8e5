"""What is derived from contents: normal forms, the text index, vectors.

The text index keeps, per stem, where it occurs; contents say, per version, which stems it has. To compare the two in
one pass each, without sorting either, both are summed up to one number per version: over its words, a random number of
the stem times a random number of the place, modulo 2^64. The numbers are drawn anew for every check, so two different
lists of words come out alike by luck alone, once in 2^63.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import chain
from typing import Any, Final, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from memlineage.model.content import form_key
from memlineage.recall.embedding import BLOB_TYPE
from memlineage.recall.text import index_terms
from memlineage.store.checking.frame import numbers
from memlineage.store.database import Connection

__all__ = ["Embed", "Odd", "check_contents"]

Embed = Callable[[Sequence[str]], Sequence[bytes]]
"""Vectors of texts, as they are stored."""
Odd = Callable[[int, str, str], None]
"""Told of a version that does not fit: its number, what of it (`form`, `text`, `vector`), and the problem."""
Tick = Callable[[int], None]
"""Told how many versions are done."""

_BATCH: Final = 1024
_ROUNDING: Final = 2**-10  # one step of a stored component near 1: embedders need not sum in the same order twice
_PLACE_BITS: Final = 22  # a text has at most a million characters, so fewer places
_LONGEST: Final = 32_768  # FTS5 cuts longer stems
_REMEMBERED: Final = 500_000


class _Content(NamedTuple):
    """What a version says, and what was derived from that. `vector` is left out where vectors are not asked about."""

    n: int
    ns: int
    content: str | None
    form: bytes
    vector: bytes | None


def check_contents(connection: Connection, count: int, odd: Odd, embed: Embed | None, tick: Tick) -> None:
    """Form, words and vector of versions 1 to `count`, from inside a snapshot. Without `embed`, no vectors."""
    words = _Words(connection, count)
    for batch in _batches(connection, vectors=embed is not None):
        said = [item for item in batch if item.content is not None]
        _check_forms(said, odd)
        words.expect(said)
        if embed is not None:
            _check_vectors(batch, said, embed, odd)
        tick(batch[-1].n)
    words.compare(odd)


def _batches(connection: Connection, *, vectors: bool) -> Iterator[list[_Content]]:
    vector = "vector" if vectors else "NULL"
    rows = connection.execute(f"SELECT n, ns, content, form, {vector} FROM version WHERE n > 0 ORDER BY n")
    batch: list[_Content] = []
    for row in rows:
        batch.append(_Content._make(row))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _check_forms(said: Iterable[_Content], odd: Odd) -> None:
    for item in said:
        if item.content is not None and form_key(item.content) != item.form:
            odd(item.n, "form", "its normal form is not that of its content")


# Vectors -----------------------------------------------------------------------------------------------------------


def _check_vectors(batch: Iterable[_Content], said: Sequence[_Content], embed: Embed, odd: Odd) -> None:
    wanted = embed([item.content or "" for item in said])
    for item, vector in zip(said, wanted, strict=True):
        if item.vector != vector and not _close(item.vector, vector):
            odd(item.n, "vector", "its vector is not what the embedder gives for its content")
    for item in batch:
        if item.content is None and item.vector is not None:
            odd(item.n, "vector", "has a vector, and no content")


def _close(stored: bytes | None, wanted: bytes) -> bool:
    if stored is None or len(stored) != len(wanted):
        return False
    mine, other = (np.frombuffer(blob, BLOB_TYPE).astype(np.float32) for blob in (stored, wanted))
    return bool(np.allclose(mine, other, rtol=0, atol=_ROUNDING))


# Words -------------------------------------------------------------------------------------------------------------


class _Words:
    """The words that contents have, and those that the index has, each summed up to a number per version."""

    def __init__(self, connection: Connection, count: int) -> None:
        self._connection = connection
        self._secret = os.urandom(32)
        self._mix = np.uint64(int.from_bytes(os.urandom(8), "little"))
        self._tokenizer: Any = connection.fts5_tokenizer("porter", ["unicode61"])
        self._stems: dict[str, tuple[int, ...]] = {}
        self._wanted = np.zeros(count + 1, np.uint64)
        self._lengths = np.full(count + 1, -1, np.int32)

    def expect(self, said: Sequence[_Content]) -> None:
        """Add up what these contents say."""
        if not said:
            return
        stems = [self._of(item) for item in said]
        lengths = np.array([len(found) for found in stems])
        flat = np.fromiter(chain.from_iterable(stems), np.uint64, int(lengths.sum()))
        starts = np.cumsum(lengths) - lengths
        # The first stem of each names the namespace: a column of its own, where it is at place 0 too.
        places = np.arange(len(flat)) - np.repeat(starts, lengths) - 1 + (1 << _PLACE_BITS)
        places[starts] = 0
        whose = np.array([item.n for item in said])
        self._wanted[whose] = np.add.reduceat(flat * self._place(places), starts)
        self._lengths[whose] = lengths - 1

    def _of(self, item: _Content) -> list[int]:
        known = self._stems
        found = list(self._hashes(f"ns{item.ns}"))
        for token in index_terms(item.content or "").split(" "):
            found += known[token] if token in known else self._hashes(token)
        return found

    def _hashes(self, token: str) -> tuple[int, ...]:
        """A random number for each stem of a token, remembered for the next."""
        if token not in self._stems:
            if len(self._stems) >= _REMEMBERED:
                self._stems.clear()
            stems = self._tokenizer(
                token.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
            )
            self._stems[token] = tuple(self._hash(stem.encode()[:_LONGEST]) for stem in stems)
        return self._stems[token]

    def _hash(self, stem: bytes) -> int:
        return int.from_bytes(blake2b(stem, digest_size=8, key=self._secret).digest(), "little")

    def _place(self, places: NDArray[np.int64]) -> NDArray[np.uint64]:
        """A random number for each place (splitmix64)."""
        x = (places.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + self._mix
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

    def compare(self, odd: Odd) -> None:
        """What the index has, against it."""
        found, strangers = self._indexed()
        said = self._lengths >= 0
        wrong = found != self._wanted
        for n, size in self._connection.execute("SELECT id, sz FROM text_docsize"):
            if not 0 < n < len(said) or not said[n]:
                strangers.add(n)
            elif size != b"\x01" + _varint(int(self._lengths[n])):
                wrong[n] = True
        strangers |= set(np.flatnonzero(wrong & ~said).tolist())
        listed = numbers(self._connection, "SELECT rowid FROM text", 1)[:, 0]
        there = np.zeros(len(said), np.bool_)
        there[listed[(listed > 0) & (listed < len(said))]] = True
        for n in sorted(strangers):
            odd(n, "text", "is in the text index, and must not be")
        for n in np.flatnonzero(said & ~there).tolist():
            odd(n, "text", "is not in the text index")
        for n in np.flatnonzero(said & there & wrong).tolist():
            odd(n, "text", "its words in the text index are not those of its content")

    def _indexed(self) -> tuple[NDArray[np.uint64], set[int]]:
        """The sums over the index, and which of its entries are of no version."""
        sums = np.zeros_like(self._wanted)
        strangers: set[int] = set()
        with _vocabulary(self._connection) as table:
            # In the order of the stems, so that SQLite puts each one's occurrences together as it goes.
            for stem, places in self._connection.execute(
                f"SELECT CAST(term AS BLOB), group_concat(((doc << 1) + (col = 'terms') << {_PLACE_BITS}) + offset)"
                f" FROM {table} GROUP BY term"
            ):
                packed = np.fromstring(places, np.int64, sep=",")
                doc, place = packed >> _PLACE_BITS + 1, packed & (1 << _PLACE_BITS + 1) - 1
                inside = (doc > 0) & (doc < len(sums))
                strangers.update(doc[~inside].tolist())
                np.add.at(sums, doc[inside], np.uint64(self._hash(bytes(stem))) * self._place(place[inside]))
        return sums, strangers


def _varint(number: int) -> bytes:
    """As SQLite writes an integer: seven bits a byte, the highest first."""
    parts = [number & 0x7F]
    while number := number >> 7:
        parts.append(number & 0x7F | 0x80)
    return bytes(reversed(parts))


@contextmanager
def _vocabulary(connection: Connection) -> Iterator[str]:
    """The index, occurrence by occurrence. Readers may not write, and SQLite counts a temporary table as writing."""
    refused = connection.pragma("query_only")
    connection.pragma("query_only", 0)
    try:
        # FTS5 renews what it remembers of its index when it is asked something, but not when it is walked.
        connection.execute("SELECT rowid FROM text WHERE text MATCH 'ns : ns1'").fetchall()
        connection.execute("DROP TABLE IF EXISTS temp.occurrence")  # left by a check that was interrupted
        connection.execute("CREATE VIRTUAL TABLE temp.occurrence USING fts5vocab (main, text, instance)")
        yield "temp.occurrence"
        connection.execute("DROP TABLE temp.occurrence")
    finally:
        connection.pragma("query_only", refused)
