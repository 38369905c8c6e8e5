"""Masks at work: stored with each version, worked out where rows lack them; nothing is decided otherwise by them."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.policy.fast.drawing import some_policies
from tests.support import DENY_ALL, Clock, nothing_written, open_memory

import memlineage as ml
from memlineage.engine import enforcement, masks
from memlineage.engine.acting import Acting
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.facts import LineageFacts
from memlineage.model.state import CauseKind
from memlineage.policy import Decision, Facts, decide
from memlineage.policy.fast.fields import marked, may_matter
from memlineage.policy.fast.form import FastForm
from memlineage.store.writer import Writer
from memlineage.testing.consistency import assert_consistent

STORES = int(os.environ.get("MEMLINEAGE_STORES", "12"))


def about(tag: str, name: str = "", **more: Any) -> dict[str, Any]:
    """A rule that is about one tag."""
    return {"name": name or f"of_{tag}", "on": "read", "target": {"tags": [tag]}, "action": "flag", **more}


def document(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"memlineage": 1, "rules": list(rules)}


def stored(memory: ml.Memory) -> dict[int, bytes | None]:
    """The mask of every row."""
    with memory._core.database.reading() as connection:
        return dict(connection.execute("SELECT n, mask FROM version ORDER BY n"))


def current(memory: ml.Memory) -> list[int]:
    """The versions whose row has a mask of the generation in force."""
    form = memory._core.generations.latest.form
    return [n for n, mask in stored(memory).items() if form.is_current(mask)]


def kept(memory: ml.Memory) -> list[int]:
    """The versions whose mask waits to be put into its row."""
    return list(memory._core.generations.latest.masks._known)


# Decisions ----------------------------------------------------------------------------------------------------------


@contextmanager
def compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Hold every decision of the engine against the specification; yields what they were about."""
    made_by: list[str] = []
    fast = Enforcement._decide

    def checked(
        self: Enforcement, acting: Acting, verb: str, facts: Facts, now_us: int, budget: ml.Budget | None,
        form: FastForm, mask: bytes | None = None,
    ) -> Decision:  # fmt: skip
        made = fast(self, acting, verb, facts, now_us, budget, form, mask)
        request = enforcement._request(acting, verb, facts)
        assert made == decide(form.deciding, request, facts, budget, decision_id=made.id)
        if mask is not None and form.is_current(mask):
            rules = form.policies.rules
            assert marked(mask) == sum(1 << place for place, rule in enumerate(rules) if may_matter(rule, facts.unit))
            made_by.append(f"{verb} by a mask")
        made_by.append(verb)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(Enforcement, "_decide", checked)
        yield made_by


class Acts:
    """Random acts of every sort, on units that rules drawn by chance are about."""

    def __init__(self, memory: ml.Memory, clock: Clock, chance: random.Random) -> None:
        self.memory = memory
        self.clock = clock
        self.chance = chance
        self.known: list[ml.Ref] = []
        self.scopes = [
            memory.scope(user=user, session="s", domain=domain) for user in ("ann", "bob") for domain in ("d", None)
        ]

    def act(self) -> None:
        self.clock.advance(seconds=self.chance.choice([0, 1, 40]))
        scope, one = self.chance.choice(self.scopes), self.chance.choice([*self.known, "0" * 8])
        acts: list[Callable[[], object]] = [
            lambda: self.store(scope), lambda: self.store(scope), lambda: self.update(scope, one),
            lambda: scope.retrieve("trip to the station", purpose=self.chance.choice([None, "planning", "ads"])),
            scope.list, lambda: scope.list(status=["active", "expired", "invalid"]),
            lambda: scope.get(one), lambda: scope.explain(one), lambda: scope.invalidate(one, reason="wrong"),
            lambda: scope.restore(one), lambda: scope.retract(one), lambda: scope.endorse(one, reason="seen"),
            lambda: scope.act("pay", {"to": "a"}, justification=[one]),
            lambda: scope.store_many([self.draft(), self.draft()]),
        ]  # fmt: skip
        with suppress(ml.MemLineageError):
            self.chance.choice(acts)()

    def draft(self) -> dict[str, Any]:
        chance = self.chance
        made: dict[str, Any] = {
            "content": f"{chance.choice(['The trip', 'Home'])} costs {chance.randrange(9)}",
            "creator": chance.choice(["user:alice", "tool:web", "tool:api", "reasoning"]),
            "kind": chance.choice(["fact", "goal"]),
            "tags": chance.choice([(), ("a",), ("b", "a")]),
            "confidence": chance.choice([None, 0.1, 0.5, 0.9]),
            "metadata": chance.choice([{}, {"n": 0}, {"n": 1}, {"n": True}, {"n": 1.0}, {"n": "1"}, {"n": [1]}]),
            "depends_on": chance.sample(self.known, min(len(self.known), chance.randrange(3))),
        }
        if chance.random() < 0.5:
            made |= {"subject": chance.choice(["trip", "home"]), "key": chance.choice(["price", "place"])}
        return made

    def store(self, scope: ml.Scope) -> None:
        draft = self.draft()
        self.known.append(scope.store(draft.pop("content"), **draft).ref)

    def update(self, scope: ml.Scope, one: Any) -> None:
        draft = self.draft()
        del draft["depends_on"]
        self.known.append(scope.update(getattr(one, "id", one), draft.pop("content"), **draft).ref)


