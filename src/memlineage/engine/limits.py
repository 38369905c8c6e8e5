"""What follows from policy for each version, against what is stored of it: when it expires, and which rules can matter.

Both are looked at in one pass over the rows, streaming.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from memlineage.engine.facts import new_facts
from memlineage.engine.generation import Generation, kept_policies
from memlineage.policy import Facts, PolicySet, Rule, valid_until
from memlineage.policy.fast.fields import HEAD
from memlineage.policy.fast.form import FastForm
from memlineage.policy.fast.picked import Picked
from memlineage.policy.freshness import by_time_alone
from memlineage.store.database import Connection
from memlineage.store.names import NameCache, Names
from memlineage.store.records import NewVersion

__all__ = ["Odd", "new_limits", "odd_by_policy"]

_ENDS: Final = "coalesce(min(expires_us, valid_to_us), expires_us, valid_to_us)"
_OWN_WORD: Final = f"SELECT n, {_ENDS} FROM version WHERE content IS NOT NULL AND valid_until IS NOT {_ENDS} ORDER BY n"
_COLUMNS: Final = (
    "v.n, u.id, v.version, v.w, v.content, v.kind, v.tags, v.subject, v.key, v.creator, v.actor, v.owner, v.creator_id,"
    " v.ts_us, v.ts_offset, v.recorded_us, v.confidence, v.pinned, v.metadata, v.expires_us, v.valid_to_us,"
    " v.valid_until, v.integrity, v.mask"
)
_VERSIONS: Final = f"SELECT {_COLUMNS} FROM version v JOIN unit u ON u.u = v.u WHERE v.content IS NOT NULL ORDER BY v.n"
_ERASED: Final = "SELECT n FROM version WHERE content IS NULL AND mask IS NOT NULL ORDER BY n"


class Odd(NamedTuple):
    """A value that is not what follows from policy.

    Fields:
        n: of which version.
        column: `valid_until` or `mask`.
        wanted: what belongs there.
        problem: what is wrong, in words.
    """

    n: int
    column: str
    wanted: int | bytes | None
    problem: str


def odd_by_policy(connection: Connection, generation: Generation) -> Iterator[Odd]:
    """Versions whose limit or mask is not what this generation gives. Masks of other generations are as they are."""
    others = _Lengths(connection)
    for row in _versions(connection):
        mask = generation.form.mask(row.facts.unit)
        limit = row.limit(generation.policies, generation.ages.among(mask))
        if limit != row.valid_until:
            yield Odd(row.n, "valid_until", limit, f"valid_until is {row.valid_until}; by policy it is {limit}")
        if row.mask is None or row.mask == mask:
            continue
        if row.mask[:HEAD] == mask[:HEAD]:
            yield Odd(row.n, "mask", mask, "mask marks other rules than can matter for it")
        elif others.of(row.mask[:HEAD]) != len(row.mask):
            yield Odd(row.n, "mask", mask, "mask is of no generation that was in force")
    for (n,) in connection.execute(_ERASED):
        yield Odd(n, "mask", None, "mask is left of what was erased")


def new_limits(connection: Connection, policies: PolicySet) -> Iterator[tuple[int, int | None]]:
    """Versions with another limit than their own word and these policies give, and the one they give."""
    bounding = msgspec.structs.replace(policies, rules=Picked(policies, by_time_alone).rules)
    if not bounding.rules:
        yield from connection.execute(_OWN_WORD)
        return
    # Masks of these few rules alone: of each version only those are asked that may be about it.
    form, ages = FastForm(bounding), Picked(bounding, by_time_alone)
    for row in _versions(connection):
        limit = row.limit(policies, ages.among(form.mask(row.facts.unit)))
        if limit != row.valid_until:
            yield row.n, limit


class _Lengths:
    """How long the masks of each generation are that was ever in force, by the bytes that they begin with."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[bytes, int | None] = {}

    def of(self, head: bytes) -> int | None:
        """Bytes of such a mask; None if there was no such generation."""
        if head not in self._known:
            self._known[head] = self._read(head)
        return self._known[head]

    def _read(self, head: bytes) -> int | None:
        rows = self._connection.execute("SELECT body FROM generation WHERE revision GLOB ?", (f"{head.hex()}*",))
        kept = [policies for (body,) in rows if len(head) == HEAD and (policies := kept_policies(body)) is not None]
        return HEAD + (len(kept[0].rules) + 7) // 8 if kept else None


class _Version(NamedTuple):
    """A version as policy sees it, with what is stored of what follows.

    Fields:
        n: integer id.
        facts: all that is fixed of it; lineage, and what no rule about fixed fields reads, is left out.
        own: when it ends by its own word.
        valid_until: as stored.
        mask: as stored.
    """

    n: int
    facts: Facts
    own: int | None
    valid_until: int | None
    mask: bytes | None

    def limit(self, policies: PolicySet, ages: Sequence[Rule]) -> int | None:
        """When it expires, by its own word or by those of these rules that can matter for it."""
        by_policy = valid_until(policies, self.facts, ages) if ages else None
        return min((limit for limit in (self.own, by_policy) if limit is not None), default=None)


def _versions(connection: Connection) -> Iterator[_Version]:
    names = Names(connection, NameCache())
    for row in connection.execute(_VERSIONS):
        new, recorded_us = _as_written(row, names)
        own = min((limit for limit in (new.expires_us, new.valid_to_us) if limit is not None), default=None)
        facts = Facts(unit=new_facts(new, recorded_us), now_us=recorded_us)
        yield _Version(row[0], facts, own, new.valid_until, row[-1])


def _as_written(row: tuple[Any, ...], names: Names) -> tuple[NewVersion, int]:
    """A row as the write that made it, and when that was; lineage and what no rule about age may read left out."""
    (
        _, identity, version, w, content, kind, tags, subject, key, creator, actor, owner, creator_id, ts_us, offset,
        recorded_us, confidence, pinned, metadata, expires_us, valid_to_us, until, integrity, _,
    ) = row  # fmt: skip
    new = NewVersion(
        id=identity, version=version, wall=names.wall(w), content=content, kind=kind, tags=tuple(orjson.loads(tags)),
        subject=subject, key=key, creator=names.principal(creator), actor=names.principal(actor),
        owner=names.principal(owner), creator_id=creator_id, ts_us=ts_us, ts_offset=offset, confidence=confidence,
        pinned=bool(pinned), metadata=orjson.loads(metadata), expires_us=expires_us, valid_to_us=valid_to_us,
        valid_until=until, context=None, context_body=None, recipe=None, reasserts=None, edges=(),
        integrity=min(max(integrity, 0), 2),
    )  # fmt: skip
    return new, recorded_us
