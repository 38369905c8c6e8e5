"""The first run of a recipe: a function that remembers what it returned, and how (row C4)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec

import msgspec

from memlineage.engine.frames import around, current, implied_parents, noting, remember, sources
from memlineage.engine.inputs import Target
from memlineage.engine.replay.recipes import Call, Input, Recipe, awaited, result_fields
from memlineage.model.ids import Ref
from memlineage.model.unit import Unit

if TYPE_CHECKING:
    from memlineage.engine.scope import Scope

__all__ = ["recipe_of"]

P = ParamSpec("P")


def recipe_of(
    scope: Scope, recipe: Recipe, options: Mapping[str, Any]
) -> Callable[P, Unit]:  # fmt: skip
    """The function of a recipe, which gives the unit that it made. An exception is not a result: nothing is written."""

    @functools.wraps(recipe.function, assigned=("__name__", "__qualname__", "__doc__", "__module__"))
    def make(*args: P.args, **kwargs: P.kwargs) -> Unit:
        return _Making(scope, recipe, options).made(args, kwargs)

    del make.__wrapped__  # it is called alike, and returns something else
    return make


class _Making:
    """One call."""

    def __init__(self, scope: Scope, recipe: Recipe, options: Mapping[str, Any]) -> None:
        self._scope = scope
        self._recipe = recipe
        self._options = options
        self._core = scope._parts.core
        self._walls = scope._acting.scope

    def made(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Unit:
        """Run the function on what was handed in, and remember what it returned."""
        Call.of(self._recipe.name, args, kwargs)  # what cannot be kept is refused before anything else
        known = {value: self._unit_of(value) for value in _texts((args, kwargs))}
        args, kwargs = _named(args, known), _named(kwargs, known)
        call = Call.of(self._recipe.name, args, kwargs)
        call.kept()
        units = {ref: self._read(ref) for ref in call.refs()}
        given, named = call.arguments(lambda ref: Input(units[ref]))
        caller = around(self._core)
        implied = implied_parents(self._core, self._walls)
        result, read = noting(self._core, current.get(), lambda: awaited(self._recipe.function, *given, **named))
        used = [ref for ref, wall in read.items() if self._walls.sees(wall) and ref not in (*units, *implied)]
        fields = result_fields(result, f"recipe {self._recipe.name!r}")
        parents = list(dict.fromkeys((*units, *implied, *used)))
        unit = self._write(call.moved(lambda ref: ref, used), fields, parents, bool(args or kwargs))
        if caller is not None:
            caller.take([unit])
        remember(self._core, (unit.content,), unit)
        return unit

    def _read(self, ref: Ref) -> Unit:
        """A unit that was handed in, if it may be read here."""
        found = self._scope._parts.inspection.get(self._scope._acting, Target(*ref))
        self._scope._acting.saw([found])
        return found

    def _unit_of(self, text: str) -> Ref | None:
        """The unit whose content a text is, where it is what a tracked call has just returned."""
        found = list(dict.fromkeys(sources(self._core, self._walls, [text])))
        return found[0] if len(found) == 1 and self._read(found[0]).content == text else None

    def _write(self, call: Call, fields: dict[str, Any], parents: list[Ref], spoken: bool) -> Unit:
        acting, parts = self._scope._acting, self._scope._parts
        creator = f"tool:{self._recipe.name}" if acting.is_host else acting.actor
        options = {"creator": creator, **self._options, "depends_on": parents}
        content = fields.pop("content")
        draft = parts.draft(acting, content, options | fields)
        draft = msgspec.structs.replace(draft, recipe=call.kept(), spoken=spoken)
        return parts.writing.store(acting, [draft])[0]


def _texts(value: Any) -> Iterator[str]:
    if type(value) is str:
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple) and not isinstance(value, Ref):
        for item in value:
            yield from _texts(item)


def _named(value: Any, known: Mapping[str, Ref | None]) -> Any:
    """The same with refs for texts that are contents of units."""
    if type(value) is str:
        return known.get(value) or value
    if isinstance(value, Mapping):
        return {key: _named(item, known) for key, item in value.items()}
    if isinstance(value, list | tuple) and not isinstance(value, Ref):
        return [_named(item, known) for item in value]
    return value
