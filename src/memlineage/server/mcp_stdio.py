"""Serving one client on standard input and output. Nothing else may be written there meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from mcp.server.stdio import stdio_server

from memlineage.server.mcp import build
from memlineage.server.mcp_voices import OneVoice

if TYPE_CHECKING:
    from memlineage.engine.memory import Memory
    from memlineage.engine.scope import Scope

__all__ = ["serve_stdio"]


def serve_stdio(memory: Memory, scope: Scope) -> None:
    """Serve until the client closes its end. The process is the session: it has one exposure."""
    server = build(memory, OneVoice(scope))

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)
