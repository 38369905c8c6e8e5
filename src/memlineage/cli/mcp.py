"""The command that serves a memory to MCP clients: `mcp`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from memlineage.cli.answers import DONE
from memlineage.cli.command import command
from memlineage.cli.options import InScope
from memlineage.errors import InvalidInputError, need_extra

__all__ = ["register"]

_PANEL = "Operation"
_HTTP = "Over HTTP"


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where it listens, and for whom."""

    http: Annotated[
        bool, typer.Option("--http", help="Serve many clients over HTTP instead.", rich_help_panel=_HTTP)
    ] = False
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.", rich_help_panel=_HTTP)] = (
        "127.0.0.1"
    )
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.", rich_help_panel=_HTTP)
    ] = 8765
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", help="Who may come in: made by memlineage token add.", rich_help_panel=_HTTP
        ),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="Name under which clients reach it beside the loopback; repeatable.",
            rich_help_panel=_HTTP,
        ),
    ] = None  # fmt: skip


def mcp(
    at: InScope,
    listening: Listening,
    path: Annotated[Path | None, typer.Argument(metavar="DB", help="The memory, unless --db names it.")] = None,
    *,
    as_host: Annotated[
        bool, typer.Option("--as-host", help="Let the client write as the user: only where no model steers it.")
    ] = False,
) -> int:
    """Serve the memory to an MCP client on standard input and output, or to many over HTTP.

    A client is a model's side: it acts as the agent named by --as, else by --agent, and can never write as the user.
    """
    need_extra("mcp", "mcp", "uvicorn")
    at = at.on(path)
    at.require()
    if listening.http:
        return _over_http(at, listening, as_host)
    if as_host and at.acting_as is not None:
        raise InvalidInputError("--as and --as-host exclude each other; leave one out")
    voice = None if as_host else at.acting_as or f"agent:{at.agent or 'mcp'}"
    from memlineage.server.mcp_stdio import serve_stdio

    with replace(at, acting_as=voice).memory_and_scope() as (memory, scope):
        serve_stdio(memory, scope)
    return DONE


def _over_http(at: InScope, listening: Listening, as_host: bool) -> int:
    from memlineage.server.mcp_http import serve_http

    if as_host or at.acting_as or at.user or at.agent or at.session:
        raise InvalidInputError("over HTTP a token says whose memory it is and who acts; leave these options out")
    if listening.token_file is None:
        raise InvalidInputError("name who may come in: --token-file FILE, made by memlineage token add FILE")
    with at.memory() as memory:
        serve_http(
            memory, listening.token_file, host=listening.host, port=listening.port, hosts=listening.allow_host or (),
            ready=lambda address: sys.stderr.write(f"Serving {at.file()} at {address}\n"),
        )  # fmt: skip
    return DONE


def register(app: typer.Typer) -> None:
    """Add these commands."""
    command(app, "mcp", panel=_PANEL)(mcp)
