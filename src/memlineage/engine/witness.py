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

__all__ = ["append_notes", "read_notes", "split_notes"]

_MODE: Final = 0o644  # checkpoints are made to be shown


def read_notes(path: Path) -> list[Note]:
    """All notes of a witness file, oldest first; none if there is no file. Raises `LedgerError`."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LedgerError(f"the witness {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise LedgerError(f"the witness {path} is no text: it holds no checkpoints") from None
    return split_notes(text, str(path))


def split_notes(text: str, where: str) -> list[Note]:
    """Notes that follow one another, with an empty line between. A checkpoint itself has exactly one."""
    parts = text.split("\n\n")
    if not text.strip():
        return []
    if len(parts) % 2:
        raise LedgerError(f"{where}: checkpoint {len(parts) // 2 + 1} is cut off, or is none")
    found = []
    for number, (body, lines) in enumerate(zip(parts[::2], parts[1::2], strict=True), start=1):
        try:
            found.append(parse_note(f"{body}\n\n{lines.removesuffix(chr(10))}\n"))
        except LedgerError as error:
            raise LedgerError(f"{where}, checkpoint {number}: {error}") from None
    return found


def append_notes(path: Path, notes: Sequence[Note]) -> None:
    """Add notes at the end, durably, or leave the file as it was. Raises `LedgerError`."""
    try:
        before = path.read_bytes() if path.exists() else b""
        text = "\n".join(map(str, notes)).encode()
        replace_file(path, before + b"\n" + text if before else text, mode=_MODE)
    except OSError as error:
        raise LedgerError(
            f"the witness {path} cannot be written: {error.strerror or error}; the checkpoint is signed and kept in "
            "the store: mend that, and ask for it again"
        ) from error
