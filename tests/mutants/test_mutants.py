"""Tests prove themselves: each planted fault of `mutants.yaml` makes the state machine, or other tests, fail."""

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


def noticed(source: Path, mutant: dict[str, str]) -> bool:
    """Whether the mutant's own tests, or else a lock-step machine within a few hundred histories, notice anything."""
    env: dict[str, Any] = {**os.environ, "PYTHONPATH": str(source), "MEMLINEAGE_SHRINK": "0"}
    env["MEMLINEAGE_HISTORIES"] = "300"
    machine = f"test_the_store_answers_as_the_oracle_does[{mutant.get('machine', 'in memory')}]"
    tests = mutant.get("tests", "").split() or [f"tests/lockstep/test_lockstep.py::{machine}"]
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist",
        "-o", f"pythonpath={source} {ROOT}", *tests,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "Timeout (>" not in done.stdout, "tests that are too slow have noticed nothing"
    return done.returncode == 1


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_every_mutant_stands_exactly_once_in_the_code(mutant: dict[str, str]) -> None:
    """So that the list cannot go stale unnoticed."""
    text = (ROOT / "src" / "memlineage" / mutant["file"]).read_text(encoding="utf-8")
    assert text.count(mutant["find"]) == 1


@pytest.mark.mutants
@pytest.mark.timeout(400)
@pytest.mark.parametrize("tests", sorted({mutant.get("tests", "") for mutant in MUTANTS}))
def test_nothing_is_noticed_in_the_code_as_it_is(tests: str, tmp_path: Path) -> None:
    """Positive control."""
    unchanged = {"file": "__init__.py", "find": "\0", "put": "", "tests": tests}
    assert not noticed(planted(unchanged, tmp_path), unchanged)


@pytest.mark.mutants
@pytest.mark.timeout(400)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_every_mutant_is_noticed(mutant: dict[str, str], tmp_path: Path) -> None:
    assert noticed(planted(mutant, tmp_path), mutant)
