"""Oracle and store, side by side: after every act both must answer alike, about everything.

What is compared: whether the act was accepted, which version it gave or what a replay ran, kept and left, and of
every version status, standing, integrity and whether it is current; at the end also what was recorded, as far as
rules depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from memlineage.model.state import CauseKind
from memlineage.testing.history import History, Version
from memlineage.testing.oracle import Oracle
from memlineage.testing.oracle_replay import OracleReplays, is_word
from memlineage.testing.worlds import AddCause, Operation, Outcome, Play, Replays, World

__all__ = ["Difference", "Lockstep"]


class Difference(AssertionError):  # noqa: N818  # an observation, raised to be shown
    """Oracle and store disagree."""


class Lockstep:
    """Runs operations in both worlds and compares."""

    def __init__(self, store: World, replays: Replays | None = None) -> None:
        oracle = Oracle()
        self.oracle = Play(oracle, replays=None if replays is None else OracleReplays(oracle))
        self.store = Play(store, replays=replays)

    def do(self, operation: Operation) -> Outcome:
        """One act in both worlds. Erasing has no verb yet and is left out."""
        if isinstance(operation, AddCause) and operation.kind is CauseKind.ERASED:
            return "skipped"
        expected, found = self.oracle.do(operation), self.store.do(operation)
        if _accepted(expected) != _accepted(found):
            raise Difference(f"{operation}\n  oracle: {expected}\n  store:  {found}")
        self.compare(operation)
        return found

    def run(self, operations: Iterable[Operation]) -> None:
        """One after the other, then what was recorded."""
        for operation in operations:
            self.do(operation)
        self.compare_records()

    def compare(self, after: object = "") -> None:
        """Everything that is derived."""
        now = self.oracle.now
        expected, found = self.oracle.world.states(now), self.store.world.states(now)
        different = [
            f"  {ref}: oracle {expected.get(ref)}, store {found.get(ref)}"
            for ref in sorted(expected.keys() | found.keys())
            if expected.get(ref) != found.get(ref)
        ]
        if different:
            raise Difference("\n".join([f"after {after}", *different]))

    def compare_records(self) -> None:
        """What was recorded: lineage, verdicts, causes, guards."""
        expected, found = _essence(self.oracle.world.recorded()), _essence(self.store.world.recorded())
        different = [f"  {name}: oracle {expected[name]}, store {found[name]}" for name in expected]
        if expected != found:
            raise Difference("\n".join(["records differ", *different]))


def _accepted(outcome: Outcome) -> object:
    """Which of several reasons a refusal names is not the rules' business."""
    return "refused" if isinstance(outcome, str) and outcome != "skipped" else outcome


def _said(version: Version) -> str | None:
    """Its content; words name what they are about by the ids of their world."""
    return "Verified" if version.content is not None and is_word(version.content) else version.content


def _essence(history: History) -> dict[str, object]:
    versions = history.versions
    return {
        "said": {ref: (_said(version), version.creator) for ref, version in versions.items()},
        "lineage": {
            ref: sorted((p.ref, p.weight, p.role) for p in version.parents) for ref, version in versions.items()
        },
        "late": {
            ref: [sorted((p.ref, p.weight, p.role) for p in parents) for parents in sets]
            for ref, sets in history.late.items()
        },
        "reasserts": {ref: version.reasserts for ref, version in versions.items()},
        "verdicts": history.verdicts,
        "causes": {
            ref: sorted(kind for _, kind in causes if kind is not CauseKind.EXPIRED)
            for ref, causes in history.causes.items()
            if any(kind is not CauseKind.EXPIRED for _, kind in causes)
        },
        "waived": history.waived,
    }
