"""Serving many clients over streamable HTTP, each with a token.

What comes in is checked in this order, before anything reaches the memory: whether it was sent to a name under which
the server is known (a page in a browser that rebinds its own name is refused with 421, a foreign `Origin` with 403),
whether it carries a token that is good now (401), and how long it is (413).

There is no encryption here: it listens on the loopback unless told otherwise, and then belongs behind a proxy.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse

from memlineage.errors import InvalidInputError, StoreError
from memlineage.server.mcp import build
from memlineage.server.mcp_voices import BEARER, TokenVoices
from memlineage.server.tokens import TokenFile

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from memlineage.engine.memory import Memory

__all__ = ["LOOPBACK", "memory_app", "serve_http"]

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine to itself."""
_SESSIONS: Final = 1000
_LONGEST: Final = 8 * 1024 * 1024
"""Bytes of a request; the longest content takes six million as escaped JSON."""
_log = logging.getLogger(__name__)


def memory_app(memory: Memory, tokens: TokenFile, *, hosts: Sequence[str] = ()) -> ASGIApp:
    """The ASGI application, at `/mcp`; run its lifespan.

    Args:
        memory: open for as long as it is served.
        tokens: who may come in.
        hosts: names beside those of the loopback under which clients reach it, with a port or for any.
    """
    names = [name if ":" in name.rpartition("]")[2] else f"{name}:*" for name in (*LOOPBACK, *hosts)]
    names += [name for name in hosts if name not in names]  # the port that a scheme implies is not sent
    known = TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in names]
    )
    served = build(memory, TokenVoices(memory)).streamable_http_app(
        json_response=True, transport_security=known, max_sessions=_SESSIONS, max_request_body_size=_LONGEST
    )
    return _Door(served, tokens, known)


class _Door:
    """Lets in who has a token."""

    def __init__(self, app: ASGIApp, tokens: TokenFile, known: TransportSecuritySettings) -> None:
        self._app = app
        self._tokens = tokens
        self._names = TransportSecurityMiddleware(known)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refused = await self._names.validate_request(request)
        if refused is None:
            refused = self._unknown(scope, request)
        await (self._app if refused is None else refused)(scope, receive, send)

    def _unknown(self, scope: Scope, request: Request) -> JSONResponse | None:
        """None if its token is good; it is then in the scope of the request."""
        given = request.headers.getlist("authorization")
        kind, _, secret = (given[0] if len(given) == 1 else "").partition(" ")
        try:
            token = self._tokens.bearer(secret.strip()) if kind.lower() == "bearer" and secret else None
        except (StoreError, InvalidInputError) as error:
            _log.error("nobody can come in: %s", error)
            return JSONResponse({"error": "unavailable", "error_description": "tokens cannot be checked now"}, 503)
        if token is None:
            about = {
                "error": "invalid_token",
                "error_description": "send Authorization: Bearer <token>, a token that is good now",
            }
            return JSONResponse(about, 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'})
        # The transport binds a session to who opened it, by this; the scope comes from the token itself.
        scope["user"] = AuthenticatedUser(AccessToken(token=token.id, client_id=token.id, scopes=[]))
        scope[BEARER] = token
        return None


def serve_http(
    memory: Memory,
    tokens: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    hosts: Sequence[str] = (),
    ready: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve until the process is told to end.

    Args:
        memory: what is served.
        tokens: the file that says who may come in; looked at again at every request.
        host, port: where to listen; port 0 takes one that is free.
        hosts: names under which clients reach it, needed where `host` is not the loopback.
        ready: called with the address once it listens.

    Raises:
        InvalidInputError: it would listen to others, and no names are given by which to tell them from a browser.
        StoreError: the token file is not good, or the port is taken.
    """
    import uvicorn

    if host not in {name.strip("[]") for name in LOOPBACK} and not hosts:
        raise InvalidInputError(
            f"host={host!r:.80} lets other machines in; name under what they reach it (--allow-host NAME), and put a "
            "proxy with TLS before it"
        )
    file = TokenFile(tokens)
    file.tokens()
    listening = _listening(host, port)
    config = uvicorn.Config(
        memory_app(memory, file, hosts=hosts), log_level="warning", access_log=False, lifespan="on",
        server_header=False, timeout_graceful_shutdown=5,
    )  # fmt: skip
    spelled = f"[{host}]" if ":" in host else host
    ready(f"http://{spelled}:{listening.getsockname()[1]}/mcp")
    with _outlived():
        uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def _outlived() -> Iterator[None]:
    """The server ends itself when it is told to, and then raises the signal again: what is around it lives on, and
    closes the memory.
    """
    main = threading.current_thread() is threading.main_thread()  # signals are no matter of others
    told = (signal.SIGINT, signal.SIGTERM) if main else ()
    before = {number: signal.signal(number, lambda *_: None) for number in told}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol by name: asyncio sends small answers at once only over sockets that say that they are TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise StoreError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None
    return listening
