"""Candidates for a query, by vector and by text, from the namespaces that a scope can see into.

What a search needs lies in rows all over the file: vectors, words, lineage. It is kept in arrays as well, one set a
namespace, derived from the tables, followed up by the ledger and bounded in bytes (`derived.py`). They are trusted
for what cannot change and for nothing else: what a hit says, what state it is in and whether it may be shown is read
from the tables every time.

`columns.py` has the arrays, `namespace.py` fills them, `postings.py` is full text, `pool.py` one search over them.
"""

from __future__ import annotations

from memlineage.store.search.pool import Pool
from memlineage.store.search.search import Search
from memlineage.store.search.sight import Sight, listed

__all__ = ["Pool", "Search", "Sight", "listed"]
