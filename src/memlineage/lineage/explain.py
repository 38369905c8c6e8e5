"""Explanations: where a unit came from and what follows from that, for people and for drawing programs (row G5).

The text is a tree: the unit, what it rests on, down to the roots, each with who said it, when, and what is held
against it. A unit that appears twice is told once. The words live in one table per language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from memlineage.errors import InvalidInputError
from memlineage.lineage.escape import dot, mermaid, plain, shorten
from memlineage.lineage.words import LANGUAGES, Words
from memlineage.model.counts import count_of
from memlineage.model.ids import Ref
from memlineage.model.principal import kind_of
from memlineage.model.state import Status
from memlineage.model.unit import Cause, Edge, Role, Unit

__all__ = ["Explanation", "explain"]

_LABEL: Final = 60
_MERMAID_CLASS: Final = {
    Status.ACTIVE: "active",
    Status.PENDING: "pending",
    Status.CONTAMINATED: "contaminated",
}


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a unit says what it says, and why it may or may not be used.

    Attributes:
        target: the unit explained.
        units: it and its ancestors, parents before children.
        text: in words.
        lang: of the words.
        hidden: ancestors that the asking scope cannot see.
    """

    target: Unit
    units: tuple[Unit, ...]
    text: str
    lang: str
    hidden: int = 0

    @property
    def graph(self) -> dict[Ref, tuple[Edge, ...]]:
        """Edges up from each unit, revisions apart."""
        return {unit.ref: _edges(unit) for unit in self.units}

    def to_mermaid(self) -> str:
        """A Mermaid flowchart, parents above children."""
        names = {unit.ref: f"u{place}" for place, unit in enumerate(self.units)}
        lines = ["flowchart TD"]
        for unit in self.units:
            label = f"{mermaid(shorten(unit.content, _LABEL))}<br/>{mermaid(unit.creator)} · {unit.status.value}"
            kind = _MERMAID_CLASS.get(unit.status, "down")
            lines.append(f'    {names[unit.ref]}["{label}"]:::{kind}')
        for unit in self.units:
            for edge in _edges(unit):
                if edge.parent in names:
                    arrow = "-->" if edge.strong else "-.->"
                    lines.append(f"    {names[edge.parent]} {arrow}|{edge.role.label}| {names[unit.ref]}")
        return "\n".join([*lines, *_MERMAID_STYLES])

    def to_dot(self) -> str:
        """A Graphviz digraph, parents above children."""
        names = {unit.ref: f"u{place}" for place, unit in enumerate(self.units)}
        lines = ["digraph lineage {", "    node [shape=box, style=rounded];"]
        for unit in self.units:
            label = f"{dot(shorten(unit.content, _LABEL))}\\n{dot(unit.creator)} · {unit.status.value}"
            color = {"active": "black", "pending": "orange"}.get(_MERMAID_CLASS.get(unit.status, "down"), "red")
            lines.append(f'    {names[unit.ref]} [label="{label}", color={color}];')
        for unit in self.units:
            for edge in _edges(unit):
                if edge.parent in names:
                    style = "solid" if edge.strong else "dashed"
                    lines.append(
                        f'    {names[edge.parent]} -> {names[unit.ref]} [label="{edge.role.label}", style={style}];'
                    )
        return "\n".join([*lines, "}"])

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Explanation of {self.target.ref.short}: {count_of(len(self.units), 'unit')}>"


_MERMAID_STYLES: Final = (
    "    classDef active fill:#e8f5e9,stroke:#2e7d32",
    "    classDef pending fill:#fff8e1,stroke:#f9a825",
    "    classDef contaminated fill:#ffebee,stroke:#c62828",
    "    classDef down fill:#eeeeee,stroke:#616161",
)


def _edges(unit: Unit) -> tuple[Edge, ...]:
    return tuple(edge for edge in unit.lineage.dependencies if edge.role is not Role.REVISES)


def explain(target: Unit, units: Sequence[Unit], *, hidden: int = 0, lang: str = "en") -> Explanation:
    """Explain a unit from itself and its ancestors."""
    words = LANGUAGES.get(lang)
    if words is None:
        raise InvalidInputError(f"lang={lang!r} is not available; choose one of {', '.join(LANGUAGES)}")
    known = {unit.ref: unit for unit in units}
    known[target.ref] = target
    lines = [words.headline.format(content=plain(target.content), status=words.status[target.status])]
    lines.extend(_tree(target, known, words))
    lines.extend(_verdict(target, known, words))
    if hidden:
        lines.append(words.hidden.format(count=hidden))
    return Explanation(target=target, units=tuple(units), text="\n".join(lines), lang=lang, hidden=hidden)


def _tree(target: Unit, known: Mapping[Ref, Unit], words: Words) -> Iterator[str]:
    told: set[Ref] = set()
    todo: list[tuple[Unit, Edge | None, int]] = [(target, None, 0)]
    while todo:
        unit, edge, depth = todo.pop()
        indent = "  " * depth
        if unit.ref in told:
            yield f"{indent}- “{shorten(unit.content)}” {words.told}"
            continue
        told.add(unit.ref)
        yield f"{indent}- {_said(unit, edge, words)}"
        for cause in unit.causes:
            yield f"{indent}    ! {_held(cause, words)}"
        parents = [(known[e.parent], e, depth + 1) for e in _edges(unit) if e.parent in known]
        todo.extend(reversed(parents))


def _said(unit: Unit, edge: Edge | None, words: Words) -> str:
    verb = words.root if not _edges(unit) else words.verbs[kind_of(unit.creator)]
    when = unit.lineage.timestamp.strftime("%Y-%m-%d %H:%M")
    line = words.said.format(
        who=plain(unit.creator), verb=verb, content=shorten(unit.content), when=when, status=words.status[unit.status]
    )
    if edge is not None and (edge.role is not Role.DEPENDS or edge.weight < 1):
        line += words.edge.format(role=words.roles[edge.role], weight=f"{edge.weight:g}")
    return line


def _held(cause: Cause, words: Words) -> str:
    reason = words.because.format(reason=plain(cause.reason)) if cause.reason else ""
    when = cause.at.strftime("%Y-%m-%d %H:%M")
    return words.held.format(kind=words.causes[cause.kind], by=plain(cause.by), when=when) + reason


def _verdict(target: Unit, known: Mapping[Ref, Unit], words: Words) -> Iterator[str]:
    """What follows: who is to blame if it is out of use, and what it may justify."""
    if target.status in (Status.CONTAMINATED, Status.PENDING):
        for unit in known.values():
            if unit.ref != target.ref and unit.status not in (Status.ACTIVE, Status.CONTAMINATED, Status.PENDING):
                yield words.blame.format(content=shorten(unit.content), status=words.status[unit.status])
    yield words.integrity[target.integrity]
