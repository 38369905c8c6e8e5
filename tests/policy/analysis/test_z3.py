"""The decision procedure against z3, which gets the rules in an encoding of its own: satisfiable, overlapping, implied.

All 2,000 pairs with MEMLINEAGE_ANALYSIS_PAIRS=2000; a part of them otherwise.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from memlineage.policy import Document, Rule, judge
from memlineage.policy.analysis.atoms import Atoms
from memlineage.policy.analysis.entries import Entry
from memlineage.policy.analysis.search import Search
from memlineage.policy.analysis.worlds import facts_of, request_of
from memlineage.policy.kinds import RANKS, Kind, Origin, spec_of
from memlineage.policy.rule import All, AnyOf, Compare, Condition, Field, Literal, Not, TimeSince

z3: Any = pytest.importorskip("z3")

NOW = 1_800_000_000_000_000
PAIRS = int(os.environ.get("MEMLINEAGE_ANALYSIS_PAIRS", "96"))
BATCHES = 8
SLOTS = 4  # elements of a list that matter: no pair below names more patterns of one list
WHOLE = {"version", "content_length", "depth", "children", "unsupported_arguments"}
PRINCIPAL = {"creator", "owner", "principal", "actor", "lineage.actor", "roots"}
KIND_OF = {"creator_kind": "creator", "principal_kind": "principal"}
Pair = tuple[Any, Any]
"""Whether it is true, and whether it is false; neither is unknown."""


class World:
    """Variables of z3 for whatever rules look at, and what these are by nature."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[Any, Any]] = {}
        self.nature: list[Any] = []
        self.now = z3.Int("now")
        self.nature.append(self.now >= NOW)

    def variable(self, origin: Origin, path: str) -> tuple[Any, Any, Kind]:
        """Its presence, its value and its kind."""
        path = KIND_OF.get(path, path)
        place = Origin.UNIT if origin is Origin.NEW else origin
        name = f"{place}.{path}"
        spec = spec_of(place, path)
        assert spec is not None
        kind = spec.kind
        if name not in self.known:
            self.known[name] = (z3.Bool(f"{name}?"), self._value(name, path, kind, spec.choices))
        return *self.known[name], kind

    def _value(self, name: str, path: str, kind: Kind, choices: Any) -> Any:
        if kind in RANKS:
            value = z3.Int(name)
            self.nature += [value >= int(min(RANKS[kind])), value <= int(max(RANKS[kind]))]
        elif kind is Kind.TIME:
            value = z3.Int(name)
        elif kind is Kind.NUMBER:
            value = z3.Int(name) if path in WHOLE else z3.Real(name)
            if path in WHOLE:
                self.nature.append(value >= (1 if path == "version" else 0))
            elif path in ("confidence", "min_confidence"):
                self.nature += [value >= 0, value <= 1]
            else:
                self.nature.append(value >= 0)
        elif kind is Kind.BOOLEAN:
            value = z3.Bool(name)
        elif kind is Kind.TEXTS:
            value = [(z3.Bool(f"{name}[{n}]?"), z3.String(f"{name}[{n}]")) for n in range(SLOTS)]
            if path in PRINCIPAL:
                self.nature += [z3.Implies(there, a_principal(text)) for there, text in value]
        elif kind is Kind.TEXT:
            value = z3.String(name)
            if path in PRINCIPAL:
                self.nature.append(a_principal(value))
            if choices:
                self.nature.append(z3.Or([value == str(choice) for choice in choices]))
        else:  # any: text, number, boolean, or a list, which compares with nothing
            tag = z3.Int(f"{name}#")
            self.nature += [tag >= 0, tag <= 3]
            value = (tag, z3.String(f"{name}$"), z3.Real(f"{name}%"), z3.Bool(f"{name}!"))
        return value


def a_principal(text: Any) -> Any:
    named = [z3.PrefixOf(z3.StringVal(f"{kind}:"), text) for kind in ("user", "tool", "agent", "external", "reasoning")]
    return z3.Or([*named, text == "system", text == "reasoning"])


def matches(pattern: str, text: Any) -> Any:
    pieces = pattern.split("*")
    if len(pieces) == 1:
        return text == pattern
    anything = z3.Full(z3.ReSort(z3.StringSort()))
    parts: list[Any] = []
    for number, piece in enumerate(pieces):
        if number:
            parts.append(anything)
        if piece:
            parts.append(z3.Re(piece))
    return z3.InRe(text, z3.Concat(*parts) if len(parts) > 1 else parts[0])


def kind_is(principal: Any, kind: str) -> Any:
    if kind == "system":
        return principal == "system"
    prefixed = z3.PrefixOf(z3.StringVal(f"{kind}:"), principal)
    return z3.Or(prefixed, principal == "reasoning") if kind == "reasoning" else prefixed


ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


def truth(world: World, condition: Condition) -> Pair:
    if isinstance(condition, Not):
        true, false = truth(world, condition.part)
        return false, true
    if isinstance(condition, All | AnyOf):
        parts = [truth(world, part) for part in condition.parts]
        trues, falses = [part[0] for part in parts], [part[1] for part in parts]
        return (z3.And(trues), z3.Or(falses)) if isinstance(condition, All) else (z3.Or(trues), z3.And(falses))
    return comparison(world, condition)


