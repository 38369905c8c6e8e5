"""Finding things in a store: the embedder that filled it, and the unit that a short ref means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from memlineage.engine.opening import filled_by
from memlineage.errors import CapabilityError, InvalidInputError, UnknownUnitError
from memlineage.model.state import Status
from memlineage.recall.embedders import by_name
from memlineage.store.database import Database

if TYPE_CHECKING:
    from memlineage.engine.scope import Scope
    from memlineage.recall.embedding import Embedder, Vectors

__all__ = ["AbsentEmbedder", "known_embedder", "named", "named_all", "weighted"]

_FULL: Final = 36
_TAIL: Final = re.compile(r"([0-9a-f-]{1,36})(@[1-9][0-9]{0,8})?")
_LISTED: Final = 5


class AbsentEmbedder:
    """Stands for the embedder of a store that is not installed here: everything but embedding goes on working.

    Attributes:
        name: of the embedder that filled the store.
        dimension: of its vectors.
        vector_share: unused.
        noise: unused.
    """

    vector_share: Final = 0.0
    noise: Final = 0.0

    def __init__(self, name: str, dimension: int) -> None:
        self.name = name
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Raises `CapabilityError`."""
        self._refuse()

    def embed_query(self, text: str) -> Vectors:
        """Raises `CapabilityError`."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise CapabilityError(
            f"this memory was filled by embedder {self.name!r}, which is not there; install its extra, or compute the "
            "vectors anew: memlineage reembed DB --embedder NAME"
        )


def known_embedder(path: Path) -> Embedder | None:
    """The embedder that filled the file; None for a new one."""
    if not path.exists():
        return None
    database = Database(str(path))
    try:
        filled = filled_by(database)
    finally:
        database.close()
    if filled is None:
        return None
    try:
        return by_name(filled[0])
    except (InvalidInputError, CapabilityError):
        return AbsentEmbedder(*filled)


def named(scope: Scope, text: str) -> str:
    """The full id or ref that a person means: whole, or by an unambiguous tail of the id, as tables print it."""
    match = _TAIL.fullmatch(text.lower())
    if match is None:
        raise InvalidInputError(f"{text[:80]!r} is not an id; give an id, or its last digits, with @version if wanted")
    tail, version = match[1], match[2] or ""
    if len(tail) == _FULL:
        return tail + version
    page = scope.list(filter={"id": {"contains": tail}}, status=[status.value for status in Status])
    seen = (*(unit.id for unit in page), *(held.ref.id for held in page.withheld))
    found = sorted({known for known in seen if known.endswith(tail)})
    if not found:
        raise UnknownUnitError(f"no unit that this scope can see has an id that ends in {tail}")
    if len(found) > 1:
        more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        raise InvalidInputError(f"{tail} ends several ids: {', '.join(found[:_LISTED])}{more}; give more digits")
    return found[0] + version


def named_all(scope: Scope, texts: Iterable[str]) -> list[str]:
    """Several of them."""
    return [named(scope, text) for text in texts]


def weighted(scope: Scope, texts: Iterable[str]) -> dict[str, float] | None:
    """Parents as `ID` or `ID=WEIGHT`; None if there are none."""
    found: dict[str, float] = {}
    for text in texts:
        ref, equals, weight = text.partition("=")
        try:
            found[named(scope, ref)] = float(weight) if equals else 1.0
        except ValueError as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"{text[:80]!r}: the weight after '=' is a number in (0, 1]") from None
    return found or None
