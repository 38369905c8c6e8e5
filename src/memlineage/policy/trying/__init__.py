"""Trying policies before they are in force: cases in documents, what a change would do, why a rule fired or did not."""

from memlineage.policy.trying.why import Closest, Counterfactual, Named, Part, RuleWhy, Why, why

__all__ = ["Closest", "Counterfactual", "Named", "Part", "RuleWhy", "Why", "why"]