def known(present: Any, statement: Any) -> Pair:
    return z3.And(present, statement), z3.And(present, z3.Not(statement))


def real(value: float) -> Any:
    return z3.RealVal(str(value)) if isinstance(value, int) else z3.Q(*value.as_integer_ratio())


def comparison(world: World, compare: Compare) -> Pair:
    left, right = compare.left, compare.right
    if isinstance(left, TimeSince):
        assert isinstance(right, Literal)
        there, time, _ = world.variable(left.origin, left.path)
        # An age is a float of whole microseconds; so is the literal, whatever fraction it stands for.
        return known(there, ORDER[compare.operator](world.now - time, round(right.value * 1_000_000)))
    assert isinstance(left, Field)
    there, value, kind = world.variable(left.origin, left.path)
    if right is None:
        return there, z3.Not(there)
    if isinstance(right, Field):
        also, other, _ = world.variable(right.origin, right.path)
        return known(z3.And(there, also), ORDER[compare.operator](value, other))
    assert isinstance(right, Literal)
    return against(left, there, value, kind, compare.operator, right)


def against(left: Field, there: Any, value: Any, kind: Kind, operator: str, right: Literal) -> Pair:
    values = right.value if isinstance(right.value, tuple) else (right.value,)
    if left.path in KIND_OF:
        among = z3.Or([kind_is(value, item) for item in values])
        return known(there, z3.Not(among) if operator in ("!=", "not_in") else among)
    if kind is Kind.TEXTS:
        test = matches if operator == "matches" else lambda item, text: text == item
        return known(there, z3.Or([z3.And(used, test(item, text)) for used, text in value for item in values]))
    if kind is Kind.ANY:
        return any_kind(there, value, operator, values)
    if operator == "matches":
        return known(there, z3.Or([matches(item, value) for item in values]))
    if operator == "contains":
        return known(there, z3.Contains(value, z3.StringVal(values[0])))
    if operator in ("in", "not_in"):
        among = z3.Or([value == item for item in values])
        return known(there, among if operator == "in" else z3.Not(among))
    item = values[0]
    return known(there, ORDER[operator](value, real(item) if kind is Kind.NUMBER else item))


def any_kind(there: Any, value: Any, operator: str, values: tuple[Any, ...]) -> Pair:
    tag, text, number, boolean = value
    item = values[0]
    if isinstance(item, bool):
        return known(z3.And(there, tag == 2), ORDER[operator](boolean, item))
    if isinstance(item, str):
        among = z3.Or([text == one for one in values])
        return known(z3.And(there, tag == 0), z3.Not(among) if operator in ("!=", "not_in") else among)
    return known(z3.And(there, tag == 1), ORDER[operator](number, real(item)))


def rule_truth(world: World, rule: Rule) -> Pair:
    parts = [] if rule.condition is None else [truth(world, rule.condition)]
    for wanted, origin, name in rule.target.parts:
        there, value, kind = world.variable(origin, name)
        if kind is Kind.TEXTS:
            fits = z3.Or([z3.And(used, text == item) for used, text in value for item in wanted])
        elif name in ("creator", "principal", "tool"):
            fits = z3.Or([matches(item, value) for item in wanted])
        else:
            fits = z3.Or([value == item for item in wanted])
        parts.append(known(there, fits))
    return z3.And([part[0] for part in parts]), z3.Or([part[1] for part in parts])


TEXTS = ["a", "ab", "ba", "abc", "trip"]
GLOBS = ["a*", "*a", "*b*", "ab*", "a*c", "*", "trip*", "t*p"]
CREATORS = ["tool:*", "user:*", "tool:web", "tool:w*", "*:web", "agent:*", "user:alice"]


