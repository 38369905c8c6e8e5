"""mem0's interface over this memory: for programs that were written for mem0.

    from memlineage.compat.mem0 import Memory

    memory = Memory()
    memory.add("I love hiking", user_id="alice")

It takes what mem0 takes and answers as mem0 answers. What differs: nothing calls a model unless you give an
`extractor`; nothing is destroyed; who said what is known and enforced. `memory.scope(user_id=…)` leads to all that mem0
has not: lineage, policy, consequences.

Whose memory it is: the user's where `user_id` is given, else the agent's, else the run's. Agent and run narrow down
what is found within that. Roles are fail-closed: only a message of role `user` is the user's word, `assistant` is the
agent's, and everything else comes from outside.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Protocol, Self, TypeVar, cast

from memlineage.compat.mem0_filters import check, entities, matches
from memlineage.compat.mem0_memories import MARK, Earlier, befell, creator_of, event_of, messages_of, spelled, within
from memlineage.engine.checks import check_count
from memlineage.engine.memory import Memory as Store
from memlineage.engine.scope import Scope
from memlineage.errors import InvalidInputError, UnknownUnitError
from memlineage.model.state import CauseKind
from memlineage.model.unit import Unit
from memlineage.store.database import fetch

__all__ = ["AsyncMemory", "Memory"]

T = TypeVar("T")
_KIND: Final = "fact"
_MOST: Final = 10_000
_WHERE: Final = (
    "SELECT w.tenant, w.user, w.agent FROM unit u JOIN wall w ON w.w = u.w WHERE u.id = ? AND w.tenant = 'default'"
)
_ALL: Final = "SELECT user, agent FROM namespace WHERE tenant = 'default'"
_CONFIGURED: Final = ("memlineage",)


class _Statement(Protocol):
    @property
    def content(self) -> str: ...
    @property
    def subject(self) -> str | None: ...
    @property
    def key(self) -> str | None: ...
    @property
    def kind(self) -> Any: ...
    @property
    def retracts(self) -> bool: ...


class _Extractor(Protocol):
    def __call__(self, text: str, *, speaker: str, earlier: Any = ()) -> Sequence[_Statement]: ...


class Memory:
    """mem0's `Memory`. Thread-safe."""

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        path: str | PathLike[str] = ":memory:",
        extractor: _Extractor | None = None,
        **options: Any,
    ) -> None:
        """A memory.

        Args:
            config: as `from_config` takes it.
            path: the file; in memory if left out.
            extractor: turns a message into statements where `infer` is true, e.g.
                `memlineage.capture.RuleExtractor()`. Without one, messages are kept as they were said.
            options: what `memlineage.Memory.open` takes besides: `policies`, `embedder`, …
        """
        given = dict((config or {}).get("memlineage", {}))
        odd = [name for name in config or {} if name not in _CONFIGURED]
        if odd:
            warnings.warn(
                f"{', '.join(sorted(odd))} of mem0's config mean nothing here and are not used; give options of"
                " memlineage.Memory.open under 'memlineage'",
                stacklevel=2,
            )
        self.store: Store = Store.open(given.pop("path", path), **{**given, **options})
        self._extractor = extractor

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """A memory by a config: options of `memlineage.Memory.open` under `memlineage`. Of the rest of mem0's config
        (vector stores, models, graphs) a warning says that it is not used.
        """
        if not isinstance(config_dict, Mapping):
            raise InvalidInputError(f"config={config_dict!r:.80} must be a mapping")
        return cls(config_dict)

    # Whose -----------------------------------------------------------------------------------------------------

    def scope(self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None) -> Scope:
        """The scope in which these memories are kept: lineage, explanations, policy and consequences are there.

        Raises:
            InvalidInputError: no id was given.
        """
        if user_id is not None:
            return self.store.scope(user=user_id)
        if agent_id is not None:
            return self.store.scope(agent=agent_id)
        if run_id is not None:
            return self.store.scope(agent=f"run {run_id}")
        raise InvalidInputError("At least one of 'user_id', 'agent_id', or 'run_id' must be provided.")

    def _scope_of(self, memory_id: str) -> Scope | None:
        with self.store._parts.core.read() as snapshot:
            rows = fetch(snapshot.connection, _WHERE, (str(memory_id),))
        return self.store.scope(user=rows[0][1], agent=rows[0][2]) if rows else None

    def _known(self, memory_id: str) -> tuple[Scope, Unit]:
        scope = self._scope_of(memory_id)
        if scope is None:
            raise UnknownUnitError(f"memory {memory_id!r:.80} is not known")
        return scope, scope.get(memory_id)

    # Writing ---------------------------------------------------------------------------------------------------

    def add(
        self,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, list[dict[str, Any]]]:
        """Remember messages: text, one message, or a list of them (`role`, `content`).

        Raises:
            InvalidInputError: no id, no message, or metadata that say who it is.
        """
        scope = self.scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if memory_type is not None and memory_type != "procedural_memory":
            raise InvalidInputError(f"memory_type={memory_type!r:.80} is unknown; leave it out")
        if prompt is not None and self._extractor is None:
            warnings.warn("prompt is not used: no model is called; give an extractor", stacklevel=2)
        given = dict(metadata or {})
        if MARK in given:
            raise InvalidInputError(f"metadata={MARK!r} is kept for what the interface needs; name it otherwise")
        said = messages_of(messages)
        results = []
        for message in said:
            about = {"agent_id": agent_id, "run_id": run_id, "role": message["role"], "actor_id": message.get("name")}
            kept = {**given, MARK: {name: value for name, value in about.items() if value is not None}}
            creator = creator_of(message["role"], user_id, agent_id)
            if infer and self._extractor is not None:
                results += self._inferred(scope, message["content"], creator, kept)
            else:
                unit = scope.store(message["content"], creator=creator, kind=_KIND, metadata=kept)
                results.append(event_of(unit, "ADD", message))
        return {"results": results}

    def _inferred(self, scope: Scope, text: str, creator: str, kept: dict[str, Any]) -> list[dict[str, Any]]:
        """What a message states; the message itself stays, as what the facts hang on."""
        assert self._extractor is not None
        message = scope.store(text, creator=creator, kind="message", metadata=kept)
        if not creator.startswith("user:"):
            return []
        results = []
        earlier = [unit for unit in scope.list() if unit.subject is not None and unit.kind != "message"]
        speaker = creator.partition(":")[2]
        for statement in self._extractor(text, speaker=speaker, earlier=[Earlier(unit) for unit in earlier]):
            same = [one for one in earlier if (one.subject, one.key) == (statement.subject, statement.key)]
            if statement.retracts:
                for unit in same:
                    scope.retract(unit, reason=f"taken back in {message.ref}")
                    results.append(event_of(unit, "DELETE"))
                continue
            value = getattr(statement, "value", None)
            unit = scope.store(
                statement.content, creator=creator, kind=statement.kind, subject=statement.subject, key=statement.key,
                depends_on=[message], metadata={**kept, "statement": {"value": value}},
            )  # fmt: skip
            results.append(event_of(unit, "UPDATE" if same else "ADD"))
        return results

    def update(self, memory_id: str, data: str, metadata: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Write the next version of a memory; metadata stay unless they are given.

        Raises:
            UnknownUnitError: there is none of that id.
        """
        scope, unit = self._known(memory_id)
        kept = None if metadata is None else {**metadata, MARK: unit.metadata.get(MARK, {})}
        scope.update(unit, data, metadata=kept)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Take a memory back: nobody finds it any more, and what rests on it awaits verification.

        Raises:
            UnknownUnitError: there is none of that id.
        """
        scope, unit = self._known(memory_id)
        scope.delete(unit)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Take back all memories of these ids.

        Raises:
            InvalidInputError: no id was given.
        """
        scope = self.scope(user_id=user_id, agent_id=agent_id, run_id=run_id)
        wanted = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        for unit, _ in self._all(scope, {name: value for name, value in wanted.items() if value is not None}):
            scope.delete(unit)
        return {"message": "Memories deleted successfully!"}

    def reset(self) -> None:
        """Take back everything, of everybody."""
        with self.store._parts.core.read() as snapshot:
            rows = fetch(snapshot.connection, _ALL, ())
        for user, agent in rows:
            self.store.scope(user=user, agent=agent).delete_all(reason="reset")

    # Reading ---------------------------------------------------------------------------------------------------

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """One memory, or None where there is none that may be shown."""
        scope = self._scope_of(memory_id)
        if scope is None:
            return None
        found = [unit for unit in scope.list() if unit.id == memory_id]
        return spelled(found[0], scope) if found else None

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int = 100,
        top_k: int | None = None,
    ) -> dict[str, list[dict[str, Any]]]:
        """All memories of these ids, oldest first.

        Raises:
            InvalidInputError: no id, here or in the filters; or a filter that is none.
        """
        scope, wanted = self._asked(user_id, agent_id, run_id, filters)
        most = check_count(limit if top_k is None else top_k, name="limit", least=0)
        found = [memory for _, memory in self._all(scope, wanted) if matches(memory, filters)]
        return {"results": found[:most]}

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = 100,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool = True,
        top_k: int | None = None,
    ) -> dict[str, list[dict[str, Any]]]:
        """The memories that bear on a query, best first, each with a score in [0, 1].

        Raises:
            InvalidInputError: no id, here or in the filters; or a filter that is none.
        """
        scope, wanted = self._asked(user_id, agent_id, run_id, filters)
        most = check_count(limit if top_k is None else top_k, name="limit", least=0)
        narrowed = bool(filters) or len(wanted) > 1
        found = scope.retrieve(query, limit=max(1, _MOST if narrowed else most), filter={"kind": {"ne": "message"}})
        results = []
        for unit in found.units:
            score = found.scores[unit.ref].total
            memory = {**spelled(unit, scope), "score": score}
            if within(memory, wanted) and matches(memory, filters) and (threshold is None or score >= threshold):
                results.append(memory)
        return {"results": results[:most]}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What befell a memory, oldest first.

        Raises:
            UnknownUnitError: there is none of that id.
        """
        scope = self._scope_of(memory_id)
        if scope is None:
            raise UnknownUnitError(f"memory {memory_id!r:.80} is not known")
        events: list[dict[str, Any]] = []
        before: Unit | None = None
        first = None
        for unit in scope.history(memory_id):
            first = first or unit.lineage.recorded_at
            told = "ADD" if before is None else "UPDATE"
            events.append(befell(unit, told, before, first.isoformat(), unit.lineage.recorded_at.isoformat()))
            before = unit
        if before is not None and first is not None:
            taken = [cause for cause in before.causes if cause.kind is CauseKind.RETRACTED]
            events += [befell(before, "DELETE", before, first.isoformat(), None) for _ in taken[:1]]
        return events

    def _asked(
        self, user_id: str | None, agent_id: str | None, run_id: str | None, filters: Mapping[str, Any] | None
    ) -> tuple[Scope, dict[str, str]]:
        if filters is not None:
            check(filters)
        given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        named = {name: value for name, value in given.items() if value is not None}
        wanted = {**entities(filters), **named}
        return self.scope(**wanted), wanted

    def _all(self, scope: Scope, wanted: Mapping[str, str]) -> list[tuple[Unit, dict[str, Any]]]:
        units = [(unit, spelled(unit, scope)) for unit in scope.list() if unit.kind != "message"]
        return [(unit, memory) for unit, memory in units if within(memory, wanted)]

    # The rest --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class AsyncMemory:
    """mem0's `AsyncMemory`: the same methods, awaited; each runs on a thread of its own."""

    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        """A memory; arguments as in `Memory`."""
        self.memory = Memory(config, **options)

    @classmethod
    async def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """A memory by a config."""
        return cls(config_dict)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.memory, name)
        if name.startswith("_") or not callable(method):
            return cast("Callable[..., Any]", method)
        return lambda *args, **kwargs: asyncio.to_thread(method, *args, **kwargs)
