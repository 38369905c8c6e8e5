"""The laws run in every world that `memlineage.testing.worlds` offers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memlineage.testing.worlds import WORLDS, World


@pytest.fixture(scope="session", params=sorted(WORLDS))
def world(request: pytest.FixtureRequest) -> Callable[[], World]:
    """Makes an empty world; one session-wide maker, because hypothesis asks it for many."""
    return WORLDS[request.param]
