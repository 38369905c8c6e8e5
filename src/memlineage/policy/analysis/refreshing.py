"""Refreshes that do not cure what they are asked for: the fresh version is as bad as the old one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from memlineage.model.state import Status
from memlineage.policy.analysis.atoms import FALSE, TRUE, Atoms, Formula, Variable, need
from memlineage.policy.analysis.entries import Entry
from memlineage.policy.analysis.finding import Finding, Fix, made
from memlineage.policy.analysis.study import Study
from memlineage.policy.analysis.texts import Undecided
from memlineage.policy.kinds import Kind, Origin
from memlineage.policy.rule import Compare, Consequence, Field, Literal, Mode, TimeSince, Verb

__all__ = ["refresh_loops"]

# What a fresh version has in common with the one that it replaces, and what is known of its times and state.
_KEPT: Final = frozenset(
    ("id", "kind", "tags", "creator", "owner", "subject", "key", "tenant", "user", "agent", "session", "visibility",
     "pinned", "lineage.creator_id")
)  # fmt: skip
_FRESH: Final = ("lineage.timestamp", "lineage.recorded_at", "valid_from")
_STATE: Final = frozenset({"status", "standing"})
_SECOND: Final = Literal(value=1.0, kind=Kind.SECONDS)
_NOTHING: Final = Literal(value=0.0, kind=Kind.SECONDS)
_MOST: Final = 40


def refresh_loops(study: Study) -> Iterator[Finding]:
    """Rules that ask again for what was just fetched."""
    rules = [
        entry
        for entry in study.entries.all
        if entry.rule.action is Consequence.REFRESH and entry.rule.mode is Mode.ENFORCE and Verb.READ in entry.rule.on
    ]
    fresh = _fresh(study.entries.atoms)
    for entry in rules:
        try:
            world = study.world([*entry.certain, *fresh])
            if world is None:
                continue
            same = _unchanged(entry)
            others = () if same else _partners(study, entry, rules, fresh)
        except Undecided:
            study.undecided["refresh_loop"] += 1
            continue
        if not same and others is None:
            continue
        rule = entry.rule
        involved = [entry, *(others or ())]
        shows = (f"this version is a second old, and {rule.name} asks for another",)
        witness = study.witness(world, Verb.READ, involved, shows, extra=_times())
        if not study.fires(witness, rule, certainly=True):
            study.unchecked["refresh_loop"] += 1
            continue
        named = tuple(one.rule for one in involved)
        if others:
            names = " or ".join(one.name for one in named)
            message = f"whatever the refresh brings, {names} asks for another one at once"
            fix = Fix(text=f"leave room between {names}, so that some fresh value satisfies all of them")
        else:
            message = f"{rule.name} fires on the fresh version as it did on the old one"
            fix = Fix(text=f"let {rule.name} look at an age of more than a second, or at what a refresh changes")
        yield made("refresh_loop", named, message, fix, witness)


def _times() -> list[Variable]:
    return [Variable("unit", "lineage.timestamp", Kind.TIME)]


def _fresh(atoms: Atoms) -> list[Formula]:
    """The version is of the last second, in force, and nothing speaks against it."""
    made_of: list[Formula] = []
    for path in _FRESH:
        age = TimeSince(origin=Origin.UNIT, path=path)
        made_of.append(need(atoms.of(Compare(operator="<=", left=age, right=_SECOND)), TRUE))
        made_of.append(need(atoms.of(Compare(operator=">", left=age, right=_NOTHING)), TRUE))
    status = Field(origin=Origin.UNIT, path="status", kind=Kind.TEXT)
    active = Literal(value=Status.ACTIVE.value, kind=Kind.TEXT)
    made_of.append(need(atoms.of(Compare(operator="==", left=status, right=active)), TRUE))
    for origin in (Origin.UNIT, Origin.LINEAGE):
        standing = Field(origin=origin, path="standing", kind=Kind.STANDING)
        supported = Literal(value=0, kind=Kind.STANDING)
        made_of.append(need(atoms.of(Compare(operator="==", left=standing, right=supported)), TRUE))
    return made_of


def _unchanged(entry: Entry) -> bool:
    """Whether the rule looks only at what a refresh leaves as it is, at times that are known, and at the request."""
    return all(
        variable.place in ("context", "request")
        or (variable.place == "unit" and variable.path in _KEPT | _STATE | frozenset(_FRESH))
        or (variable.place == "lineage" and variable.path == "standing")
        for variable in entry.variables
    )


def _partners(study: Study, entry: Entry, rules: Sequence[Entry], fresh: Sequence[Formula]) -> tuple[Entry, ...] | None:
    """Other rules that leave, together with this one, no fresh version of its target in peace; None if none do."""
    about = [need(part, TRUE) for part in entry.parts[: entry.about]]
    chosen = [one for one in rules if one is not entry and one.number > entry.number][:_MOST]

    def quiet(some: Sequence[Entry]) -> bool:
        nothing = [_false(one) for one in (entry, *some)]
        return study.world([*about, *fresh, *nothing]) is not None

    if not chosen or quiet(chosen):
        return None
    for one in list(chosen):
        fewer = [other for other in chosen if other is not one]
        if not quiet(fewer):
            chosen = fewer
    return tuple(chosen)


def _false(entry: Entry) -> Formula:
    return ("any", tuple(need(part, FALSE) for part in entry.parts))
