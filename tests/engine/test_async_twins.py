"""`AsyncMemory` and `AsyncScope` are derived from `Memory` and `Scope`, never written: these tests hold them to it.

`python tests/engine/test_async_twins.py` writes both files anew.
"""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ENGINE = REPOSITORY / "src" / "memlineage" / "engine"
CURE = "run: python tests/engine/test_async_twins.py"


class Twin(NamedTuple):
    """What is derived: from which class of which module, what its counterpart keeps that as, its base there, and the
    classes of verbs that it is made of.
    """

    original: str
    module: str
    inner: str
    base: str
    parts: tuple[Any, ...] = ()

    @property
    def twin_module(self) -> str:
        """The module of the counterpart, under `memlineage.engine`."""
        package, dot, name = self.module.rpartition(".")
        return f"{package}{dot}async_{name}"

    @property
    def file(self) -> Path:
        """Where the counterpart lies."""
        return ENGINE / f"{self.twin_module.replace('.', '/')}.py"

    @property
    def text(self) -> str:
        """The source of the original: read, not imported, so that a stale counterpart cannot stand in the way."""
        return (ENGINE / f"{self.module.replace('.', '/')}.py").read_text(encoding="utf-8")

    @property
    def bases(self) -> list[str]:
        """Base classes of the counterpart: those of its parts, which are made alike."""
        return [f"Async{part.original}" for part in self.parts] or [self.base]


def parts_of(inner: str, base: str, **parts: str) -> tuple[Twin, ...]:
    """The classes of verbs that a facade is made of, each with the module it stands in."""
    return tuple(Twin(original, f"verbs.{module}", inner, base) for module, original in parts.items())


ON_SCOPE = parts_of(
    "_scope", "AsyncActing", repair="RepairVerbs", disputes="DisputeVerbs", credence="CredenceVerbs",
    compensation="CompensationVerbs", chains="ChainVerbs", then="ThenVerbs",
)  # fmt: skip
ON_MEMORY = parts_of(
    "_memory", "AsyncOpening", checks="CheckVerbs", contradictions="ContradictionVerbs", owners="OwnerVerbs",
    past="PastVerbs",
)  # fmt: skip
FACADES = [
    Twin("Memory", "memory", "_memory", "AsyncOpening", ON_MEMORY),
    Twin("Scope", "scope", "_scope", "AsyncActing", ON_SCOPE),
]
VIEWS = [Twin("MemoryView", "past_view", "_view", "AsyncLooking")]
TWINS = [*FACADES, *VIEWS, *ON_MEMORY, *ON_SCOPE]
# Nothing is read or written by these, so they are not awaited; the value is what their result is wrapped in.
AT_ONCE = {"scope": "AsyncScope", "acting_as": "AsyncScope", "step": "AsyncStep"}
# They decorate functions; what they decorate is awaited.
DECORATORS = {"track", "recipe"}
# Awaited, and what comes of it is awaited in turn; the value is what their result is wrapped in.
WRAPPED = {"as_of": "AsyncMemoryView"}
# Written by hand in `asynchronous`.
BY_HAND = {"close"}
# Functions that a worker will call, and that may be coroutine functions.
CALLED_BACK = {
    "build_context": {"count"},
    "register_tool": {"run", "refresh", "compensate"},
    "register_contradiction": {"check"},
    "conflicts": {"check"},
    "subscribe": {"handler"},
    "entry_check": {"where"},
    "standing_check": {"where", "check"},
    "start_checks": {"on_report"},
    "replay": {"model", "progress"},
}
OPEN_DOC = "            workers: threads in which the verbs run; see `memlineage.engine.workers` for why four.\n"

Function = ast.FunctionDef


# Deriving ----------------------------------------------------------------------------------------------------------


def methods(twin: Twin) -> Iterator[Function]:
    """Public methods and properties of the original, in order."""
    tree = ast.parse(twin.text)
    [owner] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == twin.original]
    yield from (node for node in owner.body if isinstance(node, Function) and not node.name.startswith("_"))


def decorated(function: Function, name: str) -> bool:
    return any(ast.unparse(decorator) == name for decorator in function.decorator_list)


def handed_on(function: Function) -> str:
    """The parameters as arguments of a call with the same parameters."""
    called_back = CALLED_BACK.get(function.name, set())

    def value(name: str) -> str:
        return f"self._workers.bridged({name})" if name in called_back else name

    given = [value(item.arg) for item in (*function.args.posonlyargs, *function.args.args)[1:]]
    given += [f"{item.arg}={value(item.arg)}" for item in function.args.kwonlyargs]
    given += [f"**{function.args.kwarg.arg}"] if function.args.kwarg else []
    return ", ".join(given)


def doc(function: Function, more: str = "") -> str:
    text = ast.get_docstring(function, clean=False) or ""
    if more:
        before, raises, after = text.partition("\n\n        Raises:")
        assert raises, "open tells what it raises"
        text = f"{before}\n{more.rstrip()}{raises}{after}"
    return f'        """{text}"""\n'


