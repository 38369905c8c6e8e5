"""Who speaks over a connection, and what they say of themselves.

Whose memory it is and as whom a client acts is decided by the host: by the options of the command line, or by the token
that a request carries. Nothing in a request can change it. What a client tells of itself (`clientInfo`, `_meta`) is
kept beside what it stores, as data.

*Exposure.* What was retrieved over a connection was shown to the model behind it, and what it stores afterwards hangs
on that. One exposure per session: the process on stdio; over HTTP the session of the handshake, or, in the protocol
without sessions, everything that comes with one token, because nothing honest tells conversations apart there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import orjson

from memlineage.engine.acting import Exposure
from memlineage.engine.scope import Scope
from memlineage.engine.sessions import Sessions
from memlineage.lineage.escape import plain

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from memlineage.engine.memory import Memory
    from memlineage.server.tokens import Token

__all__ = ["BEARER", "OneVoice", "TokenVoices", "provenance_of"]

BEARER: Final = "memlineage.token"
"""Where the check of tokens leaves the token that a request came with."""

_SESSIONS: Final = 4096
_NAME: Final = 120
_META: Final = 2048
_PROTOCOL: Final = ("io.modelcontextprotocol/", "progressToken", "traceparent", "tracestate", "baggage")


class OneVoice:
    """Everybody speaks in one scope: stdio, where the process is the session."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def of(self, _: ServerRequestContext[Any, Any]) -> Scope:
        """The scope of a request."""
        return self._scope


class TokenVoices:
    """The scope that a request's token stands for, one exposure per session. Thread-safe."""

    def __init__(self, memory: Memory, *, most: int = _SESSIONS) -> None:
        self._memory = memory
        self._sessions: Sessions[Scope] = Sessions(_exposure_of, most=most)

    def of(self, request: ServerRequestContext[Any, Any]) -> Scope:
        """The scope of a request."""
        token: Token = request.request.scope[BEARER]  # type: ignore[union-attr]
        return self._sessions.of(token.id, session_of(request), lambda: token.scope(self._memory))


def _exposure_of(scope: Scope) -> Exposure:
    exposure = scope._acting.exposure
    assert exposure is not None, "a token stands for an agent"
    return exposure


def session_of(request: ServerRequestContext[Any, Any]) -> str | None:
    """The session that the transport keeps for this connection; None where there is none. A header of a request would
    be what a client says of itself.
    """
    connection = getattr(request.session, "_connection", None)
    return getattr(connection, "session_id", None)


def provenance_of(request: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """What the client says of itself and of this request, cut to size."""
    said: dict[str, Any] = {}
    client = request.session.client_params
    if client is not None:
        info = client.client_info
        said["client"] = {"name": _line(info.name), "version": _line(info.version)}
    if request.meta:
        own = {str(name): value for name, value in request.meta.items() if not str(name).startswith(_PROTOCOL)}
        if own:
            said["meta"] = _small(own)
    return said


def _line(text: str) -> str:
    return plain(text)[:_NAME]


def _small(own: Mapping[str, Any]) -> Any:
    try:
        told = orjson.dumps(own)
    except TypeError:
        return "[not JSON]"
    return orjson.loads(told) if len(told) <= _META else f"[{len(told)} bytes]"
