"""A pipeline with a wrong feed (row H1): seven scenes, offline, the same on every run."""

from __future__ import annotations

from collections.abc import Iterator

from memlineage.demo.pipeline.closing import the_repair_is_measured
from memlineage.demo.pipeline.fault import stock_is_ordered, the_feed_proves_wrong, three_evenings
from memlineage.demo.pipeline.repair import only_that_is_made_again, the_order_is_put_right, the_repair_is_planned
from memlineage.demo.pipeline.running import World, open_memory
from memlineage.demo.pipeline.stage import PipelineStage
from memlineage.demo.scene import Scene
from memlineage.demo.stage import check_new

__all__ = ["tell"]

_STORY = (
    three_evenings,
    stock_is_ordered,
    the_feed_proves_wrong,
    the_repair_is_planned,
    only_that_is_made_again,
    the_order_is_put_right,
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
        stage = PipelineStage(memory, world)
        told: list[Scene] = []
        for scene in _STORY:
            told.append(scene(stage))
            yield told[-1]
        yield the_repair_is_measured(stage, told, None if db == ":memory:" else db)
