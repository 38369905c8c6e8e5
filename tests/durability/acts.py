"""Every verb that writes, as a row of the fault table (see `memlineage/testing/fault_table.py`)."""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import apsw

import memlineage as ml
from memlineage.testing.fault_table import Case

_UNDERIVED = "DELETE FROM state; DELETE FROM lost; UPDATE version SET integrity = 0, form = zeroblob(16)"
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
OLD = Path(__file__).parents[1] / "store" / "format_1.db.xz"
POLICY = {
    "memlineage": 1,
    "layer": "global",
    "rules": [
        {"name": "paying", "sensitive_action": {"tool": "pay", "arguments": ["to"], "approval": "always"}},
        {"name": "fresh", "freshness": {"tags": ["price"], "max_age": "1h", "refresh": True}},
    ],
}
OTHER_POLICY = {
    "memlineage": 1,
    "layer": "global",
    "rules": [{"name": "brief", "freshness": {"tags": ["price"], "max_age": "1m"}}],
    "principals": {"tool:feed": "UNTRUSTED"},
}
Act = Callable[[ml.Memory], object]


def open_memory(path: Path, vfs: str | None, *, after: timedelta = timedelta(minutes=10), **options: Any) -> ml.Memory:
    memory = ml.Memory.open(
        path, vfs=vfs, clock=lambda: START + after, **{"embedder": "lexical", "policies": [POLICY], **options}
    )
    for name in ("flight_api", "pay"):
        memory.register_tool(
            name, lambda **_: "done", refresh=lambda _: "NH203 costs 700 USD", compensate=lambda _: "undone"
        )
    return memory


def trip(memory: ml.Memory) -> ml.Scope:
    return memory.scope(user="alice", agent="planner", session="s1")


def unit(memory: ml.Memory, content: str) -> str:
    """The id of what said so first."""
    with memory._core.database.reading() as connection:
        sql = "SELECT u.id FROM version v JOIN unit u ON u.u = v.u WHERE v.content = ? ORDER BY v.n"
        return str(connection.execute(sql, (content,)).get)


def fill(path: Path, *, signed: bool) -> Path:
    """A file with something for every verb."""
    with open_memory(path, None, after=timedelta(0)) as memory:
        scope = trip(memory)
        city = scope.store("Destination is Kyoto", subject="trip", key="destination")
        price = scope.store("NH203 costs 612 USD", creator="tool:flight_api", tags=["price"], depends_on=[city])
        plan = scope.store("Take NH203", creator="reasoning", depends_on=[price])
        scope.store("Pack for three days", creator="reasoning", depends_on=[plan])
        wrong = scope.store("The airport is closed", creator="tool:feed")
        scope.store("Closed because of snow", creator="reasoning", depends_on=[wrong])
        scope.invalidate(wrong, reason="feed was stale")
        scope.store("Quotes agree on 612 USD", creator="user:alice")
        scope.store("Open until noon", expires_at=START + timedelta(hours=3))
        scope.store("Destination is Nara", creator="tool:feed", subject="trip", key="destination")
        scope.store_many([f"note {n}" for n in range(5)])
        if signed:
            memory.checkpoint()
    return path


def fill_outbox(path: Path) -> Path:
    """The same with an action whose grounds have fallen, and with an owner who has yet to be told."""
    fill(path, signed=False)
    with open_memory(path, None, after=timedelta(minutes=1), background=False) as memory:
        scope = trip(memory)
        acted(memory)
        memory.subscribe(owner="user:alice")
        scope.invalidate(unit(memory, "Destination is Kyoto"))
        scope.restore(unit(memory, "Destination is Kyoto"))
        scope.retract(unit(memory, "Destination is Kyoto"))
    return path


def times_said(memory: ml.Memory, content: str) -> int:
    with memory._core.database.reading() as connection:
        return int(connection.execute("SELECT count(*) FROM version WHERE content = ?", (content,)).get)


