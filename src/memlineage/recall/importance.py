"""How much a memory matters by its place in the graph (row D5).

A weighted mean of six terms in [0, 1]: a root carries what stands on it; fan-out counts children by other
creators (one's own do not count, semantics.md section 9) and saturates, so that the tenth child adds less than the
first; what lies near the roots outranks what lies deep; age halves; confidence counts as given; pinned is the
user's word.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

import numpy as np

from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["DAY_US", "ImportanceWeights", "half_life_decay", "importance", "unit_interval"]

DAY_US: Final = 86_400_000_000
"""Microseconds in a day."""
UNKNOWN_CONFIDENCE: Final = 0.5
"""What counts where nobody said."""

_HALF_FAN: Final = 3.0
"""Children at which fan-out reaches one half."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportanceWeights:
    """What each term weighs; only their ratios count.

    Attributes:
        root: it has no parents.
        fan_out: children by other creators.
        depth: nearness to the roots.
        age: youth.
        confidence: as given.
        pinned: pinned by the user.
        half_life_days: age at which youth is one half.
    """

    root: float = 0.25
    fan_out: float = 0.25
    depth: float = 0.1
    age: float = 0.15
    confidence: float = 0.15
    pinned: float = 0.1
    half_life_days: float = 30.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not np.isfinite(value) or value < 0:
                raise InvalidInputError(f"importance weight {field.name}={value} must be finite and not negative")
        if self.total == 0 or self.half_life_days == 0:
            raise InvalidInputError("importance needs a weight above 0 and a half-life above 0")

    @property
    def total(self) -> float:
        """Sum of the six weights."""
        return self.root + self.fan_out + self.depth + self.age + self.confidence + self.pinned


def importance(
    *,
    root: ArrayLike,
    fan_out: ArrayLike,
    depth: ArrayLike,
    age_us: ArrayLike,
    confidence: ArrayLike,
    pinned: ArrayLike,
    weights: ImportanceWeights | None = None,
) -> NDArray[np.float64]:
    """Importance in [0, 1] of many units at once; arrays of one shape, or scalars that hold for all.

    Args:
        root: whether it has no parents.
        fan_out: number of children by other creators.
        depth: longest way up to a root, in edges; 0 for a root.
        age_us: microseconds since it was recorded; negative counts as 0.
        confidence: in [0, 1]; NaN where nobody said.
        pinned: whether the user pinned it.
        weights: what each term weighs; `ImportanceWeights()` if left out.
    """
    weights = weights or ImportanceWeights()
    children = np.maximum(np.asarray(fan_out, dtype=np.float64), 0.0)
    confident = np.asarray(confidence, dtype=np.float64)
    confident = np.where(np.isnan(confident), UNKNOWN_CONFIDENCE, unit_interval(confident))
    parts = (
        weights.root * np.asarray(root, dtype=np.float64)
        + weights.fan_out * (children / (children + _HALF_FAN))
        + weights.depth / (1.0 + np.maximum(np.asarray(depth, dtype=np.float64), 0.0))
        + weights.age * half_life_decay(age_us, weights.half_life_days)
        + weights.confidence * confident
        + weights.pinned * np.asarray(pinned, dtype=np.float64)
    )
    return unit_interval(parts / weights.total)


def half_life_decay(age_us: ArrayLike, half_life_days: float) -> NDArray[np.float64]:
    """1 for what is new, one half after each half-life; what lies ahead of now counts as new."""
    days = np.maximum(np.asarray(age_us, dtype=np.float64), 0.0) / DAY_US
    return np.asarray(np.exp2(-days / half_life_days), dtype=np.float64)


def unit_interval(values: ArrayLike) -> NDArray[np.float64]:
    """Values cut off at 0 and 1. (`np.clip` takes ten times as long for a few hundred.)"""
    return np.asarray(np.minimum(np.maximum(values, 0.0), 1.0), dtype=np.float64)
