"""The lineage in arrays is what the tables say: extended or built, from its file or not, whoever writes meanwhile."""

from __future__ import annotations

import base64
import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from tests.support import Clock, open_memory, run_all

import memlineage as ml
from memlineage.engine.acting import Acting
from memlineage.engine.inputs import Link, Target
from memlineage.lineage.arrays import Structure
from memlineage.model.scope import Scope
from memlineage.model.state import Status
from memlineage.model.unit import MICRO, Role
from memlineage.store.index import LineageIndex, build
from memlineage.store.index_file import _parts, load, save
from memlineage.store.kept_index import KeptIndex, file_of, position_of
from memlineage.store.records import NewEdge
from memlineage.store.writer import Writer
from memlineage.testing.consistency import assert_consistent
from memlineage.testing.sqlite_world import SqliteWorld
from memlineage.testing.strategies import ROLES, operations
from memlineage.testing.worlds import Operation, Play


def said(structure: Structure | None) -> dict[str, Any]:
    """All that a structure holds, in one spelling whatever is laid out and what is not."""
    assert structure is not None
    numbers = range(1, structure.count + 1)
    last = structure.limit or structure.count
    places = {n: structure.late.places_of(n) for n in numbers}
    members, classes = (column.tolist() for column in (structure.same.members, structure.same.classes))
    return {
        "unit": structure.unit[: structure.count + 1].tolist(),
        "group": structure.group[: structure.count + 1].tolist(),
        "up": {n: sorted(structure.up.one(n)) for n in numbers},
        "down": {n: {m for r in structure.down for m in r.one(n) if m <= last} for n in numbers},
        "weak": {n: {m for r in structure.weak for m in r.one(n) if m <= last} for n in numbers},
        "late": {n: sorted(sorted(structure.late.parents.one(k)) for k in which) for n, which in places.items()},
        "classes": sorted((c, m) for c, m in zip(classes, members, strict=True) if classes.count(c) > 1),
        "judged": sorted(zip(structure.same.older.tolist(), structure.same.newer.tolist(), strict=True)),
        "actions": structure.actions.tolist(),
    }


def from_tables(memory: ml.Memory) -> LineageIndex:
    with memory._core.database.reading() as connection:
        return build(connection, position_of(connection))


def seen_by(kept: KeptIndex, memory: ml.Memory) -> dict[str, Any]:
    with memory._core.database.reading() as connection:
        return said(kept.view(connection))


@settings(max_examples=40)
@given(first=operations(roles=(*ROLES, Role.SHARED)), second=operations(roles=(*ROLES, Role.SHARED)))
def test_extending_an_index_gives_what_building_it_gives(first: list[Operation], second: list[Operation]) -> None:
    world = SqliteWorld()
    play, kept = Play(world), KeptIndex(":memory:")
    for operation in (*first, *second):
        play.run([operation])
        if random.Random(play.now).random() < 0.4:
            assert seen_by(kept, world.memory) == said(from_tables(world.memory).structure)
    assert seen_by(kept, world.memory) == said(from_tables(world.memory).structure)
    world.memory.close()


def test_tails_are_laid_out_when_they_have_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlineage.store.index._SHORT", 3)
    kept, chance = KeptIndex(":memory:"), random.Random(1)
    with open_memory() as memory:
        scope = memory.scope(user="ann")
        units = [scope.store("Rain on Monday")]
        laid_out = set()
        for number in range(30):
            parents = {chance.choice(units): chance.choice([0.2, 1.0]) for _ in range(3)}
            units.append(scope.store(f"Umbrella {number}", depends_on=parents))
            assert seen_by(kept, memory) == said(from_tables(memory).structure)
            assert kept._index is not None
            laid_out.add(len(kept._index.down.starts))
    assert 2 < len(laid_out) < 20, "sometimes, but not every time"


class GivenUpError(Exception):
    """Whoever writes thinks better of it."""


def test_what_a_write_sees_of_itself_is_not_kept_when_it_rolls_back() -> None:
    kept = KeptIndex(":memory:")
    with open_memory() as memory:
        scope = memory.scope(user="ann")
        root, other = scope.store("Rain on Monday"), scope.store("Snow on Monday")
        before = seen_by(kept, memory)
        with suppress(GivenUpError), memory._core.write() as writer:
            _hang(memory, writer, root)
            assert said(kept.view(writer.connection, writer.began))["down"] == {1: {3}, 2: set(), 3: set()}
            assert said(kept.view(writer.connection))["down"] == {1: {3}, 2: set(), 3: set()}
            raise GivenUpError
        assert seen_by(kept, memory) == before
        scope.store("Boots", depends_on=[other])
        assert seen_by(kept, memory)["down"] == {1: set(), 2: {3}, 3: set()}


