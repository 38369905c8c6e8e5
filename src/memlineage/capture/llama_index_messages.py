"""LlamaIndex's messages as the recorder takes them, and back with something withheld.

They have no ids of their own: a message is known by its role and its words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.tools import ToolSelection

from memlineage.capture.messages import Call, Message

__all__ = ["calls_of", "messages_of", "with_withheld", "words_of"]

_ROLES: Mapping[MessageRole, Literal["user", "assistant", "tool", "system"]] = {
    MessageRole.USER: "user",
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}


def words_of(message: ChatMessage) -> str:
    """The text of a message: of pictures and the like, only that they are there."""
    parts = []
    for block in message.blocks:
        if isinstance(block, TextBlock):
            parts.append(block.text)
        elif not isinstance(block, ToolCallBlock) and block.block_type != "thinking":
            parts.append(f"[{block.block_type}]")
    return "\n".join(part for part in parts if part)


def messages_of(messages: Sequence[ChatMessage]) -> list[Message]:
    """Messages, in their order. The answer of a tool has its name from the call."""
    told: list[Message] = []
    names: dict[str, str] = {}
    for message in messages:
        told.append(_message(message, names))
        names.update((call.id, call.name) for call in told[-1].calls)
    return told


def _message(message: ChatMessage, names: Mapping[str, str]) -> Message:
    role = _ROLES.get(message.role, "assistant")
    about = message.additional_kwargs
    if role == "tool":
        call_id = about.get("tool_call_id")
        name = about.get("name") or names.get(str(call_id))
        return Message(role="tool", text=words_of(message), call_id=call_id, name=name)
    calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    asked = tuple(Call(id=str(block.tool_call_id or ""), name=block.tool_name) for block in calls)
    return Message(role=role, text=words_of(message), calls=asked if role == "assistant" else ())


def calls_of(selected: Sequence[ToolSelection]) -> tuple[Call, ...]:
    """The tools that a step asks for."""
    return tuple(Call(id=one.tool_id, name=one.tool_name, arguments=one.tool_kwargs) for one in selected)


def with_withheld(messages: Sequence[ChatMessage], redacted: Mapping[int, str]) -> list[ChatMessage]:
    """The messages, with these texts in the place of what is withheld; none is dropped, nor a call in one."""
    filtered = list(messages)
    for place, text in redacted.items():
        message = messages[place]
        calls: list[Any] = [
            block.model_copy(update={"tool_kwargs": {}}) for block in message.blocks if isinstance(block, ToolCallBlock)
        ]
        filtered[place] = message.model_copy(update={"blocks": [TextBlock(text=text), *calls]})
    return filtered
