"""Middleware for somebody's own MCP server: what its clients call is authorized before it runs, and recorded.

    server = MCPServer("desk", middleware=[LineageMiddleware(memory.scope(user="alice"))])

A client is a model's side. Its calls are steps of an agent, each going on from what the server answered it before; what
the client says of itself makes nobody the user. What the user wants is known to the client only, so that calls which
policy binds to the user's word are refused here, unless the host brings that word in (`grounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from memlineage.capture.mcp_calls import asked, check_server, refusal, tool_named
from memlineage.capture.recorder import Recorders, Source
from memlineage.engine.sessions import Sessions
from memlineage.model.ids import Ref
from memlineage.model.unit import Unit

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from memlineage.capture.conversation import Conversation
    from memlineage.capture.mcp_calls import Asked
    from memlineage.capture.recorder import Recorder

__all__ = ["LineageMiddleware"]

Grounds = Callable[[Any], Iterable[Unit | Ref]]
_CONVERSATIONS: Final = 16_384
_RESULTS: Final[Mapping[str, type[Any]]] = {
    "tools/call": types.CallToolResult, "resources/read": types.ReadResourceResult,
    "prompts/get": types.GetPromptResult,
}  # fmt: skip


class LineageMiddleware:
    """Captures and gates the calls that clients make of a server. Safe to share between sessions and tasks."""

    def __init__(
        self,
        source: Source,
        *,
        server: str | None = None,
        agent: str = "client",
        grounds: Grounds | None = None,
    ) -> None:
        """What calls are recorded into.

        Args:
            source: a scope or a `Recorder`; or a function that gives one of these for a request, from the SDK's
                `ServerRequestContext`, where one server serves many users: it must go by who was authenticated, never
                by what the request says.
            server: a prefix for the names of tools, as on the client's side; their own names if left out.
            agent: as whom clients act.
            grounds: units that the calls of a request may rest on besides what was answered before: what the user is
                known to want. A function of the request.

        Raises:
            InvalidInputError: the source is none of these, or a name is no name.
        """
        self._recorders = Recorders(source)
        self._server = None if server is None else check_server(server)
        self._agent = agent
        self._grounds = grounds
        self._sessions: Sessions[Conversation] = Sessions(lambda known: known.exposure, most=_CONVERSATIONS)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """One message of a client."""
        if ctx.method not in _RESULTS or ctx.request_id is None:
            return await call_next(ctx)
        call = self._asked(ctx)
        refused = call.permit()
        if refused is not None:
            return _refused(ctx, refused)
        with call.inside():
            result = await call_next(ctx)
        instead = call.ended(_read(ctx.method, result))
        return result if instead is None else _refused(ctx, instead)

    def _asked(self, request: ServerRequestContext[Any, Any]) -> Asked:
        name, arguments = _call_in(request)
        conversation = self._conversation(request)
        if self._grounds is not None:
            refs = [item.ref if isinstance(item, Unit) else item for item in self._grounds(request)]
            conversation.exposure.show(ref for ref in refs if not conversation.exposure.ever(ref))
        return asked(conversation, tool_named(self._server, name), arguments, agent=self._agent)

    def _conversation(self, request: ServerRequestContext[Any, Any]) -> Conversation:
        """One per session; where the protocol has none, one for all that is recorded alike."""
        recorder: Recorder = self._recorders.at(request)
        # As the transport keeps it: a header of the request would be what the client says of itself.
        session = getattr(getattr(request.session, "_connection", None), "session_id", None)
        return self._sessions.of(recorder, session, lambda: recorder.conversation(agent=self._agent))


def _call_in(request: ServerRequestContext[Any, Any]) -> tuple[str, Mapping[str, Any]]:
    """What is called, and with what; both are still as they came in.

    Raises:
        MCPError: that cannot be told, so that it cannot be authorized.
    """
    given = request.params or {}
    if request.method == "resources/read":
        return "resources.read", {"uri": given.get("uri")}
    name, arguments = given.get("name"), given.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, Mapping | None):
        raise MCPError(types.INVALID_PARAMS, f"{request.method} takes a name, and arguments as an object")
    if request.method == "prompts/get":
        return "prompts.get", {"name": name, **(arguments or {})}
    return name, arguments or {}


def _read(method: str, result: Any) -> Any:
    """A result of a handler as the SDK's own value, whatever form it has."""
    kind = _RESULTS[method]
    if isinstance(result, Mapping) and result.get("resultType", "complete") == "complete":
        return kind.model_validate(result, by_name=False)
    return result


def _refused(request: ServerRequestContext[Any, Any], text: str) -> types.CallToolResult:
    if request.method != "tools/call":
        raise MCPError(types.INVALID_REQUEST, text)
    return refusal(text)
