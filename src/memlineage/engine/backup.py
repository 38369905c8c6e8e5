"""A backup: a copy of the store that bears its name only when it is whole, on disk, and has been read back."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from memlineage.engine.durable import replace_file, sync_folder
from memlineage.engine.keyring import KeyFile, Keyring
from memlineage.errors import InvalidInputError, LedgerError, StoreError
from memlineage.store.copying import check_copy, copy_pages
from memlineage.store.database import MEMORY, Database

__all__ = ["Backup", "back_up"]

_PRIVATE: Final = 0o600
_PERMISSIONS: Final = 0o777
# What SQLite would play back into a file of that name: left by another database, it would destroy this one.
_LEFT_BEHIND: Final = ("-wal", "-journal")
_NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was taken, and read back.

    Attributes:
        path: the file.
        bytes: its size.
        events: how many events its ledger has: it is the store as it was after that many.
        key: where the signing key was copied to; None if it was not.
    """

    path: str
    bytes: int
    events: int
    key: str | None = None

    def __repr__(self) -> str:
        return f"<Backup {self.path!r}, events {self.events}, bytes {self.bytes}>"


def back_up(
    database: Database,
    keyring: Keyring,
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    with_key: bool,
    progress: Callable[[int, int], object] | None,
) -> Backup:
    """See `Memory.backup`."""
    target = Path(path)
    key_target = Path(f"{target}.key")
    _check_target(target, database.file, overwrite=overwrite)
    key = _key_of(keyring, key_target, overwrite=overwrite) if with_key else None
    with _told(target), _beside(target) as copy:
        _check_room(database, target)
        head = copy_pages(database, copy, progress)
        check_copy(copy, head, database)
        if database.path != MEMORY:
            copy.chmod(Path(database.file).stat().st_mode & _PERMISSIONS)
        if key is not None:
            replace_file(key_target, key, mode=_PRIVATE)
        size = copy.stat().st_size
        _publish(copy, target, overwrite=overwrite)
        sync_folder(target.parent)
    return Backup(path=str(target), bytes=size, events=head.seq, key=None if key is None else str(key_target))


def _check_target(target: Path, source: str, *, overwrite: bool) -> None:
    if str(target) == MEMORY or target.is_dir():
        raise InvalidInputError(f"{target} is no file; name one to write the backup to")
    if not target.parent.is_dir():
        raise InvalidInputError(f"{target.parent} is no folder; make it first")
    if target.exists() and not overwrite:
        raise InvalidInputError(f"{target} exists; name another file, or have it replaced with overwrite=…")
    if source != MEMORY and target.exists() and target.samefile(source):
        raise InvalidInputError(f"{target} is the memory itself; name another file")
    for suffix in _LEFT_BEHIND:
        if Path(f"{target}{suffix}").exists():
            raise InvalidInputError(
                f"there is a {target.name}{suffix}: a database of that name is open, or was not closed; name another "
                "file"
            )


def _key_of(keyring: Keyring, target: Path, *, overwrite: bool) -> bytes | None:
    """The signing key as it is to be copied; None if none was made yet."""
    if not isinstance(keyring, KeyFile):
        raise LedgerError("the signing key is not in a file beside the memory: whoever gave it has to keep it")
    if target.exists() and not overwrite:
        raise InvalidInputError(f"{target} exists; name another file, or have it replaced with overwrite=…")
    try:
        return keyring.path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"the signing key {keyring.path} cannot be read: {error.strerror}") from error


def _check_room(database: Database, target: Path) -> None:
    """Before anything is copied: a disk that is filled to the brim stops every program on it."""
    with database.reading() as connection:
        need = int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
    free = shutil.disk_usage(target.parent).free
    if free < need:
        raise StoreError(f"{target.parent} has {free:,} bytes free, the backup needs {need:,}: free some space")


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """An empty file in the same folder, for its owner alone; gone at the end, unless it has been renamed."""
    descriptor, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".partial", dir=target.parent)
    os.close(descriptor)
    copy = Path(name)
    try:
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def _publish(copy: Path, target: Path, *, overwrite: bool) -> None:
    """Give it its name. Without `overwrite`, a file that came to be there meanwhile stays what it is."""
    if not overwrite:
        try:
            target.hardlink_to(copy)
        except FileExistsError:
            raise InvalidInputError(f"{target} has come to exist meanwhile; name another file") from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        else:
            return
    copy.replace(target)


@contextmanager
def _told(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{target}: the backup could not be written: {error.strerror or error}") from error
