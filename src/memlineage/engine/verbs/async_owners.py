"""`AsyncOwnerVerbs`, derived from `OwnerVerbs` by `tests/engine/test_async_twins.py`: do not edit."""

from __future__ import annotations

from memlineage.engine.asynchronous import AsyncOpening

__all__ = ["AsyncOwnerVerbs"]


class AsyncOwnerVerbs(AsyncOpening):
    """`OwnerVerbs` for asynchronous programs: the same names with the same parameters, awaited."""
