"""Scenarios that run from end to end, offline, deterministically, and check their own outcome (row H1).

The command line calls `main`:

    memlineage demo [travel|poison|dialogue|pipeline] [--db FILE] [--step] [--json]

    main(story: str = "travel", db: str | None = None, step: bool = False, json: bool = False) -> int

    travel      an agent plans, books and repairs; what it built on changes, grows old and proves wrong
    poison      a mail plants an instruction and a false fact; they are rewritten, repeated, triggered, found out
    dialogue    five weeks of talk: preferences stated, changed, guessed at, echoed, expired; twelve questions, marked
    pipeline    feeds, figures, a forecast, an order; a feed was wrong: only what it reached is made again
    --db FILE   keep the store in a new file; what to type to look into it is shown at the end
    --step      wait for Enter between scenes
    --json      one JSON document, `{"ok": bool, "scenes": [...]}`, instead of the panels
    exit code   0 all came out as told; 1 something did not; 2 misuse, e.g. the file exists already
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console
from rich.text import Text

from memlineage.demo import dialogue, pipeline, poison, travel
from memlineage.demo.rendering import show
from memlineage.demo.scene import Scene, as_json
from memlineage.demo.stage import check_new
from memlineage.errors import InvalidInputError, MemLineageError, StoreError

__all__ = ["STORIES", "Scene", "as_json", "main", "show"]

MEMORY: Final = ":memory:"
STORIES: Final[dict[str, Callable[[str], Iterator[Scene]]]] = {
    "travel": travel.tell,
    "poison": poison.tell,
    "dialogue": dialogue.tell,
    "pipeline": pipeline.tell,
}
"""The stories by name; each is told into a new file, or into memory."""


def main(story: str = "travel", db: str | None = None, step: bool = False, json: bool = False) -> int:
    """Tell a story on the standard output; returns the exit code (see above)."""
    _tolerate_narrow_encodings()
    try:
        check_new(db or MEMORY)
    except InvalidInputError as error:
        return _failed(error, 2)
    try:
        return 0 if _told(STORIES[story](db or MEMORY), step, json) else 1
    except StoreError as error:
        return _failed(error, 2)
    except MemLineageError as error:
        return _failed(error, 1)


def _told(scenes: Iterator[Scene], step: bool, json: bool) -> bool:
    if not json:
        return show(scenes, Console(), step)
    told = tuple(scenes)
    print(as_json(told))
    return bool(told) and all(scene.ok for scene in told)


def _failed(error: MemLineageError, code: int) -> int:
    Console(stderr=True).print(Text(str(error), style="red"))
    return code


def _tolerate_narrow_encodings() -> None:
    """A terminal that cannot show a mark or a Chinese sentence shows a question mark instead of a traceback."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
