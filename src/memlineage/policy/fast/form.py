"""Decides as `combining.decide` does, on the few rules that can matter. The interpreter stays the specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from memlineage.policy.combining import Request, decide
from memlineage.policy.decision import Budget, Decision
from memlineage.policy.facts import Facts
from memlineage.policy.fast.fields import may_matter
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import Rule

__all__ = ["FastForm"]

_HEAD: Final = 8
"""Bytes of the revision that a mask begins with."""


class FastForm:
    """Decides for one set of policies. Threads may share it.

    Attributes:
        policies: the whole set; masks number its rules.
    """

    def __init__(self, policies: PolicySet, *, without: Callable[[Rule], bool] | None = None) -> None:
        """`without` picks rules that are left out of deciding, though never of masks."""
        self.policies = policies
        rules = policies.rules
        self._deciding = policies
        if without is not None:
            self._deciding = msgspec.structs.replace(policies, rules=tuple(r for r in rules if not without(r)))
        self._kept = frozenset(id(rule) for rule in self._deciding.rules)
        self._head = bytes.fromhex(policies.revision)[:_HEAD]
        self._length = _HEAD + (len(rules) + 7) // 8

    def mask(self, unit: Mapping[str, Any]) -> bytes:
        """Which rules can matter for a version with these fields: bytes of the revision, then a bit for each rule."""
        bits = sum(1 << number for number, rule in enumerate(self.policies.rules) if may_matter(rule, unit))
        return self._head + bits.to_bytes(self._length - _HEAD, "little")

    def is_current(self, mask: bytes | None) -> bool:
        """Whether a mask was made by this set."""
        return mask is not None and len(mask) == self._length and mask.startswith(self._head)

    def decide(
        self,
        request: Request,
        facts: Facts,
        budget: Budget | None = None,
        *,
        decision_id: str,
        mask: bytes | None = None,
    ) -> Decision:
        """See `combining.decide`. `mask` is the one of `facts.unit`, if it is known; one that is not current is not
        looked at.
        """
        if mask is None or not self.is_current(mask):
            mask = self.mask(facts.unit)
        bits = int.from_bytes(mask[_HEAD:], "little")
        rules = tuple(
            rule
            for number, rule in enumerate(self.policies.rules)
            if bits >> number & 1 and request.action in rule.on and id(rule) in self._kept
        )
        return decide(self._deciding, request, facts, budget, decision_id=decision_id, rules=rules)
