"""What the pipeline is told with: the shared stage, the pipeline with lineage, and its flat twin."""

from __future__ import annotations

import re
from typing import Final

import memlineage as ml
from memlineage.demo.pipeline.running import FlatPipeline, Pipeline, World, results
from memlineage.demo.pipeline.shop import Shop
from memlineage.demo.stage import Stage

__all__ = ["PipelineStage"]

_HEAD: Final = re.compile(r"(?P<what>\w+ \w+) on (?P<day>\w{3})\w+(?P<cleaned>, cleaned)?:")


class PipelineStage(Stage):
    """The parts of the story.

    Attributes:
        work: the scope of the host program.
        world: everything outside the memory.
        pipeline: with lineage.
        flat_shop: the feeds and steps as the flat twin calls them, counted apart.
    """

    def __init__(self, memory: ml.Memory, world: World) -> None:
        self.work = memory.scope(user="alice", agent="pipeline")
        super().__init__(memory, self.work, world.clock, _label)
        self.world = world
        self.pipeline = Pipeline(self.work, world)
        self.flat_shop = Shop(world.clock)
        self._flat: FlatPipeline | None = None

    @property
    def time(self) -> str:
        """Day and time."""
        return f"{self.clock():%A %H:%M}"

    @property
    def flat(self) -> FlatPipeline:
        """The same with a flat memory, run when it is first looked at."""
        if self._flat is None:
            self._flat = FlatPipeline(self.flat_shop)
        return self._flat

    def truth(self) -> dict[str, str]:
        """What every step comes to with the feed mended, computed apart from both."""
        mended = Shop(self.clock)
        mended.mended = True
        return results(mended)

    def calls(self) -> int:
        """How often a feed or a step was called so far."""
        return self.world.shop.calls.total()


def _label(unit: ml.Unit) -> str:
    if unit.kind == "action":
        return "cancellation" if "compensate" in str(unit.metadata.get("tool")) else "order"
    found = _HEAD.match(unit.content)
    if found is None:
        return unit.content.partition(" ")[0].rstrip(":")
    name = found["what"].replace(" ", "-").replace("total-sales", "total")
    return f"{'clean-' if found['cleaned'] else ''}{name}-{found['day']}"
