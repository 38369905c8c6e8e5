"""A model is told that something must be worked out anew, without what it said, and never past a rule of access."""

import pytest
from tests.support import open_memory

import memlineage as ml

SECRET = {
    "memlineage": 1,
    "layer": "global",
    "rules": [
        {"name": "payroll:critical", "on": "read", "target": {"tags": ["pay"]}, "action": "withhold", "priority": 99}
    ],
}


def held_back(memory: ml.Memory, *, wrong: bool = False) -> ml.Found:
    scope = memory.scope(user="alice")
    base = scope.store("base pay is 100", creator="user:alice")
    scope.store("total pay is 120", creator="user:alice", tags=["pay"], depends_on=[base])
    if wrong:
        scope.invalidate(base)
    else:
        scope.update(base, "base pay is 130", creator="user:alice")
    return scope.retrieve("what is the total pay?", critical=True)


@pytest.mark.parametrize("wrong", [False, True])
def test_what_rests_on_a_changed_or_wrong_premise_is_to_be_worked_out_anew(wrong: bool) -> None:
    with open_memory() as memory:
        found = held_back(memory, wrong=wrong)
    prompt = found.to_prompt()
    assert [item.outdated for item in found.withheld].count(True) == 1
    assert ('count="1" reason="what it was concluded from has changed' in prompt, "120" in prompt) == (True, False)


def test_of_what_a_rule_of_access_keeps_back_nobody_is_told_that_it_is_outdated() -> None:
    with open_memory(policies=[SECRET]) as memory:
        found = held_back(memory)
    assert [item.outdated for item in found.withheld if item.rule.startswith("payroll")] == [False]
    assert "what it was concluded from" not in found.to_prompt()
