"""What a story tells: frozen scenes of plain data, for a terminal, for a test, for `--json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

__all__ = ["Block", "Check", "Excerpt", "Line", "Node", "Scene", "Table", "Tree", "Verdict", "as_json"]


class Line(msgspec.Struct, frozen=True):
    """One sentence of the story.

    Attributes:
        speaker: who speaks or acts: `Alice`, `agent`, `memory`, …
        text: what they say or do.
    """

    speaker: str
    text: str


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A unit in a tree.

    Attributes:
        name: its handle, e.g. `plan@2`; never an id, which differs from run to run.
        status: as in `memlineage.Status`; empty for what is no unit.
        says: its content, or what is to be said of it.
        below: what hangs on it here.
    """

    name: str
    status: str
    says: str
    below: tuple[Node, ...] = ()


class Tree(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A lineage, drawn from one unit.

    Attributes:
        title: what it shows.
        root: where it starts.
    """

    title: str
    root: Node


class Table(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Rows of text. A cell that is the name of a status is drawn as one.

    Attributes:
        title: what it shows.
        columns: one heading per column.
        rows: as many cells each.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Excerpt(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Text quoted line by line.

    Attributes:
        title: where it is from.
        lines: the text.
        danger: whether it was written by somebody who means harm.
    """

    title: str
    lines: tuple[str, ...]
    danger: bool = False


Block = Tree | Table | Excerpt


class Check(msgspec.Struct, frozen=True):
    """Something that the story promises.

    Attributes:
        claim: what must be so, in words.
        holds: whether it was.
    """

    claim: str
    holds: bool


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The same moment with a flat memory, and here.

    Attributes:
        flat: what the flat memory did.
        here: what happened here.
        harmed: whether the flat memory did harm.
    """

    flat: str
    here: str
    harmed: bool


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a story.

    Attributes:
        number: 1, 2, …
        title: in a few words.
        clock: the time of day in the story.
        lines: what was asked, what the agent did, what memory knows.
        blocks: trees, tables and excerpts, in order.
        facts: figures for programs and tests.
        checks: what the story promises at this point.
        measured: seconds that something took, by what it was: all that differs from one run to the next.
        verdict: the comparison with a flat memory; None where there is nothing to compare.
        commands: how to look further, where a file was kept.
    """

    number: int
    title: str
    clock: str
    lines: tuple[Line, ...]
    blocks: tuple[Block, ...] = ()
    facts: dict[str, Any] = {}
    checks: tuple[Check, ...]
    measured: dict[str, float] = {}
    verdict: Verdict | None = None
    commands: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything promised here held. A scene that promises nothing proves nothing: it is not ok."""
        return bool(self.checks) and all(check.holds for check in self.checks)


def as_json(scenes: Iterable[Scene]) -> str:
    """The scenes as one JSON document: `{"ok": …, "scenes": […]}`, each scene with its `ok`."""
    told = tuple(scenes)
    listed = [{**msgspec.to_builtins(scene), "ok": scene.ok} for scene in told]
    document = {"ok": bool(told) and all(scene.ok for scene in told), "scenes": listed}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
