"""MemLineage: memory for LLM agents that knows where every memory came from, and enforces it.

>>> import memlineage as ml
>>> memory = ml.Memory.open()
>>> trip = memory.scope(user="alice")
>>> city = trip.store("Destination is Kyoto", creator="user:alice", subject="trip", key="destination")
>>> plan = trip.store("Stay at Ryokan Aoi", creator="reasoning", depends_on=[city])
>>> trip.invalidate(city, reason="the trip was called off").status.value
'invalid'
>>> trip.get(plan).status.value
'contaminated'
"""

from memlineage.engine.async_memory import AsyncMemory
from memlineage.engine.async_past_view import AsyncMemoryView
from memlineage.engine.async_scope import AsyncScope
from memlineage.engine.backup import Backup
from memlineage.engine.carrying import carry
from memlineage.engine.chain_results import Chain, ChainLink, PlanStep, PlanSteps
from memlineage.engine.conflicts import Clarification, Conflict, ConflictPage, Option, Resolution, Settled
from memlineage.engine.context_result import Context, ContextItem, LeftOut
from memlineage.engine.credence.believing import Credibility
from memlineage.engine.credence.quarantine import Quarantined, QuarantinedPage
from memlineage.engine.credence.registered import Entry
from memlineage.engine.credence.report import CheckReport, CheckResult, Verdict
from memlineage.engine.credence.rounds import CheckRounds
from memlineage.engine.decision_explanation import DecisionExplanation
from memlineage.engine.decision_logging import DecisionLogging
from memlineage.engine.difference_results import ContentChange, Difference, StatusChange, ValueChange
from memlineage.engine.findings import Finding
from memlineage.engine.found import Found
from memlineage.engine.frames import Step
from memlineage.engine.inputs import Limits
from memlineage.engine.loaded import BadLine, Loaded, Progress
from memlineage.engine.memory import Memory
from memlineage.engine.notices import Delivered, Notice, NoticeKind, Subscription, UndeliveredNotice
from memlineage.engine.past_view import MemoryView
from memlineage.engine.reloading import PolicyStatus
from memlineage.engine.replay.recipes import Input
from memlineage.engine.replay.results import ModelStep, ReplayPlan, ReplayReport, ReplayStep
from memlineage.engine.reports import RebuildReport, VerifyReport
from memlineage.engine.results import (
    ActionResult,
    Affected,
    CaughtUp,
    Change,
    Compensation,
    Compensations,
    Consequences,
    Impact,
    Page,
    Trace,
    Withheld,
)
from memlineage.engine.scope import Scope
from memlineage.engine.watching import Watch
from memlineage.errors import (
    CapabilityError,
    ConflictError,
    CycleError,
    InvalidInputError,
    LedgerError,
    MemLineageError,
    MissingExtraError,
    PolicyDocumentError,
    PolicyViolationError,
    QuotaError,
    ScopeRequiredError,
    StoreError,
    UnknownUnitError,
)
from memlineage.ledger.checkpoint import Checkpoint
from memlineage.ledger.proof import Proof, Proven, verify_proof
from memlineage.lineage.credibility import ConfidenceModel
from memlineage.lineage.explain import Explanation
from memlineage.model.ids import Ref
from memlineage.model.principal import Authority, Integrity
from memlineage.model.state import Standing, Status
from memlineage.model.unit import Cause, Edge, Lineage, Role, Unit
from memlineage.policy import Budget, Decision, Document, Effect, PolicySet
from memlineage.recall.profiles import ContextProfile

__version__ = "0.1.0"

__all__ = [
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
