"""What a reader is told does not depend on whether anybody happened to write meanwhile (semantics.md, section 5)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support import START, Clock, contents, open_memory


def ageing(hours: int) -> dict[str, Any]:
    rule = {"name": "ageing", "freshness": {"tags": ["news"], "max_age": f"{hours}h", "refresh": True}}
    return {"memlineage": 1, "layer": "global", "rules": [rule]}


def test_a_rule_on_the_standing_of_the_lineage_answers_the_same_before_and_after_a_write() -> None:
    rule = {
        "name": "firm", "on": ["read"], "condition": [{"lineage": "standing"}, "==", "PENDING"], "action": "withhold",
    }  # fmt: skip
    clock = Clock()
    with open_memory(clock=clock, policies=[{"memlineage": 1, "layer": "global", "rules": [rule]}]) as memory:
        trip = memory.scope(user="alice")
        fare = trip.store("The fare is 5", expires_at=START + timedelta(hours=1))
        trip.store("Take the bus", creator="reasoning", depends_on=[fare])
        clock.advance(hours=2)
        before = contents(trip.list())
        memory.scope(user="bob").store("Something else")
        assert before == contents(trip.list())


@pytest.mark.parametrize("somebody_wrote", [False, True])
def test_a_longer_age_limit_frees_what_the_shorter_one_had_ended(tmp_path: Path, somebody_wrote: bool) -> None:
    path, clock = tmp_path / "trip.db", Clock()
    with open_memory(path, clock=clock, policies=[ageing(1)]) as memory:
        news = memory.scope(user="alice").store("The museum is open", tags=["news"])
        clock.advance(hours=2)
        if somebody_wrote:
            memory.scope(user="bob").store("Something else")
    with open_memory(path, clock=clock, policies=[ageing(24)]) as memory:
        assert memory.scope(user="alice").get(news).status == "active"


def test_a_read_does_not_fail_because_a_refresh_cannot_see_a_parent() -> None:
    clock = Clock()
    with open_memory(clock=clock, policies=[ageing(1)]) as memory:
        memory.register_tool("feed", refresh=lambda unit: "The museum is closed")
        one, two = (memory.scope(user="alice", session=name) for name in ("s1", "s2"))
        news = one.store("The museum is open", creator="tool:feed", tags=["news"])
        private = two.store("Asked at the desk", visibility="session")
        two.update(news, "The museum is open today", creator="tool:feed", depends_on=[private])
        clock.advance(hours=2)
        assert one.get(news.id).status == "expired"
