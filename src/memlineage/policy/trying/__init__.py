"""Trying policies before they are in force: cases in documents, what a change would do, why a rule fired or did not."""

from memlineage.policy.trying.cases import Coverage, Difference, Outcome, Report, RuleUse, request_of, run_cases
from memlineage.policy.trying.simulate import (
    MEANINGS,
    CaseChange,
    Change,
    Changed,
    Decided,
    Tally,
    change,
    distinct,
    simulate_cases,
)
from memlineage.policy.trying.why import Closest, Counterfactual, Named, Part, RuleWhy, Why, why

__all__ = [
    "MEANINGS",
    "CaseChange",
    "Change",
    "Changed",
    "Closest",
    "Counterfactual",
    "Coverage",
    "Decided",
    "Difference",
    "Named",
    "Outcome",
    "Part",
    "Report",
    "RuleUse",
    "RuleWhy",
    "Tally",
    "Why",
    "change",
    "distinct",
    "request_of",
    "run_cases",
    "simulate_cases",
    "why",
]
