"""A memory whose web tools are not trusted and which books only what the user said; and a tracked function that repeats
nothing of what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.capture import travel
from tests.support import open_memory

import memlineage as ml


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with open_memory(policies=[travel.BOOKING_POLICY]) as opened:
        opened.register("tool:web", level="UNTRUSTED")
        yield opened


@pytest.fixture
def trip(memory: ml.Memory) -> ml.Scope:
    return memory.scope(user="alice")


@pytest.fixture
def echo(trip: ml.Scope) -> Callable[[Any], str]:
    @trip.track(creator="tool:echo")
    def echo(given: Any) -> str:
        return f"I was given {len(str(given))} letters"

    return echo
