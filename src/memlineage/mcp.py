"""MCP: a server of this memory, and capture and gating of what other servers do (extra `mcp`)."""

from memlineage.errors import need_extra

need_extra("mcp", "mcp")

from memlineage.capture.mcp_middleware import LineageMiddleware  # noqa: E402
from memlineage.capture.mcp_session import GuardedSession, guarded  # noqa: E402
from memlineage.capture.messages import Call, Message, Reply  # noqa: E402
from memlineage.server.mcp import memory_server  # noqa: E402
from memlineage.server.mcp_http import memory_app  # noqa: E402
from memlineage.server.tokens import TokenFile  # noqa: E402

__all__ = [
    "Call", "GuardedSession", "LineageMiddleware", "Message", "Reply", "TokenFile", "guarded", "memory_app",
    "memory_server",
]  # fmt: skip
