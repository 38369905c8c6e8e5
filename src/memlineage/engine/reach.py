"""What descends from a version, and the shortest way to each: hop by hop, or over arrays if it is very much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from memlineage.lineage.paths import SAME, descent, topological
from memlineage.store.graph import StoreGraph

if TYPE_CHECKING:
    from memlineage.lineage.walks import Walk

__all__ = ["Reach", "reach"]


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What descends from a version.

    Attributes:
        below: versions that hang on it, parents before children.
        steps: these, the version itself, and what lies on the way, each after the one it was reached from.
        via: where each step but the version itself was reached from.
    """

    below: Sequence[int]
    steps: Sequence[int]
    via: Mapping[int, int] | Sequence[int]


def reach(graph: StoreGraph, n: int) -> Reach:
    """Everything that descends from a version (revisions apart)."""
    few = descent(graph, [n], most=graph.patience())
    if few is None:
        arrays = graph.in_arrays()
        if arrays is not None:
            from memlineage.lineage.walks import descend

            return _of_walk(graph, descend(arrays[0], n), ordered=arrays[0].is_ordered)
        few = descent(graph, [n])
    below = [m for m, hop in few.items() if hop is not None and hop.justification != SAME]
    return Reach(
        below=topological(below, graph.children(few)),
        steps=list(few),
        via={m: hop.parent for m, hop in few.items() if hop is not None},
    )


def _of_walk(graph: StoreGraph, walk: Walk, *, ordered: bool) -> Reach:
    below, steps = walk.below().tolist(), walk.reached.tolist()
    order = sorted(below) if ordered else topological(below, graph.children(steps))
    return Reach(below=order, steps=steps, via=walk.via.data)