def test_an_index_made_inside_a_write_holds_only_what_was_committed() -> None:
    kept = KeptIndex(":memory:")
    with open_memory() as memory:
        scope = memory.scope(user="ann")
        root = scope.store("Rain on Monday")
        scope.store("Clouds on Sunday")
        with suppress(GivenUpError), memory._core.write() as writer:
            _hang(memory, writer, root)
            writer.add_justification(1, [NewEdge(2, int(Role.DEPENDS), MICRO)], by="user:ann")
            inside = said(kept.view(writer.connection, writer.began))
            assert (inside["down"], inside["late"][1]) == ({1: {3}, 2: {1}, 3: set()}, [[2]])
            raise GivenUpError
        assert seen_by(kept, memory) == said(from_tables(memory).structure)
        assert seen_by(kept, memory)["late"] == {1: [], 2: []}


def _hang(memory: ml.Memory, writer: Writer, parent: ml.Unit) -> None:
    """Store something below a unit, inside a write."""
    acting = Acting(scope=Scope(user="ann"))
    draft = memory._parts.draft(acting, "Take an umbrella", {"creator": "tool:feed"})
    link = Link(Target(parent.id, None), Role.DEPENDS, MICRO)
    [item] = memory._parts.writing.prepare([msgspec.structs.replace(draft, links=(link,))])
    memory._parts.writing.store_one(writer, acting, item)


def test_a_reader_of_an_older_snapshot_sees_nothing_of_what_came_later(tmp_path: Path) -> None:
    kept = KeptIndex(str(tmp_path / "store.db"))
    with open_memory(tmp_path / "store.db") as memory:
        scope = memory.scope(user="ann")
        root, evidence = scope.store("Rain on Monday"), scope.store("Clouds on Sunday")
        scope.corroborate(root, depends_on=[evidence])
        scope.update(root.id, "Rain on  Monday.")
        seen_by(kept, memory)
        with memory._core.database.reading() as connection:
            before = said(build(connection, position_of(connection)).structure)
            late_comer = Thread(target=_write_much, args=(scope, root, evidence, kept, memory))
            late_comer.start()
            late_comer.join()
            assert kept._index is not None
            assert kept._index.at.n > position_of(connection).n
            assert said(kept.view(connection)) == before
        assert seen_by(kept, memory) == said(from_tables(memory).structure) != before


def _write_much(scope: Any, root: ml.Unit, evidence: ml.Unit, kept: KeptIndex, memory: ml.Memory) -> None:
    scope.store("Take an umbrella", depends_on={root: 1.0, evidence: 0.2})
    scope.corroborate(evidence, depends_on=[scope.store("Low pressure")])
    scope.update(root.id, "Rain on Monday！")
    seen_by(kept, memory)


def test_an_index_built_after_a_reader_began_does_not_guess_what_was_there(tmp_path: Path) -> None:
    kept = KeptIndex(str(tmp_path / "store.db"))
    with open_memory(tmp_path / "store.db") as memory:
        scope = memory.scope(user="ann")
        root, evidence = scope.store("Rain on Monday"), scope.store("Clouds on Sunday")
        with memory._core.database.reading() as connection:
            position_of(connection)
            late_comer = Thread(target=_write_much, args=(scope, root, evidence, kept, memory))
            late_comer.start()
            late_comer.join()
            assert kept.view(connection) is None


def test_what_another_process_wrote_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    kept = KeptIndex(str(path))
    with open_memory(path) as memory:
        root = memory.scope(user="ann").store("Rain on Monday")
        seen_by(kept, memory)
        run_all(_ANOTHER, [[str(path), root.id]])
        assert seen_by(kept, memory)["down"] == {1: {2}, 2: {3}, 3: set()}
        assert seen_by(kept, memory) == said(from_tables(memory).structure)


_ANOTHER = """
import sys, memlineage as ml
with ml.Memory.open(sys.argv[1], embedder="lexical") as memory:
    scope = memory.scope(user="ann")
    scope.store("Boots", depends_on=[scope.store("Take an umbrella", depends_on=[sys.argv[2]])])
"""


