"""SQL lives in files beside the code, in blocks that start with `-- name: what_it_does`."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

__all__ = ["QUERIES", "SCHEMA", "read_script"]

_NAME: Final = re.compile(r"^-- name: (\w+)[^\n]*\n", re.MULTILINE)


def read_script(file: str) -> str:
    """The text of an SQL file of this package."""
    return files(__package__ or "memlineage.store").joinpath(file).read_text(encoding="utf-8")


def _blocks(text: str) -> dict[str, str]:
    parts = _NAME.split(text)
    return {name: body.strip().rstrip(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


SCHEMA: Final = read_script("schema.sql")
QUERIES: Final = _blocks(read_script("queries.sql"))
