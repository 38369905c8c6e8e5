"""What every operation runs on: the store, the clock, the policy generation in force, tools, and the log.

Two doors lead to the tables. `write` is one transaction: time is settled first, the act is decided and written,
derived state follows, and one commit ends it; a refusal rolls all of it back and leaves a line in the decision
log. `read` is one snapshot, in which whatever has run out of time already counts as expired.

Which generation of policy is in force stands in the file, so a transaction sees one of them, whole, as it sees one
state of everything else: an operation goes by the generation of its own snapshot, whichever process put that there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import apsw

from memlineage.engine.credence.registered import EntryChecks
from memlineage.engine.decision_logging import DecisionLogging, Line
from memlineage.engine.decisions import DecisionLog
from memlineage.engine.generation import Generation, Generations
from memlineage.engine.inputs import Limits
from memlineage.engine.later import Later
from memlineage.engine.outbox import Outbox
from memlineage.engine.replay.recipes import RecipeBook
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.tools import ToolRegistry
from memlineage.errors import PolicyViolationError, StoreError
from memlineage.lineage.credibility import ConfidenceModel
from memlineage.model.ids import uuid7
from memlineage.model.principal import HOST
from memlineage.model.time import to_us
from memlineage.policy import PolicySet
from memlineage.recall.embedding import Embedder
from memlineage.store.database import MEMORY, Connection, Database
from memlineage.store.earlier import PlaceCache
from memlineage.store.kept_index import KeptIndex, file_of
from memlineage.store.names import NameCache, Names
from memlineage.store.wake import Wake
from memlineage.store.writer import Writer

__all__ = ["SEARCH_MEMORY", "Clock", "Core"]

SEARCH_MEMORY: Final = 512 << 20
"""Bytes that what is derived for searching takes by default: half a million vectors of 256 dimensions."""

Clock = Callable[[], datetime]
Comparer = Callable[[str, str], bool]


class Core:
    """The shared parts of one open memory.

    Attributes:
        generation: what a write goes by; it changes between writes only, so it is for whoever is inside of one. Reads
            have that of their snapshot.
        generations: those that the file names, made once each.
        derived: another object whenever rows were written anew, so that what was read before may be wrong.
    """

    def __init__(
        self,
        database: Database,
        *,
        policies: PolicySet,
        embedder: Embedder,
        limits: Limits,
        clock: Clock | None,
        search_memory: int = SEARCH_MEMORY,
        decision_log: DecisionLogging | None = None,
        confidence_model: ConfidenceModel | None = None,
    ) -> None:
        self.database = database
        self.generation = Generation.of(policies)
        self.generations = Generations(database.path, self.generation)
        self.embedder = embedder
        self.limits = limits
        self.search_memory = search_memory
        self.tools = ToolRegistry()
        self.recipes = RecipeBook()
        self.confidence = confidence_model or ConfidenceModel()
        self.entry_checks = EntryChecks()
        self.comparers: dict[str, Comparer] = {}
        self.log = DecisionLog(decision_log)
        self.later = Later()
        self.outbox = Outbox()
        self.derived = object()
        self._clock = clock
        self._names = NameCache()
        self._places: PlaceCache = {}
        self._wake: Wake | None = None
        self._index = KeptIndex(database.file)

    @property
    def policies(self) -> PolicySet:
        """The policy that was in force when this memory last read or wrote."""
        return self.generations.latest.policies

    @property
    def embedder_mark(self) -> str:
        """What the store remembers of the embedder whose vectors it holds."""
        return f"{self.embedder.name}/{self.embedder.dimension}"

    def check_vectors(self, connection: Connection) -> None:
        """Another process may have computed all vectors anew, with another embedder, since this one opened."""
        known = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").get
        if known is not None and known != self.embedder_mark:
            raise StoreError(
                f"{self.database.path} now holds vectors of {known}, not {self.embedder_mark}: open it again"
            )

    def forget_derived(self) -> None:
        """Rows were written anew: what was kept in memory, or beside the file, may be of what they were."""
        self._wake = None
        self.derived = object()
        self._names, self._places = NameCache(), {}
        self._index = KeptIndex(self.database.file)
        self.generations.forget_masks()
        if self.database.file != MEMORY:
            file_of(self.database.file).unlink(missing_ok=True)

    def now_us(self) -> int:
        """The present, in microseconds."""
        return time.time_ns() // 1000 if self._clock is None else to_us(self._clock(), name="clock")

    def new_id(self, now_us: int) -> str:
        """A fresh id that sorts by time."""
        return uuid7(now_us, os.urandom(10))

    @contextmanager
    def write(
        self, *, actor: str = HOST, let_time_pass: bool = True, admitting: Generation | None = None
    ) -> Iterator[Writer]:
        """One act, in one transaction, by the generation in force, or by the one that it takes into force.

        Taking a policy into force must not expire things by the one before it.
        """
        try:
            with self._transaction() as connection:
                moment = self.database.moment()
                wake = self._wake if self._wake is not None and self._wake.holds(moment) else None
                if wake is None and admitting is None:
                    self.generation = self.generations.of(connection)
                generation = admitting or self.generation
                names = Names(connection, self._names, None if wake is None else wake.registered)
                writer = Writer(
                    connection, names, self.now_us(), generation.quorum, actor=actor, wake=wake, places=self._places,
                    index=self._index,
                )  # fmt: skip
                if wake is None:
                    self.check_vectors(connection)
                told = self.outbox.begun(connection, unchanged=wake is not None)
                if told:
                    writer.states.keep_first()
                if let_time_pass:
                    writer.expire_due()
                yield writer
                writer.settle()
                if told:
                    self.outbox.tell(writer, told)
                carried = generation.masks.flush(connection)
                left = writer.numbers.wake(moment, names.registered)
            self._wake = left  # only now is it committed
            generation.masks.written(carried)
            names.keep()
            writer.earlier.keep()
            self.later.committed()
        except PolicyViolationError:
            self.write_log()
            raise

    def write_log(self) -> None:
        """Write decisions that wait, in a transaction of their own."""
        with self._transaction():
            pass

    def write_last_log(self) -> None:
        """The same before closing, unless another thread has closed the store meanwhile."""
        try:
            self.write_log()
        except StoreError:
            if not self.database.closed:
                raise

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A transaction that takes along the decisions that wait. If it fails, they wait on."""
        carried: Sequence[Line] = ()
        try:
            with self.database.writing() as connection:
                yield connection
                carried = self.log.flush(connection)
                self.outbox.oblige(connection, carried)
            carried = ()
            self.outbox.committed()
        finally:
            self.log.put_back(carried)

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """One consistent view of everything."""
        with self.database.reading() as connection:
            names = Names(connection, self._names)
            generation = self.generations.of(connection)
            yield Snapshot(connection, names, self.now_us(), generation, index=self._index)
            if connection.txn_state("main") != apsw.SQLITE_TXN_WRITE:  # who reads inside a write may see it undone
                names.keep()

    def seen_by(self, writer: Writer) -> Snapshot:
        """What a write sees from inside its own transaction."""
        return Snapshot(
            writer.connection, writer.names, writer.now_us, self.generation, states=writer.states, index=self._index
        )
