"""Where the policies of an open memory come from, so that they can be read again."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self, cast

import msgspec

from memlineage.engine.opening import Source, policy_of
from memlineage.policy import Document, PolicySet, policy_files

__all__ = ["Sources", "Stamp"]

Stamp = dict[str, tuple[int, int, bytes]]
"""Of each file: when it was last written, its size, the hash of its content; zeros and nothing if it is not there."""


class Sources(msgspec.Struct, frozen=True):
    """What a memory was opened with, or last reloaded from.

    Attributes:
        items: files and folders by their full paths, mappings and documents, or one whole set; None for none at all:
            then what the file keeps is in force.
        defaults: whether the default set goes with them.
    """

    items: tuple[Source | PolicySet, ...] | None
    defaults: bool = True

    @classmethod
    def of(cls, given: Iterable[Source] | PolicySet | None, *, defaults: bool) -> Self:
        """What was handed in; paths are looked up from here, wherever the program goes later."""
        if given is None:
            return cls(None, defaults)
        alone = isinstance(given, PolicySet | str | os.PathLike | Mapping | Document)
        items: Iterable[Any] = (given,) if alone else cast("Iterable[Any]", given)
        return cls(tuple(_anchored(item) for item in items), defaults)

    def read(self) -> PolicySet:
        """One generation from all of them, read anew. Raises `PolicyDocumentError` with all faults."""
        items = self.items or ()
        if len(items) == 1 and isinstance(items[0], PolicySet):
            return items[0]
        return policy_of([item for item in items if not isinstance(item, PolicySet)], defaults=self.defaults)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files and folders among them."""
        return tuple(str(item) for item in self.items or () if isinstance(item, str | os.PathLike))

    @property
    def named(self) -> tuple[str, ...]:
        """All of them, for people."""
        return tuple(_named(item) for item in self.items or ())

    def stamp(self) -> Stamp:
        """What the files, and those in the folders, are like now."""
        return {str(path): _stamp(path) for path in policy_files(self.paths)}


def _anchored(item: Any) -> Any:
    return str(Path(item).absolute()) if isinstance(item, str | os.PathLike) else item


def _named(item: Source | PolicySet) -> str:
    if isinstance(item, str | os.PathLike):
        return str(item)
    return "a policy set" if isinstance(item, PolicySet) else "a document made in Python"


def _stamp(path: Path) -> tuple[int, int, bytes]:
    try:
        seen = path.stat()
        if not stat.S_ISREG(seen.st_mode):
            return 0, 0, b""
        return seen.st_mtime_ns, seen.st_size, hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return 0, 0, b""
