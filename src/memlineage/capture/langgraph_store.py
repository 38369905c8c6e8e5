"""`LineageStore`: a LangGraph store whose items are units, with lineage, policy and a record.

It answers as LangGraph's own stores do, name by name. What differs is what makes it worth having:

- What may not be relied on any more (found wrong, held back by policy, expired) is not returned, and is counted.
- What a model reads counts as seen by it, and what it puts hangs on that; it cannot write over what the user said.
- It is an agent that reads and puts, whatever the scope, unless a program says otherwise (`langgraph_voices`).
- Deleting retracts and destroys nothing; `created_at` survives putting again.
- Values are JSON, and a key is not blank. What is no number matches no comparison with one, where `InMemoryStore`
  raises; texts are compared with a text, such as a date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, Op, PutOp, Result, SearchOp, TTLConfig

from memlineage.capture.langgraph_items import is_gone
from memlineage.capture.langgraph_likeness import Likeness
from memlineage.capture.langgraph_reads import Answering, Question, named_so
from memlineage.capture.langgraph_voices import Given, Voices
from memlineage.capture.langgraph_writes import prolong, put_all
from memlineage.engine.async_scope import AsyncScope
from memlineage.engine.results import Withheld
from memlineage.engine.scope import Scope
from memlineage.engine.workers import Workers
from memlineage.errors import InvalidInputError
from memlineage.model.ids import Ref
from memlineage.model.principal import parse_principal
from memlineage.model.state import Status
from memlineage.model.unit import Unit
from memlineage.recall.embedding import embed_query

__all__ = ["LineageStore"]

_QUESTIONS: Final = (GetOp, SearchOp, ListNamespacesOp)

_noting: ContextVar[tuple[tuple[BaseStore, list[Withheld]], ...]] = ContextVar("memlineage_noting", default=())
"""Lists that are open here, each with the store whose reads it is for."""


class LineageStore(BaseStore):
    """A LangGraph store over one scope, or over that of each run. Safe to share between threads and tasks.

    graph.compile(store=LineageStore(memory.scope(user="alice")))

    What is put is an agent's word, and hangs on what that agent was shown: give the store the same `Recorder` as the
    middleware or the callback that captures the run. What your program knows of the user, it puts outside of any run
    by a store of its own, `LineageStore(scope, creator="user:alice")`.
    """

    supports_ttl = True

    def __init__(
        self,
        source: Given,
        *,
        creator: str | None = None,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        """A store.

        Args:
            source: a scope or a `Recorder`; or a function that gives one of these for a run, from LangGraph's runtime
                (`lambda runtime: memory.scope(user=runtime.context.user)`), where one graph serves many users. Outside
                of any run it is given None.
            creator: who says what is put, if not the agent; `user` is the scope's. Inside of runs it may be a tool, or
                something external; whoever else is not believed there.
            fields: paths into values that are searched by meaning, as in LangGraph's index; the whole value if left
                out. The vectors are by the memory's own embedder.
            ttl: `default_ttl` in minutes, `refresh_on_read`. What has expired is never returned, and stays on record.
                What one wrote lives longer for being read by the same one, not by others.

        Raises:
            InvalidInputError: the source is none of these, or the creator no principal.
        """
        self._source = source
        self._workers = source._workers if isinstance(source, AsyncScope) else Workers()
        if creator is not None and creator != "user":  # whose user is known once the scope is
            creator = parse_principal(creator)
        self._voices = Voices(source, creator)
        self._likeness = Likeness(fields)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Several operations: reads see what was there before, and of puts under one name the last counts.

        Raises:
            PolicyViolationError: a put or a deletion was refused; nothing was written.
            InvalidInputError: an operation cannot be done; nothing was written.
        """
        voice = self._voices.here()
        results: list[Any] = []
        questions: dict[int, Question] = {}
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for place, op in enumerate(ops):
            results.append(None)
            if isinstance(op, _QUESTIONS):
                questions[place] = op
            elif isinstance(op, PutOp):
                puts[tuple(op.namespace), op.key] = op
            else:
                raise InvalidInputError(f"{op!r:.80} is no operation on a store")
        if questions:
            results = self._answered(voice.scope, questions, results)
        if puts:
            self._note(_held(put_all(voice.scope, list(puts.values()), voice.creator)))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, in a thread of its own; errors as `batch`."""
        given = list(ops)
        return await self._workers.run(lambda: self.batch(given))

    def ref(self, namespace: tuple[str, ...], key: str) -> Ref | None:
        """The version that stands under a name, whether or not it may be relied on: for `scope.explain`, `history`,
        `invalidate`. None if there is none, or it was deleted.
        """
        scope = self._voices.here().scope
        with scope._parts.core.read() as snapshot:
            units = snapshot.units(named_so(snapshot.connection, scope._acting.scope, namespace, key))
            left = [unit for unit in units.values() if not is_gone(unit)]
        return max(left, key=lambda unit: unit.status is not Status.SUPERSEDED).ref if left else None

    @contextmanager
    def noting_withheld(self) -> Iterator[list[Withheld]]:
        """A list that fills with what this store holds back meanwhile: from reads, by rule and reason, and of what is
        put, if a rule quarantines it. It is for this context, and for tasks and threads that inherit it.
        """
        noted: list[Withheld] = []
        token = _noting.set((*_noting.get(), (self, noted)))
        try:
            yield noted
        finally:
            _noting.reset(token)

    def _answered(self, scope: Scope, questions: dict[int, Question], results: list[Any]) -> list[Any]:
        core = scope._parts.core
        queries = {op.query for op in questions.values() if isinstance(op, SearchOp) and op.query}
        vectors = {query: embed_query(core.embedder, query) for query in queries}
        with core.read() as snapshot:
            reads = Answering(scope, snapshot, self._likeness, vectors)
            answers = {place: reads.answer(op) for place, op in questions.items()}
        scope._shown([item.unit for item in reads.seen])
        self._note(reads.withheld)
        for item in {item.unit.id: item for item in reads.used}.values():
            prolong(scope, item)
        return [answers.get(place, result) for place, result in enumerate(results)]

    def _note(self, withheld: Iterable[Withheld]) -> None:
        held = list(withheld)
        for store, noted in _noting.get():
            if store is self:
                noted.extend(held)

    def __repr__(self) -> str:
        return f"<LineageStore on {self._source!r}>"


def _held(units: Iterable[Unit]) -> Iterator[Withheld]:
    """What was put and is held back: nobody finds it until somebody has looked."""
    for unit in units:
        if unit.status is Status.QUARANTINED:
            reason = next((cause.reason for cause in unit.causes if cause.reason), "quarantined")
            yield Withheld(ref=unit.ref, rule=reason.partition(":")[0], reason=reason)
