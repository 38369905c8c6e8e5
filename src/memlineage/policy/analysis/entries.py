"""Rules as the analyses look at them: taken apart once, found by what they name, judged quickly in one world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from memlineage.policy.analysis.atoms import (
    FALSE,
    NOW,
    TRUE,
    UNKNOWN,
    Atom,
    Atoms,
    Formula,
    Variable,
    natural,
    need,
    variables_of,
)
from memlineage.policy.analysis.choices import candidates
from memlineage.policy.analysis.texts import fits
from memlineage.policy.analysis.worlds import truth_of
from memlineage.policy.kinds import RANKS, Kind
from memlineage.policy.rule import Mode, Rule

__all__ = ["Entries", "Entry", "Memo"]

Memo = dict[Atom, int]
"""Truths of statements in one world."""
World = dict[Variable, Any]
_NUMBERS: Final = frozenset({Kind.NUMBER, Kind.SECONDS, Kind.TIME})


class Entry:
    """One rule.

    Attributes:
        rule: the rule.
        number: its place in the order of the set.
        parts: what must all hold for it to hold: layer, fields of the target, condition.
        about: how many of them are layer and target.
        before: that its exception has not run out; None if it never does.
    """

    def __init__(self, rule: Rule, number: int, atoms: Atoms) -> None:
        self.rule = rule
        self.number = number
        layer: tuple[Formula, ...] = ()
        if rule.layer.rank:
            layer = (atoms.domain(rule.layer.name) if rule.layer.rank == 1 else atoms.session(rule.layer.name),)
        about = (*layer, *atoms.of_target(rule.target))
        self.about = len(about)
        self.parts = about if rule.condition is None else (*about, atoms.of(rule.condition))
        self.before = None if rule.until_us is None else atoms.before(rule.until_us)

    @cached_property
    def certain(self) -> tuple[Formula, ...]:
        """That it is in force and holds."""
        return self._all(TRUE)

    @cached_property
    def fires(self) -> tuple[Formula, ...]:
        """That it is in force and fires: holds, or, where it restricts, may hold."""
        return self._all(TRUE if self.rule.permissive else TRUE | UNKNOWN)

    @cached_property
    def idle(self) -> Formula:
        """That it does not fire, or is not in force."""
        truths = FALSE | UNKNOWN if self.rule.permissive else FALSE
        ended = () if self.before is None else (need(self.before, FALSE),)
        return ("any", (*(need(part, truths) for part in self.parts), *ended))

    @cached_property
    def condition(self) -> Formula | None:
        """Its condition, if it has one."""
        return self.parts[-1] if len(self.parts) > self.about else None

    def _all(self, truths: int) -> tuple[Formula, ...]:
        force = () if self.before is None else (need(self.before, TRUE),)
        return (*force, *(need(part, truths) for part in self.parts))

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """All that it looks at."""
        return frozenset(variable for part in self.parts for variable in variables_of(part))

    @cached_property
    def listed(self) -> dict[Variable, frozenset[str]]:
        """Variables that must be, or contain, one of a few texts for it to hold."""
        found: dict[Variable, frozenset[str]] = {}
        for part in self.parts:
            for formula in part[1] if part[0] == "all" else (part,):
                if formula[0] == "is" and formula[1].shape in ("fits", "named"):
                    atom = formula[1]
                    if all(len(pattern) == 1 for pattern in atom.patterns):
                        texts = frozenset(pattern[0] for pattern in atom.patterns)
                        found.setdefault(atom.variables[0], texts)
        return found

    def truth(self, world: World, memo: Memo, now_us: int) -> int:
        """Whether it holds in that world, as a bit; being in force is not looked at."""
        return _least([_truth(part, world, memo, now_us) for part in self.parts])

    def fires_in(self, world: World, memo: Memo, now_us: int) -> bool:
        """Whether it is in force and fires in that world."""
        until = self.rule.until_us
        if until is not None and world.get(NOW, now_us) >= until:
            return False
        enough = TRUE if self.rule.permissive else TRUE | UNKNOWN
        return all(_truth(part, world, memo, now_us) & enough for part in self.parts)


def _truth(formula: Formula, world: World, memo: Memo, now_us: int) -> int:
    word = formula[0]
    if word == "is":
        atom = formula[1]
        known = memo.get(atom)
        if known is None:
            known = memo[atom] = truth_of(atom, world, now_us)
        return known
    if word == "not":
        inner = _truth(formula[1], world, memo, now_us)
        return inner if inner == UNKNOWN else TRUE + FALSE - inner
    found = [_truth(part, world, memo, now_us) for part in formula[1]]
    return _least(found) if word == "all" else TRUE if TRUE in found else UNKNOWN if UNKNOWN in found else FALSE


def _least(found: Sequence[int]) -> int:
    return FALSE if FALSE in found else UNKNOWN if UNKNOWN in found else TRUE


class Entries:
    """The rules of a set that are in force, in order.

    Attributes:
        all: each of them.
        now_us: the instant.
        neutral: a value for every variable that any of them looks at, such that few of them hold.
    """

    def __init__(self, rules: Iterable[Rule], now_us: int) -> None:
        self.atoms = Atoms()
        self.now_us = now_us
        in_force = [rule for rule in rules if rule.until_us is None or rule.until_us > now_us]
        self.all = tuple(Entry(rule, number, self.atoms) for number, rule in enumerate(in_force))
        judged = [entry for entry in self.all if entry.rule.mode in (Mode.ENFORCE, Mode.WARN)]
        self.restricting = tuple(entry for entry in judged if not entry.rule.permissive)
        self.granting = tuple(e for e in judged if e.rule.permissive and e.rule.mode is Mode.ENFORCE)
        self._keyed: dict[Variable, dict[str, list[Entry]]] = {}
        self._others: list[Entry] = []
        for entry in judged:
            self._enter(entry)
        self.neutral = self._neutral(judged)
        self._atoms_on: dict[Variable, list[Atom]] = {}
        self._at_rest: Memo = {}
        for atom in dict.fromkeys(atom for entry in judged for part in entry.parts for atom in _atoms_of(part)):
            self._at_rest[atom] = truth_of(atom, self.neutral, now_us)
            for variable in atom.about:
                self._atoms_on.setdefault(variable, []).append(atom)

    def _enter(self, entry: Entry) -> None:
        listed = entry.listed
        if not listed:
            self._others.append(entry)
            return
        variable = min(listed, key=lambda v: (v.path != "tags", len(listed[v]), v.path))
        for text in listed[variable]:
            self._keyed.setdefault(variable, {}).setdefault(text, []).append(entry)

    def firing(self, world: World) -> Iterator[Entry]:
        """Those, judged before the answer, that fire in a world."""
        memo = self._known(world)
        seen: set[int] = set()
        for entry in self._near(world):
            if entry.number not in seen:
                seen.add(entry.number)
                if entry.fires_in(world, memo, self.now_us):
                    yield entry

    def _known(self, world: World) -> Memo:
        """Truths that are as in the neutral world, because nothing that they are about is otherwise."""
        memo = dict(self._at_rest)
        for variable, value in world.items():
            usual = self.now_us if variable is NOW else self.neutral.get(variable)
            # True equals 1, in a tuple too, and says something else.
            alike = type(value) is type(usual) and not isinstance(value, tuple) and value == usual
            if value is not usual and not alike:
                for atom in self._atoms_on.get(variable, ()):
                    memo.pop(atom, None)
        for variable in self.neutral.keys() - world.keys():
            for atom in self._atoms_on.get(variable, ()):
                memo.pop(atom, None)
        return memo

    def _near(self, world: World) -> Iterator[Entry]:
        yield from self._others
        for variable, by_text in self._keyed.items():
            value = world.get(variable)
            if value is None:
                for entries in by_text.values():
                    yield from entries
            else:
                for text in (value,) if isinstance(value, str) else value:
                    yield from by_text.get(text, ())

    def completed(self, world: World) -> World:
        """The world with a value for every variable that it leaves open."""
        return {**self.neutral, **world}

    def _neutral(self, entries: Sequence[Entry]) -> World:
        parts: dict[Variable, set[Formula]] = {}
        for entry in entries:
            for part in entry.parts:
                for formula in part[1] if part[0] == "all" else (part,):
                    about = set(variables_of(formula)) - {NOW}
                    if len(about) == 1:
                        parts.setdefault(about.pop(), set()).add(formula)
        world: World = {}
        for variable in {variable for entry in entries for variable in entry.variables} - {NOW}:
            world[variable] = self._quiet(variable, sorted(parts.get(variable, ()), key=_numbered))
        return world

    def _quiet(self, variable: Variable, parts: Sequence[Formula]) -> Any:
        """The value under which the fewest of these hold."""
        asked = [(atom, TRUE | FALSE | UNKNOWN) for atom in dict.fromkeys(a for part in parts for a in _atoms_of(part))]
        if variable.kind in _NUMBERS or variable.kind in RANKS:
            tried: list[Any] = _numbers(variable, [atom for atom, _ in asked], self.now_us)
        elif variable.kind in (Kind.TEXT, Kind.TEXTS):
            tried = candidates(variable, asked[:16], ("other",) if variable.kind is Kind.TEXT else ((),))[0]
        else:
            tried = candidates(variable, asked[:16])[0]
        tried = [value for value in tried if value is not None and _natural(variable, value)][:24]
        if not tried:
            return None
        sample = parts[:400]

        def loud(value: Any) -> int:
            memo: Memo = {}
            world = {variable: value}
            return sum(_truth(part, world, memo, self.now_us) != FALSE for part in sample)

        return min(tried, key=loud)


def _numbered(formula: Formula) -> list[int]:
    return [atom.number for atom in _atoms_of(formula)]


def _atoms_of(formula: Formula) -> Iterator[Atom]:
    if formula[0] == "is":
        yield formula[1]
    elif formula[0] == "not":
        yield from _atoms_of(formula[1])
    else:
        for part in formula[1]:
            yield from _atoms_of(part)


def _natural(variable: Variable, value: Any) -> bool:
    patterns = natural(variable)[0]
    return patterns is None or not isinstance(value, str) or any(fits(pattern, value) for pattern in patterns)


def _numbers(variable: Variable, atoms: Sequence[Atom], now_us: int) -> list[Any]:
    _, least, most, whole = natural(variable)
    limits = sorted({atom.limit for atom in atoms if atom.shape == "bound"})
    ends = limits[:3] + limits[-3:]
    if variable.kind is Kind.TIME:
        tried: list[float] = [now_us, now_us - 1_000_000, *(now_us - int(limit) - 1_000_000 for limit in ends)]
    else:
        near: list[float] = [value for limit in ends for value in (abs(limit) - 1, abs(limit), abs(limit) + 1)]
        tried = [0, 1, *near, *((least, most) if least is not None and most is not None else ())]
    return [
        int(value) if whole else value
        for value in dict.fromkeys(tried)
        if (least is None or value >= least) and (most is None or value <= most)
    ]
