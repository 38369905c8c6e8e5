"""The HTTP and MCP services."""
