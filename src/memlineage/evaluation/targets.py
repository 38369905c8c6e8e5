"""What the figures are meant to be, and whether they are (docs/features.md has what is missed, and why).

Where a target names a time, it is for two cores of the kind that it was set on; ratios travel better.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from memlineage.evaluation.measuring import Figure, Footprint

__all__ = ["Judged", "Target", "judged", "targets_of"]

Quantity = Literal["ratio", "seconds", "rate", "bytes"]


class Target(msgspec.Struct, frozen=True):
    """A bound on a figure.

    Attributes:
        quantity: `ratio` to its floor, `seconds` of one operation, `rate` in items per second, or `bytes`.
        limit: at least this for a rate, at most this for all else.
    """

    quantity: Quantity
    limit: float

    def met_by(self, value: float) -> bool:
        """Whether a value is within the bound."""
        return value >= self.limit if self.quantity == "rate" else value <= self.limit


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A target, and whether it was met."""

    target: Target
    met: bool


_ANY: Final = 0
_TARGETS: Final[dict[tuple[str, str, int], tuple[Target, ...]]] = {
    ("capture", "a step of the model", _ANY): (Target("seconds", 0.3e-3),),
    ("capture", "a call of a tool", _ANY): (Target("seconds", 0.3e-3),),
    ("store", "one, FULL", _ANY): (Target("ratio", 1.8),),
    ("store", "one, NORMAL", _ANY): (Target("ratio", 12),),
    ("store", "batch of 1,000", _ANY): (Target("rate", 15_000),),
    ("retrieve", "English", 1_000): (Target("seconds", 1e-3),),
    ("retrieve", "Chinese", 1_000): (Target("seconds", 1e-3),),
    ("retrieve", "English", 100_000): (Target("seconds", 8e-3), Target("ratio", 1.6)),
    ("retrieve", "Chinese", 100_000): (Target("seconds", 8e-3), Target("ratio", 1.6)),
    ("cascade", "descendants", 1_000): (Target("seconds", 0.3e-3),),
    ("cascade", "descendants", 100_000): (Target("seconds", 6e-3),),
    ("cascade", "descendants", 1_000_000): (Target("seconds", 90e-3),),
    ("cascade", "invalidate, FULL", 100_000): (Target("seconds", 60e-3),),
    ("cascade", "invalidate, FULL", 1_000_000): (Target("seconds", 600e-3),),
    ("cascade", "explain, three levels", _ANY): (Target("seconds", 0.3e-3),),
    ("policy", "mask at write, 100 rules", _ANY): (Target("seconds", 10e-6),),
    ("policy", "mask at write, 1,000 rules", _ANY): (Target("seconds", 65e-6),),
    ("policy", "allowed refs, 100 rules", 200): (Target("seconds", 30e-6),),
    ("policy", "allowed refs, 1,000 rules", 200): (Target("seconds", 60e-6),),
    ("policy", "refs, score, cost, 100 rules", 200): (Target("seconds", 50e-6),),
    ("policy", "refs, score, cost, 1,000 rules", 200): (Target("seconds", 230e-6),),
    ("policy", "allowed refs, 100 rules", 10_000): (Target("seconds", 0.35e-3),),
    ("policy", "simulate a changed rule, 100 rules", 1_000_000): (Target("seconds", 0.1),),
    ("rules", "retrieve, 1,000 rules", _ANY): (Target("ratio", 1.15),),
    ("rules", "invalidate, FULL, 1,000 rules", 100_000): (Target("seconds", 60e-3),),
    ("open", "to the first answer", 1_000_000): (Target("seconds", 0.3),),
    ("cascade", "graph index in memory", 1_000_000): (Target("bytes", 60e6),),
}


def targets_of(figure: Figure | Footprint) -> tuple[Target, ...]:
    """What was asked of it, at its size or at any; nothing for most."""
    key = figure.benchmark, figure.case
    return _TARGETS.get((*key, figure.size)) or _TARGETS.get((*key, _ANY), ())


def judged(figure: Figure | Footprint) -> tuple[Judged, ...]:
    """Its targets, and whether it meets them."""
    return tuple(
        Judged(target=target, met=target.met_by(float(getattr(figure, target.quantity))))
        for target in targets_of(figure)
    )