def said_once(*contents: str) -> Callable[[ml.Memory], bool]:
    return lambda memory: all(times_said(memory, content) == 1 for content in contents)


def refreshed_once(memory: ml.Memory) -> bool:
    """Not at all while whoever was to do it, and died, has the lease."""
    return times_said(memory, "NH203 costs 700 USD") <= 1


def refused(memory: ml.Memory) -> None:
    """An agent may not replace what the user said; the refusal is written down."""
    try:
        trip(memory).acting_as("agent:planner").update(unit(memory, "Destination is Kyoto"), "Destination is Rome")
    except ml.PolicyViolationError:
        return
    raise AssertionError("it was not refused")


def withheld_and_closed(memory: ml.Memory) -> None:
    trip(memory).retrieve("why is the airport closed?")
    memory.close()


def damaged(source: Path, name: str, sql: str) -> Path:
    """A copy in which something derived is wrong."""
    path = source.with_name(name)
    shutil.copy(source, path)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(sql)
    return path


def rebuilt(memory: ml.Memory) -> None:
    memory.rebuild()


def approved(memory: ml.Memory) -> None:
    scope = trip(memory)
    city = unit(memory, "Destination is Kyoto")
    asked = scope.authorize("pay", {"to": "Kyoto"}, justification=[city])
    scope.approve(asked, by="user:alice")


def acted(memory: ml.Memory) -> None:
    trip(memory).act("flight_api", {"to": "Kyoto"}, justification=[unit(memory, "Destination is Kyoto")])


def listening(path: Path, vfs: str | None) -> ml.Memory:
    memory = open_memory(path, vfs, background=False)
    memory.subscribe(lambda _: None, name="user:alice")
    return memory


def compensated(memory: ml.Memory) -> None:
    """What was begun before is not begun again."""
    with suppress(ml.InvalidInputError):
        trip(memory).compensate(unit(memory, "flight_api(to=Kyoto) -> done"))


def compensated_once(memory: ml.Memory) -> bool:
    with memory._core.database.reading() as connection:
        sql = "SELECT count(DISTINCT u) FROM version WHERE content LIKE 'compensate:%'"
        return int(connection.execute(sql).get) == 1


WANTED = ("tea", "quiet", "a garden", "a view")


def loaded(memory: ml.Memory) -> None:
    """In two batches."""
    lines = [{"role": "user", "content": f"I want {what}"} for what in WANTED]
    with mock.patch("memlineage.engine.importing._BATCH", 2):
        trip(memory).load(lines, name="chat")


def written_back(path: Path, vfs: str | None) -> ml.Memory:
    """The log is copied into the database after every commit."""
    memory = open_memory(path, vfs)
    memory._core.database._writer.wal_autocheckpoint(1)
    return memory


def on(content: str, act: Callable[[ml.Scope, str], object]) -> Act:
    return lambda memory: act(trip(memory), unit(memory, content))


