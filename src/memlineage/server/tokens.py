"""Bearer tokens: which secret lets whom into whose memory, as which agent.

A file keeps them: JSON, readable by its owner only, with the SHA-256 of each secret and never the secret. Secrets are
256 random bits, so a plain hash tells nothing of them. They are compared in constant time, all of them, so that time
tells nothing either. Every request is checked against the file as it is then: a token that was revoked or has expired
is refused at the next request, in sessions that are open too.

A token always stands for an agent: over HTTP nobody writes as the user or the host (semantics.md, section 0).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from memlineage.errors import InvalidInputError, StoreError
from memlineage.model.principal import kind_of, parse_principal
from memlineage.model.scope import Scope as Walls

if TYPE_CHECKING:
    from memlineage.engine.memory import Memory
    from memlineage.engine.scope import Scope

__all__ = ["Token", "TokenFile"]

_PREFIX: Final = "mlin_"
_FORMAT: Final = 1


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """Who comes in with a secret.

    Attributes:
        id: by which it is listed and revoked.
        actor: the agent that its bearer acts as.
        user, agent, session, tenant: whose memory.
        note: what it is for, in the words of whoever made it.
        made: when.
        expires: when it ends; None for never.
    """

    id: str
    actor: str
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    tenant: str = "default"
    note: str | None = None
    made: datetime
    expires: datetime | None = None

    def scope(self, memory: Memory) -> Scope:
        """The scope of its bearer, on the model's side, with an exposure of its own."""
        walls = memory.scope(user=self.user, agent=self.agent, session=self.session, tenant=self.tenant)
        return walls.acting_as(self.actor)


class _Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sha256: str
    token: Token


class _Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    memlineage_tokens: int
    tokens: tuple[_Kept, ...] = ()


class TokenFile:
    """The tokens in a file. Safe to share between threads; other processes may write it meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._kept: tuple[_Kept, ...] = ()

    # Checking --------------------------------------------------------------------------------------------------

    def bearer(self, secret: str) -> Token | None:
        """The token whose secret this is; None if there is none, or if it has expired.

        Raises:
            StoreError: the file cannot be read, or others can read it; then nobody comes in.
        """
        digest = _digest(secret)
        found: _Kept | None = None
        for kept in self._current():
            if hmac.compare_digest(kept.sha256.encode(), digest.encode()):
                found = kept
        if found is None or (found.token.expires is not None and found.token.expires <= datetime.now(UTC)):
            return None
        return found.token

    def tokens(self) -> tuple[Token, ...]:
        """All of them, oldest first."""
        return tuple(kept.token for kept in self._current())

    def _current(self) -> tuple[_Kept, ...]:
        with self._lock:
            try:
                with self.path.open("rb") as file:
                    seen = os.fstat(file.fileno())
                    stamp = (seen.st_mtime_ns, seen.st_size, seen.st_ino, seen.st_mode)
                    if stamp != self._stamp:
                        self._check_private(seen.st_mode)
                        self._kept, self._stamp = self._read(file.read()), stamp
            except OSError as error:
                raise StoreError(f"the token file {self.path} cannot be read: {error.strerror}") from None
            return self._kept

    def _check_private(self, mode: int) -> None:
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            raise StoreError(f"others can read the token file {self.path}: chmod 600 {self.path}")

    def _read(self, data: bytes) -> tuple[_Kept, ...]:
        try:
            document = msgspec.json.decode(data, type=_Document)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StoreError(f"the token file {self.path} is damaged: {error}; make a new one") from None
        if document.memlineage_tokens != _FORMAT:
            raise StoreError(f"the token file {self.path} has format {document.memlineage_tokens}, not {_FORMAT}")
        for kept in document.tokens:
            _check(kept.token)
        return document.tokens

    # Writing ---------------------------------------------------------------------------------------------------

    def add(
        self,
        *,
        actor: str,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        tenant: str = "default",
        note: str | None = None,
        expires: datetime | None = None,
    ) -> tuple[Token, str]:
        """A new token and its secret, which is kept nowhere: show it once. Makes the file if it is not there.

        Raises:
            ScopeRequiredError: neither user nor agent.
            InvalidInputError: the actor is no agent, or it expires before it begins.
            StoreError: the file cannot be read or written, or another process writes it.
        """
        now = datetime.now(UTC)
        if expires is not None and expires.tzinfo is not None and expires <= now:
            raise InvalidInputError(f"expires={expires.isoformat()} is past; give a time to come, or none")
        token = Token(
            id=secrets.token_hex(4), actor=parse_principal(actor, name="actor"), user=user, agent=agent,
            session=session, tenant=tenant, note=note, made=now, expires=expires,
        )  # fmt: skip
        _check(token)
        secret = _PREFIX + secrets.token_urlsafe(32)
        with _Writing(self.path) as writing:
            known = self._current() if self.path.exists() else ()
            writing.replace((*known, _Kept(sha256=_digest(secret), token=token)))
        return token, secret

    def revoke(self, id: str) -> Token:
        """Refuse it from now on.

        Raises:
            InvalidInputError: there is no such token.
        """
        with _Writing(self.path) as writing:
            known = self._current()
            found = next((kept.token for kept in known if kept.token.id == id), None)
            if found is None:
                raise InvalidInputError(f"there is no token {id[:40]!r} in {self.path}; list them")
            writing.replace(tuple(kept for kept in known if kept.token.id != id))
        return found


class _Writing:
    """Exclusive writing of a whole file: what is new stands beside it until it replaces it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beside = path.with_name(path.name + ".new")
        self._file = -1
        self._replaced = False

    def __enter__(self) -> _Writing:
        try:
            self._file = os.open(self._beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise StoreError(
                f"another process writes {self._path}; try again, or delete {self._beside} if it is left over"
            ) from None
        except OSError as error:
            raise StoreError(f"the token file {self._path} cannot be written: {error.strerror}") from None
        return self

    def replace(self, kept: tuple[_Kept, ...]) -> None:
        data = msgspec.json.format(msgspec.json.encode(_Document(memlineage_tokens=_FORMAT, tokens=kept)), indent=2)
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)
        self._beside.replace(self._path)
        self._replaced = True

    def __exit__(self, *failure: object) -> None:
        os.close(self._file)
        if not self._replaced:  # else what stands there by now is somebody else's
            self._beside.unlink(missing_ok=True)


def _check(token: Token) -> None:
    if kind_of(parse_principal(token.actor, name="actor")) != "agent":
        raise InvalidInputError(f"actor={token.actor[:80]!r}: a token stands for an agent, e.g. 'agent:planner'")
    if token.expires is not None and token.expires.tzinfo is None:
        raise InvalidInputError(
            f"expires={token.expires.isoformat()} has no time zone; write e.g. 2027-01-01T00:00:00Z"
        )
    Walls.make(tenant=token.tenant, user=token.user, agent=token.agent, session=token.session)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
