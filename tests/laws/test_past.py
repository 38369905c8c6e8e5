"""A view of the past is the memory as it was: every table, every status, every answer (semantics.md, section 5)."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from tests.ledger.filled import CREATORS, Acts, fill
from tests.ledger.filled import Clock as Running

import memlineage as ml
from memlineage.engine.core import Core
from memlineage.model.scope import Scope as Walls
from memlineage.model.state import CauseKind, Status
from memlineage.model.time import from_us
from memlineage.store.cutting import _Cutting
from memlineage.testing.sqlite_world import SqliteWorld
from memlineage.testing.strategies import SCOPES, operations
from memlineage.testing.worlds import AddCause, Operation, Play

NO_STATE = {"decision", "refresh", "task", "finding", "notice", "subscription", "failure", "awaiting", "checked"}
Dump = dict[str, list[tuple[Any, ...]]]


class Clock(Running):
    """One that can be stopped."""

    running = True

    def __call__(self) -> datetime:
        return super().__call__() if self.running else self.now


def dump(core: Core) -> Dump:
    """Every table that holds state, authoritative or derived. Which rules can matter is noted when somebody asks."""
    with core.database.reading() as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found: Dump = {}
        for name in names:
            if name in NO_STATE or name.startswith(("text", "vocabulary", "sqlite_")):
                continue
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})") if row[1] != "mask"]
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall()
            found[name] = sorted(rows, key=repr)
        return found


def told(core: Core) -> dict[str, Any]:
    """What every version would be shown as."""
    with core.read() as snapshot:
        numbers = [n for (n,) in snapshot.connection.execute("SELECT n FROM version")]
        current = {n for (n,) in snapshot.connection.execute("SELECT current FROM unit")}
        return {str(unit.ref): (unit, n in current) for n, unit in snapshot.units(numbers).items()}


def answers(scope: ml.Scope) -> Any:
    """What a scope is shown: everything by every status, what it finds, what would fall."""
    listed = scope.list(status=list(Status))
    found = scope.retrieve("destination Kyoto 612 USD c1 c2", limit=5)
    falls = [[(item.unit, item.path, item.would_be) for item in scope.impact(unit.ref).affected] for unit in listed[:6]]
    return listed, scope.list(), found.units, found.constraints, found.withheld, found.scores, falls


def views_differ(history: list[Operation]) -> list[str]:
    """The instants at which a view is not what the memory was."""
    world = SqliteWorld()
    play = Play(world)
    was: dict[int, tuple[Dump, Any, Any]] = {}

    def look(now: int) -> None:
        world.now = now
        core = world.memory._core
        shown = [answers(_scope(world.memory, walls)) for walls in SCOPES]
        was[now] = dump(core), told(core), shown

    for operation in history:
        if isinstance(operation, AddCause) and operation.kind is CauseKind.ERASED:
            continue
        for now in range(play.now + 1, play.now + operation.pause):
            look(now)  # time alone goes on
        world.now = play.now + operation.pause
        play.do(operation)
        look(play.now)
    world.now = play.now
    odd = []
    for now, (tables, units, shown) in was.items():
        view = world.memory.as_of(from_us(now))
        core = view._parts().core
        then = [answers(_scope(view, walls)) for walls in SCOPES]
        seen = told(core)
        odd += [f"{now}: {name}" for name, rows in dump(core).items() if rows != tables[name]]
        odd += [f"{now}: {ref}" for ref in units.keys() | seen.keys() if units.get(ref) != seen.get(ref)]
        odd += [f"{now}: {walls}" for walls, one, other in zip(SCOPES, shown, then, strict=True) if one != other]
    world.memory.close()
    return odd


def _scope(memory: Any, walls: Walls) -> ml.Scope:
    return memory.scope(tenant=walls.tenant, user=walls.user, agent=walls.agent, session=walls.session)  # type: ignore[no-any-return]


@settings(max_examples=25, deadline=None)
@given(history=operations(most=12))
def test_a_view_is_the_memory_as_it_was(history: list[Operation]) -> None:
    assert views_differ(history) == []


SHORT = {
    "name": "short",
    "target": {"creators": ["tool:feed"]},
    "condition": [{"type": "time_since", "memory_field": "lineage.timestamp"}, ">", 9],
    "action": "deactivate_and_trigger_refresh",
}
RULES = (SHORT, {"name": "no mail", "on": "read", "target": {"creators": ["external:*"]}, "action": "deny"})
QUORUM = {"name": "two", "quorum": 2}


def views_differ_under_policies(seed: int, quorum: bool, turns: int = 48) -> list[str]:
    """The same for contexts, keys, checkpoints, levels, time limits and a quorum, which single acts leave out."""
    clock = Clock()
    memory = ml.Memory.open(embedder="lexical", clock=clock, policies=[])
    fill(memory, clock)
    acts, was, odd = Acts(memory, clock, seed), {}, []
    for turn in range(turns):
        if turn % 8 == 3:
            granted = {CREATORS[1 + turn % 5]: "TRUSTED"}
            rules = [RULES[turn // 8 % 2], *([QUORUM] if quorum and turn // 8 % 3 < 2 else [])]
            memory.reload([{"memlineage": 1, "layer": "global", "principals": granted, "rules": rules}])
        acts.act()
        clock.running = False
        was[clock.now] = dump(memory._core), told(memory._core), memory.policies.revision
        clock.running = True
    for place, (now, (tables, units, revision)) in enumerate(was.items()):
        view = memory.as_of(now)
        core, seen = view._parts().core, told(view._parts().core)
        odd += [f"{now}: policy"] if view.policies.revision != revision else []
        odd += [f"{now}: {name}" for name, rows in dump(core).items() if rows != tables[name]]
        odd += [f"{now}: {ref}" for ref in units.keys() | seen.keys() if units.get(ref) != seen.get(ref)]
        if place % 10 == 9:
            report = view.verify()
            odd += [] if report else [repr(report)]
    memory.close()
    return odd


@pytest.mark.parametrize(("seed", "quorum"), [(1, False), (2, True), (3, True), (4, True)])
def test_a_view_is_the_memory_as_it_was_under_changing_policy(seed: int, quorum: bool) -> None:
    assert views_differ_under_policies(seed, quorum) == []


@pytest.mark.parametrize(
    "part",
    ["_edges", "_causes", "_waivers", "_endorsements", "_alike", "_principals", "_generations", "_places", "_ledger"],
)
def test_the_law_misses_nothing_that_is_not_cut(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Cutting, part, lambda _: None)
    odd = []
    with suppress(ml.MemLineageError):  # a copy that is cut by halves need not even be readable
        odd = views_differ_under_policies(3, True, 90)
        assert odd, part
