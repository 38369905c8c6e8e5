"""`AsyncCompensationVerbs`, derived from `CompensationVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncActing

__all__ = ["AsyncCompensationVerbs"]


class AsyncCompensationVerbs(AsyncActing):
    """`CompensationVerbs` for asynchronous programs: the same names with the same parameters, awaited."""
