"""pydantic-ai's messages as the recorder takes them, and back with something withheld.

A request has many parts (the user's prompt, tool returns, retries), a response is one message. A part is known by its
time stamp, which goes with the history wherever that goes. What a model thought is no word of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from memlineage.capture.messages import Call, Message, Reply, text_of

__all__ = ["Place", "prompt_of", "reply_of", "told_by", "with_withheld", "words_of"]


class Place(msgspec.Struct, frozen=True):
    """Where a message stands in a prompt.

    Attributes:
        message: number of the request or response.
        part: number of the part of a request; None for a whole response.
        object: the part or the response itself.
    """

    message: int
    part: int | None
    object: Any


def words_of(content: Any) -> str:
    """The text of a user's content: of pictures and the like, only that they are there."""
    if isinstance(content, str):
        return content
    return "\n".join(part if isinstance(part, str) else _named(part) for part in content)


def _named(part: Any) -> str:
    text = getattr(part, "content", None)
    return text if isinstance(text, str) else f"[{getattr(part, 'kind', type(part).__name__)}]"


def told_by(part: ToolReturnPart | RetryPromptPart) -> str:
    """What a model reads as a tool's answer."""
    return part.model_response() if isinstance(part, RetryPromptPart) else text_of(part.model_response_str())


def prompt_of(messages: Sequence[ModelMessage]) -> Iterator[tuple[Place, Message]]:
    """Every message of a prompt, with its place."""
    for number, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            reply = reply_of(message)
            yield (
                Place(number, None, message),
                Message(role="assistant", text=reply.text, calls=reply.calls, id=reply.id),
            )
            continue
        for place, part in enumerate(message.parts):
            found = _part(part)
            if found is not None:
                yield Place(number, place, part), found


def _part(part: Any) -> Message | None:
    id = None if getattr(part, "timestamp", None) is None else f"{part.part_kind}@{part.timestamp.isoformat()}"
    if isinstance(part, SystemPromptPart):
        return Message(role="system", text=part.content)
    if isinstance(part, UserPromptPart):
        return Message(role="user", text=words_of(part.content), id=id)
    if isinstance(part, ToolReturnPart):
        failed = part.outcome != "success"
        return Message(role="tool", text=told_by(part), call_id=part.tool_call_id, name=part.tool_name, error=failed)
    if isinstance(part, RetryPromptPart):
        if part.tool_name is None:
            return Message(role="user", text=told_by(part), id=id)
        return Message(role="tool", text=told_by(part), call_id=part.tool_call_id, name=part.tool_name, error=True)
    return None


def reply_of(response: ModelResponse) -> Reply:
    """What a model answered."""
    text = "\n".join(part.content for part in response.parts if isinstance(part, TextPart) and part.content)
    calls = tuple(_call(part) for part in response.parts if isinstance(part, ToolCallPart))
    return Reply(
        text=text, calls=calls, id=response.provider_response_id or f"response@{response.timestamp.isoformat()}"
    )


def _call(part: ToolCallPart) -> Call:
    arguments: Any = part.args or {}
    if isinstance(arguments, str):
        try:
            arguments = part.args_as_dict()
        except (ValueError, AssertionError):
            arguments = part.args
    return Call(id=part.tool_call_id, name=part.tool_name, arguments=arguments)


def with_withheld(messages: Sequence[ModelMessage], redacted: Iterable[tuple[Place, str]]) -> list[ModelMessage]:
    """The messages, with these texts in the place of what is withheld. No part of a request and no call is dropped: a
    call without its return, or a return without its call, is refused by the providers of models.
    """
    filtered = list(messages)
    for place, text in redacted:
        message = filtered[place.message]
        if isinstance(message, ModelResponse):
            filtered[place.message] = replace(message, parts=_said_instead(message, text))
        elif place.part is not None:
            parts: list[Any] = list(message.parts)
            parts[place.part] = replace(parts[place.part], content=text)
            filtered[place.message] = replace(message, parts=parts)
    return filtered


def _said_instead(message: ModelResponse, text: str) -> list[Any]:
    others: list[Any] = [part for part in message.parts if not isinstance(part, TextPart | ThinkingPart)]
    calls = [replace(part, args={}) if isinstance(part, ToolCallPart) else part for part in others]
    return [TextPart(text), *calls]
