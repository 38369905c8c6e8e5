"""From found to ranked, in two steps (row D1).

Fusion. The vector side and the full-text side are each brought to [0, 1] and mixed by the embedder's share:

    semantic = share * vector + (1 - share) * text

vector is how far the cosine rises above what unrelated texts have (the embedder's noise), relative to the best
candidate; text is BM25 relative to the best. A convex mix of scores beats one of ranks where the two sides differ in
strength (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023). A side that found
nothing has no say.

Lineage. The write-up's formula, with recency as an option:

    total = .3 * semantic + .5 * exp(-distance) + .2 * importance   (+ recency * 2**(-age / half_life))

distance counts undirected hops to the focus; what is not connected has affinity 0. Without a focus the weight of
affinity goes to the others in proportion. Weights are scaled to sum to 1, so that a total is in [0, 1] and
comparable between profiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from memlineage.errors import InvalidInputError
from memlineage.recall.importance import half_life_decay, unit_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "PROFILES",
    "Candidates",
    "LineageRanker",
    "Ranker",
    "Ranking",
    "Score",
    "Weights",
    "fuse",
    "weights_for",
]

_LEAST_SPAN: Final = 0.25
"""The best cosine counts as at least this far up from noise to 1: what is barely above noise stays low."""
_DIGITS: Final = 12
"""Totals that agree to this many digits are equal, and the id decides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """What counts in the lineage ranking; only ratios matter.

    Attributes:
        semantic: likeness to the question.
        affinity: closeness to the focus in the graph.
        importance: place in the graph, credibility.
        recency: youth; off by default, since importance holds some.
        half_life_days: age at which recency is one half.
    """

    semantic: float = 0.3
    affinity: float = 0.5
    importance: float = 0.2
    recency: float = 0.0
    half_life_days: float = 30.0

    def __post_init__(self) -> None:
        for name in ("semantic", "affinity", "importance", "recency", "half_life_days"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
                raise InvalidInputError(f"weight {name}={value!r} must be a finite number, not negative")
        if self.semantic + self.affinity + self.importance + self.recency == 0:
            raise InvalidInputError("all ranking weights are 0; give at least one more")
        if self.half_life_days == 0:
            raise InvalidInputError("half_life_days=0; give a time in days")

    def shares(self, *, focused: bool) -> tuple[float, float, float, float]:
        """Semantic, affinity, importance, recency, scaled to sum to 1; affinity is 0 without a focus."""
        affinity = self.affinity if focused else 0.0
        total = self.semantic + affinity + self.importance + self.recency
        if total == 0:  # affinity was all that counted, and there is no focus
            return (1.0, 0.0, 0.0, 0.0)
        return (self.semantic / total, affinity / total, self.importance / total, self.recency / total)


PROFILES: Final[Mapping[str, Weights]] = MappingProxyType(
    {
        "default": Weights(),
        "answering": Weights(semantic=0.6, affinity=0.2, importance=0.1, recency=0.1),
        "planning": Weights(semantic=0.2, affinity=0.55, importance=0.2, recency=0.05),
        "writing": Weights(semantic=0.4, affinity=0.2, importance=0.3, recency=0.1),
    }
)
"""Weights by kind of task: an answer wants likeness, a plan what it hangs on, a text what matters on the whole."""


class Score(NamedTuple):
    """Why a unit stands where it stands. Every part is in [0, 1], before its weight.

    Attributes:
        total: what it is ordered by.
        semantic: likeness to the question.
        affinity: exp(-hops to the focus); 0 if not connected or without focus.
        importance: as given.
        recency: one half after each half-life; 0 if ages were not given.
    """

    total: float
    semantic: float
    affinity: float
    importance: float
    recency: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Candidates:
    """What is to be ranked: arrays of one length.

    Attributes:
        ids: integer ids.
        semantic: in [0, 1], from `fuse`; 0 for one that came by lineage alone.
        importance: in [0, 1].
        distance: undirected hops to the focus, infinite if not connected; None without a focus.
        age_us: microseconds since recorded or observed; None to leave recency out.
    """

    ids: NDArray[np.int64]
    semantic: NDArray[np.float64]
    importance: NDArray[np.float64]
    distance: NDArray[np.float64] | None = None
    age_us: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for name in ("semantic", "importance", "distance", "age_us"):
            values = getattr(self, name)
            if values is None:
                continue
            if values.shape != self.ids.shape:
                raise InvalidInputError(f"{name} has shape {values.shape}, ids have {self.ids.shape}")
            if np.isnan(values).any():
                raise InvalidInputError(f"{name} holds NaN; write 0, or infinity for a distance")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ranking:
    """Candidates in order, best first. All arrays have one length and one order.

    Attributes:
        ids: integer ids.
        total: what they are ordered by.
        semantic: part, as in `Score`.
        affinity: part.
        importance: part.
        recency: part.
        shares: what the four parts weighed.
    """

    ids: NDArray[np.int64]
    total: NDArray[np.float64]
    semantic: NDArray[np.float64]
    affinity: NDArray[np.float64]
    importance: NDArray[np.float64]
    recency: NDArray[np.float64]
    shares: tuple[float, float, float, float]

    def __len__(self) -> int:
        return len(self.ids)

    def score(self, place: int) -> Score:
        """The parts of the one at that place, 0 being the best."""
        return Score(
            total=float(self.total[place]),
            semantic=float(self.semantic[place]),
            affinity=float(self.affinity[place]),
            importance=float(self.importance[place]),
            recency=float(self.recency[place]),
        )


class Ranker(Protocol):
    """What orders candidates. Plug your own in; it must order all of them and be deterministic."""

    def rank(self, candidates: Candidates) -> Ranking:
        """The candidates, best first."""


class LineageRanker:
    """The write-up's ranking under given weights; equal totals are ordered by rising id."""

    def __init__(self, weights: Weights | None = None) -> None:
        """`Weights()`, the write-up's, if left out."""
        self.weights = weights or Weights()

    def rank(self, candidates: Candidates) -> Ranking:
        """Total and parts of each, best first."""
        count = len(candidates.ids)
        shares = self.weights.shares(focused=candidates.distance is not None)
        semantic = unit_interval(candidates.semantic)
        importance = unit_interval(candidates.importance)
        affinity = np.zeros(count) if candidates.distance is None else np.exp(-np.maximum(candidates.distance, 0.0))
        recency = (
            np.zeros(count)
            if candidates.age_us is None
            else half_life_decay(candidates.age_us, self.weights.half_life_days)
        )
        total = shares[0] * semantic + shares[1] * affinity + shares[2] * importance + shares[3] * recency
        order = np.lexsort((candidates.ids, -np.round(total, _DIGITS)))
        return Ranking(
            ids=candidates.ids[order],
            total=total[order],
            semantic=semantic[order],
            affinity=affinity[order],
            importance=importance[order],
            recency=recency[order],
            shares=shares,
        )

    def __repr__(self) -> str:
        return f"LineageRanker({self.weights!r})"


def weights_for(profile: str | Weights | None) -> Weights:
    """The weights of a profile by name; weights pass through, None means `default`."""
    if isinstance(profile, Weights):
        return profile
    found = PROFILES.get(profile or "default")
    if found is None:
        raise InvalidInputError(f"profile={profile!r} is not one of {', '.join(PROFILES)}; or pass Weights(…)")
    return found


def fuse(cosine: ArrayLike, bm25: ArrayLike, *, vector_share: float, noise: float = 0.0) -> NDArray[np.float64]:
    """One semantic score in [0, 1] for each candidate.

    Args:
        cosine: of each to the query, in [-1, 1]; 0 if it has no vector.
        bm25: as FTS5's `bm25()` gives it, better being more negative; 0 if the text did not match.
        vector_share: the embedder's.
        noise: the embedder's.
    """
    if not 0 <= vector_share <= 1 or not 0 <= noise < 1:
        raise InvalidInputError(f"{vector_share=} must be in [0, 1] and {noise=} in [0, 1)")
    near = np.maximum(np.asarray(cosine, dtype=np.float64) - noise, 0.0)
    matched = np.maximum(-np.asarray(bm25, dtype=np.float64), 0.0)
    nearest = float(near.max(initial=0.0))
    best = float(matched.max(initial=0.0))
    if best == 0.0:
        vector_share = 1.0
    elif nearest == 0.0:
        vector_share = 0.0
    vector = np.minimum(near / max(nearest, _LEAST_SPAN * (1.0 - noise)), 1.0)
    text = matched / best if best > 0.0 else matched
    return np.asarray(vector_share * vector + (1.0 - vector_share) * text, dtype=np.float64)
