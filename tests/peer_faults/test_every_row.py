"""Every public report that this folder answers has a test that names it."""

from __future__ import annotations

import re
from pathlib import Path

ROWS = 43


def test_every_row_has_a_test_that_names_it() -> None:
    named = re.compile(r"^def (test_\w+).*?\"\"\"Row (\d+)\b", re.MULTILINE | re.DOTALL)
    rows = {
        int(row)
        for file in Path(__file__).parent.glob("test_*.py")
        if file != Path(__file__)
        for _, row in named.findall(file.read_text(encoding="utf-8"))
    }
    assert rows == set(range(1, ROWS + 1))
