"""Laws of deciding, each a function from random rules and facts to the faults that it finds, in words.

None looks at how a decision is made. `test_laws.py` holds the engine to them, `test_laws_can_fail.py` broken ones.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from tests.policy.scenes import (
    ANY,
    LAYERS,
    LENIENT,
    LIMITED,
    RESTRICTING,
    STALE,
    Scene,
    documents,
    drawn_rules,
    named,
    scenes,
)

from memlineage.policy import Budget, Decision, Document, Effect, Mode, ObligationKind, Rule, Severity, fall_back, judge
from memlineage.policy.rule import Consequence

__all__ = ["LAWS"]

OBLIGING: Final = (Consequence.REFRESH, Consequence.NOTIFY_OWNER, Consequence.QUARANTINE, Consequence.DOWNGRADE)


def _differ(what: str, one: Decision, two: Decision, *apart: str) -> list[str]:
    """Fields in which two decisions differ, some apart; reasons are words about the rest."""
    names = [name for name in Decision.__struct_fields__ if name not in (*apart, "reasons")]
    return [
        f"{what}: {name} is {getattr(two, name)!r}, not {getattr(one, name)!r}"
        for name in names
        if getattr(one, name) != getattr(two, name)
    ]


def _looser(what: str, one: Decision, two: Decision) -> list[str]:
    return [f"{what}: {one.effect} became {two.effect}"] if two.effect < one.effect else []


def _lone(layer: str, **more: Any) -> Document:
    return Document.from_dict({"layer": layer, "rules": [{"name": "lone", **more}]})


# --- the laws ---------------------------------------------------------------------------------------------------


def a_hard_deny_stands(scene: Scene, layer: str, priority: int) -> list[str]:
    """Whatever else is loaded, whatever may be spent."""
    found = scene.decided(docs=(*scene.docs, _lone(layer, on="all", action="deny", priority=priority)))
    stands = (found.effect, found.score) == (Effect.DENY, 0.0) and "lone" in found.determining
    return [] if stands else [f"a hard deny of {layer} gave {found!r}"]


def doubt_never_permits(scene: Scene) -> list[str]:
    """An allow that does not certainly hold, for want of a fact or for an error, is as good as none."""
    certain = [one for one in scene.rules if not one.permissive or judge(one, scene.request, scene.facts).truth is True]
    if not certain:
        return []
    return _differ("without uncertain permissions", scene.decided(certain), scene.decided(), "errors", "shadow")


def nothing_is_gained_by_leaving_out(scene: Scene) -> list[str]:
    """A field of the unit, of its old version, of the request or of the lineage; the old version; the domain."""
    before, facts = scene.decided(), scene.facts
    without = {"old": msgspec.structs.replace(facts, old=None)}
    for part in ("unit", "old", "context", "lineage"):
        given: Mapping[str, Any] = getattr(facts, part) or {}
        for gone in given:
            rest = {name: value for name, value in given.items() if name != gone}
            without[f"{part}.{gone}"] = msgspec.structs.replace(facts, **{part: rest})
    found = [_looser(f"without {name}", before, scene.decided(facts=fewer)) for name, fewer in without.items()]
    anywhere = scene.decided(request=msgspec.structs.replace(scene.request, domain=None))
    return [*itertools.chain(*found), *_looser("without a domain", before, anywhere)]


WRONG: Final = (object(), {"a": 1}, float("nan"), b"x", [[]])


def nothing_is_gained_by_a_wrong_kind(scene: Scene, wrong: object) -> list[str]:
    """A value that is none of what a field can hold is as bad as no value."""
    before, facts = scene.decided(), scene.facts
    faults = []
    for part in ("unit", "old", "context", "lineage"):
        given: Mapping[str, Any] = getattr(facts, part) or {}
        # What a refresh costs and what a tool is called with is the engine's own word, checked before it gets here.
        for name in sorted(set(given) - {"refresh_cost", "arguments"}):
            broken = msgspec.structs.replace(facts, **{part: {**given, name: wrong}})
            faults += _looser(f"{part}.{name}={wrong!r}", before, scene.decided(facts=broken))
    return faults


def order_does_not_matter(scene: Scene, seed: int) -> list[str]:
    """Of documents, and of the rules in each: not even for the name of the generation."""
    drawn = random.Random(seed)

    def shuffled(items: Iterable[Any]) -> tuple[Any, ...]:
        found = list(items)
        drawn.shuffle(found)
        return tuple(found)

    docs = shuffled(msgspec.structs.replace(doc, rules=shuffled(doc.rules)) for doc in scene.docs)
    one, two = scene.decided(), scene.decided(docs=docs)
    return [*_differ("in another order", one, two), *(["reasons differ"] if one.reasons != two.reasons else [])]


def a_narrower_layer_only_tightens(scene: Scene, narrow: Document) -> list[str]:
    """Documents of a layer below all that are there neither loosen the effect nor raise the score, whether a refresh
    that is due succeeds or fails.
    """
    one, two = scene.decided(), scene.decided(docs=(*scene.docs, narrow))
    raised = [f"{narrow.layer} raised the score from {one.score} to {two.score}"] if two.score > one.score else []
    failed = [fall_back(each, scene.budget, "it failed") for each in (one, two)]
    return [*_looser(f"with {narrow.layer}", one, two), *_looser(f"unrefreshed with {narrow.layer}", *failed), *raised]


def what_is_only_tried_changes_nothing(scene: Scene, trial: Document, mode: str) -> list[str]:
    """Rules in shadow, or put off, leave no trace but their own record."""
    tried = msgspec.structs.replace(
        trial, rules=tuple(msgspec.structs.replace(one, mode=Mode(mode)) for one in trial.rules)
    )
    one, two = scene.decided(), scene.decided(docs=(*scene.docs, tried))
    return _differ(f"with rules in {mode} mode", one, two, "shadow", "deferred", "revision")


def _warning(one: Rule) -> Rule:
    warns = one.mode is Mode.ENFORCE and not one.permissive
    return msgspec.structs.replace(one, mode=Mode.WARN) if warns else one


def a_warning_never_blocks(scene: Scene) -> list[str]:
    """Where every restriction only warns, the request goes ahead, flagged at most, and obliges to nothing."""
    found = scene.decided([_warning(one) for one in scene.rules])
    asks = found.obligations or found.cost or found.approval
    return [f"warnings alone gave {found!r}"] if found.effect > Effect.FLAG or asks else []


def one_warning_less_severe(scene: Scene, pick: int) -> list[str]:
    """Without a budget, a restriction that only warns asks for a flag at the most."""
    rules = scene.rules
    which = pick % len(rules)
    fewer = [_warning(one) if number == which else one for number, one in enumerate(rules)]
    enforced, warned = scene.decided(), scene.decided(fewer)
    worst = max(enforced.effect, Effect.FLAG)
    return [f"{rules[which].name} as a warning gave {warned!r}"] if warned.effect > worst else []


def an_exception_ends(scene: Scene, pick: int, left: int) -> list[str]:
    """From its instant on a rule that ends is as good as none; before, as good as one that does not end."""
    rules = scene.rules
    which = pick % len(rules)
    timed = [
        msgspec.structs.replace(one, until_us=scene.facts.now_us + left) if number == which else one
        for number, one in enumerate(rules)
    ]
    others = [one for number, one in enumerate(rules) if number != which]
    if left > 0 or not others:
        return _differ(f"{left} µs before its end", scene.decided(), scene.decided(timed)) if left > 0 else []
    return _differ(f"{-left} µs after its end", scene.decided(others), scene.decided(timed))


def a_restriction_never_loosens(scene: Scene, layer: str, added: Rule) -> list[str]:
    """Whatever it is, where nothing may be weighed: without a budget. In what layer does not matter."""
    more = named([added], layer, "added")
    return _looser(f"with {added}", scene.decided(), scene.decided(docs=(*scene.docs, more)))


def a_hard_restriction_never_loosens(scene: Scene, layer: str, added: Rule) -> list[str]:
    """With a budget, too. A soft one may: kept, it improves the score; and a dearer refresh is given up sooner."""
    hard = msgspec.structs.replace(added, severity=Severity.HARD, overridable=False)
    return a_restriction_never_loosens(scene, layer, hard)


def _fresh(decision: Decision) -> int:
    """How well somebody is served who wants it fresh: refreshed, used stale, withheld."""
    return 2 if decision.obliges(ObligationKind.REFRESH) else int(decision.allowed)


def more_money_serves_no_worse(scene: Scene, least: float) -> list[str]:
    """What may be spent decides between refreshed, used stale and withheld, in this order, and on nothing else.

    In this order where one layer says what it costs. What is affordable by a broad layer and too dear by a narrow one
    is neither paid for nor used stale: the narrow one only tightens.
    """
    one_layer = len({one.layer for one in scene.rules if one.action in OBLIGING}) <= 1
    budgets = [Budget(max_cost=cost, min_score=least) for cost in (0.0, 0.5, 1.0, 2.0, 3.0, None)]
    faults = []
    for poor, rich in itertools.pairwise(scene.decided(budget=budget) for budget in budgets):
        worse = [f"{poor!r} became {rich!r} for more money"] if one_layer and _fresh(rich) < _fresh(poor) else []
        faults += [*worse, *_differ("with more money", poor, rich, "effect", "obligations", "flags")]
    return faults


def lower_demands_serve_no_worse(scene: Scene, cost: float) -> list[str]:
    """The least score that is accepted decides between used stale and withheld, and on nothing else."""
    budgets = [Budget(max_cost=cost, min_score=least) for least in (1.0, 0.8, 0.5, 0.25, 0.0)]
    faults = []
    for strict, easy in itertools.pairwise(scene.decided(budget=budget) for budget in budgets):
        stricter = [f"{strict!r} became {easy!r} for lower demands"] if easy.effect > strict.effect else []
        faults += [*stricter, *_differ("with lower demands", strict, easy, "effect", "flags")]
    return faults


def a_budget_lifts_staleness_alone(scene: Scene) -> list[str]:
    """What is withheld without a budget is allowed under one only if soft rules that hold withhold it, as stale, and
    the score suffices.
    """
    free, bound = scene.decided(budget=None), scene.decided()
    if free.allowed or not bound.allowed or scene.budget is None:
        return [f"{free!r} became {bound!r}"] if bound.effect > free.effect else []
    against = [one for one in scene.rules if one.name in free.determining]
    known = all(
        one.severity is Severity.SOFT
        and one.action in (Consequence.REFRESH, Consequence.WITHHOLD)
        and judge(one, scene.request, scene.facts).truth is True
        for one in against
    )
    stale = any(one.action is Consequence.REFRESH for one in against)
    accepted = known and stale and bound.score >= scene.budget.min_score and bound.effect is Effect.FLAG
    flagged = set(free.determining) <= set(bound.flags)
    return [] if accepted and flagged else [f"a budget made {bound!r} of {free!r}"]


def the_answer_is_always_the_same(scene: Scene) -> list[str]:
    """Same inputs, same answer, to the last word."""
    one, two = scene.decided(), scene.decided()
    return [] if one == two else [f"{one!r}, then {two!r}"]


def a_decision_is_consistent(scene: Scene) -> list[str]:
    """Its parts say the same."""
    found = scene.decided()
    fired = set(found.rules)
    names = [one.name for one in scene.rules]
    refused = [one for one in scene.rules if found.effect is Effect.DENY and one.name in found.determining]
    owed = math.fsum(obligation.cost for obligation in found.obligations)
    given_up = scene.budget is not None and not scene.budget.affords(found.cost)
    claims = {
        "determining rules fired": set(found.determining) <= fired,
        "obliging rules fired": {each.rule for each in found.obligations} <= fired,
        "flagging rules fired": set(found.flags) <= fired,
        "tried rules did not": not {each.rule for each in (*found.shadow, *found.deferred)} & fired,
        "every effect has its rule": found.effect is Effect.ALLOW or bool(found.determining),
        "a flag carries a name": found.effect is not Effect.FLAG or bool(found.flags),
        "the score is a share": 0.0 <= found.score <= 1.0,
        "a hard deny scores nothing": not any(one.severity is Severity.HARD for one in refused) or found.score == 0.0,
        "the cost is what the obligations cost": found.cost == owed or (given_up and found.cost > owed),
        "a denial obliges to telling alone": found.effect is not Effect.DENY
        or {each.kind for each in found.obligations} <= {ObligationKind.NOTIFY_OWNER},
        "approval is named where it is asked for": (found.approval is not None) is (found.effect is Effect.ASK),
        "errors are of rules": all(any(text.startswith(f"{name}: ") for name in names) for text in found.errors),
        "there is a reason for each rule that fired": len(found.reasons) >= len(found.rules),
        "rules stand in order": list(found.rules) == [name for name in names if name in fired],
    }
    return [f"not so: {claim}" for claim, holds in claims.items() if not holds]


# --- what each is tried on --------------------------------------------------------------------------------------

Law = tuple[dict[str, SearchStrategy[Any]], Callable[..., list[str]]]
_PICK: Final = st.integers(0, 8)
_LAYER: Final = st.sampled_from(LAYERS)
_NO_BUDGET: Final = st.none()
_FETCHED: Final = drawn_rules(13, 100, "deactivate_and_trigger_refresh", "withhold", severity="soft", mode="enforce")
_SCENE: Final = scenes()
LAWS: Final[dict[str, Law]] = {
    "a hard deny stands": (
        {"scene": _SCENE, "layer": _LAYER, "priority": st.integers(-9, 9)}, a_hard_deny_stands,
    ),
    "doubt never permits": ({"scene": _SCENE}, doubt_never_permits),
    "nothing is gained by leaving out": ({"scene": _SCENE}, nothing_is_gained_by_leaving_out),
    "nothing is gained by a wrong kind": (
        {"scene": _SCENE, "wrong": st.sampled_from(WRONG)}, nothing_is_gained_by_a_wrong_kind,
    ),
    "order does not matter": ({"scene": _SCENE, "seed": st.integers(0, 9)}, order_does_not_matter),
    "a domain only tightens": (
        {
            "scene": scenes("global", pool=ANY[0] | STALE),
            "narrow": documents("domain:d", "n", pool=ANY[1] | STALE | LENIENT),
        },
        a_narrower_layer_only_tightens,
    ),
    "a domain buys no acceptance": (
        {
            "scene": scenes("global", pool=_FETCHED, budget=LIMITED),
            "narrow": documents("domain:d", "n", least=1, pool=_FETCHED),
        },
        a_narrower_layer_only_tightens,
    ),
    "a session only tightens": (
        {"scene": scenes("global", "domain:d"), "narrow": documents("session:s", "n", pool=LENIENT)},
        a_narrower_layer_only_tightens,
    ),
    "what is only tried changes nothing": (
        {"scene": _SCENE, "trial": documents("global", "trial", least=1), "mode": st.sampled_from(["shadow", "async"])},
        what_is_only_tried_changes_nothing,
    ),
    "a warning never blocks": ({"scene": _SCENE}, a_warning_never_blocks),
    "one warning less severe": (
        # Under a budget a dear refresh that only warns makes room for a cheap one, and its unit is withheld meanwhile.
        {"scene": scenes(budget=_NO_BUDGET), "pick": _PICK}, one_warning_less_severe,
    ),
    "an exception ends": (
        {"scene": _SCENE, "pick": _PICK, "left": st.sampled_from([-1, 0, 0, 1])}, an_exception_ends,
    ),
    "a restriction never loosens": (
        {"scene": scenes(budget=_NO_BUDGET), "layer": _LAYER, "added": drawn_rules(7, 200, *RESTRICTING)},
        a_restriction_never_loosens,
    ),
    "a hard restriction never loosens": (
        {"scene": _SCENE, "layer": _LAYER, "added": drawn_rules(8, 200, *RESTRICTING)},
        a_hard_restriction_never_loosens,
    ),
    "more money serves no worse": (
        {"scene": scenes(pool=STALE), "least": st.sampled_from([0.0, 0.25, 0.5, 1.0])}, more_money_serves_no_worse,
    ),
    "lower demands serve no worse": (
        {"scene": scenes(pool=STALE), "cost": st.sampled_from([0.0, 0.5, 1.0, 2.0])}, lower_demands_serve_no_worse,
    ),
    "a budget lifts staleness alone": (
        {"scene": scenes(pool=STALE, budget=LIMITED)}, a_budget_lifts_staleness_alone,
    ),
    "the answer is always the same": ({"scene": _SCENE}, the_answer_is_always_the_same),
    "a decision is consistent": ({"scene": _SCENE}, a_decision_is_consistent),
}  # fmt: skip
