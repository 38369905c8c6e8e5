"""Rules taken apart: every comparison becomes a statement (`Atom`) about one or two variables, or several of them.

The same statement is the same object wherever it stands, and what differs only in writing (`!=` and not `==`, `in`
and several `==`, an age and the difference of two instants) becomes the same. What is asked of a statement is a set
of truths, as bits: `TRUE`, `FALSE`, `UNKNOWN`. A rule that restricts fires on TRUE | UNKNOWN, and does not on FALSE.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from memlineage.model.time import SECOND_US
from memlineage.policy.analysis.texts import Pattern, apart, exact, fits, glob
from memlineage.policy.kinds import PRINCIPALS, RANKS, Kind, Origin, spec_of
from memlineage.policy.patterns import REGEX
from memlineage.policy.rule import (
    All,
    AnyOf,
    Compare,
    Condition,
    Field,
    Literal,
    Not,
    Operand,
    Target,
    TimeSince,
)

__all__ = [
    "DOMAIN", "FALSE", "KNOWN", "NOW", "TRUE", "UNKNOWN", "Atom", "Atoms", "Formula", "Variable", "kind_patterns",
    "natural", "need", "variables_of",
]  # fmt: skip

TRUE: Final = 1
FALSE: Final = 2
UNKNOWN: Final = 4
KNOWN: Final = TRUE | FALSE


class Variable(NamedTuple):
    """Something that a rule looks at.

    Attributes:
        place: unit, old, context, lineage, or `request` for what is neither.
        path: its name there.
        kind: of its value.
    """

    place: str
    path: str
    kind: Kind


NOW: Final = Variable("request", "now", Kind.TIME)
DOMAIN: Final = Variable("request", "domain", Kind.TEXT)
_WHOLE: Final = frozenset({"version", "content_length", "depth", "children", "unsupported_arguments"})
_SHARES: Final = frozenset({"confidence", "min_confidence"})
_AMOUNTS: Final = frozenset({"budget", "refresh_cost"})
_KIND_OF: Final = {"creator_kind": "creator", "principal_kind": "principal"}
_MOST_NUMBERS: Final = 40
_NUMERIC: Final = frozenset({Kind.NUMBER, Kind.SECONDS, Kind.TIME, *RANKS})
_MIRROR: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_PRINCIPAL_KINDS: Final[dict[str, tuple[Pattern, ...]]] = {
    **{name: (glob(f"{name}:*"),) for name in ("user", "tool", "agent", "external")},
    "system": (exact("system"),),
    "reasoning": (exact("reasoning"), glob("reasoning:*")),
}


class Atom:
    """One statement, true, false or unknown. Two are equal only if they are one object (see `Atoms`).

    Attributes:
        shape: `fits` (a text, or one of several, fits a pattern), `exists`, `named` (exists and fits), `bound`
            (left − right < or <= limit), `is` (a boolean is true), `free` (anything else: `compare` says what).
        variables: what it is about. For `bound` left and right, or one of them and None.
        patterns: of `fits` and `named`.
        apart: the same in the form of `texts.apart`.
        limit: of `bound`.
        strict: whether a bound is `<` rather than `<=`.
        compare: of `free`.
    """

    __slots__ = ("apart", "compare", "limit", "number", "patterns", "shape", "strict", "variables")

    def __init__(
        self,
        number: int,
        shape: str,
        variables: tuple[Variable | None, ...],
        patterns: tuple[Pattern, ...],
        limit: float,
        strict: bool,
        compare: Compare | None,
    ) -> None:
        self.number = number
        self.shape = shape
        self.variables = variables
        self.patterns = patterns
        self.apart = apart(patterns)
        self.limit = limit
        self.strict = strict
        self.compare = compare

    @property
    def about(self) -> tuple[Variable, ...]:
        """Its variables."""
        return tuple(variable for variable in self.variables if variable is not None)

    @property
    def missed(self) -> int:
        """Its truth where a variable is missing."""
        return FALSE if self.shape in ("exists", "named") else UNKNOWN


Formula = tuple[Any, ...]
"""`("is", Atom)`, `("all", parts)`, `("any", parts)` or `("not", part)`; and, once truths are asked for,
`("is", Atom, truths)`, `("all", parts)` or `("any", parts)`."""


def need(formula: Formula, truths: int) -> Formula:
    """What must hold of the statements for the formula to have one of these truths. Not for TRUE | FALSE."""
    word = formula[0]
    if word == "is":
        return ("is", formula[1], truths)
    if word == "not":
        return need(formula[1], (truths & UNKNOWN) | (truths & TRUE) << 1 | (truths & FALSE) >> 1)
    # The least of the parts is to be high, or low: high is a matter of all of them, low of one.
    high = bool(truths & TRUE)
    return ("all" if (word == "all") is high else "any", tuple(need(part, truths) for part in formula[1]))


def variables_of(formula: Formula) -> Iterable[Variable]:
    """Every variable in it, as often as it stands there."""
    if formula[0] == "is":
        yield from formula[1].about
    elif formula[0] == "not":
        yield from variables_of(formula[1])
    else:
        for part in formula[1]:
            yield from variables_of(part)


def kind_patterns(kinds: Iterable[str]) -> tuple[Pattern, ...]:
    """The patterns of principals of these kinds."""
    return tuple(pattern for kind in sorted(kinds) for pattern in _PRINCIPAL_KINDS.get(kind, ()))


def natural(variable: Variable) -> tuple[tuple[Pattern, ...] | None, float | None, float | None, bool]:
    """The values that a variable has by nature: patterns of a text, least, most, and whether only whole numbers."""
    kind, path = variable.kind, variable.path
    if kind in RANKS:
        members = list(RANKS[kind])
        return None, min(members), max(members), True
    if kind is Kind.TIME:
        return None, None, None, True
    if path in _SHARES:
        return None, 0, 1, False
    if path in _WHOLE:
        return None, int(path == "version"), None, True
    if path in _AMOUNTS:
        return None, 0, None, False
    if path in PRINCIPALS and variable.place != "request":
        return kind_patterns(_PRINCIPAL_KINDS), None, None, False
    spec = spec_of(Origin(variable.place), path) if variable.place != "request" else None
    if spec is not None and spec.choices:
        return tuple(exact(str(choice)) for choice in sorted(spec.choices)), None, None, False
    return None, None, None, False


class Atoms:
    """Makes statements, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Atom] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, condition: Condition) -> Formula:
        """A condition as a formula over statements, of the same truth whatever the facts are."""
        if isinstance(condition, Not):
            return ("not", self.of(condition.part))
        if isinstance(condition, All | AnyOf):
            return ("all" if isinstance(condition, All) else "any", tuple(self.of(part) for part in condition.parts))
        return self._comparison(condition)

    def of_target(self, target: Target) -> tuple[Formula, ...]:
        """One formula for each field that a target gives."""
        made = []
        for wanted, origin, name in target.parts:
            variable = _variable(origin, name, Kind.TEXTS if name == "tags" else Kind.TEXT)
            read = glob if name in ("creator", "principal", "tool") else exact
            made.append(self.fitting(variable, [read(text) for text in wanted]))
        return tuple(made)

    def domain(self, name: str) -> Formula:
        """The request stands in this domain; unknown where it does not say."""
        return self.fitting(DOMAIN, [exact(name)])

    def session(self, name: str) -> Formula:
        """The request stands in this session; false where it does not say."""
        variable = _variable(Origin.CONTEXT, "session", Kind.TEXT)
        return ("is", self._atom("named", (variable,), patterns=(exact(name),)))

    def before(self, instant: int) -> Formula:
        """Now is before that instant."""
        return self._bound(NOW, None, instant, strict=True)

    def exists(self, variable: Variable) -> Formula:
        """The variable is known."""
        return ("is", self._atom("exists", (variable,)))

    def _atom(
        self,
        shape: str,
        variables: tuple[Variable | None, ...],
        *,
        patterns: tuple[Pattern, ...] = (),
        limit: float = 0,
        strict: bool = False,
        compare: Compare | None = None,
    ) -> Atom:
        key = (shape, variables, patterns, limit, strict, compare)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Atom(len(self._known), shape, variables, patterns, limit, strict, compare)
        return known

    def fitting(self, variable: Variable, patterns: Iterable[Pattern]) -> Formula:
        """The variable, or one of its texts, fits one of these patterns."""
        return ("is", self._atom("fits", (variable,), patterns=tuple(sorted(set(patterns)))))

    def _bound(self, left: Variable | None, right: Variable | None, limit: float, *, strict: bool) -> Formula:
        return ("is", self._atom("bound", (left, right), limit=limit, strict=strict))

    def _order(self, left: Variable | None, operator: str, right: Variable | None, limit: float) -> Formula:
        """left − right compared with a limit; an equality is two bounds."""
        if operator in ("<", "<="):
            return self._bound(left, right, limit, strict=operator == "<")
        if operator in (">", ">="):
            return ("not", self._bound(left, right, limit, strict=operator == ">="))
        same = (self._bound(left, right, limit, strict=False), ("not", self._bound(left, right, limit, strict=True)))
        return ("all", same) if operator == "==" else ("not", ("all", same))

    def _free(self, compare: Compare) -> Formula:
        sides = [side for side in (compare.left, compare.right) if isinstance(side, Field | TimeSince)]
        variables = [_of_operand(side) for side in sides]
        if any(isinstance(side, TimeSince) for side in sides):
            variables.append(NOW)
        return ("is", self._atom("free", tuple(dict.fromkeys(variables)), compare=compare))

    def _comparison(self, compare: Compare) -> Formula:
        left, operator, right = compare.left, compare.operator, compare.right
        if isinstance(left, Literal) and operator in _MIRROR and right is not None:
            left, operator, right = right, _MIRROR[operator], left
        if isinstance(left, Literal):
            if operator == "in" and isinstance(right, Field) and right.kind is Kind.TEXTS and _is_text(left.value):
                return self.fitting(_of_operand(right), [exact(left.value)])
            return self._free(compare)
        if right is None:
            return self.exists(_of_operand(left))
        if not isinstance(right, Literal):
            return self._crossed(compare, left, operator, right)
        return self._against(compare, left, operator, right)

    def _against(self, compare: Compare, left: Field | TimeSince, operator: str, right: Literal) -> Formula:
        """A field or an age against what is written."""
        if isinstance(left, TimeSince):
            return self._aged(compare, left, operator, right.value)
        if left.kind is Kind.ANY:
            positive = {"!=": "==", "not_in": "in"}.get(operator)
            if positive is not None:
                return ("not", self._free(Compare(operator=positive, left=left, right=right)))
            return self._free(compare)
        if left.kind is Kind.BOOLEAN:
            return self._boolean(compare, left, operator, right.value)
        if left.kind in _NUMERIC:
            return self._numeric(compare, left, operator, right.value)
        return self._text(compare, left, operator, right.value)

    def _crossed(self, compare: Compare, left: Operand, operator: str, right: Operand) -> Formula:
        """Two fields of one kind of number are a difference; two ages are one of instants, the other way round."""
        if operator in _MIRROR and isinstance(left, Field) and isinstance(right, Field):
            kinds = {Kind.NUMBER if kind is Kind.SECONDS else kind for kind in (left.kind, right.kind)}
            if len(kinds) == 1 and kinds <= _NUMERIC:
                return self._order(_of_operand(left), operator, _of_operand(right), 0)
        if operator in _MIRROR and isinstance(left, TimeSince) and isinstance(right, TimeSince) and _timed(left, right):
            return self._order(_of_operand(right), operator, _of_operand(left), 0)
        return self._free(compare)

    def _aged(self, compare: Compare, left: TimeSince, operator: str, value: Any) -> Formula:
        """An age against seconds, exactly as floats compare: whole microseconds on either side."""
        variable = _of_operand(left)
        values = value if isinstance(value, tuple) else (value,)
        if not _timed(left) or not all(_is_number(item) for item in values):
            return self._free(compare)

        def one(word: str, seconds: float) -> Formula:
            if word in (">", "<="):
                up_to = self._bound(NOW, variable, _last(seconds, below=False), strict=False)
                return ("not", up_to) if word == ">" else up_to
            if word in ("<", ">="):
                below = self._bound(NOW, variable, _last(seconds, below=True), strict=False)
                return ("not", below) if word == ">=" else below
            same: Formula = ("all", (one("<=", seconds), one(">=", seconds)))
            return same if word == "==" else ("not", same)

        if operator in _MIRROR and not isinstance(value, tuple):
            return one(operator, value)
        if operator in ("in", "not_in") and isinstance(value, tuple) and len(values) <= _MOST_NUMBERS:
            among: Formula = ("any", tuple(one("==", item) for item in values))
            return among if operator == "in" else ("not", among)
        return self._free(compare)

    def _boolean(self, compare: Compare, left: Field, operator: str, value: Any) -> Formula:
        values = value if isinstance(value, tuple) else (value,)
        if operator not in ("==", "!=", "in", "not_in") or not all(isinstance(item, bool) for item in values):
            return self._free(compare)
        true: Formula = ("is", self._atom("is", (_of_operand(left),)))
        among: Formula = ("any", tuple(true if item else ("not", true) for item in values))
        among = among[1][0] if len(values) == 1 else among
        return among if operator in ("==", "in") else ("not", among)

    def _numeric(self, compare: Compare, left: Field, operator: str, value: Any) -> Formula:
        variable = _of_operand(left)
        values = value if isinstance(value, tuple) else (value,)
        if not all(_is_number(item) for item in values):
            return self._free(compare)
        if operator in _MIRROR and not isinstance(value, tuple):
            return self._order(variable, operator, None, value)
        if operator in ("in", "not_in") and isinstance(value, tuple) and len(values) <= _MOST_NUMBERS:
            among: Formula = ("any", tuple(self._order(variable, "==", None, item) for item in values))
            return among if operator == "in" else ("not", among)
        return self._free(compare)

    def _text(self, compare: Compare, left: Field, operator: str, value: Any) -> Formula:
        values = value if isinstance(value, tuple) else (value,)
        if left.kind not in (Kind.TEXT, Kind.TEXTS) or not all(_is_text(item) for item in values):
            return self._free(compare)
        if operator == "matches":
            if any(_is_regular(item) for item in values):
                return self._free(compare)
            patterns = [glob(item) for item in values]
        elif operator == "contains" and left.kind is Kind.TEXT:
            patterns = [("", values[0], "")]
        else:
            patterns = [exact(item) for item in values]
        if left.path in _KIND_OF and left.origin is not Origin.LINEAGE:
            return self._of_kind(left, operator, patterns)
        fitting = self.fitting(_of_operand(left), patterns)
        return ("not", fitting) if operator in ("!=", "not_in") else fitting

    def _of_kind(self, left: Field, operator: str, patterns: list[Pattern]) -> Formula:
        """The kind of a principal follows from the principal, so a statement about it is one about the principal."""
        kinds = {kind for kind in _PRINCIPAL_KINDS if any(fits(pattern, kind) for pattern in patterns)}
        fitting = self.fitting(_of_operand(left), kind_patterns(kinds))
        return ("not", fitting) if operator in ("!=", "not_in") else fitting


