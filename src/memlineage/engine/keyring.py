"""Where the private key of the ledger lies: in a file that its owner alone can read, or with whoever opened the store.

The file is made when something is signed for the first time, never on opening. A rotation first writes the new key
beside the old one, then commits the event and the checkpoint that both sign; the new key is moved into place by
whoever looks for it next, as a rule the rotation itself. So a crash leaves either a new key that nothing knows of,
which the next rotation overwrites, or an old key that the ledger has retired, with its successor beside it.

All of this happens under the write lock of the database: no process stages a key while another has yet to move its own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from memlineage.engine.durable import sync_folder
from memlineage.errors import InvalidInputError, LedgerError
from memlineage.ledger.signing import SEED_BYTES, SigningKey
from memlineage.store.database import MEMORY

__all__ = ["GivenKey", "KeyFile", "KeySource", "Keyring", "keyring_of", "new_key"]

KeySource = str | os.PathLike[str] | bytes
"""A key's file, or the key itself: its 32-byte seed, or the text of such a file."""

_OTHERS: Final = 0o077
_PRIVATE: Final = 0o600


def new_key() -> SigningKey:
    """A fresh key, from the system's randomness."""
    return SigningKey.from_seed(os.urandom(SEED_BYTES))


class Keyring(Protocol):
    """Gives the private key that signs, and takes its successor."""

    def first(self) -> SigningKey:
        """The key for a ledger that has none; made if need be."""

    def find(self, public: bytes) -> SigningKey:
        """The key that the ledger has in force; a successor that it has taken takes its place now.

        Raises `LedgerError` where it is not to be had.
        """

    def stage(self) -> SigningKey:
        """A successor, safe on disk before the ledger knows of it."""


class GivenKey:
    """A key that whoever opened the store handed over, or a key in memory of a store in memory."""

    def __init__(self, key: SigningKey | None) -> None:
        """None: made on first use, and gone with the store."""
        self._key = key
        self._mine = key is None
        self._next: SigningKey | None = None

    def first(self) -> SigningKey:
        """The key."""
        if self._key is None:
            self._key = new_key()
        return self._key

    def find(self, public: bytes) -> SigningKey:
        """The key, if it is the one asked for."""
        if self._next is not None and self._next.public == public:
            self._key, self._next = self._next, None
        if self._key is None or self._key.public != public:
            raise LedgerError(f"signing_key is not the key of this ledger, which is {public.hex()[:16]}…")
        return self._key

    def stage(self) -> SigningKey:
        """A successor in memory; whoever keeps the key must give the next one."""
        if not self._mine:
            raise LedgerError(
                "the key was given as signing_key, so its successor would be lost: give that too, "
                "rotate_key(signing_key=…), and open the store with it from then on"
            )
        self._next = new_key()
        return self._next


class KeyFile:
    """A PEM file of mode 600 (RFC 8410), as `openssl genpkey -algorithm ed25519` makes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._staged = path.with_name(path.name + ".new")

    def first(self) -> SigningKey:
        """The key in the file; a file that is not there is made."""
        with _told(self.path):
            if self.path.is_file() and not self.path.stat().st_size:
                self.path.unlink()  # the power failed while it was made: nothing was ever signed with it
        return _read(self.path) or _write_new(self.path, new_key())

    def find(self, public: bytes) -> SigningKey:
        """The key in the file; or its successor, which is moved into place."""
        key = _read(self.path)
        if key is not None and key.public == public:
            return key
        if (staged := _read(self._staged)) is not None and staged.public == public:
            self._adopt()
            return staged
        wanted = f"the key of this ledger, {public.hex()[:16]}…"
        if key is None:
            raise LedgerError(f"there is no {self.path}, which held {wanted}; restore it, or pass signing_key=…")
        raise LedgerError(f"{self.path} holds another key than {wanted}; restore that one, or pass signing_key=…")

    def stage(self) -> SigningKey:
        """A successor in a file beside it."""
        with _told(self._staged):
            self._staged.unlink(missing_ok=True)
        return _write_new(self._staged, new_key())

    def _adopt(self) -> None:
        with _told(self.path):
            self._staged.replace(self.path)
            sync_folder(self.path.parent)


def keyring_of(source: KeySource | None, database: str) -> Keyring:
    """What `signing_key=` means; left out, the file `<database>.key`, or a key in memory for a store in memory."""
    if isinstance(source, bytes):
        return GivenKey(_given(source))
    if source is not None:
        return KeyFile(Path(source).absolute())
    return GivenKey(None) if database == MEMORY else KeyFile(Path(f"{database}.key").absolute())


def _given(source: bytes) -> SigningKey:
    if len(source) == SEED_BYTES:
        return SigningKey.from_seed(source)
    try:
        return SigningKey.from_pem(source.decode("ascii"))
    except (UnicodeDecodeError, LedgerError):
        raise InvalidInputError(
            f"signing_key is neither a seed of {SEED_BYTES} bytes nor an Ed25519 private key in PEM form"
        ) from None


def _read(path: Path) -> SigningKey | None:
    """The key in a file, None without one. What is read is what was checked: both go through one descriptor."""
    with _told(path):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
            _refuse_open_to_others(path, os.fstat(descriptor))
            text = file.read(4096)
    try:
        return SigningKey.from_pem(text)
    except LedgerError as error:
        raise LedgerError(f"{path}: {error}") from None


def _refuse_open_to_others(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise LedgerError(f"{path} is no regular file; a signing key lies in one")
    if os.name == "posix" and found.st_mode & _OTHERS:
        raise LedgerError(
            f"{path} has mode {stat.S_IMODE(found.st_mode):o}, so others can get at the key that signs the ledger: "
            f"chmod 600 {path}; if somebody may have read it, rotate the key too"
        )


def _write_new(path: Path, key: SigningKey) -> SigningKey:
    """Make a file that only its owner can read, on disk before anything is signed with it."""
    with _told(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(key.to_pem())
            file.flush()
            os.fsync(descriptor)
        sync_folder(path.parent)
    return key


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LedgerError(f"the signing key {path} cannot be used: {error.strerror or error}") from error
