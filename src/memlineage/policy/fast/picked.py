"""Some rules of a set, and which of them can matter for a version."""

from __future__ import annotations

from collections.abc import Callable

from memlineage.policy.fast.fields import marked
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import Rule

__all__ = ["Picked"]


class Picked:
    """The rules of a set that a function picks, by their places in masks.

    Attributes:
        rules: all of them, in order.
    """

    def __init__(self, policies: PolicySet, picks: Callable[[Rule], bool]) -> None:
        self._numbered = tuple((number, rule) for number, rule in enumerate(policies.rules) if picks(rule))
        self._bits = sum(1 << number for number, _ in self._numbered)
        self.rules = tuple(rule for _, rule in self._numbered)

    def __bool__(self) -> bool:
        return bool(self.rules)

    def among(self, mask: bytes) -> tuple[Rule, ...]:
        """Those of them that a mask of the set marks, in order."""
        bits = self._bits & marked(mask) if self._bits else 0
        return tuple(rule for number, rule in self._numbered if bits >> number & 1) if bits else ()
