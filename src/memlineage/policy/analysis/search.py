"""Is there a world in which these formulas hold? A search over alternatives, each branch decided by the theories.

What is demanded of a statement is a set of truths; a branch is a set of such demands. A variable on which every
demand may be met by its absence is left out only where no value will do: leaving it out is then never worse. The
answer is a world, in which a variable with None is one that must be missing; None for "there is none"; or `Undecided`
where the bounds on work leave it open.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

from memlineage.policy.analysis.atoms import FALSE, KNOWN, NOW, TRUE, Atom, Formula, Variable
from memlineage.policy.analysis.choices import MISSING, NOTHING, can_miss, candidates, value_of
from memlineage.policy.analysis.numbers import Bound, contradict, solution
from memlineage.policy.analysis.texts import Undecided, some_text
from memlineage.policy.analysis.worlds import truth_of
from memlineage.policy.kinds import RANKS, Kind
from memlineage.policy.rule import Literal, TimeSince

__all__ = ["Search"]

Demands = dict[Atom, int]
World = dict[Variable, Any]
_NUMBERS: Final = frozenset({Kind.NUMBER, Kind.SECONDS, Kind.TIME, *RANKS})
_SECOND_US: Final = 1_000_000
_MAX_STEPS: Final = 3000
_MAX_DEPTH: Final = 200
_MAX_TRIED: Final = 400


class Search:
    """Answers for one set of rules; what it found out about one variable it remembers.

    Attributes:
        now_us: the instant from which on worlds are looked for.
        steps: how much work has been done, in branches.
    """

    def __init__(self, now_us: int) -> None:
        self.now_us = now_us
        self.steps = 0
        self._solved_groups: dict[tuple[tuple[Variable, ...], frozenset[Bound]], tuple[Any]] = {}
        self._values: dict[tuple[Variable, frozenset[tuple[Atom, int]]], Any] = {}

    def world(self, formulas: Iterable[Formula], most: int = _MAX_STEPS) -> World | None:
        """A world in which all of them hold; None if there is none. Raises `Undecided`.

        Formulas are those that `need` gives.
        """
        left = [most]
        open_ended = [False]
        found = self._branch({}, list(formulas), left, open_ended)
        if found is None and open_ended[0]:
            raise Undecided
        return found

    def _branch(
        self, demands: Demands, formulas: list[Formula], left: list[int], open_ended: list[bool], depth: int = 0
    ) -> World | None:
        work = 1 + (len(demands) + len(formulas)) // 16
        self.steps += work
        left[0] -= work
        if left[0] < 0 or depth > _MAX_DEPTH:
            raise Undecided
        choices = self._settle(demands, formulas)
        if choices is None:
            return None
        if not choices:
            try:
                return self._leaf(demands)
            except Undecided:
                open_ended[0] = True
                return None
        best = min(choices, key=len)
        rest = [("any", parts) for parts in choices if parts is not best]
        for part in best:
            found = self._branch(dict(demands), [part, *rest], left, open_ended, depth + 1)
            if found is not None:
                return found
        return None

    def _settle(self, demands: Demands, formulas: list[Formula]) -> list[tuple[Formula, ...]] | None:
        """Take over all that is not a matter of choice; None if that contradicts itself."""
        waiting = formulas
        while True:
            touched: set[Variable] = set()
            choices: list[tuple[Formula, ...]] = []
            moved = False
            stack = waiting
            while stack:
                formula = stack.pop()
                word = formula[0]
                if word == "is":
                    atom, truths = formula[1], formula[2]
                    known = demands.get(atom)
                    merged = truths if known is None else known & truths
                    if not merged:
                        return None
                    if merged != known:
                        demands[atom] = merged
                        touched.update(atom.about)
                        moved = True
                elif word == "all":
                    stack.extend(formula[1])
                else:
                    choices.append(formula[1])
            if touched and not self._alone(demands, touched):
                return None
            if not choices or not moved:
                return choices
            waiting = []
            for parts in choices:
                kept = _open(parts, demands)
                if kept is None:
                    continue
                if not kept:
                    return None
                waiting.append(kept[0] if len(kept) == 1 else ("any", kept))

    def _alone(self, demands: Demands, touched: set[Variable]) -> bool:
        """Whether each of these variables, looked at alone, can still meet what is demanded of it."""
        for variable in touched:
            if variable.kind in _NUMBERS:
                if variable is not NOW and self._pressed(variable, demands):
                    return False
                continue
            try:
                if self._value(variable, _demands_on(variable, demands)) is NOTHING:
                    return False
            except Undecided:
                continue
        return True

    def _pressed(self, variable: Variable, demands: Demands) -> bool:
        """Whether bounds leave a number no value, and something demands that it is there."""
        asked = [(a, t) for a, t in demands.items() if a.shape == "bound" and variable in a.variables]
        key = (variable, frozenset(asked))
        known = self._values.get(key)
        if known is None:
            by_other: dict[Variable | None, list[Bound]] = {}
            for atom, truths in asked:
                bound = _bound(atom, truths & KNOWN)
                if bound is not None:
                    other = bound[1] if bound[0] == variable else bound[0]
                    by_other.setdefault(other, []).append(bound)
            known = self._values[key] = not can_miss(asked) and any(
                contradict(variable, bounds) for bounds in by_other.values()
            )
        return bool(known)

    def _value(self, variable: Variable, asked: list[tuple[Atom, int]]) -> Any:
        key = (variable, frozenset(asked))
        known = self._values.get(key)
        if known is None:
            self.steps += sum(len(atom.patterns) for atom, _ in asked) // 64
            try:
                known = value_of(variable, asked)
            except Undecided as error:
                known = error
            self._values[key] = known
        if isinstance(known, Undecided):
            raise Undecided
        return known

    def _leaf(self, demands: Demands) -> World | None:
        """A world for demands without alternatives."""
        variables = list(dict.fromkeys(variable for atom in demands for variable in atom.about))
        crossed = [atom for atom in demands if atom.shape == "free" and len(atom.variables) > 1]
        world: World = {}
        undecided = False
        for variable in variables:
            if variable.kind in _NUMBERS:
                continue
            try:
                value = self._value(variable, _demands_on(variable, demands))
            except Undecided:
                if not any(variable in atom.variables for atom in crossed):
                    raise
                undecided, value = True, MISSING
            if value is NOTHING:
                return None
            world[variable] = None if value is MISSING else value
        numbers = [variable for variable in variables if variable.kind in _NUMBERS and variable is not NOW]
        counted = self._numbers(numbers, demands)
        if counted is None:
            return None
        world.update(counted)
        if not crossed:
            return world
        if not undecided and all(truth_of(atom, world, self.now_us) & demands[atom] for atom in crossed):
            return world
        return self._tried(world, crossed, demands)

    def _numbers(self, variables: list[Variable], demands: Demands) -> World | None:
        """Values for numbers and instants: all known if that can be, else as few as must be."""
        asked = {atom: truths for atom, truths in demands.items() if atom.shape in ("bound", "exists", "free")}
        lonely = [v for v in variables if any(a.shape == "free" and a.variables == (v,) for a in asked)]
        found = self._solved(variables, asked, ())
        if found is None and variables:
            missing = [v for v in variables if can_miss(_demands_with(v, demands))]
            found = self._solved(variables, asked, missing) if missing else None
        if found is not None and lonely and not self._kept(found, asked):
            raise Undecided
        return found

    def _solved(self, variables: list[Variable], asked: Demands, missing: Sequence[Variable]) -> World | None:
        bounds: list[Bound] = []
        for atom, truths in asked.items():
            if atom.shape == "free":
                continue
            absent = any(variable in missing for variable in atom.about)
            if absent or (atom.shape == "exists" and atom.about[0].kind not in _NUMBERS):
                if absent and not truths & atom.missed:
                    return None
                continue
            known = truths & (TRUE if atom.shape == "exists" else KNOWN)
            if not known:
                return None
            bound = _bound(atom, known)
            if bound is not None:
                bounds.append(bound)
        present = [variable for variable in variables if variable not in missing]
        values = self._at(bounds, present)
        return None if values is None else {**dict.fromkeys(missing), **values}

    def _at(self, bounds: list[Bound], present: list[Variable]) -> World | None:
        """Values now, or else at a later instant. Now is a constant first, so that few bounds tie numbers together."""
        fixed = [_at_instant(bound, self.now_us) for bound in bounds]
        if any(bound is None for bound in fixed):
            values: World | None = None
        else:
            values = self._grouped([bound for bound in fixed if bound is not None], present)
        if values is not None:
            return {**values, NOW: self.now_us}
        if not any(NOW in bound[:2] for bound in bounds):
            return None
        later: Bound = (None, NOW, -self.now_us, False)
        found = solution([*bounds, later], [*present, NOW])
        if found is False:
            raise Undecided
        return _rounded(found, [*bounds, later], self.now_us) if isinstance(found, dict) else None

    def _grouped(self, bounds: list[Bound], present: list[Variable]) -> World | None:
        """Numbers that no bound ties to others are solved one by one, and remembered."""
        tied = {variable for bound in bounds if None not in bound[:2] for variable in bound[:2]}
        values: World = {}
        groups: list[list[Variable]] = [[v] for v in present if v not in tied]
        together = [v for v in present if v in tied]
        for group in (*groups, *([together] if together else [])):
            mine = [bound for bound in bounds if bound[0] in group or bound[1] in group]
            key = (tuple(group), frozenset(mine))
            known = self._solved_groups.get(key)
            if known is None:
                known = self._solved_groups[key] = (solution(mine, group),)
            (found,) = known
            if found is False:
                raise Undecided
            if not isinstance(found, dict):
                return None
            values.update(_rounded(found, mine, self.now_us))
        return values

    def _kept(self, world: Mapping[Variable, Any], asked: Demands) -> bool:
        return all(
            truth_of(atom, world, self.now_us) & truths
            for atom, truths in asked.items()
            if len(atom.variables) == 1 and atom.shape == "free"
        )

    def _tried(self, world: World, crossed: list[Atom], demands: Demands) -> World | None:
        """Values for what is compared with each other in ways that are only tried."""
        variables = list(dict.fromkeys(v for atom in crossed for v in atom.about if v is not NOW))
        now = world.get(NOW, self.now_us)
        shared = (
            [world[v] for v in variables if world.get(v) is not None]
            + list(_merged(crossed, demands))
            + _ages(crossed, now)
        )
        lists: list[list[Any]] = []
        complete = True
        for variable in variables:
            asked = _demands_on(variable, demands)
            if variable.kind in _NUMBERS:
                number = world.get(variable)
                near = [] if number is None else [number, number + 1, number - 1, number + 2, number - 2]
                nears = [x for x in (*near, *_ages(crossed, now)) if x is not None]
                values, whole = [*nears, *([None] if can_miss(_demands_with(variable, demands)) else [])], False
            else:
                values, whole = candidates(variable, asked, _typed_like(variable, shared))
            lists.append(values)
            complete = complete and whole
        involved = {variable: i for i, variable in enumerate(variables)}
        others = [a for a in demands if any(v in involved for v in a.about)]
        for tried, values_of in enumerate(product(*lists)):
            if tried >= _MAX_TRIED:
                raise Undecided
            trial = {**world, **dict(zip(variables, values_of, strict=True))}
            if all(truth_of(atom, trial, self.now_us) & demands[atom] for atom in others):
                return trial
        if complete or _never_equal(crossed, demands):
            return None
        raise Undecided


def _open(parts: tuple[Formula, ...], demands: Demands) -> tuple[Formula, ...] | None:
    """The alternatives that are left under these demands; None if one of them holds already."""
    kept: list[Formula] = []
    for part in parts:
        if part[0] == "is":
            known = demands.get(part[1])
            if known is not None:
                if not known & ~part[2]:
                    return None
                if not known & part[2]:
                    continue
        elif part[0] == "any":
            inner = _open(part[1], demands)
            if inner is None:
                return None
            kept.extend(inner)
            continue
        elif part[0] == "all" and any(
            p[0] == "is" and (k := demands.get(p[1])) is not None and not k & p[2] for p in part[1]
        ):
            continue
        kept.append(part)
    return tuple(kept)


def _demands_on(variable: Variable, demands: Demands) -> list[tuple[Atom, int]]:
    """What is demanded of statements about this variable alone."""
    return [(atom, truths) for atom, truths in demands.items() if atom.variables == (variable,)]


def _demands_with(variable: Variable, demands: Demands) -> list[tuple[Atom, int]]:
    """What is demanded of statements about this variable, and perhaps another."""
    return [(atom, truths) for atom, truths in demands.items() if variable in atom.variables]


def _bound(atom: Atom, known: int) -> Bound | None:
    """What a truth of a bound says of its numbers; None where it may be true or false."""
    left, right = atom.variables[0], atom.variables[-1]
    if atom.shape != "bound" or known not in (TRUE, FALSE):
        return None
    if known == TRUE:
        return (left, right, atom.limit, atom.strict)
    return (right, left, -atom.limit, not atom.strict)


def _at_instant(bound: Bound, now_us: int) -> Bound | None:
    """The bound with a constant in the place of now; None if that is false, and one that says nothing if it is true."""
    left, right, limit, strict = bound
    if NOW not in (left, right):
        return bound
    if left is None or right is None:
        difference = now_us if right is None else -now_us
        return (None, None, 0, False) if difference < limit or (not strict and difference == limit) else None
    return (None, right, limit - now_us, strict) if left == NOW else (left, None, limit + now_us, strict)


def _rounded(values: Mapping[Variable, float], bounds: Sequence[Bound], now_us: int) -> World:
    """The same with ages of whole seconds, and fractions of few digits, where the bounds leave room for it."""
    world: World = dict(values)
    for variable, value in values.items():
        if variable is NOW:
            continue
        mine = [bound for bound in bounds if variable in bound[:2]]
        for nicer in _nicer(variable, value, mine, world.get(NOW, now_us)):
            world[variable] = nicer
            if all(_holds(bound, world) for bound in mine):
                break
        else:
            world[variable] = value
    return world


def _nicer(variable: Variable, value: float, bounds: Sequence[Bound], now: float) -> Iterator[float]:
    """What a person would rather read: an age of whole seconds, as recent as may be; a fraction of few digits."""
    if variable.kind is Kind.TIME:
        limits = [(limit if left == variable else -limit) for left, right, limit, _ in bounds if None in (left, right)]
        ages = sorted({(now - limit) // _SECOND_US for limit in (*limits, value) if math.isfinite(limit)} | {0})
        yield from (int(now - (age + more) * _SECOND_US) for age in ages if age >= 0 for more in (1, 0, 2))
        yield from (int(now - age * _SECOND_US) for age in reversed(ages) if age < 0)
    elif isinstance(value, float):
        yield from (round(value, digits) for digits in (1, 2, 3))


def _holds(bound: Bound, world: Mapping[Variable, Any]) -> bool:
    left, right, limit, strict = bound
    difference = (0 if left is None else world[left]) - (0 if right is None else world[right])
    return bool(difference < limit) if strict else bool(difference <= limit)


def _typed_like(variable: Variable, values: list[Any]) -> list[Any]:
    """Those of the values that the variable may have."""
    if variable.kind is Kind.TEXT:
        return [value for value in values if isinstance(value, str)]
    if variable.kind is Kind.TEXTS:
        texts = [value for value in values if isinstance(value, str)]
        return [*((text,) for text in texts), *(value for value in values if isinstance(value, tuple))]
    return values


def _merged(crossed: list[Atom], demands: Demands) -> Iterator[str]:
    """Texts that would do for both sides of an equality."""
    for atom in crossed:
        text = _common(atom, demands)
        if text is not None:
            yield text


def _common(atom: Atom, demands: Demands) -> str | None:
    if any(variable.kind not in (Kind.TEXT, Kind.TEXTS) for variable in atom.about):
        return None
    asked = [item for variable in atom.about for item in _demands_on(variable, demands)]
    wanted = [a.patterns for a, truths in asked if a.patterns and truths & KNOWN == TRUE]
    unwanted = [pattern for a, truths in asked if truths & KNOWN == FALSE for pattern in a.patterns]
    return some_text(wanted, unwanted)


def _never_equal(crossed: list[Atom], demands: Demands) -> bool:
    """Whether some equality of two texts is demanded that no text would meet."""
    for atom in crossed:
        compare = atom.compare
        equal = compare is not None and compare.operator == "==" and demands[atom] == TRUE
        texts = len(atom.about) > 1 and all(variable.kind is Kind.TEXT for variable in atom.about)
        if equal and texts and _common(atom, demands) is None:
            return True
    return False


def _ages(crossed: list[Atom], now: float) -> list[int]:
    """Instants as long ago as the comparisons name, and a little more and less."""
    found = []
    for atom in crossed:
        compare = atom.compare
        sides = (compare.left, compare.right) if compare is not None else ()
        if any(isinstance(side, TimeSince) for side in sides):
            for side in sides:
                if isinstance(side, Literal) and isinstance(side.value, int | float):
                    found += [int(now - (side.value + more) * 1_000_000) for more in (1, -1, 0)]
    return found
