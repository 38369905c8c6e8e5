"""Five weeks of dialogue (row H1): eight scenes, offline, the same on every run."""

from __future__ import annotations

from collections.abc import Iterator

import memlineage as ml
from memlineage.demo.dialogue.closing import the_weeks_with_a_flat_memory, twelve_questions
from memlineage.demo.dialogue.early import alice_changes_her_mind, alice_introduces_herself, the_assistant_guesses
from memlineage.demo.dialogue.late import a_vow_ends, an_old_transcript_is_read, what_was_recalled_is_said_again
from memlineage.demo.dialogue.script import new_clock
from memlineage.demo.dialogue.stage import DialogueStage
from memlineage.demo.scene import Scene
from memlineage.demo.stage import check_new

__all__ = ["tell"]

_STORY = (
    alice_introduces_herself,
    alice_changes_her_mind,
    the_assistant_guesses,
    what_was_recalled_is_said_again,
    a_vow_ends,
    an_old_transcript_is_read,
    twelve_questions,
)


def tell(db: str = ":memory:") -> Iterator[Scene]:
    """The scenes, each when it has happened.

    Args:
        db: a file that does not exist yet, to look into afterwards; or `:memory:`.

    Raises:
        InvalidInputError: the file exists. The story begins with an empty memory and keeps to its own clock.
    """
    check_new(db)
    clock = new_clock()
    with ml.Memory.open(db, embedder="lexical", clock=clock) as memory:
        stage = DialogueStage(memory, clock)
        told: list[Scene] = []
        for scene in _STORY:
            told.append(scene(stage))
            yield told[-1]
        yield the_weeks_with_a_flat_memory(stage, told, None if db == ":memory:" else db)
