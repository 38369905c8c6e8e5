"""What works on this machine: versions, extras, and the abilities that the store needs, each tried out."""

from __future__ import annotations

import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw

from memlineage.engine.memory import Memory
from memlineage.errors import MemLineageError
from memlineage.recall.embedders import default_embedder
from memlineage.store.database import ids

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["draw", "examine"]

_LIBRARIES: Final = ("numpy", "msgspec", "orjson", "pydantic", "PyNaCl", "PyYAML", "rich", "typer")
_EXTRA: Final = re.compile(r"""^([A-Za-z0-9._-]+).*;.*extra\s*==\s*["']([^"']+)["']""")
_NOT_FOR_USERS: Final = "dev"


def examine() -> dict[str, Any]:
    """Versions, extras and checks, as plain data."""
    return {
        "versions": dict(_versions()),
        "extras": dict(_extras()),
        "default_embedder": default_embedder().name,
        "checks": [_tried(name, work) for name, work in _CHECKS],
    }


def _versions() -> Iterator[tuple[str, str]]:
    from memlineage import __version__

    yield "memlineage", __version__
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "platform", platform.platform()
    yield "encoding", sys.stdout.encoding
    yield "sqlite", apsw.sqlite_lib_version()
    yield "apsw", apsw.apsw_version()
    for name in _LIBRARIES:
        yield name.lower(), metadata.version(name)


def _extras() -> Iterator[tuple[str, dict[str, bool]]]:
    """Extras as the installed package declares them, and which of their distributions are there."""
    try:
        declared = metadata.requires("memlineage") or []
    except metadata.PackageNotFoundError:
        declared = []
    found: dict[str, dict[str, bool]] = {}
    for match in filter(None, map(_EXTRA.match, declared)):
        if match[2] != _NOT_FOR_USERS:
            found.setdefault(match[2], {})[match[1]] = _installed(match[1])
    yield from sorted(found.items())


def _installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return find_spec(distribution.replace("-", "_")) is not None
    return True


def _tried(name: str, work: Callable[[], str]) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        detail, ok = work(), True
    except (MemLineageError, apsw.Error, OSError, _WrongResultError) as error:
        detail, ok = f"{type(error).__name__}: {error}", False
    return {"name": name, "ok": ok, "detail": detail, "ms": round((time.perf_counter() - started) * 1000, 1)}


class _WrongResultError(AssertionError):
    """Something worked, but gave the wrong result."""


def _demand(held: bool, what: str) -> None:
    if not held:
        raise _WrongResultError(what)


def _full_text() -> str:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(body, tokenize = 'porter unicode61')")
    connection.execute("INSERT INTO t VALUES ('flights to Kyoto')")
    _demand(connection.execute("SELECT count(*) FROM t WHERE t MATCH 'flight'").get == 1, "FTS5 does not stem")
    return "FTS5 with porter stemming"


def _bulk_bindings() -> str:
    total = apsw.Connection(":memory:").execute("SELECT sum(value) FROM carray(?)", (ids([1, 2, 3]),)).get
    _demand(total == 6, f"carray added 1, 2, 3 to {total}")
    return "CARRAY table-valued function"


def _json_functions() -> str:
    value = apsw.Connection(":memory:").execute("""SELECT json_extract('{"a": [1, 2]}', '$.a[1]')""").get
    _demand(value == 2, f"json_extract gave {value}")
    return "JSON functions"


def _write_ahead_log() -> str:
    with tempfile.TemporaryDirectory() as folder:
        connection = apsw.Connection(str(Path(folder) / "wal.db"))
        mode = connection.pragma("journal_mode", "wal")
        connection.close()
    _demand(mode == "wal", f"journal mode is {mode}; is the temporary folder on a network drive?")
    return f"WAL in {tempfile.gettempdir()}"


def _whole_way() -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "check.db"
        with Memory.open(path, embedder="lexical") as memory:
            trip = memory.scope(user="doctor")
            city = trip.store("Destination is Kyoto")
            trip.store("目的地是京都，需要带现金", depends_on=[city])
            plan = trip.store("Stay at Ryokan Aoi", creator="reasoning", depends_on=[city])
            trip.invalidate(city)
        with Memory.open(path, embedder="lexical") as memory:
            trip = memory.scope(user="doctor")
            status = trip.get(plan.id).status.value
            _demand(status == "contaminated", f"what rests on something invalid is {status} after reopening")
            trip.restore(city.id)
            _demand("Kyoto" in trip.retrieve("destination").units[0].content, "English text is not found")
            _demand("京都" in trip.retrieve("京都").units[0].content, "Chinese text is not found")
    return "store, invalidate, reopen, restore, find in English and Chinese"


def _default_embedding() -> str:
    embedder = default_embedder()
    shape = embedder.embed_query("Kyoto").shape
    _demand(shape == (embedder.dimension,), f"a vector of shape {shape}")
    return f"{embedder.name}, {embedder.dimension} dimensions"


_CHECKS: Final[tuple[tuple[str, Callable[[], str]], ...]] = (
    ("full text", _full_text),
    ("bulk bindings", _bulk_bindings),
    ("json", _json_functions),
    ("write-ahead log", _write_ahead_log),
    ("embedder", _default_embedding),
    ("a memory, end to end", _whole_way),
)


def draw(report: dict[str, Any]) -> Iterator[RenderableType]:
    """The report for people."""
    from rich.text import Text

    from memlineage.cli.rendering import facts, heading, rows, words

    yield heading("Versions")
    yield facts((name, words(version)) for name, version in report["versions"].items())
    yield heading("\nExtras")
    yield facts((name, _extra(name, parts)) for name, parts in report["extras"].items())
    table = rows("", "what", "ms", "detail", title="\nWhat works here")
    for check in report["checks"]:
        mark = Text("●", style="green") if check["ok"] else Text("✗", style="bold red")
        table.add_row(mark, words(check["name"]), Text(f"{check['ms']:g}", style="dim"), words(check["detail"]))
    yield table


def _extra(name: str, parts: dict[str, bool]) -> RenderableType:
    from memlineage.cli.rendering import words

    if all(parts.values()):
        return words(f"● {', '.join(parts)}", "green")
    missing = ", ".join(part for part, there in parts.items() if not there)
    return words(f"○ {missing} not installed: pip install 'memlineage[{name}]'", "dim")
