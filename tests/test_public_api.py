"""The public names, frozen: whoever changes one changes this list too, and CHANGELOG.md."""

import inspect
from typing import Any

import pytest

import memlineage as ml
from memlineage.engine.options import StoreOptions

NAMES = [
    "ActionResult", "Affected", "AsyncMemory", "AsyncMemoryView", "AsyncScope", "Authority", "Backup", "BadLine",
    "Budget", "CapabilityError", "CaughtUp", "Cause", "Chain", "ChainLink", "Change", "CheckReport", "CheckResult",
    "CheckRounds", "Checkpoint", "Clarification", "Compensation", "Compensations", "ConfidenceModel", "Conflict",
    "ConflictError", "ConflictPage", "Consequences", "ContentChange", "Context", "ContextItem", "ContextProfile",
    "Credibility", "CycleError", "Decision", "DecisionExplanation", "DecisionLogging", "Delivered", "Difference",
    "Document", "Edge", "Effect", "Entry", "Explanation", "Finding", "Found", "Impact", "Input", "Integrity",
    "InvalidInputError", "LedgerError", "LeftOut", "Limits", "Lineage", "Loaded", "MemLineageError", "Memory",
    "MemoryView", "MissingExtraError", "ModelStep", "Notice", "NoticeKind", "Option", "Page", "PlanStep", "PlanSteps",
    "PolicyDocumentError", "PolicySet", "PolicyStatus", "PolicyViolationError", "Progress", "Proof", "Proven",
    "Quarantined", "QuarantinedPage", "QuotaError", "RebuildReport", "Ref", "ReplayPlan", "ReplayReport", "ReplayStep",
    "Resolution", "Role", "Scope", "ScopeRequiredError", "Settled", "Standing", "Status", "StatusChange", "Step",
    "StoreError", "Subscription", "Trace", "UndeliveredNotice", "Unit", "UnknownUnitError", "ValueChange", "Verdict",
    "VerifyReport", "Watch", "Withheld", "carry", "verify_proof",
]  # fmt: skip
MEMORY = {
    "as_of": ["moment"],
    "backup": ["path", "*", "overwrite", "with_key", "progress"],
    "catch_up": ["limit"],
    "checkpoint": ["witness"],
    "close": [],
    "deliver": ["limit", "*", "retry"],
    "decisions": ["*", "limit", "action", "effect", "unit", "since"],
    "diff": ["first", "second"],
    "distrust": ["principal", "*", "since", "until", "reason"],
    "embedder": [],
    "entry_check": ["name", "where", "*", "least_confidence", "sources"],
    "explain_decision": ["decision", "*", "lang"],
    "open": [
        "path", "*", "policies", "default_policies", "embedder", "clock", "durability", "limits", "vfs",
        "signing_key", "search_memory", "background", "decision_log", "confidence_model",
    ],
    "outbox": [],
    "path": [],
    "policies": [],
    "policy_status": [],
    "prove": ["unit"],
    "rebuild": ["*", "vectors", "progress"],
    "reembed": [],
    "reload": ["policies"],
    "register": ["principal", "*", "level", "verifier"],
    "register_comparer": ["kind", "same"],
    "register_contradiction": ["check", "kind"],
    "register_tool": ["name", "run", "*", "integrity", "refresh", "cost", "backup", "compensate"],
    "rotate_key": ["signing_key"],
    "run_checks": ["names", "*", "limit", "force"],
    "scope": ["*", "user", "agent", "session", "tenant", "domain"],
    "standing_check": ["name", "where", "*", "source", "check", "every"],
    "start_checks": ["interval", "on_report"],
    "subscribe": ["handler", "*", "owner", "name", "kinds"],
    "subscriptions": [],
    "unsubscribe": ["name"],
    "verify": ["against", "*", "vectors", "progress"],
    "watch": ["interval", "on_reload"],
}  # fmt: skip
SCOPE = {
    "act": ["action", "arguments", "*", "justification", "by"],
    "acting_as": ["agent", "*", "tools"],
    "actor": [],
    "approve": ["decision", "*", "by", "reason"],
    "authorize": ["action", "arguments", "*", "justification", "by"],
    "backtrace": ["unit", "query", "*", "hops", "limit", "roles", "critical", "budget", "purpose"],
    "build_context": ["query", "*", "focus", "tokens", "profile", "count", "critical", "budget", "purpose"],
    "compensate": ["action", "*", "justification", "by", "reason", "retry"],
    "compensations": [],
    "conflicts": ["subject", "key", "*", "check", "flagged", "limit"],
    "context": ["unit"],
    "corroborate": ["unit", "*", "depends_on", "creator"],
    "count": ["*", "filter"],
    "credibility": ["unit"],
    "delete": ["unit", "*", "reason", "by"],
    "delete_all": ["*", "reason", "by"],
    "diff": ["first", "second"],
    "endorse": ["unit", "*", "level", "reason", "by", "expires", "action"],
    "explain": ["unit", "*", "lang"],
    "forward": ["unit", "query", "*", "hops", "limit", "roles", "critical", "budget", "purpose"],
    "get": ["unit", "*", "as_of"],
    "history": ["unit"],
    "impact": ["unit"],
    "invalidate": ["unit", "*", "reason", "by"],
    "list": ["*", "filter", "status", "limit", "as_of"],
    "load": ["source", "*", "name", "creator", "skip_bad", "progress"],
    "nearest": ["query", "*", "to", "hops", "limit", "roles", "critical", "budget", "purpose"],
    "plan_steps": ["root", "*", "limit"],
    "quarantine": ["unit", "*", "reason", "by"],
    "quarantined": ["*", "limit"],
    "recipe": ["name", "*", "creator", "cost", "backup", "**options"],
    "release": ["unit", "*", "reason", "by"],
    "replay": [
        "targets", "*", "dry_run", "goal", "verify_cost", "budget", "model", "retries", "workers", "progress", "by",
    ],
    "resolve": ["conflict", "answer", "*", "content", "by", "reason", "lang"],
    "restore": ["unit", "*", "cause", "by", "reason"],
    "retract": ["unit", "*", "reason", "by"],
    "retrieve": [
        "query", "*", "focus", "limit", "critical", "budget", "purpose", "filter", "profile", "ranker", "constraints",
        "as_of",
    ],
    "reverify": ["unit", "*", "by", "evidence"],
    "step": ["content", "*", "kind", "creator", "**options"],
    "store": ["content", "**options"],
    "store_many": ["items"],
    "trace": ["unit", "*", "to"],
    "track": ["*", "creator", "render", "sample", "**options"],
    "update": ["unit", "content", "*", "if_version", "**options"],
    "why": ["unit", "action", "*", "by", "purpose", "critical", "inspecting", "budget", "level", "lang"],
}  # fmt: skip
STORE_OPTIONS = [
    "arguments", "confidence", "context", "creator", "creator_id", "depends_on", "expires_at", "exposed",
    "idempotency_key", "key", "kind", "metadata", "owner", "pinned", "subject", "tags", "timestamp", "valid_to",
    "visibility",
]  # fmt: skip


def parameters(function: Any) -> list[str]:
    """Names in order; a lone `*` where those that follow go by name only."""
    found: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        found.append(f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name)
    return found


def surface(owner: type) -> dict[str, list[str]]:
    """Public methods and properties of a class, in order of name."""
    members = ((name, getattr(owner, name)) for name in dir(owner) if not name.startswith("_"))
    return {name: parameters(member) if callable(member) else [] for name, member in members}


def test_the_package_exports_exactly_these_names() -> None:
    assert list(ml.__all__) == NAMES


def test_every_exported_name_exists() -> None:
    assert [name for name in ml.__all__ if not hasattr(ml, name)] == []


@pytest.mark.parametrize(("owner", "frozen"), [(ml.Memory, MEMORY), (ml.Scope, SCOPE)], ids=["Memory", "Scope"])
def test_methods_and_their_parameters_are_frozen(owner: type, frozen: dict[str, list[str]]) -> None:
    assert surface(owner) == frozen


def test_the_options_of_store_are_frozen() -> None:
    assert sorted(StoreOptions.__annotations__) == STORE_OPTIONS
