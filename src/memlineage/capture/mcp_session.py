"""An MCP session of a client, captured and gated: whatever agent loop uses it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from memlineage.capture.conversation import Conversation
from memlineage.capture.mcp_calls import asked, check_server, refusal, tool_named
from memlineage.capture.recorder import Recorders, Source
from memlineage.errors import InvalidInputError

__all__ = ["GuardedSession", "guarded"]


_METHODS: Final = {"tools/call": "call_tool", "resources/read": "read_resource", "prompts/get": "get_prompt"}


class GuardedSession:
    """An MCP session whose calls are authorized before they are sent, and recorded with what came back.

    It stands for a `mcp.Client` or a `mcp.ClientSession`: what is not defined here is that of the session. Safe to
    share between tasks, as the session is.

    Attributes:
        server: as policy names it.
        conversation: what is recorded into. Tell it what the user said and what the model answered, if no adapter of a
            framework does: `heard`, `shown(…).said(…)`.
    """

    def __init__(self, session: Any, conversation: Conversation, server: str) -> None:
        self.server = check_server(server)
        self.conversation = conversation
        self._session = session

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *rest: Any,
        call_id: str | None = None,
        agent: str | None = None,
        **options: Any,
    ) -> Any:
        """Call a tool, as the session does. Where policy refuses, nothing is sent: the result says why, as an error
        that the model can read.

        Args:
            name, arguments: of the tool, as the server knows it.
            rest, options: as the session takes them.
            call_id: under which a step of the model asked for it; a step of its own is recorded if left out.
            agent: which agent calls, if not that of the conversation.
        """
        result, instead = await self._captured(
            name, arguments or {}, lambda: self._session.call_tool(name, arguments, *rest, **options), call_id, agent
        )
        return result if instead is None else refusal(instead)

    async def read_resource(self, uri: Any, *rest: Any, **options: Any) -> Any:
        """Read a resource, as the session does; policy knows it as the tool `<server>/resources.read`.

        Raises:
            MCPError: policy refused it, or the server.
        """
        result, instead = await self._captured(
            "resources.read", {"uri": str(uri)}, lambda: self._session.read_resource(uri, *rest, **options)
        )
        return _or_raise(result, instead)

    async def get_prompt(
        self, name: str, arguments: dict[str, str] | None = None, *rest: Any, **options: Any
    ) -> Any:  # fmt: skip
        """Get a prompt, as the session does; policy knows it as the tool `<server>/prompts.get`.

        Raises:
            MCPError: policy refused it, or the server.
        """
        result, instead = await self._captured(
            "prompts.get", {"name": name, **(arguments or {})},
            lambda: self._session.get_prompt(name, arguments, *rest, **options),
        )  # fmt: skip
        return _or_raise(result, instead)

    async def send_request(self, request: Any, *rest: Any, **options: Any) -> Any:
        """Send a request, as the session does, except those that have a method here.

        Raises:
            InvalidInputError: it calls a tool, or reads: then it would neither be asked for nor recorded.
        """
        method = getattr(request, "method", None)
        if method in _METHODS:
            raise InvalidInputError(f"{method} is sent by {_METHODS[method]}, which captures it; use that")
        return await self._session.send_request(request, *rest, **options)

    @property
    def session(self) -> GuardedSession:
        """The session beneath a `mcp.Client`, guarded alike."""
        return GuardedSession(self._session.session, self.conversation, self.server)

    async def _captured(
        self,
        name: str,
        arguments: dict[str, Any],
        send: Callable[[], Awaitable[Any]],
        call_id: str | None = None,
        agent: str | None = None,
    ) -> tuple[Any, str | None]:
        """What came back, and what to tell the model instead."""
        call = asked(self.conversation, tool_named(self.server, name), arguments, call_id=call_id, agent=agent)
        refused = call.permit()
        if refused is not None:
            return None, refused
        with call.inside():
            result = await send()
        return result, call.ended(result)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def _or_raise(result: Any, instead: str | None) -> Any:
    if instead is not None:
        raise MCPError(types.INVALID_REQUEST, instead)
    return result


def guarded(
    session: Any, source: Source | Conversation, *, server: str, thread: str | None = None, agent: str | None = None
) -> GuardedSession:
    """A session whose calls are authorized, and recorded.

        async with Client("https://bank.example/mcp") as client:
            bank = guarded(client, memory.scope(user="alice"), server="bank")
            await bank.call_tool("pay", {"to": "ANA"})

    Args:
        session: a `mcp.Client` or `mcp.ClientSession`.
        source: a scope, a `Recorder`, a function that gives one of these for the session, or a `Conversation`: then
            several sessions of one agent are captured into one lineage.
        server: names the server for policy: its tools are `<server>/<tool>`. What it calls itself counts for nothing.
        thread: names the conversation, so that it goes on in another process.
        agent: who calls, unless a call says otherwise.

    Raises:
        InvalidInputError: the source is none of these, or the name is no name.
    """
    if isinstance(session, GuardedSession):
        session = session._session  # each call is captured once
    if not isinstance(source, Conversation):
        source = Recorders(source).at(session).conversation(thread, agent=agent)
    return GuardedSession(session, source, server)
