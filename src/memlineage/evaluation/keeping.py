"""Filled memories on disk: filled once, kept where they are to be kept, and copied for whoever will change them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from memlineage.engine.memory import Memory
from memlineage.evaluation.filling import open_memory
from memlineage.store.sql import SCHEMA

__all__ = ["Filled", "Shelf"]

_REVISION: Final = 1
"""Raised whenever what is filled in changes, so that a file of before is not taken for one of after."""
_TABLES: Final = sha256(SCHEMA.encode()).hexdigest()[:8]
"""Names the tables that it is filled into."""


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """A filled file.

    Attributes:
        path: a copy that may be changed.
        refs: refs that whoever filled it wants to find again, by name.
    """

    path: Path
    refs: dict[str, str]


class Shelf:
    """Where filled memories are made and kept."""

    def __init__(self, work: Path, kept: Path | None = None) -> None:
        """`work` is for this run. `kept`, if given, keeps what was filled for the next run as well."""
        self.work = work
        self._kept = work / "filled" if kept is None else kept
        self._kept.mkdir(parents=True, exist_ok=True)

    def take(self, name: str, fill: Callable[[Memory], dict[str, str]]) -> Filled:
        """A copy of the memory of that name, filled by `fill` if nobody did yet."""
        path = self.work / f"{name}.db"
        for left in self.work.glob(f"{path.name}*"):  # what an earlier copy had beside it is not this one's
            left.unlink()
        kept = self._kept / f"{name}-{_TABLES}-{_REVISION}.db"
        if not kept.exists():
            fresh = kept.with_suffix(".part")
            fresh.unlink(missing_ok=True)
            with open_memory(fresh, durability="normal") as memory:
                _notes(kept).write_bytes(msgspec.json.encode(fill(memory)))
            fresh.rename(kept)
        shutil.copyfile(kept, path)
        return Filled(path=path, refs=msgspec.json.decode(_notes(kept).read_bytes(), type=dict[str, str]))


def _notes(path: Path) -> Path:
    return path.with_suffix(".json")
