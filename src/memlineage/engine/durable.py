"""Files beside the database that must survive a crash: whole, and with their names."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["replace_file", "sync_folder"]

_PERMISSIONS: Final = 0o777


def replace_file(path: Path, content: bytes, *, mode: int) -> None:
    """Give a file this content: written beside it, synced, renamed. A crash leaves the old file or the new one.

    `mode` is that of a new file; one that was there keeps its own. Raises `OSError`.
    """
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        beside.chmod(path.stat().st_mode & _PERMISSIONS if path.exists() else mode)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """A new name is durable once its folder is; only POSIX systems can be asked for that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
