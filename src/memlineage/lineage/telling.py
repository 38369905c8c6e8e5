"""What owners are told of a change: what became of each version, by the status shown before and after an act.

good       active; archived; beaten to its key by something that says the same
pending    awaiting verification, expired, retracted; beaten to its key by something that says otherwise
wrong      invalid, contaminated, quarantined, erased
replaced   superseded by a later version of its own unit

A version that goes to another of these groups is told of by the group it comes to: `invalidated` when it is wrong now,
`pending`, or `restored` when it is good again. What is replaced is not told of: the version that replaces it is, as
`refreshed`. A version that an act wrote counts as good before it, and whoever wrote something himself is told nothing
of that version by the same act. What goes down and comes back within one act tells nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from memlineage.lineage.graph import shown_of
from memlineage.model.state import OWN_SUPERSEDED, PLAIN, Status, unpack

__all__ = ["STATUS_KINDS", "Fresh", "NoticeKind", "became", "moved"]


class NoticeKind(enum.StrEnum):
    """What a notice tells."""

    INVALIDATED = "invalidated"
    PENDING = "pending"
    RESTORED = "restored"
    REFRESHED = "refreshed"
    POLICY = "policy"


STATUS_KINDS: Final = (NoticeKind.INVALIDATED, NoticeKind.PENDING, NoticeKind.RESTORED, NoticeKind.REFRESHED)
"""Kinds that follow from statuses, in the order in which one act tells them."""

_GOOD, _PENDING, _WRONG, _REPLACED = range(4)
_WRONG_STATUSES: Final = frozenset({Status.INVALID, Status.CONTAMINATED, Status.QUARANTINED, Status.ERASED})
_PENDING_STATUSES: Final = frozenset({Status.PENDING, Status.EXPIRED, Status.RETRACTED})


def _group(code: int) -> int:
    status, state = shown_of(code), unpack(code)
    if status in _WRONG_STATUSES:
        return _WRONG
    if status in _PENDING_STATUSES:
        return _PENDING
    if status is not Status.SUPERSEDED:
        return _GOOD
    if state.own == OWN_SUPERSEDED:
        return _REPLACED
    return _PENDING if state.differs else _GOOD


_GROUPS: Final = bytes(_group(code) for code in range(256))
_KINDS: Final = {_GOOD: NoticeKind.RESTORED, _PENDING: NoticeKind.PENDING, _WRONG: NoticeKind.INVALIDATED}


class Fresh(NamedTuple):
    """A version that an act wrote.

    Fields:
        n: integer id of the version.
        by_owner: whether its owner wrote it himself.
        renews: whether it is a later version of a unit, and no record that the engine keeps of itself.
    """

    n: int
    by_owner: bool
    renews: bool


def became(before: int, after: int) -> NoticeKind | None:
    """What a version's state bytes before and after an act tell; None for nothing."""
    group = _GROUPS[after]
    return None if group == _GROUPS[before] else _KINDS.get(group)


def moved(
    changed: Iterable[tuple[int, bytes, bytes]], codes: Mapping[int, int], fresh: Iterable[Fresh]
) -> dict[NoticeKind, list[int]]:
    """The versions that an act tells of, rising, by what became of them.

    Args:
        changed: state bytes in blocks: number of the first version, before the act, after it.
        codes: the state bytes of fresh versions.
        fresh: what the act wrote.
    """
    new = {one.n: one for one in fresh}
    told: dict[NoticeKind, list[int]] = {kind: [] for kind in STATUS_KINDS}
    for first, before, after in changed:
        for place, (was, now) in enumerate(zip(before, after, strict=True), first):
            if was != now and place not in new:
                kind = became(was, now)
                if kind is not None:
                    told[kind].append(place)
    for n, one in sorted(new.items()):
        kind = became(PLAIN, codes[n])
        if kind is None and one.renews and _GROUPS[codes[n]] == _GOOD:
            kind = NoticeKind.REFRESHED
        if kind is not None and not one.by_owner:
            told[kind].append(n)
    return {kind: sorted(numbers) for kind, numbers in told.items() if numbers}
