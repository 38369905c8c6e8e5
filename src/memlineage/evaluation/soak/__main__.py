"""`python -m memlineage.evaluation.soak`: exit status 0 if everything held, 1 if not."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from memlineage.evaluation.soak.summary import show
from memlineage.evaluation.soak.supervisor import Plan, soak

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Read the options, run, print the summary, write the JSON."""
    given = _parser().parse_args(arguments)
    plan = Plan(minutes=given.minutes, processes=given.processes, kills=given.kills, checkpoints=given.checkpoints)
    console = Console()
    with TemporaryDirectory(prefix="memlineage-soak-") as folder:
        summary = soak(plan, Path(folder), lambda line: console.print(line, highlight=False))
    show(summary, console)
    if given.json is not None:
        given.json.write_text(summary.as_json(), encoding="utf-8")
    return 0 if summary.ok else 1


def _parser() -> argparse.ArgumentParser:
    plan = Plan()
    parser = argparse.ArgumentParser(prog="python -m memlineage.evaluation.soak", description="Mixed load, for long.")
    parser.add_argument("--minutes", type=float, default=plan.minutes)
    parser.add_argument("--processes", type=int, default=plan.processes)
    parser.add_argument("--kills", type=int, default=plan.kills)
    parser.add_argument("--checkpoints", type=int, default=plan.checkpoints)
    parser.add_argument("--json", type=Path, help="where the figures go")
    return parser


if __name__ == "__main__":
    sys.exit(main())
