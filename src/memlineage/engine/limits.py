"""When each version expires, by its own word or by policy, against what is stored of that: streaming."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from memlineage.engine.facts import new_facts
from memlineage.policy import Facts, PolicySet, valid_until, without_age_rules
from memlineage.store.database import Connection
from memlineage.store.names import NameCache, Names
from memlineage.store.records import NewVersion

__all__ = ["wrong_limits"]

_ENDS: Final = "coalesce(min(expires_us, valid_to_us), expires_us, valid_to_us)"
_OWN_WORD: Final = (
    f"SELECT n, valid_until, {_ENDS} FROM version WHERE content IS NOT NULL AND valid_until IS NOT {_ENDS} ORDER BY n"
)
_COLUMNS: Final = (
    "v.n, u.id, v.version, v.w, v.content, v.kind, v.tags, v.subject, v.key, v.creator, v.actor, v.owner, v.creator_id,"
    " v.ts_us, v.ts_offset, v.recorded_us, v.confidence, v.pinned, v.metadata, v.expires_us, v.valid_to_us,"
    " v.valid_until, v.integrity"
)
_BY_POLICY: Final = (
    f"SELECT {_COLUMNS} FROM version v JOIN unit u ON u.u = v.u WHERE v.content IS NOT NULL ORDER BY v.n"
)


def wrong_limits(connection: Connection, policies: PolicySet) -> Iterator[tuple[int, int | None, int | None]]:
    """Versions with another limit than their own word and these policies give: n, as stored, as it must be."""
    if len(without_age_rules(policies).rules) == len(policies.rules):
        yield from connection.execute(_OWN_WORD)  # no rule bounds an age
        return
    names = Names(connection, NameCache())
    for row in connection.execute(_BY_POLICY):
        new, recorded_us = _as_written(row, names)
        by_policy = valid_until(policies, Facts(unit=new_facts(new, recorded_us), now_us=recorded_us))
        limits = (new.expires_us, new.valid_to_us, by_policy)
        wanted = min((limit for limit in limits if limit is not None), default=None)
        if wanted != new.valid_until:
            yield row[0], new.valid_until, wanted


def _as_written(row: tuple[Any, ...], names: Names) -> tuple[NewVersion, int]:
    """A row as the write that made it, and when that was; lineage and what no rule about age may read left out."""
    (
        _, identity, version, w, content, kind, tags, subject, key, creator, actor, owner, creator_id, ts_us, offset,
        recorded_us, confidence, pinned, metadata, expires_us, valid_to_us, until, integrity,
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
