"""What standing checks found (row C7)."""

from __future__ import annotations

import enum

import msgspec

from memlineage.model.ids import Ref

__all__ = ["CheckReport", "CheckResult", "Verdict"]


class Verdict(enum.StrEnum):
    """What came of holding a version against a source."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    WRONG = "wrong"
    SKIPPED = "skipped"
    REFUSED = "refused"
    FAILED = "failed"


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of holding one version against a source.

    Attributes:
        check: the check's name.
        ref: the version.
        verdict: `agrees`; `disagrees` or `wrong`, and then it was invalidated; `skipped` where the source does not
            rank above it, or it changed meanwhile; `refused` by policy; `failed` where the source did.
        reason: in words; empty for one that agrees.
        instead: what the source says instead, as a unit of its own; None if it said nothing.
    """

    check: str
    ref: Ref
    verdict: Verdict
    reason: str = ""
    instead: Ref | None = None

    def __repr__(self) -> str:
        return f"<CheckResult {self.check}: {self.ref.short} {self.verdict.value}>"


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a round of standing checks found.

    Attributes:
        results: per check and version, in the order in which they were looked at.
        left: versions that were due and not looked at: beyond the limit, or after a source did not answer in time.
        busy: checks that another process was at, or another thread.
    """

    results: tuple[CheckResult, ...] = ()
    left: int = 0
    busy: tuple[str, ...] = ()

    @property
    def agreed(self) -> tuple[CheckResult, ...]:
        """Those that the source agrees with."""
        return self._of(Verdict.AGREES)

    @property
    def invalidated(self) -> tuple[CheckResult, ...]:
        """Those that were invalidated."""
        return self._of(Verdict.DISAGREES, Verdict.WRONG)

    @property
    def skipped(self) -> tuple[CheckResult, ...]:
        """Those that nobody was asked about, or that changed meanwhile."""
        return self._of(Verdict.SKIPPED)

    @property
    def refused(self) -> tuple[CheckResult, ...]:
        """Those that policy kept as they are, although the source says otherwise."""
        return self._of(Verdict.REFUSED)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Those about which the source could not be asked."""
        return self._of(Verdict.FAILED)

    def _of(self, *verdicts: Verdict) -> tuple[CheckResult, ...]:
        return tuple(result for result in self.results if result.verdict in verdicts)

    def __repr__(self) -> str:
        counts = {verdict: len(self._of(verdict)) for verdict in Verdict}
        told = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count) or "nothing due"
        return f"<CheckReport: {told}{f', {self.left} left' if self.left else ''}>"
