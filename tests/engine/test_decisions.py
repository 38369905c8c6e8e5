"""What the decision log says of what was refused."""

from __future__ import annotations

import pytest
from tests.support import open_memory

import memlineage as ml


def test_a_refused_update_is_logged_against_the_version_that_it_would_have_replaced() -> None:
    with open_memory() as memory:
        scope = memory.scope(user="alice")
        fact = scope.store("Two writers at once are refused")
        with pytest.raises(ml.PolicyViolationError) as refused:
            scope.update(fact, "Two writers at once are fine", creator="tool:web")
        assert refused.value.decision.unit == str(fact.ref)
        scope.update(fact, "Two writers at once wait for each other")
        logged = [entry["unit"] for entry in memory.decisions() if entry["effect"] == "deny"]
        assert logged == [str(fact.ref)]
