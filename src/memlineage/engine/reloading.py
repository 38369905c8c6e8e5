"""Reload: documents are read again, and take force whole or not at all.

Everything is read before anything changes. A fault leaves the last good generation in force, in this process and in
the file, and is remembered for whoever asks how things stand. What takes force does so with one commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Protocol

import msgspec

from memlineage.engine.core import Core
from memlineage.engine.generation import Generation
from memlineage.engine.opening import Source, admit_policy
from memlineage.engine.sources import Sources, Stamp
from memlineage.errors import InvalidInputError, MemLineageError, PolicyDocumentError
from memlineage.model.time import from_us
from memlineage.policy import Fault, PolicySet

__all__ = ["PolicyStatus", "Reloading"]

_SINCE: Final = "SELECT e.ts_us FROM generation g JOIN event e ON e.seq = g.seq WHERE g.revision = ?"


class Stoppable(Protocol):
    """What goes on until it is stopped."""

    def stop(self) -> None:
        """Let it end."""
        ...


class PolicyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Which policy is in force, and how the last reload went: for health checks.

    Attributes:
        revision: of the generation in force in the file, which everybody goes by who has it open.
        rules: how many it has.
        since: when it came into force.
        own: whether it is what this memory last read from its sources; else somebody else has put it into force.
        sources: what a reload reads: files and folders; empty if the memory was opened without documents.
        watching: whether the sources are watched.
        failed_at: when the last reload failed; None if it went well, or there was none.
        error: why, in words.
        faults: what is wrong in the documents.
    """

    revision: str
    rules: int
    since: datetime
    own: bool
    sources: tuple[str, ...] = ()
    watching: bool = False
    failed_at: datetime | None = None
    error: str | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the last reload, if there was any, went well."""
        return self.error is None

    def __bool__(self) -> bool:
        return self.ok


class Reloading:
    """Reads documents again, for one open memory. Thread-safe; one reload at a time.

    Attributes:
        sources: what a reload without arguments reads.
        watches: what watches the sources.
    """

    def __init__(self, core: Core, sources: Sources) -> None:
        self._core = core
        self._lock = threading.Lock()
        self.sources = sources
        self.watches: set[Stoppable] = set()
        self._read = core.generation.policies.revision
        self._failure: tuple[datetime, str, tuple[Fault, ...]] | None = None

    def reload(self, policies: Iterable[Source] | PolicySet | None) -> PolicySet:
        """See `Memory.reload`."""
        sources = self.sources if policies is None else Sources.of(policies, defaults=self.sources.defaults)
        if sources.items is None:
            raise InvalidInputError(
                "this memory was opened without policies, so there is nothing to read again: reload(policies=[…])"
            )
        with self._lock:
            read = self._reload(sources, lambda: True)
        assert read is not None
        return read

    def reload_if_still(self, stamp: Stamp) -> bool:
        """Reload, unless the files are not what they were when they were looked at: then somebody is writing them,
        and what they hold is neither taken into force nor called faulty. Returns whether they are.
        """
        with self._lock:
            return self._reload(self.sources, lambda: self.sources.stamp() == stamp) is not None

    def _reload(self, sources: Sources, still: Callable[[], bool]) -> PolicySet | None:
        try:
            policies = sources.read()
            if not still():
                return None
            admit_policy(self._core, Generation.of(policies))
        except MemLineageError as error:
            if not still():
                return None
            faults = error.faults if isinstance(error, PolicyDocumentError) else ()
            known = tuple(fault for fault in faults if isinstance(fault, Fault))
            self._failure = (from_us(self._core.now_us()), str(error), known)
            raise
        self.sources, self._read, self._failure = sources, policies.revision, None
        return policies

    def status(self) -> PolicyStatus:
        """How things stand; see `Memory.policy_status`."""
        with self._core.read() as snapshot:
            policies = snapshot.generation.policies
            since_us = snapshot.connection.execute(_SINCE, (policies.revision,)).get
        failed_at, error, faults = self._failure or (None, None, ())
        return PolicyStatus(
            revision=policies.revision,
            rules=len(policies.rules),
            since=from_us(since_us),
            own=policies.revision == self._read,
            sources=self.sources.named,
            watching=bool(self.watches),
            failed_at=failed_at,
            error=error,
            faults=faults,
        )
