"""What `doctor` finds: each line says what was looked at, what is there, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["NOTHING", "Finding", "Health", "bad", "fine", "note", "table"]

NOTHING: Final = "nothing to do"


class Health(StrEnum):
    """How it is: a note leaves everything working."""

    FINE = "fine"
    NOTE = "note"
    BAD = "bad"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: what was looked at.
        health: how it is.
        detail: what is there.
        advice: what to do, as a command where one helps.
    """

    name: str
    health: Health
    detail: str
    advice: str = NOTHING

    @property
    def ok(self) -> bool:
        """Whether it works."""
        return self.health is not Health.BAD

    def as_data(self) -> dict[str, object]:
        """As `--json` prints it."""
        return {
            "name": self.name, "ok": self.ok, "health": self.health.value, "detail": self.detail,
            "advice": self.advice,
        }  # fmt: skip


def fine(name: str, detail: str) -> Finding:
    """It is as it should be."""
    return Finding(name=name, health=Health.FINE, detail=detail)


def note(name: str, detail: str, advice: str) -> Finding:
    """It works, but could be better."""
    return Finding(name=name, health=Health.NOTE, detail=detail, advice=advice)


def bad(name: str, detail: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(name=name, health=Health.BAD, detail=detail, advice=advice)


_SIGNS: Final = {Health.FINE: ("●", "green"), Health.NOTE: ("◐", "yellow"), Health.BAD: ("✗", "bold red")}


def table(title: str, findings: Iterable[Finding]) -> Table:
    """Findings, one a row."""
    from rich.text import Text

    from memlineage.cli.rendering import rows, words

    made = rows("", "what", "found", "what to do", title=f"\n{title}")
    made.columns[1].no_wrap = True
    for found in findings:
        sign, style = _SIGNS[found.health]
        advice = words(found.advice, "dim" if found.health is Health.FINE else style)
        made.add_row(Text(sign, style=style), words(found.name), words(found.detail), advice)
    return made
