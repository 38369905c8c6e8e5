"""The one place of this floor that touches the disk: policy files, and the default set beside this module."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Final

from memlineage.errors import PolicyDocumentError
from memlineage.policy.language.document import Document
from memlineage.policy.language.faults import Fault, refuse
from memlineage.policy.language.reader import MAX_CHARACTERS, read

__all__ = ["defaults", "load", "policy_files"]

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


def load(paths: str | PathLike[str] | Iterable[str | PathLike[str]]) -> tuple[Document, ...]:
    """The documents in files, and in the *.yaml, *.yml and *.json files of directories and what is below them.

    Raises `PolicyDocumentError` with the faults of all files together; a path with no document is a fault too.
    """
    given = [paths] if isinstance(paths, str | PathLike) else paths
    documents: list[Document] = []
    found: list[Fault] = []
    for path in dict.fromkeys(file for each in given for file in _files(Path(each), found)):
        try:
            documents.append(read(_text(path), str(path)))
        except PolicyDocumentError as error:
            found.extend(fault for fault in error.faults if isinstance(fault, Fault))
    refuse(found)
    return tuple(documents)


def defaults() -> Document:
    """The set that ships: isolation, write protection, consistency, the guard, who may act, no untrusted action."""
    return read(files("memlineage.policy").joinpath("default.yaml").read_text("utf-8"), "memlineage/default.yaml")


def _files(path: Path, found: list[Fault]) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    if not inside:
        found.append(_fault(path, "no_document", "no *.yaml, *.yml or *.json file in this directory; name another"))
    return inside

def policy_files(paths: Iterable[str | PathLike[str]]) -> tuple[Path, ...]:
    """The files that `load` would read: those named, whether or not they are there, and those in directories."""
    return tuple(dict.fromkeys(file for each in paths for file in _files(Path(each), [])))



def _text(path: Path) -> str:
    try:
        if path.stat().st_size > 4 * MAX_CHARACTERS:
            fault = _fault(path, "too_large", f"the file has over {4 * MAX_CHARACTERS:,} bytes; split it")
        else:
            return path.read_text("utf-8-sig")
    except OSError as error:
        fault = _fault(path, "unreadable", f"cannot be read ({error.strerror}); check the path and its permissions")
    except UnicodeDecodeError as error:
        fault = _fault(path, "unreadable", f"is not UTF-8 text at byte {error.start}; save it as UTF-8")
    raise PolicyDocumentError(str(fault), (fault,))


def _fault(path: Path, code: str, message: str) -> Fault:
    return Fault(source=str(path), line=0, column=0, path="", code=code, message=message)
