"""Principals, authority and integrity (semantics.md, sections 0 and 3).

A creator is a *claim* about who said something; the actor of a scope is who was authenticated. Authority
orders principals when they contradict each other; integrity says what a memory may justify.
"""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import Final

from memlineage.errors import InvalidInputError
from memlineage.model.content import check_name

__all__ = [
    "HOST",
    "Authority",
    "Integrity",
    "authority",
    "default_level",
    "is_model_side",
    "kind_of",
    "parse_principal",
]

HOST: Final = "system"
"""The actor of an in-process scope: the host program."""


class Integrity(enum.IntEnum):
    """How far a memory can be trusted, low to high."""

    UNTRUSTED = 0
    INTERNAL = 1
    TRUSTED = 2

    def __str__(self) -> str:
        return self.name


class Authority(enum.IntEnum):
    """Who prevails when two sources differ, low to high."""

    EXTERNAL = 0
    MODEL = 1
    TOOL = 2
    OWNER = 3


_SPELLINGS: Final = {
    "user_input": "user",
    "tool_call": "tool",
    "internal_reasoning": "reasoning",
}
_LEVELS: Final = {
    "user": Integrity.TRUSTED,
    "system": Integrity.TRUSTED,
    "tool": Integrity.INTERNAL,
    "agent": Integrity.INTERNAL,
    "reasoning": Integrity.TRUSTED,  # of its own: its inputs decide
    "external": Integrity.UNTRUSTED,
}
_AUTHORITY: Final = {
    "user": Authority.OWNER,
    "system": Authority.OWNER,
    "tool": Authority.TOOL,
    "agent": Authority.MODEL,
    "reasoning": Authority.MODEL,
    "external": Authority.EXTERNAL,
}
_NAMED: Final = frozenset({"tool", "agent", "external"})


def parse_principal(text: str, *, user: str | None = None, name: str = "creator") -> str:
    """The canonical spelling of a principal.

    The write-up's spellings `user_input`, `tool_call:<name>` and `internal_reasoning` are read as `user`,
    `tool:<name>` and `reasoning` (row A1). A bare `user` is completed with the scope's user.
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"{name}={text!r} is not text; expected e.g. 'user:alice', 'tool:search', 'reasoning'")
    head, colon, rest = text.partition(":")
    head = _SPELLINGS.get(head, head)
    if head not in _LEVELS:
        raise InvalidInputError(
            f"{name}={text[:80]!r} is not a principal; expected user:<id>, system, tool:<name>, agent:<name>, "
            "reasoning[:<model>] or external:<origin>"
        )
    if head == "user" and not rest and user is not None:
        rest, colon = user, ":"
    if (head in _NAMED or head == "user") and not rest:
        raise InvalidInputError(f"{name}={text[:80]!r} needs a name after the colon, e.g. '{head}:planner'")
    if head == "system" and (rest or colon):
        raise InvalidInputError(f"{name}={text[:80]!r}: 'system' takes no name")
    if not rest:
        return head
    return f"{head}:{check_name(rest, name=name)}"


@lru_cache(maxsize=4096)
def kind_of(principal: str) -> str:
    """`user`, `system`, `tool`, `agent`, `reasoning` or `external`."""
    return principal.partition(":")[0]


@lru_cache(maxsize=4096)
def is_model_side(principal: str) -> bool:
    """Whether the words are a model's own: reasoning and agents (echo, exposure and guard apply)."""
    return kind_of(principal) in {"reasoning", "agent"}


def default_level(principal: str) -> Integrity:
    """The level of a principal that nobody registered; an unknown one is UNTRUSTED."""
    return _LEVELS.get(kind_of(principal), Integrity.UNTRUSTED)


def authority(principal: str, integrity: Integrity) -> Authority:
    """Rank by who speaks; anything of UNTRUSTED integrity ranks with external sources."""
    if integrity is Integrity.UNTRUSTED:
        return Authority.EXTERNAL
    return _AUTHORITY.get(kind_of(principal), Authority.EXTERNAL)
