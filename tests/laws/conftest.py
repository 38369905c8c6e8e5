"""The laws run in every world that `memlineage.testing.worlds` offers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memlineage.testing.sqlite_world import SqliteWorld
from memlineage.testing.worlds import WORLDS, World

ALL_WORLDS: dict[str, Callable[[], World]] = {**WORLDS, "sqlite": SqliteWorld}


@pytest.fixture(scope="session", params=sorted(ALL_WORLDS))
def world(request: pytest.FixtureRequest) -> Callable[[], World]:
    """Makes an empty world; one session-wide maker, because hypothesis asks it for many."""
    return ALL_WORLDS[request.param]