@pytest.mark.parametrize("seed", range(STORES))
def test_every_decision_of_the_engine_is_the_one_that_all_rules_together_make(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """`MEMLINEAGE_STORES=200` tries more."""
    chance, clock = random.Random(seed), Clock()
    with open_memory(clock=clock, background=False) as memory, compared(monkeypatch) as made:
        acts = Acts(memory, clock, chance)
        for _ in range(12):
            acts.store(acts.scopes[0])
        for _ in range(3):
            memory.reload(some_policies(chance))
            for _ in range(20):
                acts.act()
        memory.reload([])
        for _ in range(10):
            acts.act()
        assert {"write", "read", "read by a mask", "write by a mask"} <= set(made)
        with memory._core.read() as snapshot:  # what is known of a unit already is what its lineage says
            for n, unit in snapshot.units(list(stored(memory))).items():
                assert LineageFacts(snapshot.graph, n, unit.standing)["integrity"] is unit.integrity
        assert_consistent(memory)


# Rows ---------------------------------------------------------------------------------------------------------------


def test_every_version_is_written_with_the_rules_that_can_matter_for_it() -> None:
    with open_memory(policies=[document(about("price"), about("gate"))]) as memory:
        trip = memory.scope(user="ann")
        memory.register_tool("pay", lambda **_: "done")
        trip.store_many([{"content": "one", "tags": ["price"]}, {"content": "two"}])
        unit = trip.store("three", tags=["gate"])
        unit = trip.update(unit, "four", tags=["price"])
        trip.act("pay", {"to": "ann"}, justification=[unit])
        rules = memory.policies.rules
        names = [
            {rule.name for place, rule in enumerate(rules) if marked(mask or b"") >> place & 1 and "of_" in rule.name}
            for mask in stored(memory).values()
        ]
        assert names[:4] == [{"of_price"}, set(), {"of_gate"}, {"of_price"}]
        assert current(memory) == list(stored(memory))
        assert_consistent(memory)


def test_a_write_makes_one_mask_and_no_statement_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    worked_out: list[object] = []
    plain = FastForm.mask
    monkeypatch.setattr(FastForm, "mask", lambda self, unit: worked_out.append(unit) or plain(self, unit))
    with open_memory() as memory:
        trip = memory.scope(user="ann")
        trip.store("one")
        worked_out.clear()
        said: list[str] = []
        connection = memory._core.database._writer
        connection.exec_trace = lambda _, sql, __: said.append(sql) is None
        trip.store("two")
        connection.exec_trace = None
        assert len(worked_out) == 1
        assert [sql for sql in said if "mask" in sql and not sql.startswith("INSERT INTO version")] == []


@pytest.fixture
def old_rows(tmp_path: Path) -> Iterator[ml.Memory]:
    """A file of a hundred versions that were written under another generation."""
    path = tmp_path / "trip.db"
    with open_memory(path) as memory:
        memory.scope(user="ann").store_many([f"note {number}" for number in range(100)])
    with open_memory(path, policies=[document(about("price", mode="shadow"))]) as memory:
        yield memory


def test_reads_work_masks_out_once_and_write_nothing(old_rows: ml.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    trip = old_rows.scope(user="ann")
    with nothing_written(old_rows):
        assert len(trip.list()) == 100
        assert (len(kept(old_rows)), current(old_rows)) == (100, [])
        monkeypatch.setattr(FastForm, "mask", lambda *_: pytest.fail("worked out again"))
        assert len(trip.list()) == 100


def test_later_writes_take_a_bounded_number_along(old_rows: ml.Memory) -> None:
    trip = old_rows.scope(user="ann")
    trip.list()
    trip.store("one more")
    assert len(current(old_rows)) == masks._AT_ONCE + 1
    assert len(kept(old_rows)) == 100 - masks._AT_ONCE
    trip.store("and one")
    assert (len(current(old_rows)), kept(old_rows)) == (102, [])
    before = stored(old_rows)
    trip.list()
    assert (kept(old_rows), stored(old_rows)) == ([], before)
    assert_consistent(old_rows)


def test_a_row_that_has_its_mask_is_never_written_for_it() -> None:
    """However its unit was found: constraints are not read again as long as nothing has changed."""
    with open_memory() as memory:
        trip = memory.scope(user="ann")
        bound = trip.store("No flights on Sunday", creator="user:ann", kind="constraint")
        trip.store("book a flight on Sunday", creator="user:ann")
        for _ in range(3):
            found = trip.retrieve("book a flight on Sunday", limit=1)
            assert (bound in found.units, [unit.ref for unit in found.constraints]) == (False, [bound.ref])
            assert trip.list()
            assert trip.get(trip.list()[0])
        assert kept(memory) == []


def test_what_is_kept_for_rows_is_bounded(old_rows: ml.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "_KEPT", 30)
    old_rows.scope(user="ann").list()
    assert 0 < len(kept(old_rows)) <= 30


def undone(memory: ml.Memory, act: Callable[[Writer], object]) -> None:
    """An act whose transaction fails at its end."""
    with memory._core.write() as writer:
        act(writer)
        raise ZeroDivisionError


def test_a_write_that_is_refused_or_fails_takes_none_along(old_rows: ml.Memory) -> None:
    trip = old_rows.scope(user="ann")
    unit = trip.list()[0]
    waiting = kept(old_rows)
    with nothing_written(old_rows):
        with pytest.raises(ml.PolicyViolationError):
            trip.acting_as("agent:x").invalidate(unit)
        with pytest.raises(ZeroDivisionError):
            undone(old_rows, lambda writer: writer.add_cause(1, CauseKind.INVALID, by="system", reason=None))
    assert kept(old_rows) == waiting


def test_under_a_policy_that_denies_everything_none_are_ever_put_into_rows(old_rows: ml.Memory) -> None:
    old_rows.reload([DENY_ALL])
    trip = old_rows.scope(user="ann")
    with nothing_written(old_rows):
        assert (len(trip.list()), len(kept(old_rows))) == (0, 100)
        with pytest.raises(ml.PolicyViolationError):
            trip.store("one more")
    old_rows.close()


def test_what_a_write_made_that_was_undone_leaves_no_mask_behind() -> None:
    """The next version gets its number: it must not be judged as the one that never was."""
    rule = about("secret", action="withhold")
    with open_memory(policies=[document(rule)]) as memory:
        trip = memory.scope(user="ann")
        trip.store("the first")

        def act(writer: Writer) -> None:
            connection = writer.connection
            row = connection.execute("SELECT * FROM version").get
            names = [name for name, *_ in connection.execute("SELECT * FROM version").getdescription()]
            fresh = dict(zip(names, row, strict=True)) | {"n": 2, "u": 2, "mask": None}
            connection.execute(f"INSERT INTO version VALUES ({', '.join('?' * len(fresh))})", list(fresh.values()))
            connection.execute("INSERT INTO unit (u, id, w, latest, current) VALUES (2, 'gone', 1, 1, 2)")
            assert [unit.content for unit in trip.list()] == ["the first", "the first"]

        with pytest.raises(ZeroDivisionError):
            undone(memory, act)
        assert kept(memory) == []
        secret = trip.store("the code is 7", tags=["secret"])
        with memory._core.database.writing() as connection:
            connection.execute("UPDATE version SET mask = NULL")
        assert [item.ref for item in trip.list().withheld] == [secret.ref]


# Generations --------------------------------------------------------------------------------------------------------


def test_another_process_brings_another_generation_and_masks_of_the_one_before_decide_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trip.db"
    with open_memory(path, policies=[document(about("price"))]) as here:
        trip = here.scope(user="ann")
        for n in range(9):
            trip.store(f"costs {n}", tags=["price"])
        assert [unit.flags for unit in trip.list()] == [("of_price",)] * 9
        # As many rules in another order of priority: the same bits would say the opposite.
        rules = [about("price", action="withhold", priority=1), about("gate", name="a_gate", priority=2)]
        with open_memory(path, policies=[document(*rules)]) as there:
            assert len(there.scope(user="ann").list().withheld) == 9
            assert len(trip.list().withheld) == 9
            there.scope(user="ann").store("Gate 12", tags=["gate"])
            trip.list()
            trip.store("Gate 13", tags=["gate"])
            assert_consistent(there)
        assert len(current(here)) == 11


def test_masks_that_wait_when_another_generation_comes_are_never_written(old_rows: ml.Memory) -> None:
    trip = old_rows.scope(user="ann")
    trip.list()
    old_rows.reload([document(about("gate"))])
    trip.store("one more")
    assert current(old_rows) == [101]
    old_rows.reload([document(about("price", mode="shadow"))])
    trip.store("and one")
    assert current(old_rows) == [102]
    assert_consistent(old_rows)


def test_a_row_of_an_erased_content_has_no_mask(old_rows: ml.Memory) -> None:
    with old_rows._core.database.writing() as connection:
        connection.execute("UPDATE version SET content = NULL, salt = NULL WHERE n <= 10")
    old_rows.scope(user="ann").list()
    old_rows.scope(user="ann").store("one more")
    assert [n for n in current(old_rows) if n <= 10] == []
    assert not any(
        "mask" in finding.problem and "erased" not in finding.problem for finding in old_rows.verify().findings
    )


# Verify and rebuild -------------------------------------------------------------------------------------------------

HARMLESS = {
    "nobody has asked yet": "UPDATE version SET mask = NULL",
    "of a generation before": "UPDATE version SET mask = (SELECT mask FROM kept)",
}
WRONG = {
    "all rules": "UPDATE version SET mask = CAST(substr(mask, 1, 8) || x'ffffff' AS BLOB)",
    "no rules": "UPDATE version SET mask = CAST(substr(mask, 1, 8) || zeroblob(length(mask) - 8) AS BLOB)",
    "too short": "UPDATE version SET mask = CAST(substr(mask, 1, length(mask) - 1) AS BLOB)",
    "longer": "UPDATE version SET mask = CAST(mask || x'00' AS BLOB)",
    "of no generation": "UPDATE version SET mask = CAST(x'0011223344556677' || substr(mask, 9) AS BLOB)",
    "of one before, with too much": "UPDATE version SET mask = CAST((SELECT mask FROM kept) || x'00' AS BLOB)",
    "nothing": "UPDATE version SET mask = x''",
    "only a revision": "UPDATE version SET mask = CAST(substr(mask, 1, 8) AS BLOB)",
}


@pytest.fixture(scope="module")
def two_generations() -> Iterator[ml.Memory]:
    with open_memory(policies=[document(about("price"), about("gate"))]) as memory:
        memory.scope(user="ann").store_many([f"note {number}" for number in range(5)])
        with memory._core.database.writing() as connection:
            connection.execute("CREATE TEMP TABLE kept AS SELECT mask FROM version LIMIT 1")
        memory.reload([document(about("price"), *(about("gate", name=f"gate_{n}") for n in range(9)))])
        for unit in memory.scope(user="ann").list():
            memory.scope(user="ann").update(unit, f"{unit.content} again", tags=["gate"])
        yield memory


@contextmanager
def changed(memory: ml.Memory, sql: str) -> Iterator[None]:
    before = stored(memory)
    with memory._core.database.writing() as connection:
        connection.execute(sql)
    yield
    with memory._core.database.writing() as connection:
        connection.executemany("UPDATE version SET mask = ? WHERE n = ?", [(mask, n) for n, mask in before.items()])


@pytest.mark.parametrize("what", HARMLESS)
def test_masks_that_nobody_goes_by_are_no_findings(two_generations: ml.Memory, what: str) -> None:
    with changed(two_generations, HARMLESS[what]):
        assert two_generations.verify().ok
        assert_consistent(two_generations)


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_mask_is_found_and_mended(two_generations: ml.Memory, what: str) -> None:
    sound = stored(two_generations)
    with changed(two_generations, f"{WRONG[what]} WHERE n > 5"):
        report = two_generations.verify()
        assert (report.ok, report.derived_only, report.found) == (False, True, 5)
        with pytest.raises(AssertionError, match="mask"):
            assert_consistent(two_generations)
        assert two_generations.rebuild().repaired == {"version": 5}
        assert stored(two_generations) == sound
        assert two_generations.verify().ok


def test_a_rebuild_makes_what_waited_in_memory_be_worked_out_again(old_rows: ml.Memory) -> None:
    old_rows.scope(user="ann").list()
    with old_rows._core.database.writing() as connection:
        connection.execute("UPDATE version SET form = zeroblob(16) WHERE n = 1")
    assert kept(old_rows)
    assert old_rows.rebuild().repaired
    assert kept(old_rows) == []