def derived(twin: Twin, function: Function) -> str:
    """One method of the counterpart."""
    name, returns = function.name, ast.unparse(function.returns) if function.returns else "None"
    arguments = ast.unparse(function.args)
    call = f"self.{twin.inner}.{name}({handed_on(function)})"
    if decorated(function, "property"):
        head = f"    @property\n    def {name}(self) -> {returns}:\n"
        return f"{head}{doc(function)}        return self.{twin.inner}.{name}\n"
    if decorated(function, "classmethod"):
        assert name == "open", f"{name}: say in `derived` what becomes of this classmethod"
        head = f"    @classmethod\n    def open({arguments}, workers: int = WORKERS) -> Self:\n"
        call = f"Memory.open({handed_on(function)})"
        return f"{head}{doc(function, OPEN_DOC)}        return cls(lambda: {call}, workers)\n"
    if decorated(function, "overload"):
        wait = "" if name in AT_ONCE else "async "
        return f"    @overload\n    {wait}def {name}({arguments}) -> {returns}: ...\n"
    if name == "recipe":
        awaited = returns.replace("Callable[P, Unit]", "Callable[P, Awaitable[Unit]]")
        head = f"    def {name}({arguments}) -> {awaited}:\n"
        return f"{head}{doc(function)}        return self._recipe({call})\n"
    if name == "track":
        head = f"    def {name}({arguments}) -> {returns}:\n"
        return f'{head}{doc(function)}        return self._track(render, sample, {{"creator": creator, **options}})\n'
    if name in AT_ONCE:
        made = AT_ONCE[name]
        return f"    def {name}({arguments}) -> {made}:\n{doc(function)}        return {made}(self._workers, {call})\n"
    if name in WRAPPED:
        made = WRAPPED[name]
        head = f"    async def {name}({arguments}) -> {made}:\n{doc(function)}"
        return f"{head}        return {made}(self._workers, await self._workers.run(lambda: {call}))\n"
    facades = names_in([function]) & {"Scope", "Memory", "MemoryView", "Step", "Self"}
    assert not facades, f"{name}: say in AT_ONCE or in `derived` how {facades} is wrapped and unwrapped"
    head = f"    async def {name}({arguments}) -> {returns}:\n"
    work = call.removesuffix("()") if call.endswith("()") else f"lambda: {call}"
    return f"{head}{doc(function)}        return await self._workers.run({work})\n"


def names_in(functions: list[Function]) -> set[str]:
    """Names that the signatures need."""
    needed: set[str] = set()
    for function in functions:
        parts: list[ast.AST | None] = [function.args, function.returns]
        needed |= {n.id for part in parts if part is not None for n in ast.walk(part) if isinstance(n, ast.Name)}
    return needed


