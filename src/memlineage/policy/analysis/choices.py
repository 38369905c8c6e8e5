"""Values of one variable under what is asked of the statements about it alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from memlineage.policy.analysis.atoms import FALSE, TRUE, Atom, Variable, natural
from memlineage.policy.analysis.texts import Pattern, Undecided, any_fits, apart, exact, some_text
from memlineage.policy.analysis.worlds import truth_of
from memlineage.policy.kinds import Kind
from memlineage.policy.patterns import REGEX
from memlineage.policy.rule import Literal

__all__ = ["MISSING", "NOTHING", "Asked", "can_miss", "candidates", "value_of"]

Asked = Sequence[tuple[Atom, int]]
"""Statements and the truths that each may have, as bits."""


class _Word:
    def __init__(self, word: str) -> None:
        self._word = word

    def __repr__(self) -> str:
        return self._word


MISSING: Final = _Word("missing")
"""The variable must be left out."""
NOTHING: Final = _Word("nothing")
"""No value will do, and leaving it out neither."""
_FEW: Final = 100
_TYPES: Final = (("other", "x", ""), (True, False), (0, 1, -1), ((), ("other",), (0,), (True,)))


def can_miss(asked: Asked) -> bool:
    """Whether every statement may have the truth that it has where the variable is missing."""
    return all(truths & atom.missed for atom, truths in asked)


def value_of(variable: Variable, asked: Asked) -> Any:
    """A value of the variable that gives every statement a truth that it may have; MISSING or NOTHING where there is
    none. Statements are about this variable alone, and none is a bound. Raises `Undecided`.
    """
    present = [(atom, truths & (TRUE if atom.shape == "exists" else TRUE | FALSE)) for atom, truths in asked]
    undecided = False
    if all(truths for _, truths in present) or variable.kind is Kind.ANY:
        try:
            found = _present(variable, asked if variable.kind is Kind.ANY else present)
        except Undecided:
            found, undecided = None, True
        if found is not None:
            return found
    if can_miss(asked):
        return MISSING
    if undecided:
        raise Undecided
    return NOTHING


def candidates(variable: Variable, asked: Asked, more: Sequence[Any] = ()) -> tuple[list[Any], bool]:
    """Values worth trying that keep to what is asked, and whether there are no others. None stands for missing."""
    tried: list[Any] = [*more]
    complete = False
    if variable.kind is Kind.BOOLEAN:
        tried, complete = [True, False], True
    elif variable.kind in (Kind.TEXT, Kind.TEXTS):
        patterns, _, _, _ = natural(variable)
        listed = patterns is not None and all(len(pattern) == 1 for pattern in patterns)
        complete = listed and variable.kind is Kind.TEXT
        texts = [pattern[0] for pattern in patterns or () if len(pattern) == 1]
        texts += ["".join((pattern[0], "x", *pattern[1:])) for pattern in patterns or () if len(pattern) > 1]
        texts += ["".join(pattern) for atom, _ in asked for pattern in atom.patterns[:_FEW]]
        texts += [item for item in more if isinstance(item, str)] + ([] if patterns else ["other", "another"])
        tried = texts if variable.kind is Kind.TEXT else [(), *((text,) for text in texts), *more]
    elif variable.kind is Kind.ANY:
        tried = [value for values in _TYPES for value in values] + list(more)
    if can_miss(asked):
        tried.append(None)
    kept = [value for value in tried if _keeps(variable, value, asked)]
    return list(dict.fromkeys(kept)), complete


def _keeps(variable: Variable, value: Any, asked: Asked) -> bool:
    return all(truth_of(atom, {variable: value}, 0) & truths for atom, truths in asked)


def _present(variable: Variable, asked: Asked) -> Any:
    """A value, or None if there is none."""
    kind = variable.kind
    if kind is Kind.BOOLEAN:
        return next((value for value in (False, True) if _keeps(variable, value, asked)), None)
    if kind is Kind.ANY or any(atom.shape == "free" for atom, _ in asked):
        return _tried(variable, asked)
    patterns = natural(variable)[0]
    wanted = [atom.patterns for atom, truths in asked if atom.patterns and truths == TRUE]
    unwanted = [pattern for atom, truths in asked if truths == FALSE for pattern in atom.patterns]
    if kind is Kind.TEXTS:
        return _texts(wanted, unwanted, patterns)
    return some_text([*wanted, *([patterns] if patterns else [])], unwanted)


def _texts(
    wanted: list[tuple[Pattern, ...]], unwanted: list[Pattern], patterns: tuple[Pattern, ...] | None
) -> tuple[str, ...] | None:
    """One text for each group; none of them may be one that is unwanted."""
    found: list[str] = []
    for group in wanted:
        if any(any_fits(apart(group), text) for text in found):
            continue
        text = some_text([group, *([patterns] if patterns else [])], unwanted)
        if text is None:
            return None
        found.append(text)
    return tuple(found)


def _tried(variable: Variable, asked: Asked) -> Any:
    """A value that may be of any type, or is under conditions that are only tried: what the rules name, and beside it.

    Of comparisons with numbers alone, and of membership, the values beside those named decide; of texts they may not.
    """
    tried: list[Any] = [value for values in _TYPES for value in values] if variable.kind is Kind.ANY else []
    tried += [value for atom, _ in asked for value in _named(atom)]
    if variable.kind is Kind.TEXT:
        tried = [value for value in tried if isinstance(value, str)] + ["other", "x"]
    elif variable.kind is Kind.TEXTS:
        tried = [(), *((value,) for value in tried if isinstance(value, str)), ("other",)]
    patterns = natural(variable)[0]
    for value in dict.fromkeys(_typed(value) for value in tried):
        plain = value[1]
        natural_text = patterns is None or not isinstance(plain, str) or any_fits(apart(patterns), plain)
        if natural_text and _keeps(variable, plain, asked):
            return plain
    text = _any_text(variable, asked)
    if text is not None:
        return text
    if any(not _plainly(atom) for atom, _ in asked) or variable.kind is not Kind.ANY:
        raise Undecided
    if len([atom for atom, _ in asked]) > 1 and any(_listlike(atom) for atom, _ in asked):
        raise Undecided
    return None


def _typed(value: Any) -> tuple[str, Any]:
    """Apart by type too: 1 and true are equal, and one value to a dictionary."""
    inside = [type(item).__name__ for item in value] if isinstance(value, tuple) else ""
    return f"{type(value).__name__}{inside}", value


def _named(atom: Atom) -> list[Any]:
    """The values that a statement names, and what lies beside them."""
    if atom.patterns:
        return [filling.join(pattern) for pattern in atom.patterns[:_FEW] for filling in ("", "x")]
    found: list[Any] = []
    sides = (atom.compare.left, atom.compare.right) if atom.compare is not None else ()
    for side in sides:
        if not isinstance(side, Literal):
            continue
        for item in side.value[:_FEW] if isinstance(side.value, tuple) else (side.value,):
            found.append(item)
            found.append((item,))
            if isinstance(item, str):
                found += [item.replace("*", "x"), item.replace("*", ""), (item.replace("*", "x"),)]
            elif not isinstance(item, bool):
                found += [item - 1, item + 1, item - 1e-6, item + 1e-6]
    numbers = sorted({item for item in found if isinstance(item, int | float) and not isinstance(item, bool)})
    return found + [(low + high) / 2 for low, high in pairwise(numbers)]


def _any_text(variable: Variable, asked: Asked) -> str | None:
    """A text for a variable of any type, where every statement is one that texts decide."""
    wanted: list[tuple[Pattern, ...]] = []
    unwanted: list[Pattern] = []
    for atom, truths in asked:
        patterns = _of_text(atom)
        if patterns is None:
            if not truth_of(atom, {variable: "other"}, 0) & truths:
                return None
        elif truths & (TRUE | FALSE) == TRUE:
            wanted.append(patterns)
        elif truths & (TRUE | FALSE) == FALSE:
            unwanted.extend(patterns)
        elif not truths & (TRUE | FALSE):
            return None
    text = some_text(wanted, unwanted)
    return text if text is not None and _keeps(variable, text, asked) else None


def _of_text(atom: Atom) -> tuple[Pattern, ...] | None:
    """What a free statement with a text or patterns asks of a text; None where texts do not decide it."""
    compare = atom.compare
    if compare is None or not isinstance(compare.right, Literal):
        return None
    value = compare.right.value
    values = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(item, str) and not item.startswith(REGEX) for item in values):
        return None
    if compare.operator == "matches":
        return tuple(tuple(item.split("*")) for item in values)
    if compare.operator == "contains":
        return (("", values[0], ""),)
    return tuple(exact(item) for item in values) if compare.operator in ("==", "in") else None


def _plainly(atom: Atom) -> bool:
    """Whether the values that the statement names, and those beside them, are all that matter."""
    if atom.shape == "exists":
        return True
    compare = atom.compare
    if compare is None or not isinstance(compare.right, Literal):
        return False
    if isinstance(compare.right.value, tuple) and len(compare.right.value) > _FEW:
        return False
    return _of_text(atom) is not None or compare.operator in ("<", "<=", ">", ">=", "==", "!=", "in", "not_in")


def _listlike(atom: Atom) -> bool:
    return atom.compare is not None and atom.compare.operator in ("contains", "matches")
