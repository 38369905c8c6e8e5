"""What deciding costs: one unit, a query's worth of them, a whole store; with ten to a thousand rules.

Each figure stands beside two others, taken in turn with it: plain closures, one for each rule, and the interpreter,
which is the specification. Both get a sample where the whole would take minutes, and the floor says so.

The columns are in memory and the classes of the units known, as they are in a store that has been asked before. What
changes from query to query is the instant, so every age is judged anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import count, cycle
from typing import Any, Final

import numpy as np

from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.measuring import Figure, beside, timed
from memlineage.evaluation.plain_rules import PlainRule, fires, plain, score
from memlineage.evaluation.rulesets import CREATORS, KINDS, REGIONS, TAGS, TEAMS, ruleset
from memlineage.policy import Document, Facts, PolicySet, Request, decide, defaults
from memlineage.policy.fast.batch import Batch
from memlineage.policy.fast.columns import Column, Columns, Numbers
from memlineage.policy.fast.fields import may_matter
from memlineage.policy.fast.form import FastForm
from memlineage.policy.fast.sweeping import changed

__all__ = ["RULES", "Desk", "draw", "policy"]

RULES: Final = (0, 10, 100, 1_000)
"""Rules besides those of the default set."""
_QUERY: Final = 200
_LARGE: Final = 10_000
_SAMPLE: Final = 20
_TIMES: Final = 50
_NOW_US: Final = 1_800_000_000_000_000
_MONTH_US: Final = 30 * 86_400_000_000
_REQUEST: Final = Request(action="read", domain="travel")
_CONTEXT: Final[dict[str, Any]] = {
    "purpose": "report",
    "critical": False,
    "inspecting": False,
    "principal": "agent:planner",
    "principal_kind": "agent",
    "actor": "agent:planner",
    "actor_may_claim": True,
    "is_verifier": False,
    "tenant": "default",
    "user": "travel_team_1",
    "in_walls": True,
    "is_owner": False,
    "is_author": False,
    "refresh_cost": 0.01,
}


def policy(sizes: Sequence[int], shelf: Shelf) -> list[Figure]:
    """Figures for up to so many units. Nothing is filled or kept."""
    most = max(sizes)
    found: list[Figure] = []
    for rules in RULES:
        desk = Desk(ruleset(rules), draw(min(_QUERY, most)))
        found += [*_mask(desk), *_read(desk), *_allowed(desk), *_scored(desk)]
    large = min(_LARGE, most)
    if large > _QUERY:
        found += _allowed(Desk(ruleset(100), draw(large)))
    return [*found, *_simulated(most)]


class Desk:
    """A set of rules, the units that it is asked about, and who asks.

    Attributes:
        policies: the default set and these documents.
        name: how many rules they have.
        form: decides.
        batch: decides on all units.
        units: what is known of them.
        lineage: what the graph says of each.
        refs: of the units.
        plain: the rules for this request, as closures.
    """

    def __init__(self, documents: Sequence[Document], columns: Columns) -> None:
        self.policies = PolicySet.of(defaults(), *documents)
        rules = sum(len(document.rules) for document in documents)
        self.name = f"{rules:,} rules" if rules else "default set"
        self.form = FastForm(self.policies)
        self.columns = columns
        self.batch = Batch(self.form, columns)
        facts = [columns.facts(place, {}, _NOW_US) for place in range(min(columns.count, _LARGE))]
        self.units = [one.unit for one in facts]
        self.lineage = [one.lineage for one in facts]
        self.refs = np.array([str(one["ref"]) for one in self.units], object)
        self.plain = plain(self.policies.by_request["read"])
        self._clock = count(_NOW_US)

    def now(self) -> int:
        """Another instant each time."""
        return next(self._clock)

    def facts(self, place: int, now_us: int) -> Facts:
        """What is known of one unit and the request."""
        return Facts(unit=self.units[place], context=_CONTEXT, lineage=self.lineage[place], now_us=now_us)

    def interpreted(self, place: int, now_us: int) -> Any:
        """The decision of the specification."""
        return decide(self.policies, _REQUEST, self.facts(place, now_us), decision_id="")


def draw(units: int, seed: int = 0) -> Columns:
    """Units such as the rules are about; a fifth of them a user said."""
    chance, arrays = random.Random(seed), np.random.default_rng(seed)
    labels = [tuple(sorted(chance.sample(TAGS, chance.choice([0, 1, 1, 2, 3])))) for _ in range(min(units, 2_000))]

    def some(values: Sequence[Any]) -> Column:
        return Column(arrays.integers(0, len(values), units).astype(np.int32), values)

    creators = ["user:ann"] * (len(CREATORS) // 4) + list(CREATORS)
    times = Numbers(arrays.integers(_NOW_US - _MONTH_US, _NOW_US, units))
    fields: dict[str, Column | Numbers] = {
        "ref": Column(np.arange(units, dtype=np.int32), [f"u{n}@1" for n in range(units)]),
        "kind": some(["fact", "fact", *KINDS]),
        "tags": some(labels),
        "creator": some(creators),
        "user": some(TEAMS),
        "confidence": some([n / 10 for n in range(1, 11)] + [None]),
        "metadata.region": some([*REGIONS, None]),
        "status": some(["active"] * 9 + ["pending_verification"]),
        "integrity": some([0, 1, 1, 2]),
        "standing": some([0]),
        "expires_at": some([None]),
        "lineage.timestamp": times,
    }
    return Columns(units, fields, None, {"integrity": some([0, 1, 2])})


def _beside_both(
    case: str,
    units: int,
    *,
    figure: Callable[[], float],
    closures: Callable[[], float],
    interpreter: Callable[[], float],
    sampled: str = "",
) -> Iterator[Figure]:
    for name, floor in (("plain closures", closures), ("the interpreter", interpreter)):
        yield beside("policy", case, units, figure=figure, floor=floor, floor_name=f"{name}{sampled}")


def _mask(desk: Desk) -> Iterator[Figure]:
    """One unit at write: which rules can matter for it."""
    units = cycle(desk.units)
    places = cycle(range(len(desk.units)))

    def closures() -> object:
        place = next(places)
        unit, lineage = desk.units[place], desk.lineage[place]
        return [fires(rule, unit, {}, lineage, _NOW_US) for rule in desk.plain]

    def interpreter() -> object:
        unit = next(units)
        return [may_matter(rule, unit) for rule in desk.policies.rules]

    yield from _beside_both(
        f"mask at write, {desk.name}", 1,
        figure=lambda: timed(lambda: desk.form.mask(next(units)), 10 * _TIMES),
        closures=lambda: timed(closures, _TIMES),
        interpreter=lambda: timed(interpreter, _SAMPLE // 4),
    )  # fmt: skip


def _read(desk: Desk) -> Iterator[Figure]:
    """One unit at a time, each with its stored mask, as a read decides it."""
    masks = [desk.form.mask(unit) for unit in desk.units]
    places = cycle(range(len(desk.units)))

    def read() -> object:
        place = next(places)
        facts = desk.facts(place, desk.now())
        return desk.form.decide(_REQUEST, facts, decision_id="", mask=masks[place])

    def closures() -> object:
        place = next(places)
        return score(desk.plain, desk.units[place], _CONTEXT, desk.lineage[place], desk.now())

    for _ in desk.units:
        read()
    yield from _beside_both(
        f"one read, {desk.name}", 1,
        figure=lambda: timed(read, len(masks)),
        closures=lambda: timed(closures, _TIMES),
        interpreter=lambda: timed(lambda: desk.interpreted(next(places), desk.now()), _SAMPLE),
    )  # fmt: skip


def _allowed(desk: Desk) -> Iterator[Figure]:
    """From all units to the refs of those that may be used."""
    sample = range(min(len(desk.units), _QUERY))

    def batch() -> object:
        return desk.refs[desk.batch.decide(_REQUEST, _CONTEXT, desk.now()).allowed]

    def closures() -> object:
        return [desk.refs[place] for place in sample if _may(desk.plain, desk, place, desk.now())]

    def interpreter() -> object:
        return [desk.refs[place] for place in sample[:_SAMPLE] if desk.interpreted(place, desk.now()).allowed]

    yield from _many("allowed refs", desk, batch, closures, interpreter, len(sample))


def _may(rules: Sequence[PlainRule], desk: Desk, place: int, now_us: int) -> bool:
    unit, lineage = desk.units[place], desk.lineage[place]
    return not any(rule.holds_back and fires(rule, unit, _CONTEXT, lineage, now_us) for rule in rules)


def _scored(desk: Desk) -> Iterator[Figure]:
    """The same with the score and the cost of each."""
    sample = range(len(desk.units))

    def batch() -> object:
        outcome = desk.batch.decide(_REQUEST, _CONTEXT, desk.now())
        return desk.refs[outcome.allowed], outcome.scores, outcome.costs

    def closures() -> object:
        now_us = desk.now()
        return [score(desk.plain, desk.units[place], _CONTEXT, desk.lineage[place], now_us) for place in sample]

    def interpreter() -> object:
        found = [desk.interpreted(place, desk.now()) for place in sample[:_SAMPLE]]
        return [(one.allowed, one.score, one.cost) for one in found]

    yield from _many("refs, score, cost", desk, batch, closures, interpreter, len(sample))


def _many(
    case: str,
    desk: Desk,
    batch: Callable[[], object],
    closures: Callable[[], object],
    interpreter: Callable[[], object],
    sample: int,
) -> Iterator[Figure]:
    units = len(desk.units)
    batch()
    yield from _beside_both(
        f"{case}, {desk.name}", units,
        figure=lambda: timed(batch, _TIMES),
        closures=lambda: timed(closures) * units / sample,
        interpreter=lambda: timed(interpreter) * units / min(_SAMPLE, sample),
        sampled=f", a sample of {_SAMPLE} to {sample}" if units > _SAMPLE else "",
    )  # fmt: skip


def _simulated(units: int) -> Iterator[Figure]:
    """From two sets that differ in one rule, and all units, to what becomes of those that are touched. The few rules
    that can matter together have been met once.
    """
    columns = draw(units)
    one, other = (PolicySet.of(defaults(), *_with(hours)) for hours in (24, 48))
    forms = FastForm(one), FastForm(other)
    desk = Desk(ruleset(100), draw(min(units, _QUERY)))

    def closures() -> object:
        return [score(desk.plain, unit, _CONTEXT, {}, _NOW_US) for unit in desk.units for _ in forms]

    def interpreter() -> object:
        return [desk.interpreted(place, _NOW_US) for place in range(min(_SAMPLE, len(desk.units))) for _ in forms]

    yield from _beside_both(
        "simulate a changed rule, 100 rules", units,
        figure=lambda: timed(lambda: changed(*forms, columns, _REQUEST, _CONTEXT, _NOW_US)),
        closures=lambda: timed(closures) * units / len(desk.units),
        interpreter=lambda: timed(interpreter) * units / min(_SAMPLE, len(desk.units)),
        sampled=f", a sample of {_SAMPLE} to {len(desk.units)}",
    )  # fmt: skip


def _with(hours: int) -> list[Document]:
    body = {"name": "what is changed", "freshness": {"tags": [TAGS[0]], "max_age": f"{hours}h"}}
    return [*ruleset(100), Document.from_dict({"rules": [body]})]
