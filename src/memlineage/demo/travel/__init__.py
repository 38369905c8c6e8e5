"""The travel agent's day (row H1): eight scenes, offline, the same on every run."""

from __future__ import annotations

from collections.abc import Iterator

from memlineage.demo.scene import Scene
from memlineage.demo.stage import check_new
from memlineage.demo.travel.agent import World, open_memory
from memlineage.demo.travel.closing import the_day_with_a_flat_memory, the_plan_is_explained
from memlineage.demo.travel.opening import alice_changes_the_city, alice_speaks, the_agent_plans_and_books
from memlineage.demo.travel.poison import a_page_steers_the_payment
from memlineage.demo.travel.stage import TravelStage
from memlineage.demo.travel.trouble import a_feed_proves_wrong, a_price_grows_old

__all__ = ["tell"]

_STORY = (
    alice_speaks,
    the_agent_plans_and_books,
    alice_changes_the_city,
    a_price_grows_old,
    a_feed_proves_wrong,
    a_page_steers_the_payment,
    the_plan_is_explained,
)


def tell(db: str = ":memory:") -> Iterator[Scene]:
    """The scenes, each when it has happened.

    Args:
        db: a file that does not exist yet, to look into afterwards; or `:memory:`.

    Raises:
        InvalidInputError: the file exists. The story begins with an empty memory and keeps to its own clock.
    """
    check_new(db)
    world = World()
    with open_memory(db, world) as memory:
        stage = TravelStage(memory, world)
        told: list[Scene] = []
        for scene in _STORY:
            told.append(scene(stage))
            yield told[-1]
        yield the_day_with_a_flat_memory(stage, told, None if db == ":memory:" else db)
