"""Standing checks from time to time, in a thread."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextvars import copy_context
from types import TracebackType
from typing import Self

from memlineage.engine.credence.report import CheckReport
from memlineage.engine.credence.standing import StandingChecks
from memlineage.errors import StoreError

__all__ = ["CheckRounds", "OnReport"]

OnReport = Callable[[CheckReport], object]
"""Told what each round found, whatever that was."""


class CheckRounds:
    """A thread that runs the standing checks that are due, one round an interval.

    It ends with `stop`, at the end of a `with` block, or with the memory. A process that is forked meanwhile has no
    such thread.

    Attributes:
        report: what the last round found; None before the first, and after one that the store did not let happen.
    """

    def __init__(self, standing: StandingChecks, interval: float, on_report: OnReport | None = None) -> None:
        self.report: CheckReport | None = None
        self._standing = weakref.ref(standing)
        self._interval = interval
        self._on_report = on_report
        self._context = copy_context()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memlineage-checks", daemon=True)
        self._telling: threading.Thread | None = None

    def start(self) -> Self:
        """Begin; the first round is run at once."""
        standing = self._standing()
        if standing is not None:
            standing.rounds.add(self)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Run no more; returns when the source that is being asked has answered. Stopping twice is harmless."""
        self._over.set()
        standing = self._standing()
        if standing is not None:
            standing.rounds.discard(self)
        own = threading.current_thread() in (self._thread, self._telling)
        if not own and self._thread.is_alive():
            self._thread.join()

    @property
    def running(self) -> bool:
        """Whether there will be another round."""
        return self._thread.is_alive() and not self._over.is_set()

    def _run(self) -> None:
        while not self._over.is_set():
            standing = self._standing()
            if standing is None:
                return
            try:
                self.report = standing.run(None, limit=None, force=False, over=self._over.is_set)
            except StoreError:
                self.report = None  # the next round tries again
            del standing  # or it would be kept from going while this waits
            self._tell(self.report)
            self._over.wait(self._interval)

    def _tell(self, report: CheckReport | None) -> None:
        """In a thread of its own: an error of whoever is told is reported like any of a thread, and ends nothing."""
        if self._on_report is not None and report is not None:
            self._telling = threading.Thread(
                target=self._context.copy().run, args=(self._on_report, report), name="memlineage-checks-told"
            )
            self._telling.start()
            self._telling.join()
            self._telling = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<CheckRounds every {self._interval:g} s{'' if self.running else ', stopped'}>"
