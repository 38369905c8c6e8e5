"""Many units as columns: for each field codes into its distinct values, or an array of numbers. Needs numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from memlineage.model.principal import Authority, Integrity
from memlineage.model.state import Standing
from memlineage.policy.facts import Facts, look_up
from memlineage.policy.fast.closures import WIDEST
from memlineage.policy.fast.fields import ABOUT_ONE_UNIT, sides_of
from memlineage.policy.fast.questions import TargetPart, leaves
from memlineage.policy.kinds import Kind, Origin, spec_of
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import Rule, TimeSince

__all__ = ["PLAIN", "Column", "Columns", "Numbers"]

PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None), Authority, Integrity, Standing})
"""Types whose values are told apart by type and equality."""
_LISTS: Final = frozenset({tuple, list, frozenset})


class Column(NamedTuple):
    """A field of many units that has few values.

    Attributes:
        codes: for each unit the place of its value.
        values: the distinct values; None for not known.
    """

    codes: NDArray[np.int32]
    values: Sequence[Any]

    @classmethod
    def of(cls, values: Iterable[Any]) -> Self:
        """The column of these values. Values are distinct if their types are: to a rule `True` is not 1."""
        found: dict[Any, int] = {}
        kept: list[Any] = []
        codes = []
        for value in values:
            key = _key(value)
            code = found.setdefault(key, len(kept))
            if code == len(kept):
                kept.append(value)
            codes.append(code)
        return cls(np.array(codes, np.int32), kept)

    def at(self, place: int) -> Any:
        """The value of one unit."""
        return self.values[self.codes[place]]

    def take(self, places: NDArray[np.int64]) -> Self:
        """The column of these units."""
        return type(self)(self.codes[places], self.values)


class Numbers(NamedTuple):
    """A field of many units that is a number: times in microseconds as integers, all else as it is.

    Attributes:
        values: 64-bit integers or floats.
        known: where there is one; None for everywhere.
    """

    values: NDArray[np.int64] | NDArray[np.float64]
    known: NDArray[np.bool_] | None = None

    def at(self, place: int) -> Any:
        """The value of one unit."""
        return None if self.known is not None and not self.known[place] else self.values[place].item()

    def take(self, places: NDArray[np.int64]) -> Self:
        """The column of these units."""
        return type(self)(self.values[places], None if self.known is None else self.known[places])


class Columns:
    """What rules look at in many units. Nobody changes it once it is made.

    Attributes:
        count: of units.
        unit: fields of the units, by their flat names.
        context: what the request says of each, where it differs from unit to unit.
        lineage: what the graph says of them.
        graph: gives what the graph says of the unit at a place, beyond that; None if no more is known.
    """

    def __init__(
        self,
        count: int,
        unit: Mapping[str, Column | Numbers],
        context: Mapping[str, Column | Numbers] | None = None,
        lineage: Mapping[str, Column | Numbers] | None = None,
        graph: Callable[[int], Mapping[str, Any]] | None = None,
    ) -> None:
        """Units of which rules ask the graph are decided one by one, where it is no column that says it."""
        self.count = count
        self.unit = unit
        self.context = context or {}
        self.lineage = lineage or {}
        self.graph = graph

    @classmethod
    def of(
        cls,
        policies: Iterable[PolicySet],
        units: Sequence[Mapping[str, Any]],
        contexts: Sequence[Mapping[str, Any]] = (),
        graph: Callable[[int], Mapping[str, Any]] | None = None,
    ) -> Self:
        """The columns that the rules of these sets read, of these units. `contexts` say what is of one unit alone."""
        read = {"ref": False}
        for path, is_age in (item for one in policies for rule in one.rules for item in _read(rule)):
            read[path] = is_age or read.get(path, False)
        unit = {path: _column([look_up(one, path) for one in units], path, age) for path, age in read.items()}
        context = {path: Column.of(one.get(path) for one in contexts) for path in sorted(ABOUT_ONE_UNIT) if contexts}
        return cls(len(units), unit, context, None, graph)

    def facts(self, place: int, context: Mapping[str, Any], now_us: int) -> Facts:
        """What is known of one unit; `context` is what the request says of all."""
        about = {path: column.at(place) for path, column in self.context.items()}
        unit = {path: column.at(place) for path, column in self.unit.items()}
        lineage: Mapping[str, Any] = {path: column.at(place) for path, column in self.lineage.items()}
        if self.graph is not None:
            graph = self.graph(place)
            lineage = _Told(lineage, graph) if lineage else graph
        return Facts(unit=unit, context={**context, **about}, lineage=lineage, now_us=now_us)

    def take(self, places: NDArray[np.int64]) -> Self:
        """The columns of some of the units."""
        graph = self.graph
        return type(self)(
            len(places),
            {path: column.take(places) for path, column in self.unit.items()},
            {path: column.take(places) for path, column in self.context.items()},
            {path: column.take(places) for path, column in self.lineage.items()},
            None if graph is None else lambda place: graph(int(places[place])),
        )


class _Told(Mapping[str, Any]):
    """What columns say, and the graph beside; it is asked only for what rules look at."""

    def __init__(self, columns: Mapping[str, Any], graph: Mapping[str, Any]) -> None:
        self._columns = columns
        self._graph = graph

    def __getitem__(self, path: str) -> Any:
        return self._columns[path] if path in self._columns else self._graph[path]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._columns, **dict.fromkeys(self._graph)})

    def __len__(self) -> int:
        return len({*self._columns, *self._graph})


def _read(rule: Rule) -> Iterator[tuple[str, bool]]:
    """The fields of a unit that a rule reads, and whether for their age."""
    for leaf in leaves(rule):
        if isinstance(leaf, TargetPart):
            if leaf.origin is Origin.UNIT:
                yield leaf.name, False
        else:
            for side in sides_of(leaf):
                if side.origin in (Origin.UNIT, Origin.NEW):
                    yield side.path, isinstance(side, TimeSince)


def _column(values: list[Any], path: str, age: bool) -> Column | Numbers:
    spec = spec_of(Origin.UNIT, path)
    if age or (spec is not None and spec.kind is Kind.TIME):
        return _times(values) or Column.of(values)
    return Column.of(values)


def _times(values: list[Any]) -> Numbers | None:
    if not all(value is None or (type(value) is int and -WIDEST <= value <= WIDEST) for value in values):
        return None
    known = np.array([value is not None for value in values], np.bool_)
    return Numbers(np.array([value or 0 for value in values], np.int64), None if known.all() else known)


def _key(value: Any) -> Any:
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if kind in _LISTS and all(type(item) is str for item in value):
        return kind, tuple(value)
    return kind, id(value)
