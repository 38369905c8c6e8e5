"""What capture costs an agent: a step of its model, and a call of a tool, recorded in a run of ten turns.

Both are what an adapter does, whatever the framework: the prompt is looked through for what may not be relied on any
more, and the answer, or what the tool returned, becomes a unit. The store is included, not durable (NORMAL). The floor
is one row of as many bytes in a bare table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from time import perf_counter

from memlineage.capture.messages import Call, Message, Reply
from memlineage.capture.recorder import Recorder
from memlineage.engine.scope import Scope
from memlineage.evaluation.corpus import sentences
from memlineage.evaluation.filling import open_memory
from memlineage.evaluation.floors import RawTable, bytes_per_unit
from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.many import FIRST, many
from memlineage.evaluation.measuring import Figure, beside, timed

__all__ = ["capture"]

_TURNS = 10
_RUNS = 3
"""Runs in one turn, before the floor has its turn."""


def capture(sizes: Sequence[int], shelf: Shelf) -> list[Figure]:
    """Figures in stores that hold that many units."""
    return [figure for size in sizes for figure in _at(size, shelf)]


def _at(size: int, shelf: Shelf) -> list[Figure]:
    filled = shelf.take(f"many-{size}", many(size))
    body = bytes(bytes_per_unit(str(filled.path)))
    raw = RawTable(str(shelf.work / f"raw-capture-{size}.db"), durability="normal")
    figures = []
    with open_memory(filled.path, durability="normal") as memory:
        runs = _Runs(memory.scope(user=FIRST))
        cases: dict[str, Callable[[], float]] = {
            "a step of the model": lambda: runs.seconds()[0],
            "a call of a tool": lambda: runs.seconds()[1],
        }
        for case, taken in cases.items():
            figures.append(
                beside(
                    "capture",
                    case,
                    size,
                    figure=taken,
                    floor=lambda: timed(lambda: raw.insert(body), _TURNS),
                    turns=_RUNS,
                    floor_name=f"raw insert of {len(body)} bytes",
                )
            )
    raw.close()
    return figures


class _Runs:
    """Runs of an agent that calls one tool in each turn, one conversation each."""

    def __init__(self, scope: Scope) -> None:
        self._recorder = Recorder(scope)
        self._numbers = count()
        self._texts: Iterator[str] = iter(())

    def _text(self) -> str:
        text = next(self._texts, None)
        if text is None:
            self._texts = iter(sentences("en", 1000, seed=100 + next(self._numbers)))
            text = next(self._texts)
        return text

    def seconds(self) -> tuple[float, float]:
        """Of one model's step and of one tool's call, on average in a run."""
        number = next(self._numbers)
        conversation = self._recorder.conversation(f"run {number}", agent="planner")
        prompt = [Message(role="user", text=self._text(), id="asked")]
        conversation.heard(prompt)
        thinking = calling = 0.0
        for turn in range(_TURNS):
            said, found = self._text(), self._text()
            call = Call(id=f"call_{turn}", name="search", arguments={"query": said})
            start = perf_counter()
            conversation.shown(prompt).said(Reply(text=said, calls=(call,), id=f"step_{turn}"))
            between = perf_counter()
            running = conversation.called(call)
            running.permit()
            with running.inside():
                pass
            running.returned(found, found)
            calling += perf_counter() - between
            thinking += between - start
            prompt += [
                Message(role="assistant", text=said, calls=(call,), id=f"step_{turn}"),
                Message(role="tool", text=found, call_id=call.id, name=call.name),
            ]
        return thinking / _TURNS, calling / _TURNS
