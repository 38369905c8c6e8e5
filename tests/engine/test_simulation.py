"""What another policy would change in a store: as simulation says, so it is once the store is opened under it."""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support import START, Clock, open_memory

import memlineage as ml
from memlineage.engine.acting import Acting
from memlineage.engine.opening import kept_policy, policy_of
from memlineage.engine.simulation import READS, Simulation, one_by_one, simulate
from memlineage.engine.worlds import changes_what_is_stored
from memlineage.model.scope import Scope
from memlineage.model.time import to_us
from memlineage.policy import Budget, Decision, Document, Effect, Obligation, ObligationKind, PolicySet, fall_back
from memlineage.policy.trying import Decided, change
from memlineage.recall.embedders import by_name
from memlineage.store.database import Database

NOTHING: dict[str, Any] = {"description": "x", "rules": []}
SHORT = {"rules": [{"name": "short", "freshness": {"tags": ["price"], "max_age": "1h", "refresh": True}}]}
LONG = {"rules": [{"name": "long", "freshness": {"tags": ["price"], "max_age": "1d"}}]}
NO_WEB = {"rules": [{"name": "no_web", "source": {"deny": ["tool:web"]}}]}
FLAG_WEB = {"rules": [{"name": "web", "on": "read", "action": "flag", "target": {"creators": "tool:web"}}]}


def seen(path: Path, new: Any, *, now: Any, old: Any = None, limit: int = 1000, **options: Any) -> Simulation:
    """What simulation says of a closed store; `old` left out, it is compared with what it is under."""
    database = Database(str(path))
    try:
        before = kept_policy(database) if old is None else policy_of(old, defaults=True)
        assert before is not None
        after = new if isinstance(new, PolicySet) else policy_of(new, defaults=True)
        return simulate(database, by_name("lexical"), before, after, now_us=to_us(now), limit=limit, **options)
    finally:
        database.close()


def told(found: Simulation) -> set[tuple[str, str, str]]:
    return {(item.ref, item.read, item.change.what.value) for item in found.changes}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """A store with a price of the web, a plan on it, and a fact; closed. Its path, the clock, and units by name."""
    clock = Clock()
    path = tmp_path / "trip.db"
    with open_memory(path, policies=[LONG], clock=clock) as memory:
        trip = memory.scope(user="alice")
        price = trip.store("NH203 costs 612 USD", creator="tool:web", tags=["price"])
        plan = trip.store("Fly NH203", creator="reasoning", depends_on=[price])
        city = trip.store("Destination is Kyoto")
    return path, clock, {"price": str(price.ref), "plan": str(plan.ref), "city": str(city.ref)}


def test_the_policy_that_is_in_force_changes_nothing(store: Any) -> None:
    path, clock, _ = store
    found = seen(path, [LONG], now=clock.now)
    assert (found.units, found.counts, found.changes, found.copied) == (3, {"reliance": {}, "critical": {}}, (), False)
    assert (found.logged.counts, found.logged.untold) == ({}, 0)


def test_what_would_be_refused_is_named_with_its_rule(store: Any) -> None:
    path, clock, units = store
    found = seen(path, [LONG, NO_WEB], now=clock.now)
    assert found.counts == {"reliance": {"tightened": 1}, "critical": {"tightened": 1}}
    first = found.changes[0]
    assert (first.ref, first.read, first.change.before, first.change.after) == (
        units["price"],
        "reliance",
        "allow",
        "deny",
    )
    assert (first.change.began, first.change.ended, first.change.determining) == (
        ("no_web:deny",),
        (),
        ("no_web:deny",),
    )


def test_what_expires_under_another_limit_takes_what_rests_on_it_along(store: Any) -> None:
    path, clock, units = store
    found = seen(path, [SHORT], now=clock.advance(hours=2))
    assert found.copied
    assert told(found) == {
        (units["price"], "reliance", "tightened"),
        (units["price"], "critical", "tightened"),
        (units["plan"], "reliance", "flags"),
        (units["plan"], "critical", "tightened"),
    }


