"""A memory in a file, and the real client of MCP on the real command line."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import memlineage as ml

ALICE = ("--user", "alice")


class Served:
    """A memory, and clients of the server on it over standard input and output."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def talk(self, conversation: Callable[[Client], Awaitable[Any]], *options: str, **about: Any) -> Any:
        """Start `memlineage mcp`, have the conversation, and let the server end."""
        command = ["-m", "memlineage", "mcp", str(self.file), *(options or ALICE)]

        async def talked() -> Any:
            async with Client(StdioServerParameters(command=sys.executable, args=command), **about) as client:
                return await conversation(client)

        return asyncio.run(talked())

    def units(self, **scope: str) -> list[ml.Unit]:
        """What the memory holds."""
        with ml.Memory.open(self.file) as memory:
            return list(memory.scope(**(scope or {"user": "alice"})).list())

    def said(self, content: str, **options: Any) -> ml.Unit:
        """Alice's program stores something."""
        with ml.Memory.open(self.file) as memory:
            return memory.scope(user="alice").store(content, **options)


@pytest.fixture
def served(tmp_path: Path) -> Served:
    file = tmp_path / "trip.db"
    ml.Memory.open(file, embedder="lexical").close()
    return Served(file)
