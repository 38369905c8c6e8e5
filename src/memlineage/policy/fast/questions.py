"""What a decision depends on, read off the rules beforehand as a list of questions.

Theory. `decide` is pure, and the interpreter judges every part of every rule that it is given. So requests that answer
all questions alike get the same decision, but for its id and the unit it names.

A question is asked for as little as decides, and once for each field. Of names with few values (booleans, ranks, what
the language lists) the answer is the value. Of a number or an age it is the *cell* between two marks of the
comparisons that read it (`closures`). Of all others it is what became of these comparisons, and of the parts of
targets: whether they hold, what was missing, what went wrong. So an age, a number or a name that is different every
time still leaves few answers.

A value of few that has a type which is not expected is like no other value: the request is judged, and never found
again. Any other that is unexpected is put before the interpreter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from memlineage.model.principal import Authority, Integrity
from memlineage.model.state import Standing
from memlineage.policy.facts import Facts, Notes, look_up
from memlineage.policy.fast.closures import WIDEST, age_marks, cell_of, looking, marks_of
from memlineage.policy.fast.fields import ABOUT_ONE_UNIT, sides_of
from memlineage.policy.interpreter import Truth, fits, holds
from memlineage.policy.kinds import RANKS, Kind, Origin, spec_of
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Consequence, Not, Rule, TimeSince

__all__ = [
    "FEW_TYPES",
    "SHORT",
    "Judged",
    "Leaf",
    "Place",
    "Question",
    "TargetPart",
    "by_place",
    "judged_in",
    "judged_of",
    "leaves",
    "question_of",
]

Question = Callable[[Facts], Hashable]

SHORT: Final = 256
"""Characters of a text, or texts of a list, up to which something is remembered of it."""
_MOST: Final = 1024
"""Texts remembered for one question."""
_RANK_TYPES: Final[frozenset[type]] = frozenset({int, str, Authority, Integrity, Standing, type(None)})
FEW_TYPES: Final[dict[Kind, frozenset[type]]] = {
    Kind.BOOLEAN: frozenset({bool, type(None)}),
    Kind.TEXT: frozenset({str, type(None)}),
    Kind.NUMBER: frozenset({int, float, type(None)}),
    **dict.fromkeys(RANKS, _RANK_TYPES),
}
"""Types within which equal values are judged alike, whatever their type: `True` is not 1 to a rule."""


class TargetPart(NamedTuple):
    """One field of a target."""

    wanted: tuple[str, ...]
    origin: Origin
    name: str


Leaf = Compare | TargetPart


class Place(NamedTuple):
    """Where a question looks.

    Attributes:
        origin: which of the facts; None where a question looks at more than one place.
        path: the name there.
        how: `few`, `number`, `age`, `text`, `texts`, or the comparison itself, for what is none of these.
    """

    origin: Origin | None
    path: str
    how: str

    @property
    def asked(self) -> bool:
        """Whether the request alone answers it, the same for every unit."""
        return self.origin is Origin.CONTEXT and self.path not in ABOUT_ONE_UNIT


def leaves(rule: Rule) -> Iterator[Leaf]:
    """Everything about a rule that is judged by itself."""
    for part in rule.target.parts:
        yield TargetPart(*part)
    yield from _comparisons(rule.condition)


def _comparisons(condition: Condition | None) -> Iterator[Compare]:
    if isinstance(condition, All | AnyOf):
        for part in condition.parts:
            yield from _comparisons(part)
    elif isinstance(condition, Not):
        yield from _comparisons(condition.part)
    elif condition is not None:
        yield condition


class Judged(NamedTuple):
    """A leaf at a place where it looks.

    Attributes:
        place: one of its places.
        key: tells it from leaves that are not the same.
        leaf: what is judged; None where only the value itself counts.
        of_nothing: what becomes of it where there is nothing.
        marks: where a comparison of a number or an age changes.
    """

    place: Place
    key: str
    leaf: Leaf | None
    of_nothing: Hashable
    marks: tuple[float, ...]


def judged_in(rule: Rule, *, asked: bool = False) -> tuple[Judged, ...]:
    """Everything that a decision by this rule depends on, what the layer and `until` say apart.

    With `asked`, only what the request alone answers.
    """
    found = []
    if not asked and rule.action is Consequence.REFRESH and rule.cost is None:
        found.append(Judged(Place(Origin.CONTEXT, "refresh_cost", "few"), "", None, None, ()))
    chosen = (leaf for leaf in leaves(rule) if not asked or any(place.asked for place in _places(leaf)))
    judged = (one for leaf in chosen for one in judged_of(leaf) if not asked or one.place.asked)
    return (*found, *judged)


def judged_of(leaf: Leaf) -> list[Judged]:
    """A leaf, at each place where it looks."""
    # The key is not the leaf itself, to which `1` and `True` are one.
    key, of_nothing = repr(leaf), _outcome(leaf, Facts(now_us=0))
    return [Judged(place, key, leaf, of_nothing, _marks(place, leaf)) for place in _places(leaf)]


def by_place(judged: Iterable[Judged]) -> dict[Place, list[Judged]]:
    """What is judged, by the place where it looks, each once."""
    found: dict[Place, dict[str, Judged]] = {}
    for one in judged:
        found.setdefault(one.place, {})[one.key] = one
    return {place: list(known.values()) for place, known in found.items()}


def _marks(place: Place, leaf: Leaf) -> tuple[float, ...]:
    if not isinstance(leaf, Compare) or place.how not in ("number", "age"):
        return ()
    return tuple(marks_of([leaf]) if place.how == "number" else age_marks([leaf]))


def _places(leaf: Leaf) -> list[Place]:
    if isinstance(leaf, TargetPart):
        kind = Kind.TEXTS if leaf.name == "tags" else Kind.TEXT
        return [Place(leaf.origin, leaf.name, _how(leaf.origin, leaf.name, kind))]
    sides = sides_of(leaf)
    places = []
    for side in sides:
        how = "age" if isinstance(side, TimeSince) else _how(side.origin, side.path, side.kind)
        places.append(Place(side.origin, side.path, how))
    if len(sides) > 1 and not all(place.how == "few" for place in places):
        alike = {side.origin for side in sides}
        same = next(iter(alike)) if len(alike) == 1 and all(place.asked for place in places) else None
        return [Place(same, "", repr(leaf))]
    return places


def _how(origin: Origin, path: str, kind: Kind) -> str:
    spec = spec_of(origin, path)
    if spec is not None and (spec.kind is Kind.BOOLEAN or spec.kind in RANKS or spec.choices is not None):
        return "few"
    if kind in (Kind.NUMBER, Kind.TIME):
        return "number"
    return {Kind.TEXT: "text", Kind.TEXTS: "texts"}.get(kind, "any")


def question_of(place: Place, about: Sequence[Judged]) -> Question:
    """The question that tells apart what these tell apart, which all look at this place."""
    judge = _judge([one.leaf for one in about if one.leaf is not None])
    if place.origin is None or not place.path:
        return judge
    look = _looking(place.origin, place.path)
    if place.how == "few":
        spec = spec_of(place.origin, place.path)
        return _value(look, FEW_TYPES[spec.kind if spec is not None else Kind.TEXT])
    of_nothing = tuple([one.of_nothing for one in about])
    if place.how in ("number", "age"):
        marks = sorted({mark for one in about for mark in one.marks})
        return (_number if place.how == "number" else _age)(look, marks, judge, of_nothing)
    if place.how == "text":
        return _text(look, judge, of_nothing)
    if place.how == "texts":
        return _texts(look, judge, of_nothing)
    return _any(look, judge, of_nothing)


def _looking(origin: Origin, path: str) -> Callable[[Facts], Any]:
    look = looking(path)
    if origin is Origin.UNIT:
        return lambda facts: look(facts.unit)
    if origin is Origin.CONTEXT:
        return lambda facts: look(facts.context)
    return lambda facts: look_up(_source(facts, origin), path)


def _source(facts: Facts, origin: Origin) -> Mapping[str, Any] | None:
    if origin is Origin.NEW:
        return facts.unit if facts.new is None else facts.new
    source: Mapping[str, Any] | None = getattr(facts, origin.value)
    return source


def _judge(about: Sequence[Leaf]) -> Question:
    def ask(facts: Facts) -> Hashable:
        return tuple([_outcome(leaf, facts) for leaf in about])

    return ask


def _outcome(leaf: Leaf, facts: Facts) -> Hashable:
    notes = Notes()
    truth: Truth
    if isinstance(leaf, TargetPart):
        truth = fits(leaf.wanted, _source(facts, leaf.origin) or {}, leaf.name, notes)
    else:
        truth = holds(leaf, facts, notes)
    if not (notes.missing or notes.errors):
        return truth
    return truth, tuple(notes.missing), tuple(notes.errors)


def _value(look: Callable[[Facts], Any], types: frozenset[type]) -> Question:
    def ask(facts: Facts) -> Hashable:
        value = look(facts)
        return value if type(value) in types else object()

    return ask


def _number(look: Callable[[Facts], Any], marks: Sequence[float], judge: Question, of_nothing: Hashable) -> Question:
    def ask(facts: Facts) -> Hashable:
        value = look(facts)
        if value is None:
            return of_nothing
        if type(value) in _NUMBERS and -WIDEST <= value <= WIDEST:
            return cell_of(marks, value)
        return judge(facts)

    return ask


_NUMBERS: Final = frozenset({int, float})


def _age(look: Callable[[Facts], Any], marks: Sequence[float], judge: Question, of_nothing: Hashable) -> Question:
    def ask(facts: Facts) -> Hashable:
        since, now = look(facts), facts.now_us
        if since is None:
            return of_nothing
        if type(since) is int and type(now) is int and -WIDEST <= since <= WIDEST and -WIDEST <= now <= WIDEST:
            return bisect_right(marks, now - since)
        return judge(facts)

    return ask


def _text(look: Callable[[Facts], Any], judge: Question, of_nothing: Hashable) -> Question:
    known: dict[str, Hashable] = {}

    def ask(facts: Facts) -> Hashable:
        value = look(facts)
        if value is None:
            return of_nothing
        if type(value) is not str:
            return judge(facts)
        found = known.get(value)
        if found is None:
            found = judge(facts)
            _remember(known, value, found)
        return found

    return ask


def _texts(look: Callable[[Facts], Any], judge: Question, of_nothing: Hashable) -> Question:
    known: dict[tuple[str, ...], Hashable] = {}

    def ask(facts: Facts) -> Hashable:
        value = look(facts)
        if value is None:
            return of_nothing
        if type(value) is not tuple or not _ONLY_TEXTS.issuperset(map(type, value)):
            return judge(facts)
        found = known.get(value)
        if found is None:
            found = judge(facts)
            if len(value) < SHORT and sum(map(len, value)) < SHORT:
                _remember(known, value, found)
        return found

    return ask


_ONLY_TEXTS: Final = frozenset({str})


def _any(look: Callable[[Facts], Any], judge: Question, of_nothing: Hashable) -> Question:
    known: dict[tuple[type, Any], Hashable] = {}

    def ask(facts: Facts) -> Hashable:
        value = look(facts)
        if value is None:
            return of_nothing
        kind = type(value)
        if kind not in _SCALARS or (kind is str and len(value) > SHORT):
            return judge(facts)
        found = known.get((kind, value))
        if found is None:
            found = judge(facts)
            if len(known) >= _MOST:
                known.clear()
            known[kind, value] = found
        return found

    return ask


_SCALARS: Final = frozenset({str, bool, int, float})


def _remember(known: dict[Any, Hashable], value: Any, found: Hashable) -> None:
    if len(value) <= SHORT:
        if len(known) >= _MOST:
            known.clear()
        known[value] = found
