"""Decisions on many units at once, each exactly as `FastForm.decide` gives it. Needs numpy.

What a decision depends on is a list of questions (`questions`). Of those that time does not move, the answers of a unit
make its *profile*, once for a request and a batch; two units of a profile differ in ages alone. An age counts by the
cell it lies in, so a profile and the cells of its ages are a *slot*, and all units of a slot are decided alike: the
first one of them by the ordinary path, the others by looking it up. A query is then a few operations on arrays.

Where a question is about several fields or the graph, or where an approval binds arguments, units are decided
one by one.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlineage.policy.combining import Request
from memlineage.policy.decision import Budget, Decision
from memlineage.policy.facts import Facts
from memlineage.policy.fast.closures import WIDEST
from memlineage.policy.fast.columns import PLAIN, Column, Columns, Numbers
from memlineage.policy.fast.fields import ABOUT_ONE_UNIT
from memlineage.policy.fast.form import Asked, FastForm, Table
from memlineage.policy.fast.questions import Place, question_of
from memlineage.policy.kinds import Origin

__all__ = ["Batch", "Ints", "Outcome", "coded", "column_of", "is_alone", "is_time", "masks_of"]

_PLANS: Final = 8
_SLOTS: Final = 1 << 22
"""Requests that a batch remembers, and slots that one of them has at most; beyond, units are decided one by one."""
_STRETCH: Final = 1 << 24
"""Bytes of masks that are worked out at once."""
_FEW: Final = 2_048
"""Units up to which ages are sorted into cells one by one."""
_EXACT: Final = 1 << 53
_SAID: Final = tuple(sorted(ABOUT_ONE_UNIT))

Ints = NDArray[np.int64]


class Outcome:
    """What became of the units of a batch, in their order.

    Attributes:
        which: for each unit the place of its decision.
        decisions: as the units of that place get them, but for id and unit.
    """

    __slots__ = ("_arrays", "decisions", "which")

    def __init__(self, which: NDArray[np.int32], decisions: Sequence[Decision], arrays: _Arrays) -> None:
        self.which = which
        self.decisions = decisions
        self._arrays = arrays

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Whether each may go ahead, flagged or not."""
        return self._arrays.allowed.take(self.which)

    @property
    def effects(self) -> NDArray[np.uint8]:
        """Severity of each effect: 0 for allow to 4 for deny."""
        return self._arrays.effects.take(self.which)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Compliance of each with soft rules."""
        return self._arrays.scores.take(self.which)

    @property
    def costs(self) -> NDArray[np.float64]:
        """What the obligations of each would cost."""
        return self._arrays.costs.take(self.which)


class Batch:
    """Decides on the same units again and again. Threads may share it."""

    def __init__(self, form: FastForm, columns: Columns, masks: Column | None = None) -> None:
        """`masks` are those of the units by this form, where they are known."""
        self._form = form
        self._columns = columns
        self._masks = masks
        self._plans: dict[tuple[Asked, tuple[Hashable, ...]], _Plan] = {}
        self._cells = {
            path: _Ages(column.values)
            for path, column in columns.unit.items()
            if isinstance(column, Numbers) and is_time(column)
        }

    def decide(
        self,
        request: Request,
        context: Mapping[str, Any],
        now_us: int,
        budget: Budget | None = None,
    ) -> Outcome:
        """What becomes of all units. `context` is what the request says of all of them.

        Raises what `combining.decide` raises.
        """
        asked = self._form.asked(request, Facts(context=context, now_us=now_us), budget)
        if asked is None or type(now_us) is not int or not -WIDEST <= now_us <= WIDEST:
            return self._one_by_one(request, context, now_us, budget)
        key = asked, tuple([_said(context.get(path)) for path in _SAID])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._planned(asked)
            if asked.kept and not any(type(said) is object for said in key[1]):
                if len(self._plans) >= _PLANS:
                    self._plans.clear()
                self._plans[key] = plan
        decide = _Deciding(self._form, self._columns, request, context, now_us, budget)
        return plan.outcome(decide, self._cells)

    def _one_by_one(self, request: Request, context: Mapping[str, Any], now_us: int, budget: Budget | None) -> Outcome:
        decide = _Deciding(self._form, self._columns, request, context, now_us, budget)
        made = [decide(place, None) for place in range(self._columns.count)]
        return Outcome(np.arange(len(made), dtype=np.int32), made, _Arrays.of(made))

    def masks(self) -> Column:
        """The masks of the units."""
        masks, columns = self._masks, self._columns
        if masks is None or not all(map(self._form.is_current, masks.values)):
            masks = self._masks = masks_of(self._form, columns)
        return masks

    def _planned(self, asked: Asked) -> _Plan:
        masks = self.masks()
        tables: list[Table] = []
        places: dict[int, int] = {}
        groups = []
        for mask in masks.values:
            table = self._form.table(asked, mask)
            groups.append(places.setdefault(id(table), len(tables)))
            if groups[-1] == len(tables):
                tables.append(table)
        return _Plan(tables, np.array(groups, np.int64)[masks.codes], masks, self._columns)


def _said(value: Any) -> Hashable:
    return (type(value), value) if type(value) in PLAIN else object()


def masks_of(form: FastForm, columns: Columns) -> Column:
    """The masks of units: what a field rules out is looked up for each of its values once."""
    width = len(form.policies.rules) // 8 + 1
    step = max(1, _STRETCH // width)
    if columns.count <= step:
        return _masks(form, columns, width)
    parts = [
        _masks(form, columns.take(np.arange(start, min(start + step, columns.count))), width)
        for start in range(0, columns.count, step)
    ]
    return Column.of(part.at(place) for part in parts for place in range(len(part.codes)))


def _masks(form: FastForm, columns: Columns, width: int) -> Column:
    classifier = form.classifier
    out = np.zeros((columns.count, width), np.uint8)
    odd = np.zeros(columns.count, np.bool_)
    for path, index in classifier.indexes:
        column = columns.unit.get(path)
        if column is not None:
            codes, values = coded(column, None, slice(None))
            found = [0 if value is None else index.ruled_out(value) for value in values]
            rows = b"".join((bits or 0).to_bytes(width, "little") for bits in found)
            out |= np.frombuffer(rows, np.uint8).reshape(len(found), width)[codes]
            odd |= np.array([bits is None for bits in found], np.bool_)[codes]
    whole, inverse = np.unique(_rows(out), return_inverse=True)
    left = [classifier.everything & ~int.from_bytes(row.tobytes(), "little") for row in whole]
    rest = np.array([bool(bits & classifier.with_rest) for bits in left], np.bool_)[inverse]
    masks = [form.written(bits) for bits in left]
    mine: NDArray[np.int32] = inverse.astype(np.int32)
    known = {mask: code for code, mask in enumerate(masks)}
    for place in np.flatnonzero(rest | odd).tolist():
        unit, bits = columns.facts(place, {}, 0).unit, left[mine[place]]
        bits &= ~classifier.by_rest(unit, bits & classifier.with_rest)
        mask = form.mask(unit) if odd[place] else form.written(bits)
        code = known.setdefault(mask, len(masks))
        if code == len(masks):
            masks.append(mask)
        mine[place] = code
    return Column(mine, masks)


def _rows(out: NDArray[np.uint8]) -> NDArray[Any]:
    """Rows of bytes as one value each."""
    return np.ascontiguousarray(out).view(np.dtype((np.void, out.shape[1]))).ravel()


class _Deciding(NamedTuple):
    """How one unit is decided by itself."""

    form: FastForm
    columns: Columns
    request: Request
    context: Mapping[str, Any]
    now_us: int
    budget: Budget | None

    def __call__(self, place: int, mask: bytes | None) -> Decision:
        facts = self.columns.facts(place, self.context, self.now_us)
        return self.form.decide(self.request, facts, self.budget, decision_id="", mask=mask)


class _Arrays(NamedTuple):
    """What counts of some decisions."""

    allowed: NDArray[np.bool_]
    effects: NDArray[np.uint8]
    scores: NDArray[np.float64]
    costs: NDArray[np.float64]

    @classmethod
    def of(cls, decisions: Sequence[Decision]) -> _Arrays:
        return cls(
            np.array([one.allowed for one in decisions], np.bool_),
            np.array([one.effect.severity for one in decisions], np.uint8),
            np.array([one.score for one in decisions], np.float64),
            np.array([one.cost for one in decisions], np.float64),
        )


class _Ages:
    """A time of many units, sorted into cells between marks."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._values: Ints = values
        self._order: Ints | None = None
        self._rank: Ints | None = None

    def cells(self, marks: Ints, now_us: int) -> Ints:
        """For each unit, how many marks its age has passed."""
        if len(self._values) <= _FEW:
            return marks.searchsorted(now_us - self._values, "right")
        if self._order is None or self._rank is None:
            order = np.argsort(self._values, kind="stable")
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            self._sorted, self._rank, self._order = self._values[order], rank, order
        # The age has passed a mark if the time lies at or before it: the first so many in order.
        ends = self._sorted.searchsorted(now_us - marks, "right")
        passed = np.bincount(ends, minlength=len(self._values) + 1)
        cells: Ints = (len(marks) - np.cumsum(passed)[:-1])[self._rank]
        return cells


