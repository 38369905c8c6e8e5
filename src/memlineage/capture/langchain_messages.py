"""LangChain's messages as the recorder takes them, and back with something withheld.

Only a `HumanMessage` that nobody else put its name to is a user's: agents that hand their findings on as human messages
name themselves there, and summaries say what wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from memlineage.capture.messages import Call, Message, Reply, text_of

__all__ = ["WITHHELD", "given_messages", "message_of", "messages_of", "reply_of", "with_withheld", "words_of"]

WITHHELD: Final[Mapping[str, Any]] = {}
"""The arguments of calls in a step that may not be relied on any more."""
_ROLES: Final[Mapping[str, Literal["user", "assistant", "system"]]] = {
    "user": "user", "human": "user", "system": "system", "developer": "system",
}  # fmt: skip
_INPUTS: Final = ("messages", "input", "question", "query")


def words_of(content: Any) -> str:
    """The text of a content: its text blocks; of pictures and the like, only that they are there."""
    if not isinstance(content, list):
        return text_of(content)
    parts = []
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else "text"
        if kind in ("text", "input_text", "output_text", None):
            parts.append(text_of(block))
        elif kind not in ("tool_use", "tool_call", "function_call", "thinking", "reasoning"):
            parts.append(f"[{kind}]")
    return "\n".join(part for part in parts if part)


def message_of(message: BaseMessage) -> Message:
    """One message."""
    text, id = words_of(message.content), message.id
    if isinstance(message, ToolMessage):
        return Message(
            role="tool", text=text, id=id, call_id=message.tool_call_id, name=message.name,
            error=message.status == "error",
        )  # fmt: skip
    if isinstance(message, FunctionMessage):
        return Message(role="tool", text=text, id=id, name=message.name)
    if isinstance(message, AIMessage):
        return Message(role="assistant", text=text, id=id, name=message.name, calls=_calls(message))
    if isinstance(message, SystemMessage):
        return Message(role="system", text=text, id=id)
    role: Literal["user", "assistant", "system"] = "assistant"
    if isinstance(message, ChatMessage):
        role = _ROLES.get(message.role.lower(), "assistant")
    elif isinstance(message, HumanMessage):
        role = "user"
    if role == "user" and (message.name or "lc_source" in message.additional_kwargs):
        role = "assistant"
    return Message(role=role, text=text, id=id, name=None)


def messages_of(messages: Iterable[BaseMessage]) -> list[Message]:
    """Messages, in their order; what takes one away says nothing."""
    return [message_of(message) for message in messages if not isinstance(message, RemoveMessage)]


def _calls(message: AIMessage) -> tuple[Call, ...]:
    good = [Call(id=call["id"] or "", name=call["name"], arguments=call["args"]) for call in message.tool_calls]
    bad = [
        Call(id=call["id"] or "", name=call["name"] or "unnamed", arguments=call["args"] or "")
        for call in message.invalid_tool_calls
    ]
    return (*good, *bad)


def reply_of(messages: Iterable[BaseMessage]) -> Reply | None:
    """What a model answered: its own message among these."""
    answer = next((message for message in messages if isinstance(message, AIMessage)), None)
    if answer is None:
        return None
    return Reply(text=words_of(answer.content), calls=_calls(answer), id=answer.id)


def with_withheld(messages: Sequence[AnyMessage], redacted: Mapping[int, str]) -> list[AnyMessage]:
    """The messages, with these texts in the place of what is withheld. None is dropped: a result without its call, or
    a call without its result, is refused by the providers of models.
    """
    filtered = list(messages)
    for place, text in redacted.items():
        message = messages[place]
        changed: dict[str, Any] = {"content": text}
        if isinstance(message, AIMessage):
            changed["tool_calls"] = [{**call, "args": dict(WITHHELD)} for call in message.tool_calls]
            changed["invalid_tool_calls"] = []
            changed["additional_kwargs"] = {}
        if isinstance(message, ToolMessage):
            changed["artifact"] = None
        filtered[place] = message.model_copy(update=changed)
    return filtered


def given_messages(inputs: Any) -> list[Message]:
    """What a run was started with, as messages: text, messages in any of LangChain's forms, or a mapping with them."""
    if isinstance(inputs, Mapping):
        named = next((inputs[name] for name in _INPUTS if inputs.get(name)), None)
        inputs = [text for text in inputs.values() if isinstance(text, str)] if named is None else named
    pair = isinstance(inputs, tuple) and len(inputs) == 2 and all(isinstance(part, str) for part in inputs)
    if pair or isinstance(inputs, str | BaseMessage) or not isinstance(inputs, Iterable):
        inputs = [inputs]
    given = [part for part in inputs if isinstance(part, str | BaseMessage | tuple | list) or _is_message(part)]
    return messages_of(convert_to_messages(given))


def _is_message(part: Any) -> bool:
    return isinstance(part, dict) and ("role" in part or "type" in part) and "content" in part
