"""How long calls took, in so little room that half an hour of them fits: buckets that grow by a twentieth each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Final, Self

__all__ = ["Latencies"]

_STEP: Final = math.log(1.05)
_LEAST: Final = 1e-6


class Latencies:
    """Counts of calls by duration. A quantile is right to within the width of a bucket, five percent."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self._counts: Counter[int] = Counter(counts or {})

    def add(self, seconds: float) -> None:
        """One call."""
        self._counts[max(0, round(math.log(max(seconds, _LEAST) / _LEAST) / _STEP))] += 1

    def merge(self, other: Self) -> None:
        """All calls of another."""
        self._counts.update(other._counts)

    def counts(self) -> dict[int, int]:
        """Bucket -> calls, to be written down and read back."""
        return dict(self._counts)

    def quantile(self, share: float) -> float:
        """Seconds that this share of the calls took at most; 0 if there were none."""
        rank = math.ceil(share * len(self))
        for bucket in sorted(self._counts):
            rank -= self._counts[bucket]
            if rank <= 0:
                return _LEAST * math.exp(bucket * _STEP)
        return 0.0

    def __len__(self) -> int:
        return self._counts.total()
