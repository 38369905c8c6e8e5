"""Messages as mem0 takes them, and units as mem0 spells memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from memlineage.compat.mem0_filters import IDS
from memlineage.engine.scope import Scope
from memlineage.errors import InvalidInputError
from memlineage.model.unit import Unit

__all__ = ["MARK", "Earlier", "befell", "creator_of", "event_of", "messages_of", "spelled", "within"]

MARK: Final = "mem0"
"""The entry of metadata that is the interface's own."""


class Earlier:
    """A unit as an extractor is told of what was stated before."""

    def __init__(self, unit: Unit) -> None:
        self.content = unit.content
        self.subject = unit.subject
        self.key = unit.key
        self.kind = unit.kind
        self.retracts = False
        mark = unit.metadata.get("statement")
        self.value = mark.get("value") if isinstance(mark, dict) else None


def messages_of(messages: Any) -> list[dict[str, Any]]:
    """Messages as mem0 takes them; what the system says is no memory."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, Mapping):
        messages = [messages]
    if not isinstance(messages, Sequence) or not messages:
        raise InvalidInputError(f"messages={messages!r:.80} must be text, a message, or a list of messages")
    said = []
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InvalidInputError(f"message={message!r:.80} must have a role and a content")
        content = message.get("content")
        if isinstance(content, Sequence) and not isinstance(content, str):
            content = "\n".join(part.get("text", "") for part in content if isinstance(part, Mapping))
        if not isinstance(content, str):
            raise InvalidInputError(f"content={content!r:.80} must be text")
        if message["role"] != "system":
            said.append({**message, "content": content})
    return said


def creator_of(role: str, user_id: str | None, agent_id: str | None) -> str:
    """Whose word a message of that role is; what is no user's and no agent's comes from outside."""
    if role == "user":
        return "external:user" if user_id is None else f"user:{user_id}"
    if role == "assistant":
        return f"agent:{agent_id or 'assistant'}"
    return f"external:{role or 'unnamed'}"


def spelled(unit: Unit, scope: Scope) -> dict[str, Any]:
    """A unit as mem0 spells a memory."""
    found = unit.metadata.get(MARK)
    mark: Mapping[str, Any] = found if isinstance(found, dict) else {}
    walls = scope._acting.scope
    ids = {"user_id": walls.user, "agent_id": mark.get("agent_id"), "run_id": mark.get("run_id")}
    about = {"actor_id": mark.get("actor_id"), "role": mark.get("role")}
    metadata = {name: value for name, value in unit.metadata.items() if name not in (MARK, "statement")}
    created = unit.lineage.recorded_at if unit.version == 1 else _first(scope, unit)
    return {
        "id": unit.id, "memory": unit.content, "created_at": created.isoformat(),
        "updated_at": None if unit.version == 1 else unit.lineage.recorded_at.isoformat(),
        "metadata": metadata or None,
        **{name: value for name, value in {**ids, **about}.items() if value is not None},
    }  # fmt: skip


def _first(scope: Scope, unit: Unit) -> Any:
    return next(iter(scope.history(unit.id))).lineage.recorded_at


def within(memory: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """Whether a memory is of these ids."""
    return all(memory.get(name) == value for name, value in wanted.items() if name in IDS)


def event_of(unit: Unit, event: str, message: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What came of adding, as mem0 tells it."""
    told: dict[str, Any] = {"id": unit.id, "memory": unit.content, "event": event}
    if message is not None:
        told["role"] = message["role"]
        if message.get("name"):
            told["actor_id"] = message["name"]
    return told


def befell(unit: Unit, event: str, before: Unit | None, created: str, updated: str | None) -> dict[str, Any]:
    """One event of a history."""
    return {
        "id": str(unit.ref), "memory_id": unit.id, "old_memory": None if before is None else before.content,
        "new_memory": None if event == "DELETE" else unit.content, "event": event, "created_at": created,
        "updated_at": updated, "is_deleted": event == "DELETE", "actor_id": unit.creator,
    }  # fmt: skip
