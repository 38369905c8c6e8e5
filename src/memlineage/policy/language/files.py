"""The one place of this floor that touches the disk: policy files, and the default set beside this module."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from importlib.resources import files
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Final

from memlineage.errors import PolicyDocumentError
from memlineage.policy.language.document import Document
from memlineage.policy.language.faults import MAX_FAULTS, Fault, refuse
from memlineage.policy.language.nodes import MAX_CHARACTERS
from memlineage.policy.language.reader import read

__all__ = ["defaults", "load", "policy_files"]

MAX_ENTRIES: Final = 10_000
"""Most files and directories that are looked through in one directory."""
MAX_TOTAL: Final = 10 * MAX_CHARACTERS
"""Most characters of all files together: some 20,000 rules."""
_MAX_BYTES: Final = 4 * MAX_CHARACTERS
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


def load(paths: str | PathLike[str] | Iterable[str | PathLike[str]]) -> tuple[Document, ...]:
    """The documents in files, and in the *.yaml, *.yml and *.json files of directories and what is below them.

    Raises `PolicyDocumentError` with the faults of all files together; a path with no document is a fault too.
    """
    given = [paths] if isinstance(paths, str | PathLike) else paths
    documents: list[Document] = []
    found: list[Fault] = []
    total = 0
    for path in dict.fromkeys(file for each in given for file in _files(Path(each), found)):
        try:
            text = _text(path)
            total += len(text)
            if total > MAX_TOTAL:
                found.append(_fault(path, "too_large", f"the files have over {MAX_TOTAL:,} characters together"))
                break
            documents.append(read(text, str(path)))
        except PolicyDocumentError as error:
            found.extend(fault for fault in error.faults if isinstance(fault, Fault))
        if len(found) > MAX_FAULTS:
            break
    refuse(found)
    return tuple(documents)


def defaults() -> Document:
    """The set that ships: isolation, write protection, consistency, the guard, who may act, no untrusted action."""
    return read(files("memlineage.policy").joinpath("default.yaml").read_text("utf-8"), "memlineage/default.yaml")


def policy_files(paths: Iterable[str | PathLike[str]]) -> tuple[Path, ...]:
    """The files that `load` would read: those named, whether or not they are there, and those in directories."""
    return tuple(dict.fromkeys(file for each in paths for file in _files(Path(each), [])))


def _files(path: Path, found: list[Fault]) -> list[Path]:
    if not path.is_dir():
        return [path]
    entries = list(islice(path.rglob("*"), MAX_ENTRIES + 1))
    if len(entries) > MAX_ENTRIES:
        found.append(_fault(path, "too_large", f"over {MAX_ENTRIES:,} files in this directory; name a smaller one"))
        return []
    inside = sorted(file for file in entries if file.suffix in _SUFFIXES and file.is_file())
    if not inside:
        found.append(_fault(path, "no_document", "no *.yaml, *.yml or *.json file in this directory; name another"))
    return inside


def _text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            fault = _fault(path, "unreadable", "is neither a file nor a directory; name one")
        else:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
            if len(data) <= _MAX_BYTES:
                return data.decode("utf-8-sig")
            fault = _fault(path, "too_large", f"the file has over {_MAX_BYTES:,} bytes; split it")
    except OSError as error:
        fault = _fault(path, "unreadable", f"cannot be read ({error.strerror}); check the path and its permissions")
    except UnicodeDecodeError as error:
        fault = _fault(path, "unreadable", f"is not UTF-8 text at byte {error.start}; save it as UTF-8")
    raise PolicyDocumentError(str(fault), (fault,))


def _fault(path: Path, code: str, message: str) -> Fault:
    return Fault(source=str(path), line=0, column=0, path="", code=code, message=message)
