"""What loading a source tells: how far it has come, what it did, which lines were bad."""

from __future__ import annotations

import msgspec

__all__ = ["BadLine", "Loaded", "Progress"]


class BadLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was not taken in.

    Attributes:
        line: its number, from 1.
        reason: why, and what would cure it.
    """

    line: int
    reason: str


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a load has come; told after each batch.

    Attributes:
        lines: read so far, blank ones apart.
        written: units written by this run.
        bytes: read so far.
        total: bytes in all; None where nobody knows.
    """

    lines: int
    written: int
    bytes: int
    total: int | None


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What a load did: every line is counted once.

    Attributes:
        name: of the source, as in the keys of its lines.
        lines: lines that are not blank.
        written: units written by this run.
        known: lines that were there already.
        echoes: lines in which a model merely repeats what stands before it (semantics.md, section 10).
        silent: messages without text, such as bare tool calls.
        bad_count: lines that were not taken in.
        bad: the first thousand of them, with reasons.
    """

    name: str
    lines: int = 0
    written: int = 0
    known: int = 0
    echoes: int = 0
    silent: int = 0
    bad_count: int = 0
    bad: tuple[BadLine, ...] = ()

    def __repr__(self) -> str:
        return f"<Loaded {self.name!r}: {self.written} written, {self.known} known, {self.bad_count} bad>"
