"""MCP: a server of this memory, and capture of what other servers answer (extra `mcp`)."""

from memlineage.errors import need_extra

need_extra("mcp", "mcp")

__all__: list[str] = []