def test_what_a_longer_limit_gives_back_comes_first(store: Any) -> None:
    path, clock, units = store
    clock.advance(days=2)
    with open_memory(path, policies=[LONG], clock=clock) as memory:
        memory.scope(user="alice").store("a write lets time pass")
    found = seen(path, [FLAG_WEB], now=clock.now)
    assert [item.change.what.value for item in found.changes] == ["loosened", "loosened", "loosened", "flags"]
    assert found.changes[0].ref == units["price"]
    assert found.changes[0].change.ended == ("consistency:expired", "long")


def test_a_level_that_is_registered_moves_what_competes(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "trip.db"
    with open_memory(path, policies=[NOTHING], clock=clock) as memory:
        trip = memory.scope(user="alice")
        about = {"subject": "trip", "key": "hotel"}
        tool = trip.store("Ryokan Aoi", creator="tool:hotels", **about)
        clock.advance(hours=1)
        other = trip.store("Grand Hotel", creator="tool:others", **about)
    found = seen(path, [{"description": "x", "principals": {"tool:hotels": "TRUSTED"}}], now=clock.now)
    assert (str(tool.ref), "reliance", "loosened") in told(found)
    assert (str(other.ref), "reliance", "tightened") in told(found)


def test_the_first_few_are_told_and_all_are_counted(store: Any) -> None:
    path, clock, _ = store
    closed = {"rules": [{"name": "closed", "on": "read", "action": "deny"}]}
    found = seen(path, [LONG, closed], now=clock.now, limit=2)
    assert (len(found.changes), found.counts["reliance"]) == (2, {"tightened": 3})


def test_an_old_policy_that_is_named_is_compared_instead(store: Any) -> None:
    path, clock, units = store
    found = seen(path, [LONG], old=[LONG, NO_WEB], now=clock.now)
    assert told(found) == {(units["price"], "reliance", "loosened"), (units["price"], "critical", "loosened")}
    assert (found.changes[0].change.ended, found.changes[0].change.reasons) == (
        ("no_web:deny",), ("no_web:deny: this source is refused",),
    )  # fmt: skip
    expired = seen(path, [LONG], old=[SHORT], now=clock.advance(hours=2))
    assert expired.copied
    assert (units["price"], "reliance", "loosened") in told(expired)


def test_each_unit_is_read_by_its_own_user(tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    mine = {"rules": [{"name": "not_bob", "on": "read", "action": "deny", "target": {"principals": "user:bob"}},
                      {"name": "own", "on": "read", "action": "flag", "target": {"users": ["alice"]},
                       "condition": [{"context": "agent"}, "==", "planner"]}]}  # fmt: skip
    with open_memory(path, policies=[NOTHING], clock=Clock()) as memory:
        bobs = memory.scope(user="bob").store("mine")
        hers = memory.scope(user="alice", agent="planner", session="s").store("hers", visibility="session")
        nobodys = memory.scope(agent="planner").store("of no user, so that the rule may mean it")
    found = seen(path, [mine], now=START)
    assert found.counts == {"reliance": {"tightened": 1, "flags": 2}, "critical": {"tightened": 1, "flags": 2}}
    assert [item.ref for item in found.changes[:2]] == [str(bobs.ref)] * 2
    assert {item.ref for item in found.changes[2:]} == {str(hers.ref), str(nobodys.ref)}


def test_what_is_erased_or_an_old_version_is_not_looked_at(tmp_path: Path) -> None:
    path, clock = tmp_path / "old.db", Clock()
    with open_memory(path, policies=[NOTHING], clock=clock) as memory:
        trip = memory.scope(user="alice")
        unit = trip.store("Kyoto", creator="tool:web")
        trip.update(unit, "Osaka", creator="user:alice")
    assert seen(path, [NO_WEB], now=clock.now).counts == {"reliance": {}, "critical": {}}


# Nothing is written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("new", [NO_WEB, SHORT])
def test_the_store_is_not_written_and_nothing_is_left_behind(
    store: Any, new: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    path, clock, _ = store
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    found = seen(path, [new], now=clock.advance(hours=2))
    assert found.changes
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == before
    assert list(scratch.iterdir()) == []


def test_a_copy_that_cannot_be_made_is_said_and_cured(store: Any, monkeypatch: Any, tmp_path: Path) -> None:
    path, clock, _ = store
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(ml.StoreError, match="TMPDIR"):
        seen(path, [SHORT], now=clock.now)


@pytest.mark.parametrize(
    ("new", "moves"),
    [
        ([LONG], False),
        ([LONG, NO_WEB], False),
        ([SHORT], True),
        ([], True),
        ([LONG, {"description": "x", "principals": {"tool:web": "TRUSTED"}}], True),
        ([LONG, {"description": "x", "principals": {"tool:nobody": "TRUSTED"}}], False),
        ([LONG, {"rules": [{"name": "q", "quorum": 2}]}], True),
    ],
)
def test_a_copy_is_made_only_where_something_stored_would_move(store: Any, new: Any, moves: bool) -> None:
    path, _, _ = store
    database = Database(str(path))
    with database.reading() as connection:
        assert changes_what_is_stored(connection, policy_of(new, defaults=True)) is moves
    database.close()


def test_a_level_that_ends_moves_what_is_stored(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "trip.db"
    granted = {"description": "x", "principals": {"tool:hotels": "TRUSTED"}}
    with open_memory(path, policies=[granted], clock=clock) as memory:
        hotel = memory.scope(user="alice").store("Ryokan Aoi", creator="tool:hotels")
    trusted = {"rules": [{"name": "trusted", "on": "read", "action": "flag",
                          "condition": [{"field": "integrity"}, "<", "TRUSTED"]}]}  # fmt: skip
    assert told(seen(path, [trusted, granted], now=clock.now)) == set()
    assert (str(hotel.ref), "reliance", "flags") in told(seen(path, [trusted], now=clock.now))


def test_more_units_than_a_batch_has_are_all_looked_at(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, clock, _ = store
    monkeypatch.setattr("memlineage.engine.simulation._BATCH", 2)
    assert seen(path, [LONG], now=clock.now).units == 3


def test_another_judge_takes_the_place_of_the_one_that_asks_about_each(store: Any) -> None:
    path, clock, _ = store
    asked: list[tuple[str, int, bool]] = []

    def judge(world: Any, numbers: Any, critical: bool) -> Any:
        asked.append((world.policies.revision[:6], len(numbers), critical))
        return one_by_one(world, numbers, critical)

    new = policy_of([NO_WEB], defaults=True)
    found = seen(path, new, now=clock.now, judge=judge)
    old = found.old[:6]
    assert sorted(asked) == sorted(
        (name, 3, critical) for name in (old, new.revision[:6]) for critical in (False, True)
    )


# The log -------------------------------------------------------------------------------------------------------------


def test_logged_decisions_are_judged_anew(tmp_path: Path) -> None:
    path, clock = tmp_path / "log.db", Clock()
    strict = {"rules": [{"name": "no_gossip", "on": "write", "action": "deny", "target": {"tags": ["gossip"]}}]}
    with open_memory(path, policies=[strict], clock=clock) as memory:
        trip = memory.scope(user="alice")
        city = trip.store("Destination is Kyoto")
        with pytest.raises(ml.PolicyViolationError):
            trip.store("they say", tags=["gossip"])
        trip.update(city, "Destination is Osaka")
        with pytest.raises(ml.PolicyViolationError):
            trip.acting_as("agent:planner").invalidate(city)
    lax = {"rules": [{"name": "no_change", "on": "update", "action": "deny"}]}
    logged = seen(path, [lax], now=clock.now).logged
    assert (logged.judged, logged.untold) == (4, 0)
    assert logged.counts == {"loosened": 1, "tightened": 1}
    assert [(item.action, item.change.before, item.change.after) for item in logged.changes] == [
        ("write", "deny", "allow"),
        ("update", "allow", "deny"),
    ]


def test_of_an_update_both_versions_are_known(tmp_path: Path) -> None:
    path, clock = tmp_path / "log.db", Clock()
    with open_memory(path, policies=[NOTHING], clock=clock) as memory:
        trip = memory.scope(user="alice")
        unit = trip.store("NH203 costs 612 USD", creator="tool:web")
        trip.update(unit, "NH203 costs 600 USD")
    no = {"name": "no", "on": "update", "action": "deny"}
    new = {"rules": [{**no, "condition": [{"field": "creator"}, "==", "user:alice"]}]}
    old = {"rules": [{**no, "condition": [{"old": "creator"}, "==", "tool:web"]}]}
    neither = {"rules": [{**no, "condition": [{"new": "creator"}, "==", "tool:web"]}]}
    counts = [seen(path, [document], now=clock.now).logged.counts for document in (new, old, neither)]
    assert counts == [{"tightened": 1}, {"tightened": 1}, {}]


def test_a_log_of_several_batches_is_judged_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, clock = tmp_path / "log.db", Clock()
    with open_memory(path, policies=[NOTHING], clock=clock) as memory:
        for number in range(5):
            memory.scope(user="alice").store(f"Statement {number}")
        memory._core.write_log()
        with memory._core.database.writing() as connection:
            twice = "id, at_us, action, effect, ref, body, asked"
            connection.execute(f"INSERT INTO decision ({twice}) SELECT {twice} FROM decision ORDER BY d")
    monkeypatch.setattr("memlineage.engine.simulation._BATCH", 2)
    logged = seen(path, [NO_WEB], now=clock.now).logged
    assert (logged.judged, logged.untold) == (5, 0)


def test_of_what_is_not_kept_it_cannot_be_told(tmp_path: Path) -> None:
    path, clock = tmp_path / "log.db", Clock()
    with open_memory(path, policies=[NOTHING], clock=clock) as memory:
        trip = memory.scope(user="alice")
        trip.store("Destination is Kyoto")
        trip.store("Hotel is Ryokan Aoi")
        memory._core.write_log()
        with memory._core.database.writing() as connection:
            connection.execute("UPDATE decision SET asked = NULL WHERE d = 1")
            connection.execute("UPDATE decision SET asked = ? WHERE d = 2", (b"[]",))
    logged = seen(path, [NO_WEB], now=clock.now).logged
    assert (logged.judged, logged.untold) == (0, 2)


def test_a_call_whose_arguments_were_not_kept_is_told_only_where_no_rule_reads_them(tmp_path: Path) -> None:
    path, clock = tmp_path / "log.db", Clock()
    with open_memory(path, policies=[NOTHING], clock=clock) as memory:
        trip = memory.scope(user="alice")
        unit = trip.store("Pay 5 to Bob")
        trip.authorize("pay", {"amount": 5}, justification=[unit])
        memory._core.write_log()
    on = {"on": "act", "action": "deny", "name": "no"}
    blind = {"rules": [{**on, "target": {"tools": ["pay"]}}]}
    reads = {"rules": [{**on, "condition": [{"context": "arguments.amount"}, ">", 3]}]}
    assert seen(path, [blind], now=clock.now).logged.counts == {"tightened": 1}
    logged = seen(path, [reads], now=clock.now).logged
    assert (logged.counts, logged.untold) == ({}, 1)


def test_what_walls_refuse_no_policy_changes(tmp_path: Path) -> None:
    path, clock = tmp_path / "log.db", Clock()
    with open_memory(path, policies=[NOTHING], clock=clock) as memory:
        own = memory.scope(agent="planner").store("an agent's own")
        with pytest.raises((ml.PolicyViolationError, ml.UnknownUnitError)):
            memory.scope(user="alice", agent="planner").invalidate(own)
        memory._core.write_log()
    open_all = {"rules": [{"name": "all", "on": "all", "action": "flag"}]}
    logged = seen(path, PolicySet.of(Document.from_dict(open_all)), now=clock.now).logged
    assert "loosened" not in logged.counts


# The law -------------------------------------------------------------------------------------------------------------

TAGS = st.lists(st.sampled_from(["price", "place"]), max_size=2, unique=True)
CREATORS = st.sampled_from(["user:alice", "tool:web", "tool:api", "external:page", "reasoning", "agent:planner"])
WRITE = st.fixed_dictionaries(
    {"do": st.just("store"), "creator": CREATORS, "tags": TAGS, "who": st.sampled_from(["alice", "bob", "planner"])},
    optional={
        "kind": st.sampled_from(["fact", "constraint"]),
        "confidence": st.sampled_from([0.1, 0.7]),
        "expires": st.sampled_from([1, 5, 40]),
        "key": st.just("where"),
        "on": st.lists(st.integers(0, 5), min_size=1, max_size=2, unique=True),
    },
)
ACT = st.fixed_dictionaries(
    {
        "do": st.sampled_from(
            ["invalidate", "retract", "update", "reverify", "corroborate", "endorse", "wait", "wait"]
        ),
        "of": st.integers(0, 8),
        "other": st.integers(0, 8),
        "hours": st.sampled_from([1, 3, 30]),
    }
)
HISTORY = st.lists(WRITE | WRITE | ACT, min_size=2, max_size=14)
RULE = st.one_of(
    st.builds(
        lambda age, tags, refresh: {
            "freshness": {"max_age": age, "refresh": refresh} | ({"tags": tags} if tags else {})
        },
        st.sampled_from(["30m", "2h", "1d"]), TAGS, st.booleans(),
    ),
    st.sampled_from(
        [
            {"source": {"deny": ["tool:web"]}},
            {"source": {"allow": ["user:*", "tool:api", "reasoning"], "min_confidence": 0.5}},
            {"dependency_consistency": {"pending": "withhold"}},
            {"quorum": 2},
            {"on": "read", "action": "flag", "condition": [{"lineage": "depth"}, ">=", 1]},
            {"on": "read", "action": "withhold", "condition": [{"field": "integrity"}, "<", "TRUSTED"]},
            {"on": "read", "action": "withhold", "severity": "soft", "condition": [{"field": "pinned"}, "==", False]},
            {"on": "read", "action": "deny", "severity": "soft", "overridable": True,
             "target": {"kinds": "constraint"}},
            {"on": "read", "action": "allow", "priority": 5, "target": {"creators": "user:*"}},
            {"on": "read", "action": "notify_owner", "target": {"tags": ["place"]}},
            {"on": "read", "action": "flag", "weight": 2, "condition": [{"time_since": "valid_from"}, ">", "2h"]},
            {"on": "read", "action": "deny", "until": "2026-03-02T00:00:00Z", "because": "a trial"},
            {"on": "read", "action": "flag", "mode": "shadow"},
            {"on": "read", "action": "flag", "condition": [{"context": "critical"}, "==", True]},
        ]
    ),
)  # fmt: skip
LEVELS = st.dictionaries(
    st.sampled_from(["tool:web", "tool:api", "external:page"]), st.sampled_from(["UNTRUSTED", "INTERNAL", "TRUSTED"])
)
LAYERS = st.sampled_from(["global", "global", "domain:d"])


@st.composite
def policies(draw: Any) -> list[dict[str, Any]]:
    """Up to two documents."""
    made = []
    for number in range(draw(st.integers(0, 2))):
        layer = draw(LAYERS)
        rules = [rule for rule in draw(st.lists(RULE, max_size=3)) if layer == "global" or "quorum" not in rule]
        document = {"description": "x", "layer": layer}
        document["rules"] = [{"name": f"r{number}{place}", **rule} for place, rule in enumerate(rules)]
        made.append({**document, "principals": draw(LEVELS)} if layer == "global" else document)
    return made


def lawful(documents: list[dict[str, Any]]) -> PolicySet | None:
    """The set; None where the documents contradict each other."""
    try:
        return policy_of(documents, defaults=True)
    except ml.PolicyDocumentError:
        return None


SETS = policies().map(lawful).filter(lambda made: made is not None)


def live_through(path: Path, history: list[dict[str, Any]], policy: PolicySet, clock: Clock) -> None:
    """Write a store by a history; what is refused is left out."""
    with open_memory(path, policies=policy, clock=clock) as memory:
        scopes = {
            "alice": memory.scope(user="alice"),
            "bob": memory.scope(user="bob", agent="planner"),
            "planner": memory.scope(agent="planner"),
        }
        units: list[tuple[Any, ml.Unit]] = []
        for number, step in enumerate(history):
            try:
                _step(scopes, units, step, number, clock)
            except ml.MemLineageError:
                continue


def _step(scopes: Any, units: list[Any], step: dict[str, Any], number: int, clock: Clock) -> None:
    if step["do"] == "wait":
        clock.advance(hours=step["hours"])
        return
    if step["do"] == "store":
        scope = scopes[step["who"]]
        own = [unit for where, unit in units if where is scope]
        options = {name: step[name] for name in ("tags", "kind", "confidence") if name in step}
        if "key" in step:
            options |= {"subject": "trip", "key": "where"}
        if "expires" in step:
            options["expires_at"] = clock.now + timedelta(hours=step["expires"])
        options["depends_on"] = [own[place] for place in step.get("on", ()) if place < len(own)] or None
        units.append((scope, scope.store(f"Statement {number}", creator=step["creator"], **options)))
        return
    if not units:
        return
    scope, unit = units[step["of"] % len(units)]
    _, other = units[step["other"] % len(units)]
    calls = {
        "update": lambda: scope.update(unit, f"Statement {number}"),
        "corroborate": lambda: scope.corroborate(unit, depends_on=[other]),
        "endorse": lambda: scope.endorse(unit, reason="seen"),
    }
    calls.get(step["do"], lambda: getattr(scope, step["do"])(unit))()


def really(path: Path, policy: PolicySet, clock: Clock) -> dict[tuple[str, str], Decided]:
    """What each unit's own user is answered once the store is opened under a policy; retrieval says the same."""
    with open_memory(path, policies=policy, clock=clock) as memory:
        core, enforcement = memory._core, memory._parts.enforcement
        found: dict[tuple[str, str], Decided] = {}
        scopes: dict[str, set[Scope]] = {read: set() for read in READS}
        with core.read() as snapshot:
            numbers = [n for (n,) in snapshot.connection.execute("SELECT current FROM unit ORDER BY u")]
            for n, unit in snapshot.units(numbers).items():
                own = Scope.of(unit.wall)
                for read, critical in READS.items():
                    scopes[read].add(own)
                    reading = enforcement.reading(Acting(scope=own), snapshot, critical=critical)
                    found[str(unit.ref), read] = Decided.of(enforcement.read(reading, unit, n))
        for read, critical in READS.items():
            for own in scopes[read]:
                _retrieval_agrees(memory, own, read, critical, found)
        return found


def _retrieval_agrees(
    memory: ml.Memory, own: Scope, read: str, critical: bool, found: dict[tuple[str, str], Decided]
) -> None:
    scope = memory.scope(tenant=own.tenant, user=own.user, agent=own.agent, session=own.session)
    answer = scope.retrieve("Statement", limit=100, critical=critical)
    assert answer.decisions
    for ref, decision in answer.decisions.items():
        # Nobody fetches anything here, so what policy wants fresh is used as it is, or not.
        said = found.get((str(ref), read))
        if said is None:
            continue  # an older version
        assert decision.allowed is (said.effect.allowed or _accepted(said, decision)), (ref, said, decision)


def _accepted(said: Decided, decision: Decision) -> bool:
    """Whether a stale unit is used all the same: the rules that object have no weight."""
    owed = tuple(Obligation(kind=ObligationKind(kind), rule="r") for kind in said.obligations)
    plain = msgspec.structs.replace(decision, effect=said.effect, score=said.score, obligations=owed)
    return fall_back(plain, Budget(), "nobody fetches it").effect is Effect.FLAG


@pytest.mark.timeout(600)
@settings(max_examples=int(os.environ.get("MEMLINEAGE_STORES", "25")), suppress_health_check=[*HealthCheck])
@given(HISTORY, SETS, SETS, st.sampled_from([0, 1, 4, 50]))
def test_simulating_a_policy_is_really_switching_to_it(
    history: list[dict[str, Any]], old: PolicySet, new: PolicySet, hours: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, clock = Path(folder) / "a.db", Clock()
        live_through(path, history, old, clock)
        clock.advance(hours=hours)
        told_by_judges: dict[str, dict[tuple[str, str], Decided]] = {"old": {}, "new": {}}

        def judge(world: Any, numbers: Any, critical: bool) -> Any:
            decided = one_by_one(world, numbers, critical)
            side = told_by_judges["old" if world.policies is old else "new"]
            read = "critical" if critical else "reliance"
            side |= {(str(world.units(numbers)[n].ref), read): one for n, one in zip(numbers, decided, strict=True)}
            return decided

        database = Database(str(path))
        found = simulate(database, by_name("lexical"), old, new, now_us=to_us(clock.now), limit=1000, judge=judge)
        database.close()
        other = Path(folder) / "b.db"
        shutil.copy(path, other)
        before, after = really(path, old, clock), really(other, new, clock)
        if old.revision != new.revision:
            assert told_by_judges == {"old": before, "new": after}
        expected = {
            (ref, read, made.what.value)
            for (ref, read), one in before.items()
            if (made := change(one, after[ref, read])) is not None
        }
        assert told(found) == expected
        assert sum(sum(counts.values()) for counts in found.counts.values()) == len(expected)
