"""`AsyncPastVerbs`, derived from `PastVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncOpening

__all__ = ["AsyncPastVerbs"]


class AsyncPastVerbs(AsyncOpening):
    """`PastVerbs` for asynchronous programs: the same names with the same parameters, awaited."""
