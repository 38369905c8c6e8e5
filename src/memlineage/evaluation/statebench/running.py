"""Every case through every memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from memlineage.evaluation.statebench.cases import TRACKS, Act, Ask, Case, Say, Write, read_cases
from memlineage.evaluation.statebench.memories import MEMORIES, Asked
from memlineage.evaluation.statebench.scoring import StateRow, Tally
from memlineage.recall.embedders import by_name

__all__ = ["FOLDER", "score", "statebench"]

FOLDER: Final = "statebench"
"""The folder among the external data."""

_CONTENTS: Final = {"facts": False, "+ turns": True}


def statebench(data: Path) -> list[StateRow]:
    """A row for each track, each content and each memory; `data` is the folder that holds the data sets."""
    return score(read_cases(data / FOLDER))


def score(cases: Iterable[Case], embedder: str = "lexical") -> list[StateRow]:
    """The same for cases at hand. Deterministic: the clock is the data's."""
    tallies: defaultdict[tuple[str, str, str], Tally] = defaultdict(Tally)
    vectors = by_name(embedder)
    for case in cases:
        for contents, turns in _CONTENTS.items():
            acts = [act for act in case.acts if turns or not isinstance(act, Say)]
            for memory, kind in MEMORIES.items():
                with kind(vectors) as asked:
                    _live_through(acts, asked, tallies[case.track, contents, memory])
    order = [(track, contents, memory) for track in TRACKS for contents in _CONTENTS for memory in MEMORIES]
    return [tallies[key].row(*key) for key in order if key in tallies]


def _live_through(acts: Sequence[Act], asked: Asked, tally: Tally) -> None:
    given: list[str] = []
    for act in acts:
        match act:
            case Ask():
                tally.add(act, "\n".join(given), asked.ask(act.text))
                continue
            case Write():
                asked.write(act)
            case Say():
                asked.say(act)
        given.append(act.text)