KYOTO, NH203 = "Destination is Kyoto", "NH203 costs 612 USD"
STORE: Act = lambda memory: trip(memory).store(  # noqa: E731
    "Plan B", creator="reasoning", depends_on=[unit(memory, KYOTO)], subject="trip", key="plan", context="why",
    idempotency_key="k", expires_at=START + timedelta(days=1),
)  # fmt: skip
ACTS: dict[str, Act] = {
    "store": STORE,
    "store_many": lambda m: trip(m).store_many(
        [{"content": f"idea {n}", "idempotency_key": f"i{n}"} for n in range(10)]
    ),
    "update": on(KYOTO, lambda s, u: s.update(u, "Destination is Osaka", creator="user:alice", idempotency_key="k")),
    "invalidate": on(KYOTO, lambda s, u: s.invalidate(u, reason="wrong")),
    "retract": on(NH203, lambda s, u: s.retract(u, reason="wrong")),
    "delete_all": lambda m: trip(m).delete_all(),
    "restore": on("The airport is closed", lambda s, u: s.restore(u)),
    "reverify": on("Closed because of snow", lambda s, u: s.reverify(u, by="user:alice")),
    "corroborate": lambda m: trip(m).corroborate(
        unit(m, NH203), depends_on=[unit(m, "Quotes agree on 612 USD")], creator="user:alice"
    ),
    "endorse": on(NH203, lambda s, u: s.endorse(u, reason="checked")),
    "act": acted,
    "approve": approved,
    "register": lambda m: m.register("tool:flight_api", level="UNTRUSTED"),
    "distrust": lambda m: m.distrust("tool:flight_api", reason="hacked"),
    "a refusal, written down": refused,
    "subscribe": lambda m: m.subscribe(owner="user:bob"),
    "rotate_key": lambda m: m.rotate_key(),
    "load": loaded,
    "reload": lambda m: m.reload([POLICY, OTHER_POLICY]),
}
ONCE = {
    "store": said_once("Plan B"),
    "store_many": said_once(*(f"idea {n}" for n in range(10))),
    "update": said_once("Destination is Osaka"),
    "load": said_once(*(f"I want {what}" for what in WANTED)),
}


def cases(folder: Path) -> list[Case]:
    """All rows, and the files that they begin with."""
    new = fill(folder / "new.db", signed=False)
    signed = fill(folder / "signed.db", signed=True)
    old = folder / "old.db"
    old.write_bytes(lzma.decompress(OLD.read_bytes()))
    rows = [Case(name=name, open=open_memory, act=act, source=signed, once=ONCE.get(name, _always))
            for name, act in ACTS.items()]  # fmt: skip
    told = fill_outbox(folder / "told.db")
    late = partial(open_memory, after=timedelta(hours=5))
    return [
        *rows,
        Case(name="first checkpoint", open=open_memory, act=lambda m: m.checkpoint(), source=new),
        Case(name="checkpoint", open=written, act=lambda m: m.checkpoint(), source=signed),
        Case(name="store, after time has ended something", open=late, act=STORE, source=new, once=ONCE["store"]),
        Case(name="get, with a refresh", open=partial(open_memory, after=timedelta(hours=2)), source=new,
             act=on(NH203, lambda s, u: s.get(u)), once=refreshed_once),
        Case(name="store, with the log written back", open=written_back, act=STORE, source=new, once=ONCE["store"]),
        Case(name="invalidate, with an owner told", open=partial(open_memory, background=False), source=told,
             act=ACTS["invalidate"]),
        Case(name="deliver", open=listening, act=lambda m: m.deliver(), source=told),
        Case(name="compensate", open=partial(open_memory, background=False), act=compensated, source=told,
             once=compensated_once),
        Case(name="rebuild", open=open_memory, act=rebuilt, source=damaged(signed, "underived.db", _UNDERIVED),
             mends=True),
        Case(name="reembed", open=open_memory, act=lambda m: m.reembed(), mends=True,
             source=damaged(signed, "alike.db", "UPDATE version SET vector = (SELECT vector FROM version)")),
        Case(name="close", open=written, act=lambda m: m.close(), source=new, closes=True),
        Case(name="close, with decisions waiting", open=open_memory, act=withheld_and_closed, source=new, closes=True),
        Case(name="first opening", open=open_memory),
        Case(name="opening with a new policy", open=partial(open_memory, policies=[POLICY, OTHER_POLICY]), source=new),
        Case(name="opening a file of format 1", open=brought_up, source=old),
    ]  # fmt: skip


def _always(_: ml.Memory) -> bool:
    return True


def written(path: Path, vfs: str | None) -> ml.Memory:
    memory = open_memory(path, vfs)
    STORE(memory)
    return memory


def brought_up(path: Path, vfs: str | None) -> ml.Memory:
    return ml.Memory.open(path, vfs=vfs)
