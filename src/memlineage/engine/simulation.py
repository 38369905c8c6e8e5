"""What another policy would change in a store: each unit's own reads, and the decisions that were logged.

Both policies are asked in one snapshot of the store and at one instant, and nothing is written (engine/worlds.py).
Whatever decides on units goes through a `Judge`: version numbers in, what is decided out. Nothing else here knows how.

A decision that was logged is judged anew by both, as it was asked then. Of some that cannot be: what was asked is not
kept, the unit is gone, or a rule reads a value that was not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from memlineage.engine.asked_again import asked_again
from memlineage.engine.asking import Asked
from memlineage.engine.enforcement import as_enforced, within_walls
from memlineage.engine.worlds import Pair, World, worlds
from memlineage.model.time import from_us
from memlineage.policy import Decision, PolicySet, Verb
from memlineage.policy.kinds import Origin
from memlineage.policy.language.rules import fields_of
from memlineage.policy.trying.simulate import Change, Decided, Tally, change
from memlineage.recall.embedding import Embedder
from memlineage.store.database import Connection, Database, fetch

__all__ = ["READS", "Judge", "Logged", "LoggedChange", "Simulation", "UnitChange", "one_by_one", "simulate"]

READS: Final[Mapping[str, bool]] = {"reliance": False, "critical": True}
"""How each unit is read: to be relied on, and the same in a critical matter."""
_BATCH: Final = 1_000
_LOGGED: Final = "SELECT id, at_us, body, asked FROM decision ORDER BY d DESC"
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
    blind = {world.policies.revision: _blind_to_values(world.policies) for world in (pair.before, pair.after)}
    seen: set[str] = set()
    for identity, at_us, body, kept in pair.before.snapshot.connection.execute(_LOGGED):
        if identity in seen:  # where it was not sure whether a line had been written, it was written again
            continue
        seen.add(identity)
        decision, asked = _readable(body, kept)
        decided = [
            None if asked is None or decision is None
            else _anew(world, decision, asked, whole=not blind[world.policies.revision])
            for world in (pair.before, pair.after)
        ]  # fmt: skip
        if decision is None or decided[0] is None or decided[1] is None:
            untold += 1
            continue
        judged += 1
        found = change(decided[0], decided[1])
        if found is not None:
            item = LoggedChange(
                id=identity, at=from_us(at_us), action=decision.action, unit=decision.unit, change=found
            )  # fmt: skip
            tally.add(found.what, item)
    return Logged(judged=judged, untold=untold, counts=tally.counts, changes=tally.first)


def _readable(body: bytes, kept: bytes | None) -> tuple[Decision | None, Asked | None]:
    """A logged decision, and what was asked if that was kept and says what every request says."""
    try:
        decision = msgspec.json.decode(body, type=Decision)
        asked = None if kept is None else Asked.decode(kept)
    except msgspec.DecodeError:
        return None, None
    return decision, None if asked is None or _ALWAYS_TOLD - set(asked.context) else asked


def _blind_to_values(policies: PolicySet) -> bool:
    """Whether no rule asks for what a log may leave out: what arguments held, the metadata of what was refused."""
    read = [
        (field.origin, field.path.partition(".")[0]) for rule in policies.rules for field in fields_of(rule.condition)
    ]
    return not {(Origin.CONTEXT, "arguments"), (Origin.UNIT, "metadata"), (Origin.NEW, "metadata")} & set(read)


def _anew(world: World, decision: Decision, asked: Asked, *, whole: bool) -> Decided | None:
    """What is decided on a request now; None if it cannot be put together any more: all of it, where that is asked."""
    again = asked_again(world.snapshot, decision, asked)
    if isinstance(again, str) or (whole and again.unknown):
        return None
    generation = world.snapshot.generation
    form = generation.ageless if again.facts.context.get("inspecting") else generation.form
    made = form.decide(again.request, again.facts, again.budget, decision_id=decision.id)
    if asked.action in (Verb.READ, Verb.ACT):
        return Decided.of(as_enforced(made))
    return Decided.of(within_walls(made, again.facts))
