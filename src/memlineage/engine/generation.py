"""What is in force: one generation of policy, with all that is worked out from it once."""

from __future__ import annotations

from typing import Self

import msgspec

from memlineage.policy import PolicySet, without_age_rules
from memlineage.policy.memo import Memo

__all__ = ["Generation"]


class Generation(msgspec.Struct, frozen=True):
    """A set of policies and what decides by it. Reloading puts another in its place; nobody changes this one.

    Attributes:
        policies: the documents, as one set.
        form: decides.
        ageless: decides without what time alone has decided already.
        bounds_ages: whether some rule sets a time limit that is stored with each version.
    """

    policies: PolicySet
    form: Memo
    ageless: Memo
    bounds_ages: bool

    @classmethod
    def of(cls, policies: PolicySet) -> Self:
        """The generation that a set makes."""
        ageless = without_age_rules(policies)
        return cls(policies, Memo(policies), Memo(ageless), len(ageless.rules) < len(policies.rules))