def _of_operand(operand: Operand) -> Variable:
    if isinstance(operand, TimeSince):
        return _variable(operand.origin, operand.path, Kind.TIME)
    assert isinstance(operand, Field)
    return _variable(operand.origin, operand.path, operand.kind)


def _variable(origin: Origin, path: str, kind: Kind) -> Variable:
    """`new` is the unit that is judged; the kind of a principal is looked up at the principal."""
    place = Origin.UNIT if origin is Origin.NEW else origin
    if path in _KIND_OF and origin is not Origin.LINEAGE:
        path, kind = _KIND_OF[path], Kind.TEXT
    spec = spec_of(place, path)
    return Variable(place.value, path, kind if spec is None else spec.kind)


def _timed(*ages: TimeSince) -> bool:
    """Whether these are ages of times; `metadata` may hold anything."""
    specs = [spec_of(age.origin, age.path) for age in ages]
    return all(spec is not None and spec.kind is Kind.TIME for spec in specs)


def _last(seconds: float, *, below: bool) -> int:
    """The last whole number of microseconds that is at most so many seconds, or below them."""
    last = math.floor(seconds * SECOND_US) + 2
    while last / SECOND_US > seconds or (below and last / SECOND_US >= seconds):
        last -= 1
    return last


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_regular(pattern: str) -> bool:
    """Whether a pattern is a regular expression: what fits it is tried, not worked out."""
    return pattern.startswith(REGEX)
