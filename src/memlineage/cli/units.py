"""Commands on one memory: init, store, get, retrieve, list, update, delete, history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memlineage.cli.acts import By, Reason, UnitId, consequences
from memlineage.cli.answers import Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.inputs import content_of, filter_of, mapping_of, moment, pairs
from memlineage.cli.options import InPast, InScope, OnStore
from memlineage.cli.replacing import in_place, superseded_by, winner, winners
from memlineage.cli.stores import named, named_all, weighted
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memlineage.engine.found import Found
    from memlineage.engine.scope import Scope
    from memlineage.model.ids import Ref
    from memlineage.model.unit import Unit

__all__ = ["register"]

_PANEL = "One memory"

Content = Annotated[str, typer.Argument(metavar="CONTENT", help="The text; - reads standard input.")]
Tags = Annotated[
    list[str],
    typer.Option(
        "--tag", metavar="TAG", help="Only with this tag; repeatable.", default_factory=list, show_default=False
    ),
]
Kind = Annotated[str | None, typer.Option("--kind", help="Only of this kind.")]
Filter = Annotated[str | None, typer.Option("--filter", metavar="JSON", help='E.g. {"confidence": {"gte": 0.5}}.')]


@dataclass(frozen=True, kw_only=True)
class Said:
    """What `store` and `update` take besides the content; named as in `StoreOptions`."""

    creator: Annotated[
        str | None, typer.Option("--creator", metavar="WHO", help="user:ID, tool:NAME, agent:NAME, reasoning, …")
    ] = None
    creator_id: Annotated[str | None, typer.Option("--creator-id", help="Tool-call id or step id.")] = None
    kind: Annotated[str | None, typer.Option("--kind", help="fact, preference, constraint, goal, …")] = None
    tag: Annotated[list[str], typer.Option("--tag", metavar="TAG", help="A label; repeatable.")] = field(
        default_factory=list
    )
    subject: Annotated[str | None, typer.Option("--subject", help="What it is about.")] = None
    key: Annotated[str | None, typer.Option("--key", help="Which property of the subject it states.")] = None
    depends_on: Annotated[
        list[str],
        typer.Option("--depends-on", "-d", metavar="ID[=WEIGHT]", help="What it was concluded from; repeatable."),
    ] = field(default_factory=list)
    exposed: Annotated[
        list[str], typer.Option("--exposed", metavar="ID", help="What its writer had before it; repeatable.")
    ] = field(default_factory=list)
    argument: Annotated[
        list[str], typer.Option("--argument", metavar="ID", help="What a tool's arguments came from; repeatable.")
    ] = field(default_factory=list)
    confidence: Annotated[float | None, typer.Option("--confidence", help="In [0, 1].")] = None
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", metavar="TIME", help="When it was said or observed, with a zone.")
    ] = None
    context: Annotated[str | None, typer.Option("--context", help="The full prompt or decision logic.")] = None
    owner: Annotated[str | None, typer.Option("--owner", metavar="WHO", help="Who is told when it falls.")] = None
    visibility: Annotated[str | None, typer.Option("--visibility", help="user, agent or session.")] = None
    pinned: Annotated[bool | None, typer.Option("--pinned/--not-pinned", help="Never forgotten by decay.")] = None
    expires_at: Annotated[
        str | None, typer.Option("--expires-at", metavar="TIME", help="When it stops being relied on.")
    ] = None
    valid_to: Annotated[
        str | None, typer.Option("--valid-to", metavar="TIME", help="When what it states stops holding.")
    ] = None
    metadata: Annotated[str | None, typer.Option("--metadata", metavar="JSON", help="A JSON object of your own.")] = (
        None
    )
    meta: Annotated[
        list[str], typer.Option("--meta", metavar="NAME=VALUE", help="One text value of it; repeatable.")
    ] = field(default_factory=list)
    idempotency_key: Annotated[
        str | None, typer.Option("--idempotency-key", help="A retry with the same key returns the first unit.")
    ] = None

    def options(self, scope: Scope) -> Any:
        """As the engine takes them; what was not given is left out, so that `update` carries it over."""
        given = {
            "creator": self.creator, "creator_id": self.creator_id, "kind": self.kind, "tags": self.tag or None,
            "subject": self.subject, "key": self.key, "depends_on": weighted(scope, self.depends_on),
            "exposed": named_all(scope, self.exposed) or None, "arguments": named_all(scope, self.argument) or None,
            "confidence": self.confidence, "timestamp": moment(self.timestamp, "--timestamp"),
            "context": self.context, "owner": self.owner, "visibility": self.visibility, "pinned": self.pinned,
            "expires_at": moment(self.expires_at, "--expires-at"), "valid_to": moment(self.valid_to, "--valid-to"),
            "metadata": self._metadata(), "idempotency_key": self.idempotency_key,
        }  # fmt: skip
        return {name: value for name, value in given.items() if value is not None}

    def _metadata(self) -> dict[str, Any] | None:
        whole = mapping_of(self.metadata, "--metadata") or {}
        return {**whole, **pairs(self.meta, "--meta")} or None


def init(
    at: OnStore, path: Annotated[Path | None, typer.Argument(metavar="DB", help="The file to make.")] = None
) -> Answer:
    """Make a memory, or check that a file is one."""
    here = at.on(path)
    existed = here.file().exists()
    with here.memory(create=True) as memory:
        data = {
            "path": here.file(), "created": not existed, "embedder": memory.embedder.name,
            "policy": memory.policies.revision, "rules": len(memory.policies.rules),
        }  # fmt: skip
    return Answer(data=data, show=lambda: _made(data))


def _made(data: dict[str, Any]) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import words

    verb = "Made" if data["created"] else "Already a memory:"
    yield Text.assemble(("● ", "green"), f"{verb} ", words(data["path"], "bold"))
    yield words(f"embedder {data['embedder']}, {data['rules']} policy rules ({data['policy'][:12]})", "dim")


def store(at: InScope, content: Content, said: Said) -> Answer:
    """Remember something; the file is made if it is not there."""
    with at.scope(create=True) as scope:
        before = in_place(scope, said.subject, said.key)
        unit = scope.store(content_of(content), **said.options(scope))
        return _written(scope, unit, before, "Stored")


def get(at: InPast, unit: UnitId) -> Answer:
    """Show one unit, with its status and lineage."""
    with at.scope() as scope:
        return _unit(scope, scope.get(named(scope, unit)))


def update(
    at: InScope,
    unit: UnitId,
    content: Content,
    said: Said,
    if_version: Annotated[int | None, typer.Option("--if-version", help="Only if this version is current.")] = None,
) -> Answer:
    """Write the next version. It hangs on what is named here, never on what the last one hung on."""
    with at.scope() as scope:
        target = named(scope, unit)
        versions = scope.history(target)
        about = (said.subject or versions[-1].subject, said.key or versions[-1].key)
        before = {old.ref: old for old in (*versions, *in_place(scope, *about))}
        new = scope.update(target, content_of(content), if_version=if_version, **said.options(scope))
        return _written(scope, new, before.values(), "Updated")


def _written(scope: Scope, unit: Unit, before: Iterable[Unit], title: str) -> Answer:
    """What was written, and what it superseded, or what stands in its own place."""
    replaced = superseded_by(scope, unit, before)
    instead = winner(scope, unit)
    beside = [("supersedes", old) for old in replaced]
    beside += [("superseded by", instead)] if instead is not None else []
    data = {
        **as_data(unit), "supersedes": [old.ref for old in replaced],
        "superseded_by": None if instead is None else instead.ref,
    }  # fmt: skip
    return Answer(data=data, show=lambda: _card(unit, title, beside))


def _unit(scope: Scope, unit: Unit) -> Answer:
    instead = winner(scope, unit)
    return Answer(data=unit, show=lambda: _card(unit, None, [] if instead is None else [("superseded by", instead)]))


def _card(unit: Unit, title: str | None, beside: Sequence[tuple[str, Unit]]) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import unit_panel

    yield unit_panel(unit, title=title, beside=beside)


def retrieve(
    at: InPast,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="In words, English or Chinese.")],
    *,
    focus: Annotated[
        list[str],
        typer.Option(
            "--focus",
            metavar="ID",
            help="What the task is about; repeatable.",
            default_factory=list,
            show_default=False,
        ),
    ],
    limit: Annotated[int, typer.Option("--limit", "-n", help="Most units.")] = 10,
    critical: Annotated[bool, typer.Option("--critical", help="Withhold what is pending verification.")] = False,
    purpose: Annotated[str | None, typer.Option("--purpose", help="What the answer is for; rules see it.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="answering, planning or writing.")] = None,
    max_cost: Annotated[float | None, typer.Option("--max-cost", help="Most that freshness may cost.")] = None,
    min_score: Annotated[float | None, typer.Option("--min-score", help="Least score of something stale.")] = None,
    tag: Tags,
    kind: Kind = None,
    filter: Filter = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="As the block that a model is given.")] = False,
) -> Answer:
    """Find what bears on a query and may be used, best first; what is withheld is listed with its reason."""
    from memlineage.policy import Budget

    budget = None
    if max_cost is not None or min_score is not None:
        budget = Budget(max_cost=max_cost, min_score=1.0 if min_score is None else min_score)
    with at.scope() as scope:
        found = scope.retrieve(
            query, focus=named_all(scope, focus) or None, limit=limit, critical=critical, purpose=purpose,
            profile=profile, budget=budget, filter=filter_of(filter, tags=tag, kind=kind),
        )  # fmt: skip
        instead = winners(scope, found.withheld)
    data: dict[str, Any] = {"units": found.units, "constraints": found.constraints, "withheld": found.withheld}
    data["scores"] = {score: found.scores[score]._asdict() for score in found.scores}
    data["superseded_by"] = {old: new.ref for old, new in instead.items()}
    if prompt:
        data["prompt"] = found.to_prompt()
    return Answer(data=data, show=lambda: _prompt(found) if prompt else _found(found, instead))


def _found(found: Found, instead: Mapping[Ref, Unit]) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import unit_table, withheld, words

    if found.constraints:
        yield unit_table(found.constraints, title="Constraints")
    if found.units:
        yield unit_table(found.units, title="Found" if found.constraints else None, scores=found.scores)
    else:
        yield words("Nothing was found that may be used.", "dim")
    yield from withheld(found.withheld, instead)


def _prompt(found: Found) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import block

    yield block(found.to_prompt())


def list_units(
    at: InPast,
    *,
    status: Annotated[
        list[str],
        typer.Option(
            "--status", help="Only these, old versions included; repeatable.", default_factory=list, show_default=False
        ),
    ],
    tag: Tags,
    kind: Kind = None,
    filter: Filter = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="Most units.")] = None,
) -> Answer:
    """List everything that may be read, oldest first."""
    from memlineage.model.state import Status

    for name in status:
        if name not in set(Status):
            raise InvalidInputError(f"--status {name[:80]!r} is unknown; choose one of {', '.join(Status)}")
    if limit is not None and limit < 0:
        raise InvalidInputError(f"--limit {limit} must not be negative")
    with at.scope() as scope:
        wanted = filter_of(filter, tags=tag, kind=kind)
        page = scope.list(filter=wanted, status=status or None, limit=limit)
        instead = winners(scope, page.withheld)

    def show() -> Iterator[RenderableType]:
        from memlineage.cli.rendering import unit_table, withheld, words

        yield unit_table(page) if page else words("Nothing to list.", "dim")
        yield from withheld(page.withheld, instead)

    return Answer(data={"units": tuple(page), "withheld": page.withheld}, show=show)


def history(at: InPast, unit: UnitId) -> Answer:
    """All versions of a unit, oldest first, with what is held against each."""
    with at.scope() as scope:
        page = scope.history(named(scope, unit))

    def show() -> Iterator[RenderableType]:
        from memlineage.cli.rendering import unit_table

        yield unit_table(page, dated=True)

    return Answer(data={"units": tuple(page)}, show=show)


def delete(at: InScope, unit: UnitId, reason: Reason = None, by: By = None) -> Answer:
    """Retract a unit: it is no longer claimed. Nothing is destroyed."""
    with at.scope() as scope:
        return consequences(scope, scope.delete(named(scope, unit), reason=reason, by=by))


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, function in (
        ("init", init), ("store", store), ("get", get), ("retrieve", retrieve), ("list", list_units),
        ("update", update), ("delete", delete), ("history", history),
    ):  # fmt: skip
        command(app, name, panel=_PANEL)(function)