def test_processes_that_write_at_once_settle_over_arrays_that_are_true(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_memory(path) as memory:
        memory.scope(user="ann").store("Rain on Monday")
    run_all(_AT_ONCE, [[str(path), str(seed)] for seed in range(3)])
    with open_memory(path) as memory:
        assert len(memory.scope(user="ann").list(status=[status.value for status in Status])) > 60
        assert_consistent(memory)


_AT_ONCE = """
import random, sys
import memlineage as ml
from memlineage.store.kept_index import KeptIndex
KeptIndex.patience = lambda *_: 0
chance = random.Random(int(sys.argv[2]))
with ml.Memory.open(sys.argv[1], embedder="lexical", durability="normal") as memory:
    scope = memory.scope(user="ann")
    everything = [status.value for status in ml.Status]
    for number in range(60):
        units = scope.list(status=everything)
        unit, other = chance.choice(units), chance.choice(units)
        try:
            match chance.randrange(6):
                case 0:
                    scope.invalidate(unit.ref)
                case 1:
                    scope.restore(unit.ref)
                case 2:
                    scope.update(unit.id, chance.choice(["Rain", "rain.", "Sun", "Rain "]), creator="user:ann")
                case 3:
                    scope.corroborate(unit.ref, depends_on=[other])
                case _:
                    scope.store(f"{sys.argv[2]} {number}", depends_on={unit: 1.0, other: chance.choice([0.2, 1.0])},
                                subject="ann", key=chance.choice(["a", "b", None, None]))
        except (ml.CycleError, ml.InvalidInputError, ml.PolicyViolationError):
            pass
"""


def test_a_hub_falls_and_rises_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlineage.store.kept_index._TO_MAKE", 50)
    clock = Clock()
    with open_memory(tmp_path / "store.db", clock=clock) as memory:
        scope = memory.scope(user="ann")
        root = scope.store("Rain on Monday", expires_at=clock.now + timedelta(hours=1))
        below = scope.store_many([{"content": f"Umbrella {i}", "depends_on": [root]} for i in range(300)])
        last = scope.store("Wet feet", depends_on=below[:3])
        fallen = scope.invalidate(root)
        assert (fallen.count, len(fallen.changed), fallen.changed[-1].ref) == (301, 301, last.ref)
        assert (fallen.changed[0].before, fallen.changed[0].after) == ("active", "contaminated")
        assert_consistent(memory)
        assert scope.restore(root).count == 301
        clock.advance(hours=2)
        assert scope.get(last.ref).status == "pending_verification", "seen by readers before any write"
        assert {item.would_be for item in scope.impact(root)} == {"contaminated"}
        scope.store("Something else")
        assert_consistent(memory)


def test_an_action_among_very_many_that_fall_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlineage.store.kept_index._TO_MAKE", 50)
    with open_memory() as memory:
        memory.register_tool("ring", lambda **_: "done", compensate=lambda unit: None)
        scope = memory.scope(user="ann", agent="planner")
        root = scope.store("Rain on Monday", creator="user")
        below = scope.store_many([{"content": f"Umbrella {i}", "depends_on": [root]} for i in range(300)])
        rung = scope.act("ring", {"to": "ann"}, justification=[below[7]])
        for _ in range(2):  # built, then extended
            fallen = scope.invalidate(root)
            assert [unit.ref for unit in fallen.actions] == [scope.get(rung.unit.id).ref]
            scope.restore(root)
            scope.store("Something else")


def test_a_unit_that_many_hang_on_is_replaced_in_one_act(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlineage.store.kept_index._TO_MAKE", 50)
    with open_memory(tmp_path / "store.db") as memory:
        scope = memory.scope(user="ann")
        root = scope.store("Rain on Monday")
        below = scope.store_many([{"content": f"Umbrella {i}", "depends_on": [root]} for i in range(300)])
        scope.update(root.id, "Sun on Monday")
        assert scope.get(below[0].ref).status == "pending_verification"
        scope.update(root.id, "Rain on  Monday.")
        assert scope.get(below[0].ref).status == "active"
        assert_consistent(memory)


def test_many_keys_that_fall_at_once_go_to_their_next_holders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlineage.store.kept_index._TO_MAKE", 50)
    with open_memory() as memory:
        scope = memory.scope(user="ann")
        root = scope.store("Rain on Monday")
        keys = [{"subject": "ann", "key": f"k{i}"} for i in range(100)]
        older = scope.store_many([{"content": f"Old {i}", **key} for i, key in enumerate(keys)])
        newer = scope.store_many([{"content": f"New {i}", "depends_on": [root], **key} for i, key in enumerate(keys)])
        alone = scope.store_many(
            [{"content": f"Only {i}", "depends_on": [root], "subject": "bob", "key": f"k{i}"} for i in range(100)]
        )
        assert {scope.get(unit.ref).status for unit in older} == {"superseded"}
        scope.invalidate(root)
        assert {scope.get(unit.ref).status for unit in older} == {"active"}
        assert {scope.get(unit.ref).status for unit in (*newer, *alone)} == {"contaminated"}
        assert_consistent(memory)
        scope.restore(root)
        assert {scope.get(unit.ref).status for unit in older} == {"superseded"}
        assert_consistent(memory)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with its index beside it."""
    path = tmp_path_factory.mktemp("sound") / "store.db"
    with open_memory(path) as memory:
        scope = memory.scope(user="ann")
        root, other = scope.store("Rain on Monday"), scope.store("Clouds")
        word = scope.store("Take an umbrella", depends_on={root: 1.0, other: 0.2})
        scope.corroborate(word, depends_on=[other])
        scope.update(root.id, "Rain on  Monday.")
        save(from_tables(memory), str(path))
    return path


def _loaded(path: Path, memory: ml.Memory) -> LineageIndex | None:
    with memory._core.database.reading() as connection:
        return load(str(path), connection, position_of(connection))


def test_an_index_comes_back_from_its_file(sound: Path) -> None:
    with open_memory(sound) as memory:
        index = _loaded(sound, memory)
        assert index is not None
        assert said(index.structure) == said(from_tables(memory).structure)
        assert file_of(str(sound)).stat().st_mode == sound.stat().st_mode


def test_an_index_from_a_file_is_extended_by_what_came_since(sound: Path, tmp_path: Path) -> None:
    path = _copy(sound, tmp_path)
    with open_memory(path) as memory:
        memory.scope(user="ann").store("Boots")
        assert _loaded(path, memory) is not None
        assert seen_by(KeptIndex(str(path)), memory) == said(from_tables(memory).structure)


def _copy(sound: Path, folder: Path) -> Path:
    for name in ("store.db", "store.db-lineage"):
        shutil.copy(sound.with_name(name), folder / name)
    return folder / "store.db"


def _flip(place: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def _lying(name: str, value: object) -> Callable[[bytes], bytes]:
    """A file whose first line says something else, everything after it as it was."""

    def change(data: bytes) -> bytes:
        line, _, rest = data.partition(b"\n")
        header = {**json.loads(line), name: value}
        return json.dumps(header).encode() + b"\n" + rest

    return change


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut in the first line": lambda data: data[:20],
    "cut in the arrays": lambda data: data[:-4],
    "longer": lambda data: data + b"1234",
    "a bit of the first array": lambda data: _flip(data.index(b"\n") + 1)(data),
    "the last bit": _flip(-1),
    "no JSON": lambda data: b"{" + data,
    "one line without end": lambda _: b"x" * 100_000,
    "another layout": _lying("memlineage_index", 2),
    "another byte order": _lying("order", "middle"),
    "of the future": _lying("seq", 1 << 40),
    "of no store at all": _lying("seq", 0),
    "of another store": _lying("mark", base64.b64encode(b"1" * 32).decode()),
    "sizes below nothing": _lying("sizes", [-1] * 16),
    "sizes beyond memory": _lying("sizes", [1 << 60] * 16),
    "sizes of something else": _lying("sizes", [1, 2]),
    "more versions than there are": _lying("n", 1 << 30),
    "fewer versions than it holds": _lying("n", 1),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_file_that_is_not_sound_is_no_file(damage: Callable[[bytes], bytes], sound: Path, tmp_path: Path) -> None:
    path = _copy(sound, tmp_path)
    file = file_of(str(path))
    file.write_bytes(damage(file.read_bytes()))
    with open_memory(path) as memory:
        assert _loaded(path, memory) is None
        assert seen_by(KeptIndex(str(path)), memory) == said(from_tables(memory).structure)


_LATE = 12
"""The place of edges added later, whose last row is positions of the ledger."""


@pytest.mark.parametrize("place", range(16))
def test_numbers_that_point_nowhere_are_not_followed(place: int, sound: Path, tmp_path: Path) -> None:
    """A file with a right checksum can still be wrong: no array of it may lead outside of the others."""
    path = _copy(sound, tmp_path)
    with open_memory(path) as memory:
        index = _loaded(path, memory)
        assert index is not None
        parts = [part.copy() for part in _parts(index)]
        if not parts[place].size or place in (0, 1):  # units and groups are only compared
            return
        parts[place][0 if place == _LATE else -1] = 1 << 20
        save_parts(parts, index, path)
        assert _loaded(path, memory) is None


def save_parts(parts: list[Any], index: LineageIndex, path: Path) -> None:
    """Write these arrays as the file of an index."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memlineage.store.index_file._parts", lambda _: parts)
        save(index, str(path))


def test_a_small_store_and_one_in_memory_leave_no_file(tmp_path: Path) -> None:
    for path in (":memory:", tmp_path / "store.db"):
        with open_memory(path) as memory:
            memory.scope(user="ann").store("Rain on Monday")
            seen_by(KeptIndex(str(path)), memory)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["store.db"]


def test_a_large_store_keeps_its_index_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlineage.store.kept_index._WORTH_A_FILE", 1)
    path = tmp_path / "store.db"
    with open_memory(path) as memory:
        scope = memory.scope(user="ann")
        scope.store("Rain on Monday")
        kept = KeptIndex(str(path))
        seen_by(kept, memory)
        written = file_of(str(path)).read_bytes()
        scope.store("Clouds")
        seen_by(kept, memory)
        assert file_of(str(path)).read_bytes() != written, "it has doubled"
        assert [file.name for file in tmp_path.glob("*-new")] == []


def test_where_no_file_can_be_written_all_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memlineage.store.kept_index._WORTH_A_FILE", 1)
    path = tmp_path / "store.db"
    file_of(str(path)).mkdir()
    (file_of(str(path)) / "something").touch()
    with open_memory(path) as memory:
        memory.scope(user="ann").store("Rain on Monday")
        assert seen_by(KeptIndex(str(path)), memory)["unit"] == [0, 1]
        assert [file.name for file in tmp_path.glob("*-new")] == []


@pytest.mark.parametrize("act", ["store", "corroborate"])
def test_the_index_of_what_a_backup_took_back_is_no_index(act: str, tmp_path: Path) -> None:
    """After a backup was put in place, the same acts at the same instants leave the same events: all but writes do."""
    path, clock = tmp_path / "store.db", Clock()
    with open_memory(path, clock=clock) as memory:
        scope = memory.scope(user="ann")
        root, other, word = (scope.store(text) for text in ("Rain on Monday", "Clouds", "Take an umbrella"))
        memory.backup(tmp_path / "backup.db")

    def go_on(parent: ml.Unit) -> None:
        if act == "store":
            scope.store("Boots", depends_on=[parent])
        else:
            scope.corroborate(word, depends_on=[parent])
        scope.invalidate(root)

    with open_memory(path, clock=clock) as memory:
        scope = memory.scope(user="ann")
        go_on(root)
        save(from_tables(memory), str(path))
    shutil.copy(tmp_path / "backup.db", path)
    with open_memory(path, clock=clock) as memory:
        scope = memory.scope(user="ann")
        go_on(other)
        assert _loaded(path, memory) is None
        assert seen_by(KeptIndex(str(path)), memory) == said(from_tables(memory).structure)


def test_a_file_that_was_replaced_under_an_open_index_is_noticed(tmp_path: Path) -> None:
    kept = KeptIndex(":memory:")
    for words in (("Rain", "Snow"), ("Sun", "Wind", "Ice")):
        with open_memory() as memory:
            scope = memory.scope(user="ann")
            for above, word in pairwise(words):
                scope.store(f"Then {word}", depends_on=[scope.store(above)])
            assert seen_by(kept, memory) == said(from_tables(memory).structure)


def test_descendants_are_found(sound: Path) -> None:
    with open_memory(sound) as memory:
        index = from_tables(memory)
        assert index.descendants(1).tolist() == [3]
        assert index.descendants(2).tolist() == [3], "a weak edge leads down as well"
        assert index.descendants(4).tolist() == [1, 3], "what hangs on an equal version hangs on the newer one too"
        assert index.nbytes < 2000
