"""A witness file: the checkpoints of one ledger, kept where whoever can write the database cannot write.

Theory. Signatures show who made a checkpoint, not that it is the only one: whoever has the key can sign another
history. That shows only against what was signed before and lies elsewhere. So a witness file is append-only, one
signed note after another, with an empty line between, and nothing is added that the last one does not lead to. It is
replaced as a whole (written beside, synced, renamed), so a crash leaves the old one or the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from memlineage.engine.durable import replace_file
from memlineage.errors import LedgerError
from memlineage.ledger.notes import Note, parse_note

__all__ = ["append_notes", "last_note", "read_notes"]

_MODE: Final = 0o644  # checkpoints are made to be shown


def read_notes(path: Path) -> list[Note]:
    """All notes of a witness file, oldest first; none if there is no file. Raises `LedgerError`."""
    parts = _parts(path)
    return [_note(path, parts, place) for place in range(0, len(parts), 2)]


def last_note(path: Path) -> Note | None:
    """The newest; None if there is none. What came before it was looked at when it was added."""
    parts = _parts(path)
    return _note(path, parts, len(parts) - 2) if parts else None


def _parts(path: Path) -> list[str]:
    """Texts and signatures in turn: a checkpoint has one empty line, between the two, and one follows it."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LedgerError(f"the witness {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise LedgerError(f"the witness {path} is no text: it holds no checkpoints") from None
    if not text:
        return []
    parts = text.split("\n\n")
    if len(parts) % 2:
        raise LedgerError(f"{path}: checkpoint {len(parts) // 2 + 1} is cut off, or is none")
    return parts


def _note(path: Path, parts: Sequence[str], place: int) -> Note:
    end = "" if place + 2 == len(parts) else "\n"
    try:
        return parse_note(f"{parts[place]}\n\n{parts[place + 1]}{end}")
    except LedgerError as error:
        raise LedgerError(f"{path}, checkpoint {place // 2 + 1}: {error}") from None


def append_notes(path: Path, notes: Sequence[str]) -> None:
    """Add notes at the end, durably, or leave the file as it was. Raises `LedgerError`."""
    try:
        before = path.read_bytes() if path.exists() else b""
        text = "\n".join(notes).encode()
        replace_file(path, before + b"\n" + text if before else text, mode=_MODE)
    except OSError as error:
        raise LedgerError(
            f"the witness {path} cannot be written: {error.strerror or error}; the checkpoint is signed and kept in "
            "the store: mend that, and ask for it again"
        ) from error
