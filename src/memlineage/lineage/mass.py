"""Settling a change that reaches very many versions: the four stages of `lineage/settling.py`, over arrays.

Standings are settled by `Sweep`. Integrity and competition concern few of all that fall: those for which a quorum may
count, and those in a group with a rival. They are settled by the rules over nodes, which see states as they are in the
array by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memlineage.lineage.arrays import Ints, Structure, distinct
from memlineage.lineage.bulk import Codes, Sweep
from memlineage.lineage.graph import shown_of
from memlineage.lineage.settling import SettlingGraph, compete, relevel
from memlineage.model.state import DIFFERS, LOST, OWN_MASK, STANDING_MASK, STANDING_SHIFT, Status

__all__ = ["ManySettled", "settle_many"]

_STATUSES: Final = np.array([list(Status).index(shown_of(code)) for code in range(256)], np.uint8)
"""The status that each state byte shows, as its place among all."""
_WON: Final = np.uint8(0xFF & ~(LOST | DIFFERS))


class ManySettled:
    """A `Settlement` in arrays: the state bytes of all versions before and after."""

    def __init__(
        self, before: Codes, after: Codes, winner: dict[int, int], integrity: dict[int, int], actions: Ints
    ) -> None:  # fmt: skip
        self.codes = (before, after)
        self.winner = winner
        self.integrity = integrity
        self._actions = actions
        self._owned = before.copy()

    @property
    def standing(self) -> Mapping[int, int]:
        """See `Settlement`."""
        return _Standings(*self.codes)

    def __contains__(self, n: object) -> bool:
        return isinstance(n, int) and 0 < n < len(self.codes[1])

    def before(self, n: int) -> Status:
        """See `Settlement`."""
        return shown_of(int(self._owned[n]))

    def after(self, n: int) -> Status:
        """See `Settlement`."""
        return shown_of(int(self.codes[1][n]))

    def remember(self, n: int, own: int) -> None:
        """See `Settlement`."""
        self._owned[n] = int(self._owned[n]) & ~OWN_MASK | own

    def moved(self, apart_from: Collection[int]) -> Sequence[int]:
        """See `Settlement`."""
        before, after = self._owned, self.codes[1]
        differ = np.flatnonzero(before != after)
        shown_anew = _STATUSES[before[differ]] != _STATUSES[after[differ]]
        moved: NDArray[np.intp] = differ[shown_anew & ~np.isin(differ, list(apart_from))]
        return moved.data

    def may_be_actions(self, numbers: Sequence[int]) -> Sequence[int]:
        """See `Settlement`."""
        return self._actions[np.isin(self._actions, np.asarray(numbers))].data


class _Standings(Mapping[int, int]):
    """New standings by version, of those whose standing changed."""

    def __init__(self, before: Codes, after: Codes) -> None:
        self._changed: NDArray[np.bool_] = ((before ^ after) & STANDING_MASK).astype(np.bool_)
        self._after = after

    def __getitem__(self, n: int) -> int:
        if not (0 < n < len(self._after) and self._changed[n]):
            raise KeyError(n)
        return int(self._after[n] & STANDING_MASK) >> STANDING_SHIFT

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self._changed).tolist())

    def __len__(self) -> int:
        return int(self._changed.sum())


def settle_many(
    graph: SettlingGraph, structure: Structure, codes: Codes, seeds: Collection[int], releveled: Collection[int]
) -> ManySettled:  # fmt: skip
    """As `settle`, over arrays. `codes` are those that the graph reads nodes with; they are changed."""
    before = codes.copy()
    sweep = Sweep(structure, codes)
    touched = _ids(seeds)
    touched = _either(touched, sweep.contamination(touched), structure)
    integrity = relevel(
        graph, frozenset(releveled), _supported_late(structure, sweep, touched) if graph.quorum else set()
    )
    touched = _either(touched, _ids(integrity), structure)
    winners = compete(graph, set(_with_rivals(structure, touched).tolist()), {})
    _pass_keys(graph, codes, winners)
    sweep.pending(_either(touched, _ids(winners), structure))
    return ManySettled(before, codes, winners, integrity, structure.actions)


def _ids(numbers: Collection[int]) -> Ints:
    return np.fromiter(numbers, np.int32, len(numbers))


def _either(some: Ints, others: Ints, structure: Structure) -> Ints:
    return distinct(np.concatenate((some, others)), structure.count)


def _supported_late(structure: Structure, sweep: Sweep, touched: Ints) -> frozenset[int]:
    """Those of these versions, and of what looks at them, with justifications that a quorum may count."""
    late = structure.late.children
    looking = _either(touched, sweep.dependents(touched), structure)
    return frozenset(late[np.isin(late, looking)].tolist())


def _with_rivals(structure: Structure, touched: Ints) -> Ints:
    """Those of these versions that another unit competes with: alone in a group, nobody takes a key or loses it."""
    touched = touched[structure.group[touched] != 0]
    if not len(touched):
        return touched
    group, unit = structure.group[: structure.count + 1], structure.unit[: structure.count + 1]
    places = np.flatnonzero(np.isin(group, np.unique(group[touched])))
    pairs = np.unique(group[places].astype(np.int64) << 31 | unit[places])
    groups, units = np.unique(pairs >> 31, return_counts=True)
    return touched[np.isin(group[touched], groups[units > 1])]


def _pass_keys(graph: SettlingGraph, codes: Codes, winners: Mapping[int, int]) -> None:
    """Mark who has lost a key, and whether to one that says something else."""
    nodes = graph.load([*winners, *filter(None, winners.values())])
    for n, winner in winners.items():
        differs = bool(winner) and nodes[n].form != nodes[winner].form
        codes[n] = codes[n] & _WON | np.uint8(LOST * bool(winner) | DIFFERS * differs)
