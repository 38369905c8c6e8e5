"""`AsyncCheckVerbs`, derived from `CheckVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncOpening

__all__ = ["AsyncCheckVerbs"]


class AsyncCheckVerbs(AsyncOpening):
    """`CheckVerbs` for asynchronous programs: the same names with the same parameters, awaited."""
