"""Recipes: how a unit is made, kept with it as a name and arguments, so that it can be made again (row C4).

Of an argument that is a unit, the ref is kept and never what it says: on replay the function gets what stands in its
place. What a function reads besides is noted too, and found anew by the function itself when it runs again. Functions
live in the process, under their names; the store knows the names.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import date, time
from typing import Any, Final, Self

import msgspec
import orjson

from memlineage.engine.checks import check_json
from memlineage.engine.tools import check_cost
from memlineage.errors import InvalidInputError
from memlineage.model.ids import Ref, parse_ref
from memlineage.model.unit import Unit

__all__ = ["Call", "Input", "Recipe", "RecipeBook", "awaited", "read_call", "result_fields"]

_UNIT: Final = "$unit"
_FIELDS: Final = frozenset({"content", "confidence", "timestamp", "metadata", "context"})
_MOST: Final = 65_536
_DEEPEST: Final = 64


class Input(str):
    """What a recipe is handed for a unit: the unit's content as text, which knows the unit.

    Attributes:
        unit: the unit; its own attributes (`ref`, `metadata`, `confidence`, …) can be asked for here as well.
    """

    unit: Unit

    def __new__(cls, unit: Unit) -> Self:
        """The content of a unit."""
        text = super().__new__(cls, unit.content)
        text.unit = unit
        return text

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "unit":
            raise AttributeError(name)
        return getattr(self.unit, name)


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """A function that makes a unit of its arguments.

    Attributes:
        name: under which its units name it.
        function: takes arguments as it was called with, an `Input` for each unit; returns text, or a mapping with
            content, confidence, timestamp, metadata, context.
        cost: of one run, in the unit of your budgets.
        backup: name of the recipe that stands in, with the same arguments, when this one fails.
    """

    name: str
    function: Callable[..., Any]
    cost: float = 0.0
    backup: str | None = None


class RecipeBook:
    """Recipes by name. Registering again replaces."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Recipe] = {}

    def add(self, recipe: Recipe) -> None:
        """Make a recipe known."""
        check_cost(recipe.cost, f"recipe {recipe.name!r}")
        if not callable(recipe.function):
            raise InvalidInputError(f"recipe {recipe.name!r}: {recipe.function!r:.80} is not a function")
        with self._lock:
            self._known[recipe.name] = recipe

    def get(self, name: str | None) -> Recipe | None:
        """The recipe of a name."""
        return None if name is None else self._known.get(name)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a recipe as its unit keeps it.

    Attributes:
        name: of the recipe.
        args: by position; a unit as `{"$unit": ref}`.
        kwargs: by name, likewise.
        used: what the function read besides.
    """

    name: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    used: list[str] = []

    @classmethod
    def of(cls, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        """A call with these arguments. Raises `InvalidInputError` for one that could not be kept."""
        return cls(
            name=name,
            args=[_kept(value, name) for value in args],
            kwargs={key: _kept(value, name) for key, value in kwargs.items()},
        )

    def refs(self) -> Iterator[Ref]:
        """The units among the arguments, each once, in order."""
        found: dict[Ref, None] = {}
        for value in (*self.args, *self.kwargs.values()):
            found.update(dict.fromkeys(_refs(value)))
        yield from found

    def arguments(self, told: Callable[[Ref], Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as the function gets them; `told` gives what stands for a unit."""
        return [_given(value, told) for value in self.args], {k: _given(v, told) for k, v in self.kwargs.items()}

    def moved(self, to: Callable[[Ref], Ref], used: Sequence[Ref]) -> Call:
        """The same call with other versions as its arguments, and what was read besides this time."""
        args, kwargs = self.arguments(lambda ref: {_UNIT: str(to(ref))})
        return Call(name=self.name, args=args, kwargs=kwargs, used=[str(ref) for ref in used])

    def kept(self) -> str:
        """As it is stored: the same call is the same text."""
        check_json(msgspec.to_builtins(self), name=f"arguments of recipe {self.name!r}", limit=_MOST)
        return orjson.dumps(msgspec.to_builtins(self), option=orjson.OPT_SORT_KEYS).decode()


def read_call(recipe: str | None) -> Call | None:
    """The call that a unit keeps; None if it was not made by a recipe, or keeps something else."""
    if recipe is None:
        return None
    try:
        return msgspec.json.decode(recipe, type=Call)
    except msgspec.DecodeError:
        return None


def _kept(value: Any, name: str, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise InvalidInputError(
            f"an argument of recipe {name!r} is nested deeper than {_DEEPEST} levels, or holds itself; hand it less"
        )
    if isinstance(value, Input):
        return {_UNIT: str(value.unit.ref)}
    if isinstance(value, Unit):
        return {_UNIT: str(value.ref)}
    if isinstance(value, Ref):
        return {_UNIT: str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_kept(item, name, depth + 1) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: _kept(item, name, depth + 1) for key, item in value.items()}
    if isinstance(value, date | time):
        raise InvalidInputError(
            f"argument {value!r:.80} of recipe {name!r} cannot be kept for a replay; hand it the text that "
            ".isoformat() gives"
        )
    raise InvalidInputError(
        f"argument {value!r:.80} of recipe {name!r} cannot be kept for a replay; hand it units, text, "
        "numbers, lists, or mappings whose names do not begin with $"
    )


def _refs(value: Any) -> Iterator[Ref]:
    if isinstance(value, dict) and set(value) == {_UNIT}:
        yield _ref(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _refs(item)
    elif isinstance(value, list):
        for item in value:
            yield from _refs(item)


def _ref(value: dict[str, str]) -> Ref:
    ident, version = parse_ref(value[_UNIT])
    return Ref(ident, version or 1)


def _given(value: Any, told: Callable[[Ref], Any]) -> Any:
    if isinstance(value, dict) and set(value) == {_UNIT}:
        return told(_ref(value))
    if isinstance(value, dict):
        return {key: _given(item, told) for key, item in value.items()}
    return [_given(item, told) for item in value] if isinstance(value, list) else value


def result_fields(result: Any, who: str) -> dict[str, Any]:
    """What a recipe, a tool or a model answered, as fields of a draft. Raises `InvalidInputError` for anything else."""
    if isinstance(result, str):
        return {"content": str(result)}
    if isinstance(result, Mapping) and "content" in result and set(result) <= _FIELDS:
        return dict(result)
    raise InvalidInputError(
        f"{who} returned {result!r:.80}; expected text, or a mapping with content and any of "
        f"{', '.join(sorted(_FIELDS - {'content'}))}"
    )


def awaited(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function answers; one that is asynchronous runs to its end here, beside a loop that may be running."""
    result = function(*args, **kwargs)
    if not inspect.iscoroutine(result):
        return result
    import asyncio  # a program without coroutines does not pay for it

    with ThreadPoolExecutor(1, thread_name_prefix="memlineage-recipe") as pool:  # what it reads there is noted here
        return pool.submit(copy_context().run, asyncio.run, result).result()