class _Plan:
    """Profiles and slots of a batch for one request."""

    def __init__(self, tables: list[Table], groups: Ints, masks: Column, columns: Columns) -> None:
        self._masks = masks
        self._lock = threading.Lock()
        self._decisions: list[Decision] = []
        self._arrays = _Arrays.of(())
        self._alone_set: frozenset[int] = frozenset()
        each = [table.each or any(is_alone(place, columns) for place in table.about) for table in tables]
        alone = np.array(each, np.bool_)[groups]
        profiles, ages = groups, []
        for place in {place: None for table in tables for place in table.about}:
            column = column_of(place, columns)
            if column is None:
                continue
            reads = np.array([place in table.about for table in tables], np.bool_)[groups]
            if place.how != "age":
                profiles = _refined(profiles, _answers(place, tables, groups, reads, column))
                continue
            known = reads & _known(column)
            if is_time(column):
                profiles = _refined(profiles, known.astype(np.int64))
                ages.append((place, known))
            else:
                alone = alone | known
        self._set_slots(tables, groups, _refined(profiles, alone.astype(np.int64)), ages, alone)

    def _set_slots(
        self,
        tables: list[Table],
        groups: Ints,
        profiles: Ints,
        ages: list[tuple[Place, NDArray[np.bool_]]],
        alone: NDArray[np.bool_],
    ) -> None:
        _, first, profiles = np.unique(profiles, return_index=True, return_inverse=True)
        size = np.ones(len(first), np.int64)
        self._moving: list[tuple[str, Ints, Ints, Ints]] = []
        for place, known in ages:
            marks_of = [_marks(table, place) for table in tables]
            marks = np.unique(np.concatenate(marks_of))
            lower = np.concatenate(([np.iinfo(np.int64).min], marks))
            if max(int(size.sum()), len(first) * len(lower)) > _SLOTS:
                break
            steps = np.zeros((len(first), len(lower)), np.int64)
            for number, unit in enumerate(first.tolist()):
                if known[unit]:
                    mine = marks_of[groups[unit]]
                    steps[number] = size[number] * mine.searchsorted(lower, "right")
                    size[number] *= len(mine) + 1
            self._moving.append((place.path, marks, steps.ravel(), profiles * len(lower)))
        ends = np.cumsum(size)
        total = int(ends[-1]) if len(ends) else 0
        if total > _SLOTS or len(self._moving) < len(ages):
            alone, total = np.ones(len(groups), np.bool_), 0
        self._base = (ends - size)[profiles]
        self._slots = np.full(total, -1, np.int32)
        self._alone = np.flatnonzero(alone)
        self._alone_set = frozenset(self._alone.tolist())

    def outcome(self, decide: _Deciding, ages: Mapping[str, _Ages]) -> Outcome:
        """What becomes of the units now."""
        if len(self._alone) == len(self._base):
            which = np.zeros(len(self._base), np.int32)
        else:
            which = self._looked_up(decide, ages)
        if not len(self._alone):
            return Outcome(which, self._decisions, self._arrays)
        made = [decide(place, self._masks.at(place)) for place in self._alone.tolist()]
        with self._lock:
            decisions = [*self._decisions, *made]
        which[self._alone] = np.arange(len(decisions) - len(made), len(decisions))
        return Outcome(which, decisions, _Arrays.of(decisions))

    def _looked_up(self, decide: _Deciding, ages: Mapping[str, _Ages]) -> NDArray[np.int32]:
        slots = self._base
        for path, marks, steps, offsets in self._moving:
            slots = slots + steps.take(offsets + ages[path].cells(marks, decide.now_us))
        which = self._slots.take(slots)
        if len(which) and which.min() < 0:
            self._fill(slots, which, decide)
            which = self._slots.take(slots)
        return which

    def _fill(self, slots: Ints, which: NDArray[np.int32], decide: _Deciding) -> None:
        """Decide on the first unit of each slot that is met for the first time."""
        new = np.flatnonzero(which < 0)
        found, first = np.unique(slots[new], return_index=True)
        with self._lock:
            try:
                for slot, place in zip(found.tolist(), new[first].tolist(), strict=True):
                    if place in self._alone_set:
                        self._slots[slot] = 0
                        continue
                    self._decisions.append(decide(place, self._masks.at(place)))
                    self._slots[slot] = len(self._decisions) - 1
            finally:  # what was decided before one of them failed is looked up from now on
                self._arrays = _Arrays.of(self._decisions)


