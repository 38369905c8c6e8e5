"""A memory in a file, and the real client of MCP on the real command line."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import memlineage as ml
from memlineage.server.tokens import TokenFile

ALICE = ("--user", "alice")


class Served:
    """A memory, and clients of the server on it over standard input and output."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def talk(self, conversation: Callable[[Client], Awaitable[Any]], *options: str, **about: Any) -> Any:
        """Start `memlineage mcp`, have the conversation, and let the server end."""
        command = ["-m", "memlineage", "mcp", str(self.file), *(options or ALICE)]

        async def talked() -> Any:
            started = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
            async with Client(started, **about) as client:
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


class Site:
    """The server over HTTP in a process of its own, and clients of it."""

    def __init__(self, served: Served, tokens: Path) -> None:
        self.tokens = tokens
        command = [sys.executable, "-m", "memlineage", "mcp", str(served.file), "--http", "--port", "0"]
        self._process = subprocess.Popen([*command, "--token-file", str(tokens)], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        said = self._process.stderr.readline()
        self.address = said.rpartition(" at ")[2].strip()
        assert self.address.startswith("http://127.0.0.1:"), said

    def talk(self, secret: str, conversation: Callable[[Client], Awaitable[Any]], **about: Any) -> Any:
        """Have a conversation with this token."""

        async def talked() -> Any:
            async with self.client(secret, **about) as client:
                return await conversation(client)

        return asyncio.run(talked())

    @asynccontextmanager
    async def client(self, secret: str, **about: Any) -> AsyncIterator[Client]:
        """A client with this token."""
        headers = {"Authorization": f"Bearer {secret}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(self.address, http_client=http), **about) as client,
        ):
            yield client

    def post(self, headers: dict[str, str], body: dict[str, Any] | None = None) -> httpx2.Response:
        """A bare request."""
        started = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START}
        accept = {"Accept": "application/json, text/event-stream"}
        return httpx2.post(self.address, json=body or started, headers={**accept, **headers})

    def stop(self) -> None:
        """End it, and see that it ended as it was told."""
        self._process.terminate()
        _, said = self._process.communicate(timeout=20)
        assert (self._process.returncode, "Traceback" in said) == (0, False), said


START = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}


@pytest.fixture
def entry(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


@pytest.fixture
def site(served: Served, entry: TokenFile) -> Iterator[Site]:
    entry.add(actor="agent:nobody", user="nobody")
    made = Site(served, entry.path)
    yield made
    made.stop()
