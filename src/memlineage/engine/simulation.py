"""What another policy would change in a store: each unit's own reads, and the decisions that were logged.

Both policies are asked in one snapshot of the store and at one instant, and nothing is written (engine/worlds.py).
Whatever decides on units goes through a `Judge`: version numbers in, what is decided out. Nothing else here knows how.

A decision that was logged is judged anew by both, as it was asked then, about the unit as it is now. Some cannot be:
what was asked is not kept, the unit is not there, or a rule reads a value that was not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
import orjson

from memlineage.engine.asking import Asked
from memlineage.engine.enforcement import as_enforced, within_walls
from memlineage.engine.facts import LineageFacts, unit_facts
from memlineage.engine.worlds import Pair, World, worlds
from memlineage.model.time import from_us
from memlineage.model.unit import Unit
from memlineage.policy import Facts, ObligationKind, PolicySet, Verb
from memlineage.policy.kinds import Origin
from memlineage.policy.language.rules import fields_of
from memlineage.policy.trying.simulate import Change, Decided, Tally, change
from memlineage.recall.embedding import Embedder
from memlineage.store.database import Connection, Database, fetch
from memlineage.store.outbox import subscribed_owners

__all__ = ["READS", "Judge", "Logged", "LoggedChange", "Simulation", "UnitChange", "one_by_one", "simulate"]

READS: Final[Mapping[str, bool]] = {"reliance": False, "critical": True}
"""How each unit is read: to be relied on, and the same in a critical matter."""
_BATCH: Final = 1_000
_NEWEST: Final = 2**63 - 1
_LOGGED: Final = "SELECT d, id, at_us, action, ref, asked FROM decision WHERE d < ? ORDER BY d DESC LIMIT ?"
_NUMBERS: Final = (
    "SELECT v.n, x.value FROM json_each(?) x"
    " JOIN unit u ON u.id = substr(x.value, 1, instr(x.value, '@') - 1)"
    " JOIN version v ON v.u = u.u AND v.version = CAST(substr(x.value, instr(x.value, '@') + 1) AS INTEGER)"
)
_ALWAYS_TOLD: Final = frozenset({"principal", "actor", "actor_may_claim"})
"""What every request says: where it is missing, it was kept back, and more may have been."""
_OWNED: Final = (
    "SELECT u.u, u.current FROM unit u JOIN version v ON v.n = u.current"
    " WHERE u.u > ? AND v.content IS NOT NULL ORDER BY u.u LIMIT ?"
)


class UnitChange(msgspec.Struct, frozen=True, kw_only=True):
    """A unit whose own user would be answered otherwise.

    Attributes:
        ref: its current version.
        read: how it is read, see `READS`.
        change: what is different.
    """

    ref: str
    read: str
    change: Change


class LoggedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A logged decision that would be another.

    Attributes:
        id: of the decision.
        at: when it was made.
        action: what was requested.
        unit: ref of what it was about; None for an action.
        change: what is different.
    """

    id: str
    at: datetime
    action: str
    unit: str | None
    change: Change


class Logged(msgspec.Struct, frozen=True, kw_only=True):
    """What another policy would change in decisions that were logged.

    Attributes:
        judged: how many were judged anew.
        untold: of how many it cannot be told.
        counts: how many change, by what changes, the most important first.
        changes: the first of them, the most important first, then the latest first.
    """

    judged: int
    untold: int
    counts: Mapping[str, int]
    changes: tuple[LoggedChange, ...]


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """What another policy would change in a store.

    Attributes:
        old: revision of the policy that is in force, or is supposed to be.
        new: revision of the other.
        copied: whether the new one moves what is stored, so that it was tried on a copy.
        units: how many were looked at: all current versions that are not erased.
        counts: per read, how many decisions change, by what changes, the most important first.
        changes: the first of them, the most important first.
        logged: the same of the decision log.
    """

    old: str
    new: str
    copied: bool
    units: int
    counts: Mapping[str, Mapping[str, int]]
    changes: tuple[UnitChange, ...]
    logged: Logged


