"""What the decision log holds, and what is kept back from it.

Keeping back drops, and never leaks: a value that is kept back is in no column. Where another text of the same line has
it in it, that text is dropped as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple

import msgspec

from memlineage.engine.asking import Asked
from memlineage.engine.checks import check_count
from memlineage.errors import InvalidInputError
from memlineage.lineage.escape import plain
from memlineage.policy import Decision
from memlineage.policy.kinds import CONTEXT, Kind

__all__ = ["DecisionLogging", "Line", "Row", "row_of", "told_of"]

_ALWAYS: Final = ("id", "effect", "action", "revision")
_FIELDS: Final = frozenset(Decision.__struct_fields__) - set(_ALWAYS)
_BESIDES: Final = ("domain", "session", "budget", "arguments", "new")
_ASKED: Final = frozenset({"asked", *(f"asked.{name}" for name in (*CONTEXT, *_BESIDES))})
_PLAIN: Final = (str, int, float, bool)
_CUT: Final = 40
"""Of longer values, so many characters are looked for: a text may hold them shortened."""


class Line(NamedTuple):
    """One decision as it was made.

    Fields:
        at_us: when, in microseconds.
        decision: the answer.
        asked: the request; None where nobody asked, as when a rule of semantics.md itself refuses.
    """

    at_us: int
    decision: Decision
    asked: Asked | None = None


Row = tuple[str, int, str, str, str | None, bytes, bytes | None]
"""One line as the table has it: id, instant, action, effect, ref, body, asked."""


class DecisionLogging(msgspec.Struct, frozen=True, kw_only=True):
    """What is logged, and for how long.

    Attributes:
        keep: how many decisions the file keeps, at least; older ones go in steps of a tenth of that, or of a thousand.
        reads: `notable` logs reads that were not plainly allowed; `all` logs every one. Writes, other acts and actions
            are logged in any case.
        arguments: of an action's arguments, `names` keeps their names, `values` what they held too.
        mask: names of what is kept back: fields of a decision (`reasons`, `unit`, `support`, …), of the request
            (`asked.purpose`, `asked.session`, `asked.arguments`, …), or `asked` for all of that. What can be concluded
            from what is left is not kept back.
        redact: looks at each decision before it is written: returns it, another in its place, or None to have nothing
            written. If it fails, only id, instant, action, effect and policy revision are.
    """

    keep: int = 100_000
    reads: Literal["notable", "all"] = "notable"
    arguments: Literal["names", "values"] = "names"
    mask: AbstractSet[str] = frozenset()
    redact: Callable[[Decision], Decision | None] | None = None

    def __post_init__(self) -> None:
        check_count(self.keep, name="keep", least=1)
        _check_choice(self.reads, ("notable", "all"), name="reads")
        _check_choice(self.arguments, ("names", "values"), name="arguments")
        given: object = self.mask
        if not isinstance(given, AbstractSet | list | tuple):
            raise InvalidInputError(f"mask={given!r:.80} must be a set of names")
        known = _FIELDS | _ASKED
        unknown = sorted(str(name) for name in self.mask if str(name) not in known)
        if unknown:
            raise InvalidInputError(
                f"mask: {unknown[0]!r:.80} is nothing that a log holds; known are {', '.join(sorted(known))}"
            )
        if self.redact is not None and not callable(self.redact):
            raise InvalidInputError(f"redact={self.redact!r:.80} must be callable")


def _check_choice(given: object, known: tuple[str, ...], *, name: str) -> None:
    if given not in known:
        raise InvalidInputError(f"{name}={given!r:.80} is unknown; choose {' or '.join(map(repr, known))}")


def row_of(line: Line, options: DecisionLogging) -> Row | None:
    """What the table gets; None for nothing."""
    decision, asked = line.decision, line.asked
    if options.redact is not None:
        found, failed = None, True
        with suppress(Exception):  # whatever it raises, less is written, not more
            found = options.redact(decision)
            msgspec.json.encode(found)  # what cannot be written would fail every write from here on
            failed = False
        if failed or not isinstance(found, Decision | None):
            return _row(line.at_us, _bare(decision), None)
        if found is None:
            return None
        same = {name: getattr(decision, name) for name in _ALWAYS}
        decision = msgspec.structs.replace(found, **same)
    if options.mask:
        told = None if asked is None else told_of(asked, values=options.arguments == "values")
        return _masked(line, decision, told, frozenset(options.mask))
    if asked is None or "arguments" not in asked.context:  # as it is: most of a log are writes
        return _row(line.at_us, decision, None if asked is None else asked.encode())
    return _row(line.at_us, decision, msgspec.json.encode(told_of(asked, values=options.arguments == "values")))


def _row(at_us: int, decision: Decision, asked: bytes | None) -> Row:
    body = msgspec.json.encode(decision)
    return decision.id, at_us, decision.action, decision.effect.value, decision.unit, body, asked


def _bare(decision: Decision) -> Decision:
    return Decision(**{name: getattr(decision, name) for name in _ALWAYS})


def told_of(asked: Asked, *, values: bool = False) -> dict[str, Any]:
    """A request as it is kept: plain values only, and of arguments no more than may be."""
    context: dict[str, Any] = {name: value for name, value in asked.context.items() if isinstance(value, _PLAIN)}
    arguments = asked.context.get("arguments")
    if isinstance(arguments, Mapping):
        context["arguments"] = dict(arguments) if values else dict.fromkeys(arguments)
    told: dict[str, Any] = {"action": asked.action, "now_us": asked.now_us, "context": context}
    for name in ("domain", "session", "budget"):
        value = getattr(asked, name)
        if value is not None:
            told[name] = value
    if asked.new:
        told["new"] = asked.new
    return told


# Keeping back --------------------------------------------------------------------------------------------------------


def _masked(line: Line, decision: Decision, told: dict[str, Any] | None, mask: AbstractSet[str]) -> Row:
    secrets = sorted({text for text in _secrets(line, mask) if text})
    dropped = {name for name in mask if name in _FIELDS}
    if mask & {"asked", "asked.arguments"}:
        dropped.add("approval")  # a hash over them, which could be tried out
    kept: dict[str, Any] = {"masked": sorted(mask)}
    for name, value in msgspec.to_builtins(decision).items():
        if name in _ALWAYS:
            kept[name] = value
        else:
            default = () if isinstance(value, list | tuple) else None
            kept[name] = _STANDING_IN.get(name, default) if name in dropped else _without(value, secrets)
    if told is not None:
        told = None if "asked" in mask else _told_without(told, mask, secrets)
    body = msgspec.json.encode(kept)
    asked = None if told is None else msgspec.json.encode(told)
    return decision.id, line.at_us, decision.action, decision.effect.value, kept["unit"], body, asked


_STANDING_IN: Final = {"score": 1.0, "cost": 0.0, "stale_only": False}


def _told_without(told: Mapping[str, Any], mask: AbstractSet[str], secrets: Collection[str]) -> dict[str, Any]:
    hidden = {name.removeprefix("asked.") for name in mask if name.startswith("asked.")}
    found = {name: value for name, value in told.items() if name not in hidden}
    found["context"] = {
        name: value for name, value in told["context"].items() if name not in hidden and not _holds_any(value, secrets)
    }
    for name in ("domain", "session", "new"):
        if name in found and _holds_any(found[name], secrets):
            del found[name]
    return found


def _secrets(line: Line, mask: AbstractSet[str]) -> Iterator[str]:
    """Every text that must not be anywhere in the line."""
    for name in mask & _FIELDS:
        yield from _texts(msgspec.to_builtins(getattr(line.decision, name)))
    if "unit" in mask and line.decision.unit is not None:
        yield line.decision.unit.partition("@")[0]
    asked = line.asked
    if asked is None:
        return
    for name, value in _free(asked):
        if mask & {"asked", f"asked.{name}"}:
            yield from _texts(value)


def _free(asked: Asked) -> Iterator[tuple[str, Any]]:
    """What a request says in words of its own: not truth values, ranks, and words of the language."""
    for name, value in asked.context.items():
        spec = CONTEXT.get(name)
        if spec is None or (spec.choices is None and spec.kind in (Kind.TEXT, Kind.NUMBER)):
            yield name, value
    yield from (("domain", asked.domain), ("session", asked.session), ("new", asked.new))
    if asked.budget is not None:
        yield "budget", asked.budget.max_cost


def _texts(value: Any) -> Iterator[str]:
    """The texts and numbers in a value, as they may stand in another text."""
    if isinstance(value, str):
        yield value[:_CUT]
        yield plain(value)[:_CUT]
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int | float):
        yield from (str(value), f"{value:g}")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)[:_CUT]
            yield from _texts(inner)
    elif isinstance(value, Iterable):
        for inner in value:
            yield from _texts(inner)


def _without(value: Any, secrets: Collection[str]) -> Any:
    """A value without what holds something that is kept back: of several, those that do."""
    if isinstance(value, list | tuple):
        return [item for item in value if not _holds_any(item, secrets)]
    return None if isinstance(value, str) and _holds_any(value, secrets) else value


def _holds_any(value: Any, secrets: Collection[str]) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_any(inner, secrets) for pair in value.items() for inner in pair)
    if isinstance(value, list | tuple):
        return any(_holds_any(inner, secrets) for inner in value)
    text = f"{value:g} {value}" if isinstance(value, float) else str(value)
    return any(secret in text for secret in secrets)
