"""Entry checks as they are registered in this process, and which writes they are about (row C7)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from memlineage.engine.strangers import ask
from memlineage.errors import InvalidInputError
from memlineage.model.content import check_name
from memlineage.model.principal import kind_of
from memlineage.policy.glob import glob_match

__all__ = ["Entry", "EntryCheck", "EntryChecks", "Matched", "Where", "check_where", "entry_check", "fits"]

_TRUSTED_KINDS: Final = frozenset({"user", "system"})
_FIELDS: Final = frozenset({"kind", "tags", "creators", "subject", "key"})
_SECONDS: Final = 5.0
"""How long a `where` function may think about one write."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What is about to be written, as `where` functions of checks are told of it.

    Attributes:
        content: the text.
        creator: who says it.
        kind: `fact` unless said otherwise.
        tags: labels.
        subject: what it is about.
        key: which property of that it states.
        confidence: as stated, in [0, 1]; None if nobody said.
    """

    content: str
    creator: str
    kind: str
    tags: tuple[str, ...]
    subject: str | None
    key: str | None
    confidence: float | None


Where = Mapping[str, Any] | Callable[[Entry], Any]
"""What a check is about: values or patterns per `kind`, `tags`, `creators`, `subject`, `key`; or a function."""


class EntryCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check as registered; see `Memory.entry_check`."""

    name: str
    where: Where | None
    least_confidence: float | None
    sources: int


class Matched(msgspec.Struct, frozen=True):
    """A check that is about a write, and how its function failed, if it did."""

    check: EntryCheck
    error: str | None = None


class EntryChecks:
    """The checks that are registered in this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._checks: dict[str, EntryCheck] = {}

    def __bool__(self) -> bool:
        return bool(self._checks)

    def add(self, check: EntryCheck) -> None:
        """Register a check, in place of one of the same name."""
        with self._lock:
            self._checks = {**self._checks, check.name: check}

    def get(self, name: str) -> EntryCheck | None:
        """The check of a name, if it is registered here."""
        return self._checks.get(name)

    def about(self, entry: Entry) -> tuple[Matched, ...]:
        """The checks that are about a write. Functions are called here, outside any transaction."""
        if kind_of(entry.creator) in _TRUSTED_KINDS:
            return ()
        found = (_matched(check, entry) for check in self._checks.values())
        return tuple(matched for matched in found if matched is not None)


def check_where(where: object) -> Where | None:
    """What a check is about, as a caller gave it."""
    if where is None or callable(where):
        return where
    if not isinstance(where, Mapping):
        raise InvalidInputError(f"where={where!r:.80} is neither a mapping nor a function")
    unknown = sorted(set(where) - _FIELDS, key=str)
    if unknown:
        raise InvalidInputError(f"where has {unknown[0]!r:.80}; known are {', '.join(sorted(_FIELDS))}")
    for name, value in where.items():
        if not _listed(value) or not all(isinstance(text, str) and text for text in _listed(value)):
            raise InvalidInputError(f"where[{name!r}]={value!r:.80} is no text or list of texts")
    return {name: tuple(_listed(value)) for name, value in where.items()}


def fits(where: Where | None, entry: Entry) -> bool:
    """Whether a statement is one of those that a check is about; of each list one value must fit."""
    if where is None:
        return True
    if callable(where):
        answer = where(entry)
        if not isinstance(answer, bool):
            raise InvalidInputError(f"where answered {answer!r:.80}, not True or False")
        return answer
    has = {"kind": (entry.kind,), "tags": entry.tags, "creators": (entry.creator, kind_of(entry.creator)),
           "subject": (entry.subject,), "key": (entry.key,)}  # fmt: skip
    return all(
        any(glob_match(pattern, value) for pattern in patterns for value in has[name] if value is not None)
        for name, patterns in where.items()
    )


def entry_check(name: str, where: object, least_confidence: Any, sources: Any) -> EntryCheck:
    """A checked check."""
    if least_confidence is not None and not (_is(least_confidence, int | float) and 0 <= least_confidence <= 1):
        raise InvalidInputError(f"least_confidence={least_confidence!r} is not a number from 0 to 1")
    if not _is(sources, int) or sources < 1:
        raise InvalidInputError(f"sources={sources!r} is not a whole number from 1 on")
    return EntryCheck(
        name=check_name(name, name="name"), where=check_where(where), least_confidence=least_confidence, sources=sources
    )


def _is(value: object, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple | set | frozenset) else (value,)  # type: ignore[return-value]


def _matched(check: EntryCheck, entry: Entry) -> Matched | None:
    """Whether a check is about a write; if it cannot say, it is: doubt holds back."""
    answer = ask(fits, check.where, entry, seconds=_SECONDS) if callable(check.where) else None
    if answer is None:
        return Matched(check) if fits(check.where, entry) else None
    if answer.error is not None:
        return Matched(check, answer.error)
    return Matched(check) if answer.value else None