Judge = Callable[[World, Sequence[int], bool], Sequence[Decided]]
"""What is decided on the reads of these versions by their own users, in a critical matter or not; in the same order."""


def one_by_one(world: World, numbers: Sequence[int], critical: bool) -> list[Decided]:
    """The judge that asks enforcement about each unit, as every read does."""
    units = world.units(numbers)
    return [Decided.of(world.read(n, units[n], critical=critical)) for n in numbers]


def simulate(
    database: Database,
    embedder: Embedder,
    old: PolicySet,
    new: PolicySet,
    *,
    now_us: int,
    limit: int,
    judge: Judge = one_by_one,
) -> Simulation:
    """What would be decided otherwise if the store were under `new` instead of `old`.

    Args:
        database: the store, of which nothing is written.
        embedder: the one that filled it, or what stands for it: nothing is embedded.
        old: what to compare with; most often what the store is under.
        new: the other policy.
        now_us: the instant of all reads, in microseconds.
        limit: most changes that are told one by one.
        judge: what decides.
    """
    with worlds(database, embedder, old, new, now_us=now_us) as pair:
        before, after, copied = pair
        tallies = {read: Tally[UnitChange](limit) for read in READS}
        units = 0
        for numbers in _batches(before.snapshot.connection):
            units += len(numbers)
            for read, critical in READS.items():
                olds, news = (judge(world, numbers, critical) for world in (before, after))
                for n, one, other in zip(numbers, olds, news, strict=True):
                    found = change(one, other)
                    if found is not None:
                        ref = str(before.units(numbers)[n].ref)
                        tallies[read].add(found.what, UnitChange(ref=ref, read=read, change=found))
        first = Tally[UnitChange](limit)
        for tally in tallies.values():
            for item in tally.first:
                first.add(item.change.what, item)
        return Simulation(
            old=old.revision,
            new=new.revision,
            copied=copied,
            units=units,
            counts={read: tally.counts for read, tally in tallies.items()},
            changes=first.first,
            logged=_logged(pair, limit),
        )


def _batches(connection: Connection) -> Iterator[list[int]]:
    """The numbers of all current versions that are not erased, in the order of their units."""
    last = 0
    while True:
        rows = fetch(connection, _OWNED, (last, _BATCH))
        if not rows:
            return
        yield [n for _, n in rows]
        last = rows[-1][0]


# Logged decisions ----------------------------------------------------------------------------------------------------


def _logged(pair: Pair, limit: int) -> Logged:
    """Every logged decision, the latest first, judged anew in both worlds."""
    tally = Tally[LoggedChange](limit)
    judged = untold = 0
    seeing = {world.policies.revision: _sees_values(world.policies) for world in pair.worlds}
    for lines in _lines(pair.before.snapshot.connection):
        refs = [ref for line in lines for ref in _about(line)]
        found = [_units(world, refs) for world in pair.worlds]
        for line in lines:
            decided = [
                _anew(world, line, units, whole=seeing[world.policies.revision])
                for world, units in zip(pair.worlds, found, strict=True)
            ]
            if decided[0] is None or decided[1] is None:
                untold += 1
                continue
            judged += 1
            changed = change(decided[0], decided[1])
            if changed is not None:
                at = from_us(line.at_us)
                told = LoggedChange(id=line.id, at=at, action=line.action, unit=line.ref, change=changed)
                tally.add(changed.what, told)
    return Logged(judged=judged, untold=untold, counts=tally.counts, changes=tally.first)


class _Line(NamedTuple):
    """One line of the log; `asked` is None where it was not kept, or not all that every request says."""

    id: str
    at_us: int
    action: str
    ref: str | None
    asked: Asked | None


def _lines(connection: Connection) -> Iterator[list[_Line]]:
    """The log in batches, the latest first. Where it was not sure that a line had been written, it stands twice."""
    seen: set[str] = set()
    last = _NEWEST
    while True:
        rows = fetch(connection, _LOGGED, (last, _BATCH))
        if not rows:
            return
        lines = [_Line(name, at_us, action, ref, _readable(asked)) for _, name, at_us, action, ref, asked in rows]
        fresh = {line.id: line for line in lines if line.id not in seen}
        seen |= fresh.keys()
        yield list(fresh.values())
        last = rows[-1][0]


