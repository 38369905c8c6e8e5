"""What is derived for searching and deciding: text index, vectors, embedder, and what follows from policy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw
import numpy as np
import orjson

from memlineage.engine.facts import new_facts
from memlineage.engine.memory import Memory
from memlineage.policy import Facts, valid_until
from memlineage.policy.fast.fields import may_matter
from memlineage.recall.embedding import embed_texts, to_blob
from memlineage.recall.text import index_terms
from memlineage.recall.vectors import from_blob
from memlineage.store.database import Connection
from memlineage.testing.tables import Tables

__all__ = ["searchable_findings"]

Words = dict[int, list[tuple[str, int, str]]]
"""Per row of a text index: column, position, stem."""
_BATCH: Final = 500
_ROUNDING: Final = 2**-10  # one step of a stored component near 1: embedders need not sum in the same order twice


def searchable_findings(connection: Connection, tables: Tables, memory: Memory) -> Iterator[str]:
    """What is wrong with what is derived from contents, each naming the row."""
    yield from _text(connection, tables)
    yield from _vectors(tables, memory)
    yield from _limits(tables, memory)
    yield from _masks(connection, tables, memory)


def _text(connection: Connection, tables: Tables) -> Iterator[str]:
    """Every word of the index stands in a content, and every word of a content in the index."""
    expected = apsw.Connection(":memory:")
    expected.execute(str(connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'text'").get))
    expected.executemany(
        "INSERT INTO text (rowid, ns, terms) VALUES (?, ?, ?)",
        [(n, f"ns{r.ns}", index_terms(r.content)) for n, r in tables.versions.items() if r.content is not None],
    )
    wanted, found = _words(expected), _words(connection)
    expected.close()
    for n in sorted(wanted.keys() | found.keys()):
        if n not in found:
            yield f"{tables.label(n)}: is not in the text index"
        elif n not in wanted:
            yield f"{tables.label(n)}: is in the text index, and must not be"
        elif wanted[n] != found[n]:
            odd = sorted(set(wanted[n]) ^ set(found[n]))[:3]
            yield f"{tables.label(n)}: its words in the text index are not those of its content, e.g. {odd}"


def _words(connection: Connection) -> Words:
    words: Words = defaultdict(list)
    for (n,) in connection.execute("SELECT rowid FROM text"):
        words[n] = []
    with _temporary(connection):
        connection.execute("CREATE VIRTUAL TABLE temp.checked_words USING fts5vocab (main, text, instance)")
        try:
            for term, n, column, offset in connection.execute("SELECT term, doc, col, offset FROM checked_words"):
                words[n].append((column, offset, term))
        finally:
            connection.execute("DROP TABLE temp.checked_words")
    return {n: sorted(found) for n, found in words.items()}


@contextmanager
def _temporary(connection: Connection) -> Iterator[None]:
    """Readers may not write, and SQLite counts a temporary table as writing."""
    refused = connection.pragma("query_only")
    connection.pragma("query_only", 0)
    try:
        yield
    finally:
        connection.pragma("query_only", refused)


def _vectors(tables: Tables, memory: Memory) -> Iterator[str]:
    embedder = memory.embedder
    mine = f"{embedder.name}/{embedder.dimension}"
    if tables.meta.get("embedder") != mine:
        yield f"meta embedder: {tables.meta.get('embedder')} is not the memory's own, {mine}"
        return
    said = [(n, row.content) for n, row in tables.versions.items() if row.content is not None]
    for start in range(0, len(said), _BATCH):
        batch = said[start : start + _BATCH]
        vectors = embed_texts(embedder, [content for _, content in batch])
        for (n, _), vector in zip(batch, vectors, strict=True):
            if not _same_vector(tables.versions[n].vector, to_blob(vector)):
                yield f"{tables.label(n)}: its vector is not what {embedder.name} gives for its content"
    for n, row in tables.versions.items():
        if row.content is None and row.vector is not None:
            yield f"{tables.label(n)}: is erased and has a vector"


def _same_vector(stored: bytes | None, computed: bytes) -> bool:
    if stored is None or len(stored) != len(computed):
        return False
    return stored == computed or bool(np.allclose(from_blob(stored), from_blob(computed), rtol=0, atol=_ROUNDING))


def _limits(tables: Tables, memory: Memory) -> Iterator[str]:
    """When a version counts as expired: by its own word, or by the policies that are in force."""
    if tables.meta.get("policy") != memory.policies.revision:
        return  # another process has taken another generation into force
    for n, row in tables.versions.items():
        if row.content is None:
            continue
        facts = Facts(unit=new_facts(tables.as_written(row, competes=True), row.recorded_us), now_us=row.recorded_us)
        limits = (row.expires_us, row.valid_to_us, valid_until(memory.policies, facts))
        expected = min((limit for limit in limits if limit is not None), default=None)
        if row.valid_until != expected:
            yield f"{tables.label(n)}: valid_until is {row.valid_until}, must be {expected}"


def _masks(connection: Connection, tables: Tables, memory: Memory) -> Iterator[str]:
    """Which rules can matter, by the policies that are in force; by others that were, only as many bits as rules."""
    policies = memory.policies
    rooms = {
        revision[:16]: (len(orjson.loads(body)["rules"]) + 7) // 8
        for revision, body in connection.execute("SELECT revision, body FROM generation")
    }
    for n, row in tables.versions.items():
        if row.mask is None:
            continue
        head, bits = row.mask[:8].hex(), row.mask[8:]
        if row.content is None:
            yield f"{tables.label(n)}: is erased and has a mask"
        elif rooms.get(head) != len(bits):
            yield f"{tables.label(n)}: its mask is of no policy that was in force"
        elif head == policies.revision[:16]:
            unit = new_facts(tables.as_written(row, competes=True), row.recorded_us)
            expected = sum(1 << place for place, rule in enumerate(policies.rules) if may_matter(rule, unit))
            if int.from_bytes(bits, "little") != expected:
                yield f"{tables.label(n)}: its mask marks {bits.hex()}, must mark {expected:b}"
