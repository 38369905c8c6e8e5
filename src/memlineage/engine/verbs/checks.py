"""The operator's entry and standing checks (row C7)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from memlineage.engine.checks import check_seconds
from memlineage.engine.credence.registered import Where, entry_check
from memlineage.engine.credence.report import CheckReport
from memlineage.engine.credence.rounds import CheckRounds, OnReport
from memlineage.engine.credence.standing import Source
from memlineage.engine.verbs.base import MemoryVerbs

__all__ = ["CheckVerbs"]


class CheckVerbs(MemoryVerbs):
    """Checks on entry, and against more authoritative sources afterwards."""

    def entry_check(
        self, name: str, where: Where | None = None, *, least_confidence: float | None = None, sources: int = 2
    ) -> None:
        """Hold back what is said by anyone but users and the host until enough independent sources say the same: it is
        quarantined as it is written, and released, with what it waited for, by the write that is enough. Checks live in
        the process; what waits stays in the file.

        Args:
            name: of the check; registering it again replaces it.
            where: what it is about: texts or patterns (`*`) per `kind`, `tags`, `creators`, `subject`, `key`, of each
                of which one must fit; or a function of an `Entry` that returns True or False. Everything, if left out.
                What a function raises, or fails to say in five seconds, holds back.
            least_confidence: how far it must be believed besides, by itself or by its sources together (`credibility`).
            sources: how many must say so. None is what shares an origin with another, or goes back to an UNTRUSTED
                principal. The word of a user or of the host is enough.

        Raises:
            InvalidInputError: a value makes no sense.
        """
        self._core.entry_checks.add(entry_check(name, where, least_confidence, sources))

    def standing_check(
        self, name: str, where: Where | None = None, *, source: str, check: Source, every: timedelta | None = None
    ) -> None:
        """Hold what is remembered against a more authoritative source, whenever `run_checks` is called or a round of
        `start_checks` comes. What it contradicts is invalidated by the system, with a reason that names the source;
        what it says instead becomes a unit of its own. Checks live in the process.

        Args:
            name: of the check; registering it again replaces it.
            where: what it is about, as for `entry_check`; of current units that may be relied on.
            source: the principal that answers. It has to rank above a unit, by integrity and then by authority, or to
                be a registered verifier; else the unit is skipped.
            check: asked about a unit, for 14 seconds at most. Returns None if the source says the same, False if it
                says that this is wrong, or what it says instead: text, or a mapping with `content` and perhaps
                `confidence`, `timestamp`, `metadata`. If it raises, everything stays as it is.
            every: ask about one version once in this span; left out, in every round.

        Raises:
            InvalidInputError: a value makes no sense.
        """
        self._parts.standing.add(name, where, source, check, every)

    def run_checks(
        self, names: Iterable[str] | str | None = None, *, limit: int | None = None, force: bool = False
    ) -> CheckReport:
        """Run standing checks now.

        Args:
            names: which; all that are registered here, if left out.
            limit: most versions asked about.
            force: ask although it is not due yet.

        Raises:
            InvalidInputError: there is no check of that name here.
        """
        return self._parts.standing.run(names, limit=limit, force=force)

    def start_checks(self, interval: float = 60.0, on_report: OnReport | None = None) -> CheckRounds:
        """Run the standing checks that are due from time to time, until the memory is closed. Of several processes one
        at a time is at a check.

        Args:
            interval: between two rounds, in seconds.
            on_report: told what each round found, in a thread of its own.
        """
        return CheckRounds(self._parts.standing, check_seconds(interval, name="interval"), on_report).start()
