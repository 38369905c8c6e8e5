"""The state machine proves itself: each planted fault of `mutants.yaml` makes it fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MUTANTS: list[dict[str, str]] = yaml.safe_load(Path(__file__).with_name("mutants.yaml").read_text(encoding="utf-8"))


def planted(mutant: dict[str, str], folder: Path) -> Path:
    """A copy of the package with one fault in it."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "src" / "memlineage" / mutant["file"]
    file.write_text(file.read_text(encoding="utf-8").replace(mutant["find"], mutant["put"]), encoding="utf-8")
    return folder / "src"


def machine_fails(source: Path, machine: str = "in memory") -> bool:
    """Whether that lock-step machine notices anything within a few hundred histories."""
    env: dict[str, Any] = {**os.environ, "PYTHONPATH": str(source), "MEMLINEAGE_SHRINK": "0"}
    env["MEMLINEAGE_HISTORIES"] = "300"
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist",
        "-o", f"pythonpath={source} {ROOT}",
        f"tests/lockstep/test_lockstep.py::test_the_store_answers_as_the_oracle_does[{machine}]",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "Timeout (>" not in done.stdout, "a machine that is too slow has noticed nothing"
    return done.returncode == 1


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_every_mutant_stands_exactly_once_in_the_code(mutant: dict[str, str]) -> None:
    """So that the list cannot go stale unnoticed."""
    text = (ROOT / "src" / "memlineage" / mutant["file"]).read_text(encoding="utf-8")
    assert text.count(mutant["find"]) == 1


@pytest.mark.mutants
@pytest.mark.timeout(400)
def test_the_machine_passes_on_the_code_as_it_is(tmp_path: Path) -> None:
    """Positive control."""
    unchanged = {"file": "__init__.py", "find": "\0", "put": ""}
    assert not machine_fails(planted(unchanged, tmp_path))


@pytest.mark.mutants
@pytest.mark.timeout(400)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_the_machine_kills(mutant: dict[str, str], tmp_path: Path) -> None:
    assert machine_fails(planted(mutant, tmp_path), mutant.get("machine", "in memory"))
