"""MCP servers of functions, and calls of them through guarded sessions."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import Client
from mcp.server.mcpserver import MCPServer
from tests.capture import travel

import memlineage as ml
from memlineage.capture import Recorder
from memlineage.mcp import Message, guarded

POLICY: dict[str, Any] = {
    "memlineage": 1,
    "layer": "global",
    "principals": {"tool:web/read_web": "UNTRUSTED"},
    "rules": [
        {
            "name": "booking",
            "sensitive_action": {"tool": "desk/book_flight", "arguments": ["flight", "pay_to"], "integrity": "TRUSTED"},
        }
    ],
}


def server_of(*tools: Any) -> MCPServer[Any]:
    """A server of these functions."""
    server: MCPServer[Any] = MCPServer("anything", log_level="CRITICAL")
    for tool in tools:
        server.add_tool(tool)
    return server


def text(result: Any) -> str:
    """What a model is shown of a result."""
    return "\n".join(part.text for part in result.content)


def calls(scope: Any, *given: tuple[str, str, dict[str, Any]], servers: dict[str, Any], user: str | None = None) -> Any:
    """Calls one after another, as (server, tool, arguments); what came back."""

    async def called() -> list[Any]:
        conversation = Recorder(scope).conversation() if isinstance(scope, ml.Scope) else scope
        if user is not None:
            conversation.heard([Message(role="user", text=user)])
        results = []
        for server, tool, arguments in given:
            async with Client(servers[server]) as client:
                results.append(await guarded(client, conversation, server=server).call_tool(tool, arguments))
        return results

    return asyncio.run(called())


WEB = ("web", "read_web", {"url": "cheap.example"})
POISONED = ("desk", "book_flight", travel.POISONED_CALL[2])
HONEST = ("desk", "book_flight", travel.HONEST_CALL[2])