def _readable(kept: bytes | None) -> Asked | None:
    if kept is None:
        return None
    try:
        asked = Asked.decode(kept)
    except msgspec.DecodeError:
        return None
    return None if _ALWAYS_TOLD - set(asked.context) else asked


def _sees_values(policies: PolicySet) -> bool:
    """Whether a rule asks for what a log may leave out: what arguments held, the metadata of what was refused."""
    read = {
        (field.origin, field.path.partition(".")[0]) for rule in policies.rules for field in fields_of(rule.condition)
    }
    return not read.isdisjoint({(Origin.CONTEXT, "arguments"), (Origin.UNIT, "metadata"), (Origin.NEW, "metadata")})


def _about(line: _Line) -> Iterator[str]:
    """The versions that a request is about: of an update the one that it would replace, and the one after it."""
    if line.ref is None or line.asked is None:
        return
    yield line.ref
    if line.action == Verb.UPDATE:
        yield _after(line.ref)


def _after(ref: str) -> str:
    unit, _, version = ref.partition("@")
    return f"{unit}@{int(version) + 1}" if version.isdecimal() else ref


def _units(world: World, refs: Iterable[str]) -> dict[str, tuple[int, Unit]]:
    """Those of these versions that there are, with their numbers."""
    rows = fetch(world.snapshot.connection, _NUMBERS, (orjson.dumps(sorted(set(refs))).decode(),))
    units = world.snapshot.units([n for n, _ in rows])
    return {ref: (n, units[n]) for n, ref in rows}


def _anew(world: World, line: _Line, units: Mapping[str, tuple[int, Unit]], *, whole: bool) -> Decided | None:
    """What is decided on a request now; None if it cannot be put together: all of it, where rules ask for all."""
    asked = line.asked
    if asked is None or (whole and _held_back(asked)):
        return None
    found = None if line.ref is None else units.get(line.ref)
    facts = _facts(world, asked, found, None if line.ref is None else units.get(_after(line.ref)))
    if facts is None:
        return None
    generation = world.snapshot.generation
    ageless = asked.context.get("inspecting") or (found is not None and found[1].waived)
    form = generation.ageless if asked.action == Verb.READ and ageless else generation.form
    made = form.decide(asked.request, facts, asked.budget, decision_id=line.id)
    told = subscribed_owners(world.snapshot.connection) if made.obliges(ObligationKind.NOTIFY_OWNER) else frozenset()
    if asked.action in (Verb.READ, Verb.ACT):
        return Decided.of(as_enforced(made, facts.unit.get("owner"), told))
    return Decided.of(within_walls(made, facts, told))


def _held_back(asked: Asked) -> bool:
    arguments = asked.context.get("arguments")
    return bool(asked.new) or (isinstance(arguments, Mapping) and None in arguments.values())


def _facts(world: World, asked: Asked, found: tuple[int, Unit] | None, later: tuple[int, Unit] | None) -> Facts | None:
    """What a request is about: the version as it is now, or as it was to be written."""
    context, now_us = asked.context, asked.now_us
    if asked.action == Verb.ACT:
        place = {name: context.get(name) for name in ("tenant", "user", "agent", "session")}
        return Facts(unit=place, context=context, now_us=now_us)
    if asked.action == Verb.UPDATE:
        new = asked.new or (None if later is None else unit_facts(later[1]))
        if found is None or new is None:
            return None
        return Facts(unit=new, new=new, old=unit_facts(found[1]), context=context, now_us=now_us)
    if asked.new:
        return Facts(unit=asked.new, new=asked.new, context=context, now_us=now_us)
    if found is None:
        return None
    n, unit = found
    lineage = LineageFacts(world.snapshot.graph, n, unit.standing) if asked.action == Verb.READ else {}
    return Facts(unit=unit_facts(unit), context=context, lineage=lineage, now_us=now_us)