def is_time(column: Column | Numbers) -> bool:
    """Whether it holds times whose differences fit 64 bits."""
    if not isinstance(column, Numbers) or column.values.dtype != np.int64 or not len(column.values):
        return False
    return bool(column.values.min() >= -WIDEST and column.values.max() <= WIDEST)


def _known(column: Column | Numbers) -> NDArray[np.bool_]:
    if isinstance(column, Column):
        return np.array([value is not None for value in column.values], np.bool_)[column.codes]
    return np.ones(len(column.values), np.bool_) if column.known is None else column.known


def column_of(place: Place, columns: Columns) -> Column | Numbers | None:
    """What differs between the units there; None where nothing does, or where they are decided one by one."""
    if not place.path or place.origin is Origin.OLD:
        return None
    if place.origin is Origin.CONTEXT:
        return columns.context.get(place.path)
    return (columns.lineage if place.origin is Origin.LINEAGE else columns.unit).get(place.path)


def is_alone(place: Place, columns: Columns) -> bool:
    """Whether a question about it can only be answered for one unit at a time."""
    in_graph = place.origin is Origin.LINEAGE and columns.graph is not None and place.path not in columns.lineage
    return not place.path or in_graph


def _marks(table: Table, place: Place) -> Ints:
    return np.array(sorted({mark for one in table.about.get(place, ()) for mark in one.marks}), np.int64)


