"""MCP calls as the recorder takes them, whichever side of the wire they are captured on.

*Who answers.* A tool's principal is `tool:<server>/<tool>` on the client's side. The program names the server; what a
server calls itself counts for nothing, and a server's name has no slash: so no server can call a tool of its own in a
way that makes it another server's, and policy can speak of one tool (`bank/pay`), of one server (`bank/*`), or of a
tool wherever it comes from (`*/pay`).

*Who asked.* Nothing in MCP says which step of a model a call belongs to. Inside a tool call that is captured already,
the call is part of that. Else it belongs to the step that asked for it under its id, if the program told of one; else
it is a step of its own, which goes on from all that was answered before in the conversation.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import mcp_types as types

from memlineage.capture.calls import ToolCall
from memlineage.capture.conversation import Conversation, caught_up
from memlineage.capture.messages import Call, Reply, text_of
from memlineage.capture.recorder import current_call
from memlineage.errors import InvalidInputError
from memlineage.lineage.escape import shorten

__all__ = ["Asked", "asked", "check_server", "refusal", "tool_named"]

_SERVER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def check_server(name: object) -> str:
    """The name of a server, as the program gives it."""
    if not isinstance(name, str) or not _SERVER.fullmatch(name):
        raise InvalidInputError(
            f"server={name!r:.80} names no server; use letters, digits, '_', '-' and '.', at most 64, e.g. 'bank'"
        )
    return name


def tool_named(server: str | None, name: str) -> str:
    """The name of a tool as policy knows it."""
    return name if server is None else f"{server}/{name}"


class Asked:
    """A call that is about to be made, for the step that asks for it."""

    def __init__(self, call: ToolCall, around: ToolCall | None) -> None:
        self._call = call
        self._around = around

    def permit(self) -> str | None:
        """None if it may be made; else what to tell the model instead."""
        refused = self._call.permit()
        if refused is not None:
            self._tell_around()
        return refused

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Around the call; how it ends badly is told, and whatever was raised goes on."""
        with _Telling(self._call, self._tell_around), self._call.inside():
            yield

    def ended(self, result: Any) -> str | None:
        """It was answered. None, or what to tell the model instead."""
        call, instead = self._call, None
        if not isinstance(result, types.CallToolResult | types.ReadResourceResult | types.GetPromptResult):
            call.abandoned()  # the server wants something first, and the call is made anew then
        elif isinstance(result, types.CallToolResult) and result.is_error:
            call.failed(_told(result) or "the tool failed and did not say why")
        else:
            instead = call.returned(_told(result), result, getattr(result, "structured_content", None))
        self._tell_around()
        return instead

    def _tell_around(self) -> None:
        """What a tool that runs here was answered, its own answer hangs on."""
        if self._around is not None and self._call.unit is not None:
            self._around.frame.take([self._call.unit])


def asked(
    conversation: Conversation,
    name: str,
    arguments: Mapping[str, Any],
    *,
    call_id: str | None = None,
    agent: str | None = None,
) -> Asked:
    """A call that is about to be made."""
    call = Call(id=call_id or f"call_{secrets.token_hex(8)}", name=name, arguments=arguments)
    around = current_call.get()
    with conversation.lock:
        if around is not None and not conversation.knows(call.id) and _belongs(conversation, around):
            return Asked(ToolCall(around.conversation, call, around.step, agent=around.agent), around)
        if not conversation.knows(call.id):
            caught_up(conversation)
            conversation.shown([], agent=agent).said(Reply(text="", calls=(call,)))
        return Asked(conversation.called(call, agent=agent), None)


def _belongs(conversation: Conversation, around: ToolCall) -> bool:
    """Whether a call of it is part of the one that runs here: not where an agent speaks that was begun inside."""
    speaks = around is conversation.within and conversation.last is not None
    return not speaks and around.conversation.scope._parts is conversation.scope._parts


def refusal(text: str) -> types.CallToolResult:
    """A result that tells a model why the call was not made."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def _told(result: Any) -> str:
    """A result as a model will see it."""
    if isinstance(result, types.ReadResourceResult):
        return _lines([getattr(part, "text", None) or f"[{part.mime_type or 'binary'}]" for part in result.contents])
    if isinstance(result, types.GetPromptResult):
        return _lines([f"{message.role}: {_part(message.content)}" for message in result.messages])
    text = _lines([_part(part) for part in result.content])
    if result.structured_content is None:
        return text
    # Most servers say the same twice; where one does not, a model may be shown either.
    if all(leaf in text for leaf in _leaves(result.structured_content)):
        return text
    return _lines([text, text_of(result.structured_content)])


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            if len(value) > 1 or name != "result":  # the SDK's own name for what is no object
                yield str(name)
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield text_of(value)


def _lines(parts: Sequence[str]) -> str:
    return "\n".join(part for part in parts if part)


def _part(part: Any) -> str:
    if isinstance(part, types.TextContent):
        return part.text
    if isinstance(part, types.EmbeddedResource):
        return getattr(part.resource, "text", None) or f"[{part.resource.uri}]"
    if isinstance(part, types.ResourceLink):
        return _lines([part.name, part.description or "", part.uri])
    return f"[{shorten(str(getattr(part, 'mime_type', part.type)))}]"


class _Telling:
    """Tells how a call ended badly; whatever was raised goes on."""

    def __init__(self, call: ToolCall, then: Callable[[], None]) -> None:
        self._call = call
        self._then = then

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if isinstance(error, asyncio.CancelledError):
            self._call.failed("it was cancelled")
        elif isinstance(error, Exception):
            self._call.failed(error)
        else:
            self._call.abandoned()
        self._then()
