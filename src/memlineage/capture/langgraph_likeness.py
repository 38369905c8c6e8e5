"""How like a query the items of a LangGraph store are: by the best of what is searched of each.

Of an item whose whole value is searched, as is usual, the memory has a vector already. Vectors of single fields are
made when they are first searched, and remembered for a while.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from langgraph.store.base import get_text_at_path, tokenize_path

from memlineage.capture.langgraph_items import Kept
from memlineage.recall.embedding import BLOB_TYPE, Embedder, embed_texts
from memlineage.store.database import Connection, ids

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

__all__ = ["Likeness"]

_REMEMBERED: Final = 8192
_WHOLE: Final = "$"
_VECTORS: Final = "SELECT v.n, v.vector FROM carray(?1) c CROSS JOIN version v ON v.n = c.value"


class Likeness:
    """Ranks items. Thread-safe."""

    def __init__(self, fields: Sequence[str] | None) -> None:
        """`fields` are the paths that are searched of what does not say."""
        self._fields = tuple(fields) if fields else (_WHOLE,)
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Vector] = OrderedDict()

    def ranked(
        self, connection: Connection, embedder: Embedder, items: Sequence[Kept], wanted: Vector
    ) -> list[tuple[Kept, float | None]]:
        """Nearest first, each with its cosine; behind them, in their order, those of which nothing is searched."""
        likeness: dict[int, float] = {}
        for n, score in (*self._whole(connection, items, wanted), *self._by_field(embedder, items, wanted)):
            likeness[n] = max(score, likeness.get(n, score))
        scored = [(item, likeness[item.n]) for item in items if item.n in likeness]
        rest = [(item, None) for item in items if item.n not in likeness]
        return [*sorted(scored, key=lambda pair: -pair[1]), *rest]

    def _paths(self, item: Kept) -> Sequence[str]:
        return () if item.index is False else item.index or self._fields

    def _whole(self, connection: Connection, items: Sequence[Kept], wanted: Vector) -> list[tuple[int, float]]:
        import numpy as np

        numbers = [item.n for item in items if _WHOLE in self._paths(item)]
        rows = connection.execute(_VECTORS, (ids(numbers),)) if numbers else ()
        found = [(n, np.frombuffer(blob, BLOB_TYPE)) for n, blob in rows if blob]
        if not found:
            return []
        scores = np.array([vector for _, vector in found], np.float32) @ wanted
        return [(n, float(score)) for (n, _), score in zip(found, scores, strict=True)]

    def _by_field(
        self, embedder: Embedder, items: Sequence[Kept], wanted: Vector
    ) -> list[tuple[int, float]]:  # fmt: skip
        texts = {item.n: self._texts(item) for item in items}
        vectors = self._vectors(embedder, (text for found in texts.values() for text in found))
        return [(n, float(vectors[text] @ wanted)) for n, found in texts.items() for text in found]

    def _texts(self, item: Kept) -> list[str]:
        paths = [path for path in self._paths(item) if path != _WHOLE]
        return [text for path in paths for text in get_text_at_path(item.value, tokenize_path(path))]

    def _vectors(self, embedder: Embedder, texts: Iterable[str]) -> dict[str, Vector]:
        wanted, name = dict.fromkeys(texts), embedder.name
        with self._lock:
            found = {text: self._known[name, text] for text in wanted if (name, text) in self._known}
        missing = [text for text in wanted if text not in found]
        fresh = dict(zip(missing, embed_texts(embedder, missing), strict=True))
        with self._lock:
            self._known.update({(name, text): vector for text, vector in fresh.items()})
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found | fresh
