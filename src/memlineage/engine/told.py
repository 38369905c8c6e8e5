"""A row of the outbox as the notice that a handler is given: which versions, and because of what.

Because of what is told by the events of the act, which are read again when the notice is delivered: what was erased
meanwhile is not told any more. A subscription of one owner is told of acts on his own memories and in the namespaces
that those it tells of stand in; of others it learns only that there were some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from memlineage.engine.notices import Notice, NoticeKind
from memlineage.model.state import CauseKind
from memlineage.model.time import from_us
from memlineage.store.database import Connection, fetch, ids
from memlineage.store.names import Names
from memlineage.store.outbox import Subscribed, Waits
from memlineage.store.records import EventKind
from memlineage.store.sql import QUERIES
from memlineage.store.units import read_refs

__all__ = ["notice_id", "notice_of"]

_ACTS: Final = 20
"""Events of an act that are told one by one."""
_ELSEWHERE: Final = "something changed in memories that are not this owner's"


def notice_id(one: Subscribed, row: Waits) -> str:
    """The same at every delivery; no two notices of a store have the same, numbers of rows being used again."""
    said = orjson.loads(row.said or "{}")
    return f"{one.name}/{row.seq}/{row.kind}" + (f"/{said['decision']}" if "decision" in said else "")


def notice_of(connection: Connection, names: Names, one: Subscribed, row: Waits, attempt: int) -> Notice:
    """What a handler is given."""
    numbers = orjson.loads(row.numbers)
    refs = read_refs(connection, numbers)
    said = orjson.loads(row.said or "{}")
    because = (_policy(said),) if row.kind == NoticeKind.POLICY else _acts(connection, names, one, row, said, numbers)
    return Notice(
        id=notice_id(one, row),
        subscription=one.name,
        kind=NoticeKind(row.kind),
        refs=tuple(refs[n] for n in numbers if n in refs),
        because=because,
        at=from_us(row.at_us),
        attempt=attempt,
    )


def _policy(said: Mapping[str, Any]) -> str:
    who = said.get("by") or "somebody"
    return f"{who} asked to {said['action']} it ({said['effect']}): {said['reason']}"


def _acts(
    connection: Connection, names: Names, one: Subscribed, row: Waits, said: Mapping[str, Any], numbers: list[int]
) -> tuple[str, ...]:
    rows = fetch(connection, QUERIES["events_between"], (said.get("first", row.seq), row.seq, _ACTS + 1))
    events = [(seq, EventKind(kind), orjson.loads(data)) for seq, kind, data in rows[:_ACTS]]
    about = sorted({data["n"] for _, _, data in events if isinstance(data.get("n"), int)})
    places = {n: (owner, ns) for n, owner, ns in fetch(connection, QUERIES["owners_and_places"], (ids(about),))}
    told = {ns for _, _, ns in fetch(connection, QUERIES["owners_and_places"], (ids(numbers[:_ACTS]),))}
    refs = read_refs(connection, about)

    def may_know(n: int) -> bool:
        owner, ns = places.get(n, (None, None))
        return one.owner is None or owner == one.owner or ns in told

    def words() -> Iterator[str]:
        for seq, kind, data in events:
            n = data.get("n")
            if isinstance(n, int) and n in refs and not may_know(n):
                yield _ELSEWHERE
            elif isinstance(n, int) and n in refs:
                yield from _act(connection, names, seq, kind, data, str(refs[n]))
            elif kind == EventKind.PRINCIPAL and data.get("level") is not None:
                yield f"{names.principal(data['p'])} was registered anew"
            elif kind == EventKind.POLICY:
                yield "another policy came into force"
        if len(rows) > _ACTS:
            yield "and more"

    return tuple(dict.fromkeys(words()))


def _act(
    connection: Connection, names: Names, seq: int, kind: EventKind, data: Mapping[str, Any], ref: str
) -> Iterator[str]:
    if kind == EventKind.WRITE:
        creator, what = connection.execute("SELECT creator, kind FROM version WHERE n = ?", (data["n"],)).get
        if what != "verification":  # the word that was given is told by what it supports
            yield f"{names.principal(creator)} wrote {ref}"
    elif kind == EventKind.CAUSE:
        reason = connection.execute(QUERIES["reason_of"], (data["n"], seq)).get
        by, what = names.principal(data["by"]), CauseKind(data["cause"]).label
        yield f"{by} held {what} against {ref}" + (f": {reason}" if reason else "")
    elif kind == EventKind.LIFT:
        yield f"{names.principal(data['by'])} restored {ref}"
    elif kind == EventKind.JUSTIFY:
        yield f"{names.principal(data['by'])} vouched for {ref}, or named what supports it"
    elif kind == EventKind.ENDORSE:
        yield f"{names.principal(data['by'])} endorsed {ref}"