def leaf(draw: random.Random) -> Any:
    def number(least: float, most: float) -> float:
        return round(draw.uniform(least, most), 1)

    return draw.choice([
        lambda: [{"field": "confidence"}, draw.choice(list(ORDER)), number(0, 1)],
        lambda: [{"lineage": "depth"}, draw.choice(list(ORDER)), draw.randint(0, 3)],
        lambda: [{"field": "subject"}, draw.choice(["==", "!="]), draw.choice(TEXTS)],
        lambda: [{"field": "subject"}, draw.choice(["in", "not_in"]), draw.sample(TEXTS, 2)],
        lambda: [{"field": "subject"}, "matches", draw.sample(GLOBS, draw.choice([1, 2]))],
        lambda: [{"field": "subject"}, "contains", draw.choice(["a", "b", "ab", "ba"])],
        lambda: [{"field": draw.choice(["subject", "tags", "confidence", "metadata.n"])}, "exists"],
        lambda: [{"field": "creator"}, "matches", draw.sample(CREATORS, draw.choice([1, 2]))],
        lambda: [{"field": "creator_kind"}, draw.choice(["==", "!="]), draw.choice(["user", "tool", "system"])],
        lambda: [{"field": "tags"}, "contains", draw.choice(["a", "b", "ab"])],
        lambda: [{"field": "tags"}, "matches", [draw.choice(["a*", "*b", "b*"])]],
        lambda: [{"context": "critical"}, draw.choice(["==", "!="]), draw.random() < 0.5],
        lambda: [{"field": "integrity"}, draw.choice(list(ORDER)), draw.choice(["UNTRUSTED", "INTERNAL", "TRUSTED"])],
        lambda: [{"context": "authority"}, draw.choice(list(ORDER)), {"context": "protected_authority"}],
        lambda: [{"context": "authority"}, draw.choice(["<", ">="]), draw.choice(["EXTERNAL", "MODEL", "OWNER"])],
        lambda: [{"new": "confidence"}, draw.choice(["<", "<=", ">"]), {"old": "confidence"}],
        lambda: [{"time_since": "lineage.timestamp"}, draw.choice(list(ORDER)[:4]), draw.choice([0.1, 60, 3600])],
        lambda: [{"field": "valid_from"}, draw.choice(["<", ">="]), {"field": "lineage.timestamp"}],
        lambda: [{"time_since": "valid_from"}, draw.choice(["<", ">="]), draw.choice([60, 3600])],
        lambda: [{"field": "metadata.n"}, draw.choice(list(ORDER)), draw.randint(0, 3)],
        lambda: [{"field": "metadata.n"}, "==", draw.choice(["x", True])],
        lambda: [{"field": "status"}, draw.choice(["in", "not_in"]), draw.sample(["active", "expired", "archived"], 2)],
    ])()  # fmt: skip


def condition(draw: random.Random, depth: int = 0) -> Any:
    if depth < 2 and draw.random() < 0.5:
        word = draw.choice(["all", "all", "any", "not"])
        if word == "not":
            return {"not": condition(draw, depth + 1)}
        return {word: [condition(draw, depth + 1) for _ in range(draw.randint(2, 3))]}
    return leaf(draw)


def a_pair(seed: int) -> tuple[Rule, Rule]:
    """Two rules; the second often says the first one's condition again, with more or less beside it."""
    draw = random.Random(seed)
    first = condition(draw)
    second = condition(draw)
    shape = draw.random()
    if shape < 0.35:
        first = {"all": [second, first]}
    elif shape < 0.6:
        second = {"any": [first, second]}
    bodies: list[dict[str, Any]] = [{"condition": first}, {"condition": second}]
    for body in bodies:
        if draw.random() < 0.3:
            body["target"] = draw.choice(
                [{"tags": ["a"]}, {"tags": ["a", "b"]}, {"creators": ["tool:*"]}, {"subject": ["a", "ab"]}]
            )
    action = draw.choice(["deny", "allow"])
    rules = [{"name": f"r{n}", "on": "read", "action": action, **body} for n, body in enumerate(bodies)]
    one, two = Document.from_dict({"rules": rules}).rules
    return one, two


def by_z3(*statements: Any, world: World) -> bool | None:
    """Its answer; None where it finds none in time, as for two in a thousand of these pairs."""
    solver = z3.Solver()
    solver.set("timeout", 5_000)
    solver.add(*world.nature, *statements)
    answer = solver.check()
    return None if answer == z3.unknown else bool(answer == z3.sat)


def compare_pair(one: Rule, two: Rule) -> tuple[int, int]:
    """How many questions were asked, and how many z3 answered, the same as here."""
    atoms, search = Atoms(), Search(NOW)
    entries = [Entry(one, 0, atoms), Entry(two, 1, atoms)]
    world = World()
    (true1, false1), (true2, false2) = rule_truth(world, one), rule_truth(world, two)
    fires = (true1 if one.permissive else z3.Not(false1), true2 if two.permissive else z3.Not(false2))
    questions = {
        "first can hold": (list(entries[0].certain), [true1]),
        "both can hold": ([*entries[0].certain, *entries[1].certain], [true1, true2]),
        "first without second": ([*entries[0].fires, entries[1].idle], [fires[0], z3.Not(fires[1])]),
    }
    asked = answered = 0
    for question, (formulas, statements) in questions.items():
        found = search.world(formulas)
        answer = by_z3(*statements, world=world)
        assert answer in (None, found is not None), (question, one.condition, two.condition, found)
        asked += 1
        answered += answer is not None
        if found is not None:
            facts, request = facts_of(found, NOW), request_of(found, "read")
            verdicts = [judge(rule, request, facts) for rule in (one, two)]
            holds = [verdict.truth is True for verdict in verdicts]
            wanted = {
                "first can hold": holds[0],
                "both can hold": all(holds),
                "first without second": verdicts[0].fires and not verdicts[1].fires,
            }
            assert wanted[question], (question, facts)
    return asked, answered


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.timeout(300)
def test_z3_gives_the_same_answers(batch: int) -> None:
    counts = [compare_pair(*a_pair(number)) for number in range(batch, PAIRS, BATCHES)]
    assert sum(answered for _, answered in counts) >= 0.97 * sum(asked for asked, _ in counts)
