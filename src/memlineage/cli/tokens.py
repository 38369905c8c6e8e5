"""The group `token`: who may come in over HTTP. Commands: add, list, revoke."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memlineage.cli.answers import MISUSE, Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.inputs import moment
from memlineage.cli.options import Printing

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.server.tokens import Token

__all__ = ["register"]

_PANEL = "Operation"
_WHOSE = "Whose memory, and as whom"

File = Annotated[Path, typer.Argument(metavar="FILE", help="The token file; only its owner may read it.")]


def add(
    printing: Printing,
    file: File,
    user: Annotated[
        str | None, typer.Option("--user", metavar="ID", help="The user whose memory it is.", rich_help_panel=_WHOSE)
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="The agent whose memory it is.", rich_help_panel=_WHOSE)
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The conversation or run.", rich_help_panel=_WHOSE)
    ] = None,
    tenant: Annotated[
        str, typer.Option("--tenant", metavar="ID", help="The customer or installation.", rich_help_panel=_WHOSE)
    ] = "default",
    acting_as: Annotated[
        str, typer.Option("--as", metavar="AGENT", help="The agent that its bearer acts as.", rich_help_panel=_WHOSE)
    ] = "agent:mcp",
    note: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="What it is for.")] = None,
    expires: Annotated[str | None, typer.Option("--expires", metavar="TIME", help="When it ends; never if none.")] = (
        None
    ),
) -> Answer:
    """Make a token and print its secret, once. The file is made if it is not there, and keeps a hash."""
    from memlineage.server.tokens import TokenFile

    named = acting_as if ":" in acting_as else f"agent:{acting_as}"
    token, secret = TokenFile(file).add(
        actor=named, user=user, agent=agent, session=session, tenant=tenant, note=note,
        expires=moment(expires, "--expires"),
    )  # fmt: skip

    def show() -> Iterator[RenderableType]:
        from memlineage.cli.rendering import words

        yield words(secret, "bold")
        yield words(f"Token {token.id}, {token.actor} in {_whose(token)}. It is not shown again.", "dim")

    return Answer(data={"secret": secret, **as_data(token)}, show=show)


def listing(printing: Printing, file: File) -> Answer:
    """List who may come in; no secrets are kept."""
    from memlineage.server.tokens import TokenFile

    return _listed(TokenFile(file).tokens(), "Tokens")


def revoke(
    printing: Printing, file: File, token: Annotated[str, typer.Argument(metavar="ID", help="The id of the token.")]
) -> Answer:
    """Refuse a token from now on, in open sessions too."""
    from memlineage.server.tokens import TokenFile

    return _listed((TokenFile(file).revoke(token),), "Revoked")


def _listed(tokens: tuple[Token, ...], title: str) -> Answer:
    def show() -> Iterator[RenderableType]:
        from memlineage.cli.rendering import rows, when, words

        table = rows("id", "acts as", "memory", "made", "expires", "note", title=f"{title}: {len(tokens)}")
        for token in tokens:
            ends = "never" if token.expires is None else when(token.expires)
            told = (token.id, token.actor, _whose(token), when(token.made), ends, token.note or "")
            table.add_row(*(words(cell) for cell in told))
        yield table

    return Answer(data={"tokens": tokens}, show=show)


def _whose(token: Token) -> str:
    named = [("user", token.user), ("agent", token.agent), ("session", token.session)]
    named += [("tenant", token.tenant if token.tenant != "default" else None)]
    return ", ".join(f"{name} {value}" for name, value in named if value is not None)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    token = typer.Typer(help="Who may come in over HTTP.")
    token.callback(invoke_without_command=True)(_start)
    command(token, "add", panel=_PANEL)(add)
    command(token, "list", panel=_PANEL)(listing)
    command(token, "revoke", panel=_PANEL)(revoke)
    app.add_typer(token, name="token", rich_help_panel=_PANEL)


def _start(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(MISUSE)
