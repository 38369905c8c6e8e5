"""What anybody typed stays in rows: the ledger, its tree, its checkpoints and files beside it hold none of it."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.ledger.filled import Clock

import memlineage as ml
from memlineage.store.index import build
from memlineage.store.index_file import save
from memlineage.store.kept_index import position_of

CANARY = "canary"
# What a reader of these tables may learn without the values: numbers, hashes, commitments, opaque ids.
SPEECHLESS = {"event", "tile", "checkpoint", "key", "state", "lost", "edge", "alike", "verdict"}


def said(what: str) -> str:
    """A word that occurs nowhere else."""
    return f"{CANARY} {what}"


POLICY = {
    "memlineage": 1,
    "description": said("document"),
    "principals": {f"tool:{said('registered by policy')}": "UNTRUSTED"},
    "rules": [{"name": f"{CANARY}-rule", "on": ["read"], "target": {"tags": [said("tag")]}, "action": "flag"}],
}  # fmt: skip


@pytest.fixture
def told(tmp_path: Path) -> Iterator[ml.Memory]:
    """A memory to which every verb was told something."""
    clock = Clock()
    with ml.Memory.open(tmp_path / "told.db", embedder="lexical", clock=clock, policies=[POLICY]) as memory:
        tell(memory, clock, tmp_path)
        yield memory


def tell(memory: ml.Memory, clock: Clock, folder: Path) -> None:
    trip = memory.scope(tenant=said("tenant"), user=said("user"), agent=said("agent"), session=said("session"))
    memory.register_tool(
        said("tool"), lambda **given: said("result"), integrity="INTERNAL", compensate=lambda unit: said("undone")
    )
    memory.subscribe(lambda notice: None, owner=f"user:{said('listener')}", name=said("subscription"))
    memory.register(f"external:{said('origin')}", level="INTERNAL", verifier=True)
    memory.register_comparer(said("kind"), lambda one, other: one == other)
    everything = {
        "kind": said("kind"), "tags": [said("tag")], "subject": said("subject"), "key": said("key"),
        "creator": f"tool:{said('creator')}", "creator_id": said("creator id"), "metadata": {said("m"): said("value")},
        "idempotency_key": said("retry"), "owner": f"user:{said('owner')}", "context": {said("prompt"): said("words")},
        "expires_at": clock.now + timedelta(days=1), "confidence": 0.5,
    }  # fmt: skip
    unit = trip.store(said("content"), **everything)
    trip.store_many([said("one"), {"content": said("two"), "depends_on": [unit], "creator": "reasoning"}])
    trip.update(unit, said("new content"), creator=f"user:{said('user')}")
    trip.invalidate(unit, reason=said("reason"), by=f"user:{said('user')}")
    trip.restore(unit, reason=said("why after all"))
    trip.retract(unit, reason=said("why not"))
    trip.restore(unit)
    trip.reverify(unit, by=f"user:{said('user')}")
    trip.corroborate(unit, depends_on=[trip.store(said("support"), creator="system")], creator="system")
    trip.endorse(unit, reason=said("endorsement"), action=said("hash"))
    trip.delete(trip.store(said("deleted")), reason=said("why deleted"))
    act(memory, trip, unit)
    capture(trip)
    repair(memory, trip, clock)
    lines = folder / f"{CANARY}.jsonl"
    lines.write_text(json.dumps({"role": "user", "content": said("imported")}) + "\n", encoding="utf-8")
    trip.load(lines, name=said("source"))
    lines.unlink()
    memory.distrust(f"tool:{said('creator')}", reason=said("distrust"))
    memory.scope(agent=said("alone")).store(said("of an agent"), creator=f"agent:{said('alone')}")
    trip.retrieve(said("query"), purpose=said("purpose"))
    trip.delete_all(reason=said("why all"))
    memory.checkpoint(folder / "witness")
    memory.rotate_key()
    memory.prove(unit)
    late = {"name": f"{CANARY}-late", "on": "read", "action": "flag", "reason": said("reason of a rule")}
    memory.reload([POLICY, {"rules": [late]}])
    memory.catch_up()
    memory.deliver()
    memory.unsubscribe(said("subscription"))
    memory.rebuild()
    with memory._core.database.reading() as connection:
        save(build(connection, position_of(connection)), memory.path)  # as a large store does of itself


def act(memory: ml.Memory, trip: ml.Scope, unit: ml.Unit) -> None:
    """Ask, be refused or allowed, approve: whatever the policy makes of it."""
    decision = trip.authorize(said("tool"), {said("argument"): said("value")}, justification=[unit])
    if decision.approval is not None:
        trip.approve(decision, reason=said("approval"))
    try:
        trip.act(said("tool"), {said("argument"): said("value")}, justification=[unit])
    except ml.PolicyViolationError:
        assert memory.decisions()
    ground = trip.store(said("ground"), creator="system")
    done = trip.act(said("tool"), {said("argument"): said("value")}, justification=[ground])
    trip.invalidate(ground)
    trip.compensate(done.unit, reason=said("why undone"))


def capture(trip: ml.Scope) -> None:
    @trip.track(creator=f"tool:{said('tracked')}", tags=[said("tag of a call")])
    def forecast(city: str) -> str:
        return said("forecast") + city

    with trip.step(said("step"), kind=said("kind of a step")):
        forecast(said("city"))


def repair(memory: ml.Memory, trip: ml.Scope, clock: Clock) -> None:
    """Make again, settle, hold back, look back."""
    city = trip.store(said("city"), subject=said("trip"), key=said("goal"), creator="tool:first")
    quote = trip.recipe(said("recipe"), tags=[said("tag of a recipe")])(lambda text, more: said("quote of ") + text)
    quote(city, said("argument of a recipe"))
    trip.update(city, said("another city"), creator="tool:first")
    trip.replay(by=f"user:{said('user')}")
    broken = trip.recipe(said("broken"))(lambda text: said("first") if text.endswith("another city") else 1 / 0)
    broken(trip.get(city.id))
    trip.update(city, said("a third city"), creator="tool:first")
    trip.replay()
    memory.register_contradiction(lambda one, other: said("contradiction"))
    trip.store(said("rival"), subject=said("trip"), key=said("goal"), creator="tool:second", timestamp=clock.now)
    for conflict in trip.conflicts(flagged=False):
        trip.resolve(conflict, said("answer"), reason=said("why resolved"))
        break
    memory.entry_check(said("check"), {"tags": said("doubtful")})
    trip.store(said("doubted"), tags=[said("doubtful")], creator=f"external:{said('origin')}")
    memory.standing_check(
        said("standing check"), {"tags": said("doubtful")}, source="system", check=lambda unit: said("says instead")
    )
    memory.run_checks()
    memory.start_checks(3600).stop()
    trip.release(trip.quarantine(city, reason=said("why held")).ref, reason=said("why released"))
    trip.quarantined()
    memory.as_of(clock.now).scope(user=said("user")).list()
    memory.diff(clock.now, clock.now)


def test_the_ledger_carries_no_text_of_anybody(told: ml.Memory) -> None:
    found = {}
    with told._core.database.reading() as connection:
        names = [n for (n,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in names:
            if table != "vocabulary":
                rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()
                found[table] = any(CANARY in text_of(value) for row in rows for value in row)
    assert {table for table, telling in found.items() if telling} & SPEECHLESS == set()
    # Where it must be, or this test would find nothing anywhere.
    assert {table for table, telling in found.items() if telling} >= {"version", "principal", "wall", "cause", "meta"}


def text_of(value: object) -> str:
    return value.decode("utf-8", "replace").lower() if isinstance(value, bytes) else str(value).lower()


def test_files_beside_the_database_carry_none_either(told: ml.Memory, tmp_path: Path) -> None:
    files = {path.name: path.read_bytes().lower() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"told.db-lineage", "told.db.key", "witness"} <= files.keys()
    beside = {name: text for name, text in files.items() if name not in ("told.db", "told.db-wal", "told.db-shm")}
    assert {name for name, text in beside.items() if CANARY.encode() in text} == set()
    assert CANARY.encode() in files["told.db"] + files["told.db-wal"]  # or nothing would be found anywhere


def test_every_verb_that_writes_was_told_something() -> None:
    """A new verb has to be told something too, or named here as one that only reads."""
    reading = {
        "compensations", "credibility", "outbox", "quarantined", "subscriptions",
        "acting_as", "actor", "backtrace", "build_context", "context", "count", "explain", "forward", "get",
        "history", "impact", "list", "nearest", "plan_steps", "trace", "why", "backup", "close", "embedder",
        "explain_decision", "open", "path", "policies", "policy_status", "reembed", "scope", "verify", "watch",
    }  # fmt: skip
    source = Path(__file__).read_text(encoding="utf-8")
    verbs = {name for owner in (ml.Memory, ml.Scope) for name in dir(owner) if not name.startswith("_")}
    assert {verb for verb in verbs - reading if f".{verb}(" not in source} == set()
