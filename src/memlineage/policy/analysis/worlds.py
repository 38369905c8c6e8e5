"""A world: a value for each variable that matters, as the facts and the request that the interpreter judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memlineage.model.principal import kind_of
from memlineage.policy.analysis.atoms import DOMAIN, FALSE, NOW, TRUE, UNKNOWN, Atom, Variable
from memlineage.policy.analysis.texts import any_fits
from memlineage.policy.combining import Request
from memlineage.policy.facts import Facts, Notes
from memlineage.policy.interpreter import holds
from memlineage.policy.kinds import RANKS, Kind

__all__ = ["World", "facts_of", "request_of", "truth_of"]

World = Mapping[Variable, Any]
"""Values by variable; a variable that is not there, or None, is not known."""


def facts_of(world: World, now_us: int) -> Facts:
    """The facts of a world. The kind of a principal is told with the principal."""
    tables: dict[str, dict[str, Any]] = {"unit": {}, "old": {}, "context": {}, "lineage": {}}
    for variable, value in world.items():
        if variable.place in tables and value is not None:
            tables[variable.place][variable.path] = _told(variable, value)
    for place, path, kind in (("unit", "creator", "creator_kind"), ("old", "creator", "creator_kind"),
                              ("context", "principal", "principal_kind")):  # fmt: skip
        if path in tables[place]:
            tables[place][kind] = kind_of(tables[place][path])
    return Facts(
        unit=tables["unit"],
        old=tables["old"] or None,
        context=tables["context"],
        lineage=tables["lineage"],
        now_us=world.get(NOW, now_us),
    )


def request_of(world: World, verb: str) -> Request:
    """The request of a world."""
    return Request(action=verb, domain=world.get(DOMAIN))


def _told(variable: Variable, value: Any) -> Any:
    return RANKS[variable.kind](value).name if variable.kind in RANKS else value


def truth_of(atom: Atom, world: World, now_us: int) -> int:
    """The truth of a statement in a world, as a bit. What has no value is missing; now is always there."""
    shape = atom.shape
    values: list[Any] = [
        None if v is None else now_us if v is NOW and v not in world else world.get(v) for v in atom.variables
    ]
    if any(value is None and variable is not None for value, variable in zip(values, atom.variables, strict=True)):
        if shape == "free":
            return _judged(atom, world, now_us)
        return atom.missed
    if shape in ("fits", "named"):
        texts = values[0] if atom.about[0].kind is Kind.TEXTS else (values[0],)
        return TRUE if any(any_fits(atom.apart, text) for text in texts) else FALSE
    if shape == "exists":
        return TRUE
    if shape == "is":
        return TRUE if values[0] else FALSE
    if shape == "bound":
        difference = (values[0] or 0) - (values[1] or 0)
        return TRUE if difference < atom.limit or (not atom.strict and difference == atom.limit) else FALSE
    return _judged(atom, world, now_us)


def _judged(atom: Atom, world: World, now_us: int) -> int:
    """By the interpreter itself."""
    assert atom.compare is not None
    told = {variable: world[variable] for variable in atom.about if variable in world}
    truth = holds(atom.compare, facts_of(told, world.get(NOW, now_us)), Notes())
    return UNKNOWN if truth is None else TRUE if truth else FALSE
