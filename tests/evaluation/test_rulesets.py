"""Sets of rules to measure with: as many as asked, the same again, and about what is stored."""

import pytest

from memlineage.evaluation.rulesets import CREATORS, KINDS, TAGS, ruleset
from memlineage.policy import PolicySet
from memlineage.policy.fast.fields import may_matter


@pytest.mark.parametrize("count", [0, 1, 10, 333, 1000])
def test_there_are_as_many_rules_as_asked_for(count: int) -> None:
    assert len(PolicySet.of(*ruleset(count)).rules) == count


def test_the_same_numbers_give_the_same_set_and_others_another() -> None:
    assert PolicySet.of(*ruleset(50, 3)) == PolicySet.of(*ruleset(50, 3))
    assert PolicySet.of(*ruleset(50, 3)).revision != PolicySet.of(*ruleset(50, 4)).revision


def test_few_rules_are_about_any_one_version_and_every_sort_is_about_some() -> None:
    rules = PolicySet.of(*ruleset(1000)).rules
    plain = {"kind": "fact", "tags": (), "creator": "user:ann", "user": "ann"}
    labelled = [
        {"kind": KINDS[n % len(KINDS)], "tags": (tag,), "creator": CREATORS[n % len(CREATORS)], "user": "travel_team_1"}
        for n, tag in enumerate(TAGS)
    ]
    read = [rule for rule in rules if "read" in rule.on]
    assert sum(may_matter(rule, plain) for rule in read) <= len(rules) // 100
    matter = [{rule.name.rpartition("_")[0] for rule in rules if may_matter(rule, unit)} for unit in labelled]
    assert len(set.union(*matter)) == 10
    assert max(sum(may_matter(rule, unit) for rule in read) for unit in labelled) <= 50
