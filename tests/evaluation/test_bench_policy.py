"""What is measured of deciding is the same work on all sides."""

from pathlib import Path

import pytest

from memlineage.evaluation import bench, bench_policy
from memlineage.evaluation.bench_policy import RULES, Desk, draw
from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.measuring import Figure
from memlineage.evaluation.plain_rules import fires, score
from memlineage.evaluation.rulesets import ruleset
from memlineage.evaluation.targets import judged
from memlineage.policy.fast.fields import marked

TINY = 20
SETS = ("default set", "10 rules", "100 rules", "1,000 rules")
CASES = [
    *(
        (f"{case}, {rules}", size)
        for rules in SETS
        for case, size in (("mask at write", 1), ("one read", 1), ("allowed refs", TINY), ("refs, score, cost", TINY))
    ),
    ("simulate a changed rule, 100 rules", TINY),
]


@pytest.fixture(scope="module")
def desks() -> list[Desk]:
    return [Desk(ruleset(rules), draw(60)) for rules in RULES]


def test_every_case_stands_beside_closures_and_the_interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench_policy, "_TIMES", 1)
    monkeypatch.setattr(bench_policy, "_SAMPLE", 4)
    taken = bench.measure(["policy"], [TINY], Shelf(tmp_path)).figures
    assert [(one.benchmark, one.case, one.size, one.floor.partition(",")[0]) for one in taken] == [
        ("policy", *case, floor) for case in CASES for floor in ("plain closures", "the interpreter")
    ]
    assert [one.seconds > 0 and one.floor_seconds > 0 and one.ratio > 0 for one in taken] == [True] * len(taken)


def test_closures_interpreter_and_batch_say_the_same_of_what_is_drawn(desks: list[Desk]) -> None:
    for desk in desks:
        now, places = desk.now(), range(len(desk.units))
        outcome = desk.batch.decide(bench_policy._REQUEST, bench_policy._CONTEXT, now)
        decided = [desk.interpreted(place, now) for place in places]
        context = bench_policy._CONTEXT
        by_closures = [score(desk.plain, desk.units[place], context, desk.lineage[place], now) for place in places]
        assert by_closures == [(one.allowed, pytest.approx(one.score)) for one in decided]
        assert outcome.scores.tolist() == [one.score for one in decided]
        assert outcome.costs.tolist() == [one.cost for one in decided]
        assert outcome.allowed.tolist() == [one.allowed for one in decided]
        held = [
            any(rule.holds_back and fires(rule, desk.units[at], context, desk.lineage[at], now) for rule in desk.plain)
            for at in places
        ]
        assert held == [not one.allowed for one in decided]


def test_some_of_what_is_drawn_is_allowed_and_some_is_not_and_most_rules_matter_to_few(desks: list[Desk]) -> None:
    shares = []
    for desk in desks[1:]:
        outcome = desk.batch.decide(bench_policy._REQUEST, bench_policy._CONTEXT, desk.now())
        about = [marked(desk.form.mask(unit)).bit_count() / len(desk.policies.rules) for unit in desk.units]
        shares.append((0 < outcome.allowed.mean() < 1, sum(about) / len(about) < 0.95))
    assert shares == [(True, True)] * 3


def test_what_the_design_asks_for_is_a_target_of_a_case_that_is_measured() -> None:
    def targets(case: str, size: int) -> list[float]:
        taken = Figure(benchmark="policy", case=case, size=size, seconds=1.0, floor="f", floor_seconds=1.0, ratio=1.0)
        return [one.target.limit for one in judged(taken)]

    names = {case for case, _ in CASES}
    wanted = {
        ("mask at write, 100 rules", 1): 10e-6,
        ("mask at write, 1,000 rules", 1): 65e-6,
        ("allowed refs, 100 rules", 200): 30e-6,
        ("allowed refs, 1,000 rules", 200): 60e-6,
        ("refs, score, cost, 100 rules", 200): 50e-6,
        ("refs, score, cost, 1,000 rules", 200): 230e-6,
        ("allowed refs, 100 rules", 10_000): 0.35e-3,
        ("simulate a changed rule, 100 rules", 1_000_000): 0.1,
    }
    assert {key: targets(*key) for key in wanted} == {key: [limit] for key, limit in wanted.items()}
    assert {case for case, _ in wanted} <= names
