"""What works on this machine: versions, extras, the abilities that the store needs, each tried out, and one file."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw

from memlineage.cli.filecheck import examine_file
from memlineage.cli.findings import Finding, Health, bad, fine, note, table
from memlineage.engine.memory import Memory
from memlineage.errors import MemLineageError
from memlineage.recall.embedders import default_embedder
from memlineage.store.database import ids

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["draw", "examine"]

_NEEDED: Final = ("ENABLE_FTS5", "ENABLE_CARRAY")
_PLAIN: Final = re.compile(r"^([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)$")
_EXTRA: Final = re.compile(r"""^([A-Za-z0-9._-]+).*;.*extra\s*==\s*["']([^"']+)["']""")
_NOT_FOR_USERS: Final = "dev"
_REINSTALL: Final = "pip install --force-reinstall memlineage"
_CURES: Final = {
    "write-ahead log": "point TMPDIR at a folder on a local disk, with room",
    "embedder": "name one that works: --embedder lexical",
}
_TITLES: Final = {
    "versions": "Versions", "extras": "Extras", "checks": "What works here", "file": "This memory",
}  # fmt: skip


def examine(path: Path | None = None) -> dict[str, Any]:
    """Versions, extras and checks, of a memory as well if one is named: as plain data."""
    sections = {
        "versions": list(_versions()),
        "extras": list(_extras()),
        "checks": [_tried(name, work) for name, work in _CHECKS],
        "file": [] if path is None else list(examine_file(path)),
    }
    return {
        "ok": all(found.ok for findings in sections.values() for found in findings),
        "default_embedder": default_embedder().name,
        **{name: [found.as_data() for found in findings] for name, findings in sections.items()},
    }


def _versions() -> Iterator[Finding]:
    from memlineage import __version__

    yield fine("memlineage", __version__)
    yield fine("python", f"{platform.python_version()} ({platform.python_implementation()}) on {platform.platform()}")
    yield _encoding()
    yield _sqlite()
    for requirement in _required():
        yield _library(requirement)
    yield _kernels()


def _encoding() -> Finding:
    name = sys.stdout.encoding
    if name.lower().replace("-", "") != "utf8":
        return note("encoding", name, "export PYTHONIOENCODING=utf-8: characters that it lacks are shown as escapes")
    return fine("encoding", name)


def _sqlite() -> Finding:
    """apsw carries its own; one that was built against the system's may lack what the store is made of."""
    options = set(apsw.compile_options)
    missing = [option for option in _NEEDED if option not in options]
    told = f"{apsw.sqlite_lib_version()} with {', '.join(sorted(set(_NEEDED) - set(missing)))}"
    if missing:
        return bad("sqlite", f"{told}, without {', '.join(missing)}", "pip install --force-reinstall --no-deps apsw")
    return fine("sqlite", told)


def _kernels() -> Finding:
    forced = os.environ.get("OPENBLAS_CORETYPE")
    if forced:
        return note("OPENBLAS_CORETYPE", f"{forced}: numpy is held to the instructions of that processor",
                    "unset OPENBLAS_CORETYPE, unless numpy crashes without it: vector search is faster")  # fmt: skip
    return fine("OPENBLAS_CORETYPE", "not set: numpy chooses for this processor")


def _required() -> list[tuple[str, str]]:
    """What the installed package asks for: distributions and least versions."""
    return [(match[1], match[2]) for match in filter(None, map(_PLAIN.match, _declared()))]


def _declared() -> list[str]:
    try:
        return metadata.requires("memlineage") or []
    except metadata.PackageNotFoundError:
        return []


def _library(requirement: tuple[str, str]) -> Finding:
    name, least = requirement
    cure = f"pip install -U '{name}>={least}'"
    found = _version_of(name)
    if found is None:
        return bad(name.lower(), "not installed", cure)
    if _numbers(found) < _numbers(least):
        return bad(name.lower(), f"{found}; at least {least} is needed", cure)
    return fine(name.lower(), found)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version.partition("+")[0])]


def _extras() -> Iterator[Finding]:
    """Extras as the installed package declares them, and which of their distributions are there."""
    found: dict[str, list[str]] = {}
    for match in filter(None, map(_EXTRA.match, _declared())):
        if match[2] != _NOT_FOR_USERS:
            found.setdefault(match[2], []).append(match[1])
    for extra, parts in sorted(found.items()):
        versions = {part: _version_of(part) for part in parts}
        missing = [part for part, version in versions.items() if version is None]
        if missing:
            cure = f"if you want it: pip install 'memlineage[{extra}]'"
            yield note(extra, f"{', '.join(missing)} not installed", cure)
        else:
            yield fine(extra, ", ".join(f"{part} {version}" for part, version in versions.items()))


def _version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _tried(name: str, work: Callable[[], str]) -> Finding:
    started = time.perf_counter()
    try:
        detail = work()
    except (MemLineageError, apsw.Error, OSError, _WrongResultError) as error:
        return bad(name, f"{type(error).__name__}: {error}", _CURES.get(name, _REINSTALL))
    return fine(name, f"{detail} ({(time.perf_counter() - started) * 1000:.0f} ms)")


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
    for section, title in _TITLES.items():
        if report[section]:
            yield table(title, map(_read_back, report[section]))
    yield _verdict(report)


def _read_back(item: dict[str, Any]) -> Finding:
    told = {name: item[name] for name in ("name", "detail", "advice")}
    return Finding(health=Health(item["health"]), **told)


def _verdict(report: dict[str, Any]) -> RenderableType:
    from rich.text import Text

    from memlineage.cli.rendering import count_of

    health = [item["health"] for section in _TITLES for item in report[section]]
    broken, notes = health.count(Health.BAD), health.count(Health.NOTE)
    if broken:
        return Text(f"✗ {count_of(broken, 'thing')} to mend: do what stands beside it", style="bold red")
    return Text(f"● All works here{f'; {notes} to consider' if notes else ''}", style="green")
