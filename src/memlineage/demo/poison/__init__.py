"""A week of poisoning (rows B9, C2, C8, H4 in small): eight scenes, offline, the same on every run."""

from __future__ import annotations

from collections.abc import Iterator

from memlineage.demo.poison.aftermath import it_comes_back, the_mail_is_found_out
from memlineage.demo.poison.closing import the_week_with_a_flat_memory
from memlineage.demo.poison.desks import open_memory
from memlineage.demo.poison.planting import a_mail_plants_two_sentences, alice_says_what_holds
from memlineage.demo.poison.spreading import it_is_repeated, it_is_rewritten
from memlineage.demo.poison.stage import PoisonStage
from memlineage.demo.poison.trigger import the_trigger_is_pulled
from memlineage.demo.poison.world import Outside, new_clock
from memlineage.demo.scene import Scene
from memlineage.demo.stage import check_new

__all__ = ["tell"]

_STORY = (
    alice_says_what_holds,
    a_mail_plants_two_sentences,
    it_is_rewritten,
    it_is_repeated,
    the_trigger_is_pulled,
    the_mail_is_found_out,
    it_comes_back,
)


def tell(db: str = ":memory:") -> Iterator[Scene]:
    """The scenes, each when it has happened.

    Args:
        db: a file that does not exist yet, to look into afterwards; or `:memory:`.

    Raises:
        InvalidInputError: the file exists. The story begins with an empty memory and keeps to its own clock.
    """
    check_new(db)
    outside, clock = Outside(), new_clock()
    with open_memory(db, outside, clock) as memory:
        stage = PoisonStage(memory, outside, clock)
        told: list[Scene] = []
        for scene in _STORY:
            told.append(scene(stage))
            yield told[-1]
        yield the_week_with_a_flat_memory(stage, told, None if db == ":memory:" else db)
