"""Policies: a small language, read strictly, judged three-valued, combined by one rule. Pure but for `files`.

Read `interpreter` for what a rule means, `combining` for how rules make a decision, `default.yaml` for what ships.
"""

from memlineage.policy.combining import Request, Verdict, decide, fall_back, judge, obligation_failed
from memlineage.policy.decision import Budget, Decision, Effect, Obligation, ObligationKind, Trial, action_hash
from memlineage.policy.facts import Facts
from memlineage.policy.freshness import refresh_rules, valid_until, without_age_rules
from memlineage.policy.language.document import Case, Document, rule
from memlineage.policy.language.faults import Fault
from memlineage.policy.language.files import defaults, load, policy_files
from memlineage.policy.language.reader import read
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import Consequence, Layer, Mode, Rule, SensitiveAction, Severity, Target, Verb

__all__ = [
    "Budget",
    "Case",
    "Consequence",
    "Decision",
    "Document",
    "Effect",
    "Facts",
    "Fault",
    "Layer",
    "Mode",
    "Obligation",
    "ObligationKind",
    "PolicySet",
    "Request",
    "Rule",
    "SensitiveAction",
    "Severity",
    "Target",
    "Trial",
    "Verb",
    "Verdict",
    "action_hash",
    "decide",
    "defaults",
    "fall_back",
    "judge",
    "load",
    "obligation_failed",
    "policy_files",
    "read",
    "refresh_rules",
    "rule",
    "valid_until",
    "without_age_rules",
]
