"""`policy simulate`: what another policy would change, in a store or in the cases of documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memlineage.cli.answers import Answer, as_data
from memlineage.cli.command import command
from memlineage.cli.options import OnFile
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from memlineage.engine.simulation import Logged, Simulation
    from memlineage.policy import Document, PolicySet
    from memlineage.policy.trying import CaseChange, Change, Tally

__all__ = ["register", "simulate"]

_REASONS: Final = 2
_TAIL: Final = 8
_UUID: Final = 36
_NAMES: Final = 28
"""Columns for names of rules, where reasons need room too."""
_STYLES: Final = {"loosened": "bold red", "tightened": "yellow"}


def simulate(
    at: OnFile,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="[OLD] NEW", help="Policy files or folders; without OLD, what the store is under."),
    ],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Most changes that are shown one by one.")] = 20,
) -> Answer:
    """Tell what another policy would change: of each unit the reads of its own user, and the decisions in the log.

    Without a memory, in the cases that documents state under `tests:`. Refused before and allowed now comes first.
    Nothing is written; where time limits or levels change, a copy in the folder of TMPDIR is used, and removed.
    """
    if len(paths) > 2:
        raise InvalidInputError(f"{len(paths)} paths are too many: name OLD and NEW, each a file or a folder")
    if at.db is not None:
        return _in_store(at, paths, limit)
    if len(paths) == 1:
        raise InvalidInputError("name OLD and NEW, or the memory whose policy is the old one: --db FILE")
    (old, one), (new, other) = (_loaded(path) for path in paths)
    return _in_cases(old, new, [*one, *other], limit)


def _loaded(path: Path) -> tuple[PolicySet, Sequence[Document]]:
    from memlineage.policy import PolicySet, defaults, load

    documents = load([path])
    return PolicySet.of(defaults(), *documents), documents


def _in_store(at: OnFile, paths: Sequence[Path], limit: int) -> Answer:
    from memlineage.cli.stores import known_embedder
    from memlineage.engine.opening import kept_policy, policy_of
    from memlineage.engine.simulation import simulate as run
    from memlineage.recall.embedders import default_embedder
    from memlineage.store.database import Database

    at.require()
    sets = [_loaded(path)[0] for path in paths]
    embedder = known_embedder(at.file()) or default_embedder()
    database = Database(str(at.file()))
    try:
        old = sets[0] if len(sets) > 1 else kept_policy(database) or policy_of((), defaults=True)
        found = run(database, embedder, old, sets[-1], now_us=time_ns() // 1000, limit=limit)
    finally:
        database.close()
    return Answer(data=as_data(found), show=lambda: _shown(found, at.file()))


def _in_cases(old: PolicySet, new: PolicySet, documents: Sequence[Document], limit: int) -> Answer:
    from memlineage.policy.trying import distinct, simulate_cases

    cases = distinct(case for document in documents for case in document.tests)
    if not cases:
        raise InvalidInputError("no document has a case to try; write some under tests:, or name a memory with --db")
    tally = simulate_cases(old, new, cases, now_us=time_ns() // 1000, limit=limit)
    data = {
        "old": old.revision, "new": new.revision, "cases": len(cases), "counts": tally.counts,
        "changes": as_data(tally.first),
    }  # fmt: skip
    return Answer(data=data, show=lambda: _shown_cases(tally, len(cases)))


def _shown_cases(tally: Tally[CaseChange], cases: int) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import count_of, words

    yield from _headline(f"{count_of(cases, 'case')}", tally.counts)
    shown = [(words(item.name), item.change) for item in tally.first]
    yield from _table("case", shown, sum(tally.counts.values()))


def _shown(found: Simulation, file: Path) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import count_of, words

    revisions = f"{found.old[:12]} → {found.new[:12]}"
    copied = ", tried on a copy: it moves time limits, levels or quorum" if found.copied else ""
    yield Text.assemble(words(file, "bold"), "  ", words(f"{revisions}{copied}", "dim"))
    for read, counts in found.counts.items():
        yield from _headline(f"{count_of(found.units, 'unit')}, read for {read}", counts)
    named = [(_stacked(item.ref[_UUID - _TAIL :], item.read), item.change) for item in found.changes]
    yield from _table("unit", named, sum(sum(counts.values()) for counts in found.counts.values()))
    yield from _shown_log(found.logged)


def _shown_log(logged: Logged) -> Iterator[RenderableType]:
    from memlineage.cli.rendering import count_of

    untold = f" ({logged.untold} more cannot be told)" if logged.untold else ""
    yield from _headline(f"{count_of(logged.judged, 'logged decision')}{untold}", logged.counts)
    named = [(_stacked(item.id[-_TAIL:], item.action), item.change) for item in logged.changes]
    yield from _table("decision", named, sum(logged.counts.values()))


def _headline(what: str, counts: Mapping[str, int]) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.policy.trying import MEANINGS, Changed

    if not counts:
        yield Text.assemble(("● ", "green"), f"{what}: nothing changes")
        return
    sign = ("✗ ", "bold red") if "loosened" in counts else ("◐ ", "yellow")
    told: list[Any] = []
    for name, count in counts.items():
        told += [", " if told else "", (f"{count:,} {name}", _STYLES.get(name, ""))]
        meaning = MEANINGS[Changed(name)]
        told.append(("" if meaning == f"other {name}" else f" ({meaning})", "dim"))
    yield Text.assemble(sign, f"{what}: ", *told)


def _table(subject: str, changes: Sequence[tuple[Any, Change]], count: int) -> Iterator[RenderableType]:
    from rich.text import Text

    from memlineage.cli.rendering import rows, words

    if not changes:
        return
    table = rows(subject, "change", "rules", "why")
    longest = 0
    for name, one in changes:
        ruled = _rules(one)
        longest = max([longest, *(line.cell_len for line in ruled.split())])
        turned = Text.assemble((one.what, _STYLES.get(one.what, "")), f"\n{one.before} → {one.after}")
        table.add_row(name, turned, ruled, words("; ".join(one.reasons[:_REASONS])))
    # Effects and names of rules are read whole, and compared from row to row: reasons give way first.
    table.columns[1].no_wrap = True
    table.columns[2].min_width = min(_NAMES, longest)
    yield table
    if count > len(changes):
        yield words(f"and {count - len(changes):,} more; --limit shows more of them", "dim")


def _stacked(name: str, request: str) -> Text:
    from rich.text import Text

    from memlineage.cli.rendering import words

    return Text("\n").join([words(name, "cyan"), words(request, "cyan")])


def _rules(one: Change) -> Text:
    from rich.text import Text

    from memlineage.cli.rendering import words

    moved = [words(f"−{name}", "red") for name in one.ended] + [words(f"+{name}", "green") for name in one.began]
    return Text("\n").join(moved or [words(name) for name in one.determining])


def register(policy: typer.Typer, *, panel: str) -> None:
    """Add the command to the group."""
    command(policy, "simulate", panel=panel)(simulate)
