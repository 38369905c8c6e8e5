"""`AsyncCredenceVerbs`, derived from `CredenceVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncActing

__all__ = ["AsyncCredenceVerbs"]


class AsyncCredenceVerbs(AsyncActing):
    """`CredenceVerbs` for asynchronous programs: the same names with the same parameters, awaited."""