def imports(twin: Twin, needed: set[str]) -> tuple[list[str], list[str]]:
    """The original's imports of these names, and those that only type checkers read."""
    tree = ast.parse(twin.text)
    checking = [node for node in tree.body if isinstance(node, ast.If)]
    own = {t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)}

    def kept(nodes: list[ast.stmt]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (f"import {a.name}" for a in node.names if a.name.partition(".")[0] in needed)
            elif isinstance(node, ast.ImportFrom):
                yield from (
                    f"from {node.module} import {a.name}" + (f" as {a.asname}" if a.asname else "")
                    for a in node.names
                    if (a.asname or a.name) in needed
                )

    real = [*kept(tree.body), *(f"from memlineage.engine.{twin.module} import {name}" for name in sorted(own & needed))]
    return real, [line for block in checking for line in kept(block.body)]


def source(twin: Twin) -> str:
    """The whole file, formatted as everything is."""
    name = f"Async{twin.original}"
    every = [function for function in methods(twin) if function.name not in BY_HAND]
    real, checking = imports(twin, names_in(every))
    body = "\n".join(derived(twin, function) for function in every)
    if twin.parts:
        real += [f"from memlineage.engine.{p.twin_module} import Async{p.original}" for p in twin.parts]
    else:
        real += [f"from memlineage.engine.asynchronous import {twin.base}"]
    if "cls(lambda: Memory" in body:
        real += ["from memlineage.engine.workers import WORKERS", "from typing import Self"]
        real += ["from memlineage.engine.async_scope import AsyncScope", "from memlineage.engine.memory import Memory"]
    if twin in VIEWS:
        real += ["from memlineage.engine.async_scope import AsyncScope"]
    if "AsyncMemoryView" in body:
        real += ["from memlineage.engine.async_past_view import AsyncMemoryView"]
    if "AsyncStep" in body:
        real += ["from memlineage.engine.asynchronous import AsyncStep"]
    if "Awaitable[" in body:
        real += ["from collections.abc import Awaitable"]
    if "@overload" in body:
        real += ["from typing import overload"]
    if checking:
        real += ["from typing import TYPE_CHECKING"]
    guarded = "if TYPE_CHECKING:\n" + "".join(f"    {line}\n" for line in checking) if checking else ""
    at_once = {"open", *DECORATORS, *AT_ONCE}
    plain = ", ".join(f"`{f.name}`" for f in every if f.name in at_once or decorated(f, "property"))
    told = f"`{twin.original}` for asynchronous programs: the same names with the same parameters, awaited."
    besides = (
        f"\n\n    Not awaited, since they read and write nothing: {plain}.\n"
        "    The verbs run in a few threads; see `memlineage.engine.workers`.\n    "
        if plain
        else ""
    )
    lines = "\n".join(real)
    text = (
        f'"""`{name}`, derived from `{twin.original}` by `tests/engine/test_async_twins.py`: do not edit.'
        f'"""\n\n'
        f"from __future__ import annotations\n\n{lines}\n\n{guarded}\n\n__all__ = [{name!r}]\n\n\n"
        f'class {name}({", ".join(twin.bases)}):\n    """{told}{besides}"""\n\n{body}'
    )
    return formatted(text, str(twin.file.relative_to(REPOSITORY)))


def formatted(text: str, name: str) -> str:
    for command in (["check", "--quiet", "--fix", "--select", "I,F401"], ["format", "--quiet"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", name, "-"],
            input=text, cwd=REPOSITORY, capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        text = done.stdout
    return text


# Tests -------------------------------------------------------------------------------------------------------------


def classes(twin: Twin) -> tuple[type, type]:
    """The original and its counterpart."""
    import memlineage as ml

    return getattr(ml, twin.original), getattr(ml, f"Async{twin.original}")


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.module)
def test_a_derived_file_is_what_its_original_makes_it(twin: Twin) -> None:
    assert twin.file.read_text(encoding="utf-8") == source(twin), CURE


@pytest.mark.parametrize("twin", FACADES, ids=lambda twin: twin.module)
def test_both_have_the_same_names_with_the_same_parameters(twin: Twin) -> None:
    def surface(owner: type) -> dict[str, str]:
        members = {name: inspect.getattr_static(owner, name) for name in dir(owner) if not name.startswith("_")}
        return {
            name: "property" if isinstance(member, property) else str(inspect.signature(getattr(owner, name)))
            for name, member in members.items()
        }

    def parameters(told: str) -> str:
        return told.rpartition(" -> ")[0]

    theirs, ours = map(surface, classes(twin))
    if "open" in theirs:
        ours["open"] = ours["open"].replace(", workers: 'int' = 4", "")
    assert {name: parameters(told) for name, told in ours.items()} == {
        name: parameters(told) for name, told in theirs.items()
    }


@pytest.mark.parametrize("twin", FACADES, ids=lambda twin: twin.module)
def test_whatever_can_read_or_write_is_awaited(twin: Twin) -> None:
    plain = {"open", *DECORATORS, *AT_ONCE}
    _, owner = classes(twin)
    assert [
        name
        for name, member in inspect.getmembers(owner, callable)
        if not name.startswith("_") and not inspect.iscoroutinefunction(member) and name not in plain
    ] == []


TYPED = """\
import memlineage as ml

async def main() -> None:
    async with ml.AsyncMemory.open("trip.db", workers=2) as memory:
        trip = memory.scope(user="alice")
        unit: ml.Unit = await trip.store("Kyoto", tags=["city"])
        found: ml.Found = await trip.acting_as("agent:planner").retrieve("where to?", focus=unit)

        @trip.track(creator="tool:weather")
        async def weather(city: str) -> str:
            return city

        async with trip.step("plan") as step:
            told: str = await weather("Kyoto")
            ref: ml.Ref = step.ref
        wrong: str = await trip.get(unit)
        await trip.store("Kyoto", tag="city")
        await weather(7)
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_type_checkers_know_what_the_awaited_verbs_take_and_give(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(tmp_path / "typed.py")],
        cwd=REPOSITORY, env={**os.environ, "MYPYPATH": str(ENGINE.parents[1])}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    faults = [
        (int(line.split(":")[1]), line.rpartition("[")[2])
        for line in done.stdout.splitlines()
        if "typed.py" in line and "error:" in line
    ]
    assert faults == [(16, "assignment]"), (17, "call-arg]"), (18, "arg-type]")], done.stdout + done.stderr


def test_a_method_that_is_added_to_the_original_makes_the_derived_file_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TWINS[1].text.replace("    def get(", "    def peek(self) -> None:\n        pass\n\n    def get(")
    monkeypatch.setattr(Twin, "text", text)
    assert source(TWINS[1]) != TWINS[1].file.read_text(encoding="utf-8")


def test_the_number_of_threads_is_the_one_that_is_told() -> None:
    from memlineage.engine.workers import Workers

    assert "four" in OPEN_DOC
    assert Workers()._pool._max_workers == 4


if __name__ == "__main__":
    for each in TWINS:
        each.file.write_text(source(each), encoding="utf-8")