def _refined(profiles: Ints, answers: Ints) -> Ints:
    """Profiles that differ in these answers too."""
    width = int(answers.max(initial=0)) + 1
    if width == 1:
        return profiles
    refined: Ints = np.unique(profiles * width + answers, return_inverse=True)[1]
    return refined


def _answers(
    place: Place, tables: list[Table], groups: Ints, reads: NDArray[np.bool_], column: Column | Numbers
) -> Ints:
    """For each unit a number that stands for what it answers; 0 where nothing asks."""
    units = np.flatnonzero(reads)
    answers = np.zeros(len(groups), np.int64)
    if not len(units):
        return answers
    marks = sorted({mark for table in tables for one in table.about.get(place, ()) for mark in one.marks})
    codes, values = coded(column, marks if place.how == "number" else None, units)
    pairs, inverse = np.unique(groups[units] * len(values) + codes, return_inverse=True)
    numbers = np.empty(len(pairs), np.int64)
    known: dict[tuple[int, Hashable], int] = {}
    questions: dict[int, Any] = {}
    counts: dict[int, int] = {}
    for at, pair in enumerate(pairs.tolist()):
        group, code = divmod(pair, len(values))
        ask = questions.get(group)
        if ask is None:
            ask = questions[group] = question_of(place, tables[group].about[place])
        found = known.setdefault((group, ask(_facts(place, values[code]))), counts.get(group, 0) + 1)
        counts[group] = max(counts.get(group, 0), found)
        numbers[at] = found
    answers[units] = numbers[inverse]
    return answers


def _facts(place: Place, value: Any) -> Facts:
    told = {place.path: value}
    if place.origin is Origin.CONTEXT:
        return Facts(context=told, now_us=0)
    return Facts(lineage=told, now_us=0) if place.origin is Origin.LINEAGE else Facts(unit=told, now_us=0)


def coded(
    column: Column | Numbers, marks: Sequence[float] | None, units: Ints | slice
) -> tuple[NDArray[np.integer[Any]], Sequence[Any]]:
    """Codes of some units and a value for each code. Numbers are alike in a cell between marks, if there are any."""
    if isinstance(column, Column):
        return column.codes[units], column.values
    values, known = column.values[units], None if column.known is None else column.known[units]
    bounds = np.array(() if marks is None else marks, values.dtype if not marks else None)
    if marks is not None and _is_exact(bounds) and _is_exact(values):
        keys = bounds.searchsorted(values) + bounds.searchsorted(values, "right")
    else:
        keys = np.unique(values, return_inverse=True)[1]
    if known is not None:
        keys = np.where(known, keys, -1)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return inverse, [None if known is not None and not known[at] else values[at].item() for at in first.tolist()]


def _is_exact(numbers: NDArray[Any]) -> bool:
    """Whether numpy compares them with others of this kind as Python does."""
    if numbers.dtype not in (np.int64, np.float64):
        return False
    return not len(numbers) or bool(numbers.min() >= -_EXACT and numbers.max() <= _EXACT)
