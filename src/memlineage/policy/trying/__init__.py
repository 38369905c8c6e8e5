"""Trying policies before they are in force: cases in documents, what a change would do, why a rule fired or did not."""

from memlineage.policy.trying.cases import Coverage, Difference, Outcome, Report, RuleUse, request_of, run_cases
from memlineage.policy.trying.why import Closest, Counterfactual, Named, Part, RuleWhy, Why, why

__all__ = [
    "Closest",
    "Counterfactual",
    "Coverage",
    "Difference",
    "Named",
    "Outcome",
    "Part",
    "Report",
    "RuleUse",
    "RuleWhy",
    "Why",
    "request_of",
    "run_cases",
    "why",
]
