"""`memlineage bench`: figures beside their floors, for people, for machines and for the README."""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import apsw
import msgspec
import numpy as np

from memlineage.errors import InvalidInputError
from memlineage.evaluation.bench_capture import capture
from memlineage.evaluation.bench_cascade import cascade
from memlineage.evaluation.bench_open import opening, verify
from memlineage.evaluation.bench_policy import policy
from memlineage.evaluation.bench_repair import RepairRow
from memlineage.evaluation.bench_repair import repair as repair_rows
from memlineage.evaluation.bench_retrieve import retrieve
from memlineage.evaluation.bench_rules import rules
from memlineage.evaluation.bench_store import store
from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.measuring import Figure, Footprint
from memlineage.evaluation.recall import RecallRow
from memlineage.evaluation.recall import small as recall_rows
from memlineage.evaluation.reporting import to_json, to_tables
from memlineage.evaluation.statebench import FOLDER, StateRow, statebench

__all__ = ["BENCHMARKS", "SIZES", "SMALL", "Report", "counts", "main", "measure"]

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
SMALL: Final = (1_000, 10_000)
BENCHMARKS: Final = ("store", "retrieve", "cascade", "policy", "rules", "open", "verify", "capture", "recall", "repair")

_SPEED: Final[dict[str, Callable[[Sequence[int], Shelf], Sequence[Figure | Footprint]]]] = {
    "store": store,
    "retrieve": retrieve,
    "cascade": cascade,
    "policy": policy,
    "rules": rules,
    "open": opening,
    "verify": verify,
    "capture": capture,
}
_BLAS: Final = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Variables that make OpenBLAS take this machine for another one; the floor of `retrieve` is a matrix product."""
_UNSET: Final = "MEMLINEAGE_BENCH_UNSET"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of one run.

    Attributes:
        machine: what they were taken on.
        figures: speed.
        footprints: room on disk and in memory.
        recall: top-1 by embedder and language.
        state: StateBench, where its data are at hand.
        repair: what a change leaves behind, by way of dealing with it.
        skipped: what was not measured, and why.
    """

    machine: dict[str, str | int]
    figures: tuple[Figure, ...] = ()
    footprints: tuple[Footprint, ...] = ()
    recall: tuple[RecallRow, ...] = ()
    state: tuple[StateRow, ...] = ()
    repair: tuple[RepairRow, ...] = ()
    skipped: tuple[str, ...] = ()


def main(
    names: Sequence[str],
    *,
    small: bool = False,
    json: bool = False,
    sizes: Sequence[int] | None = None,
    cache: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
) -> int:
    """Measure what is named (everything if nothing is), and print it. Returns the exit status.

    `small` leaves the larger sizes out; `sizes` sets them. `cache` is a folder that keeps the filled memories, which
    take minutes and gigabytes at a million units, for the next run. `data` is the folder of the public data sets, which
    are no part of this project: what needs one that is not there is skipped, and the report says so. Where
    variables set OpenBLAS to another processor, the run happens in a process of its own without them, and says so.

    Raises `InvalidInputError` for a benchmark or a size that does not exist.
    """
    chosen = _check(names)
    wanted = _check_sizes(sizes or (SMALL if small else SIZES))
    odd = [name for name in _BLAS if name in os.environ]
    if odd and _SPEED.keys() & set(chosen):
        return _again_without(odd, chosen, wanted, json=json, cache=cache, data=data)
    with TemporaryDirectory(prefix="memlineage-bench-") as folder:
        shelf = Shelf(Path(folder), None if cache is None else Path(cache))
        report = measure(chosen, wanted, shelf, None if data is None else Path(data))
    print(to_json(report)) if json else to_tables(report)
    return 0


def measure(names: Sequence[str], sizes: Sequence[int], shelf: Shelf, data: Path | None = None) -> Report:
    """Take the figures, in filled memories from the shelf; `data` holds the public data sets."""
    here = data is not None and (data / FOLDER).is_dir()
    taken = [figure for name in names if name in _SPEED for figure in _SPEED[name](sizes, shelf)]
    return Report(
        machine=machine(os.environ),
        figures=tuple(figure for figure in taken if isinstance(figure, Figure)),
        footprints=tuple(figure for figure in taken if isinstance(figure, Footprint)),
        recall=tuple(recall_rows() if "recall" in names else ()),
        state=tuple(statebench(data) if data is not None and here and "recall" in names else ()),
        repair=tuple(repair_rows(sizes) if "repair" in names else ()),
        skipped=(_missing(data),) if "recall" in names and not here else (),
    )


def _missing(data: Path | None) -> str:
    cure = "name the folder that holds it with --data or MEMLINEAGE_DATA"
    return f"StateBench: {cure}" if data is None else f"StateBench: no folder {data / FOLDER}; {cure}"


def machine(environment: Mapping[str, str]) -> dict[str, str | int]:
    """What a figure depends on, as far as the machine and the libraries go."""
    odd = [name for name in _BLAS if name in environment]
    unset = environment.get(_UNSET, "")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count() or 0,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "numpy": np.__version__,
        "openblas": f"{unset} unset for this run" if unset else f"as set by {', '.join(odd)}" if odd else "as found",
    }


def counts(text: str) -> tuple[int, ...]:
    """Sizes as people write them: `1000`, `10k`, `1M`, with commas between. Raises `InvalidInputError`."""
    found = [_COUNT.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        raise InvalidInputError(f"sizes={text!r} must be numbers with commas between, e.g. 1k,10k,1M")
    return tuple(int(match[1]) * _SCALE[match[2]] for match in found if match is not None)


_COUNT: Final = re.compile(r"(\d{1,9})([kM]?)")
_SCALE: Final = {"": 1, "k": 1_000, "M": 1_000_000}


def _check(names: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise InvalidInputError(f"no benchmark {unknown[0]!r}; choose from {', '.join(BENCHMARKS)}")
    return tuple(dict.fromkeys(names)) or BENCHMARKS


def _check_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    if not all(size >= 10 for size in sizes):
        raise InvalidInputError(f"sizes={list(sizes)} must be at least 10 units each")
    return tuple(sizes)


def _again_without(
    odd: Sequence[str],
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    json: bool,
    cache: str | os.PathLike[str] | None,
    data: str | os.PathLike[str] | None,
) -> int:
    """OpenBLAS reads its variables when numpy is imported, so a change of mind needs a new process."""
    environment = {name: value for name, value in os.environ.items() if name not in odd}
    environment[_UNSET] = ", ".join(odd)
    command = [sys.executable, "-m", "memlineage.evaluation.bench", *names, "--sizes", *map(str, sizes)]
    command += ["--json"] if json else []
    command += [] if cache is None else ["--cache", os.fspath(cache)]
    command += [] if data is None else ["--data", os.fspath(data)]
    return subprocess.run(command, env=environment, check=False).returncode


def _arguments() -> dict[str, Any]:
    parser = argparse.ArgumentParser(description="Figures beside their floors.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sizes", nargs="+", type=int)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cache")
    parser.add_argument("--data")
    return vars(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main(**_arguments()))
