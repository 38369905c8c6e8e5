"""The memories that StateBench is put to: this one, two flat ones with the same embedder, and an empty one.

All are handed the same acts and asked for as many texts. What each is told of a replacement is what it can take in:
the lineage memory is told what was replaced, found wrong and derived from what; the flat memory that is *corrected* is
told what was replaced and found wrong, and changes that text in place; the other flat one is a log.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Final, Protocol, Self

import numpy as np

from memlineage.engine.memory import Memory
from memlineage.evaluation.statebench.cases import Say, Write
from memlineage.model.unit import Unit
from memlineage.recall.embedders import Embedder, embed_query, embed_texts

__all__ = ["LIMIT", "MEMORIES", "Asked", "Handed"]

LIMIT: Final = 10
"""Texts that a question brings up, at most."""


class Handed:
    """What would be handed to a model.

    Attributes:
        content: what the memories served say.
        notice: what is said of those that are not served.
    """

    def __init__(self, content: str, notice: str = "") -> None:
        self.content = content
        self.notice = notice


class Asked(Protocol):
    """A memory that lives through a timeline."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def say(self, said: Say) -> None: ...
    def write(self, write: Write) -> None: ...
    def ask(self, question: str) -> Handed: ...


class _Empty:
    """Remembers nothing: it passes every negative check and fails every positive one."""

    def __init__(self, embedder: Embedder) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, said: Say) -> None:
        """Forget it."""

    def write(self, write: Write) -> None:
        """Forget it."""

    def ask(self, question: str) -> Handed:
        """Nothing."""
        return Handed("")


class _Log(_Empty):
    """Texts found by likeness; what is written is added."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._texts: list[str] = []

    def say(self, said: Say) -> None:
        self._texts.append(said.text)

    def write(self, write: Write) -> None:
        self._texts.append(write.text)

    def ask(self, question: str) -> Handed:
        """The most similar texts, best first."""
        if not self._texts:
            return Handed("")
        likeness = embed_texts(self._embedder, self._texts) @ embed_query(self._embedder, question)
        order = np.argsort(-likeness.round(6), kind="stable")[:LIMIT]
        return Handed("\n".join(self._texts[place] for place in order))


class _Corrected(_Log):
    """The same, but what is replaced is overwritten in place, and what is found wrong is deleted."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._said: dict[str | tuple[str, str], str] = {}

    def write(self, write: Write) -> None:
        old = self._said.get(write.supersedes or "") or self._said.get((write.layer, write.key))
        if write.void and old in self._texts:
            self._texts.remove(old)
        elif old in self._texts:
            self._texts[self._texts.index(old)] = write.text
        elif not write.void:
            self._texts.append(write.text)
        self._said |= dict.fromkeys((write.name, write.key, (write.layer, write.key)), write.text)


class _Lineage:
    """This memory, by its public verbs."""

    def __init__(self, embedder: Embedder) -> None:
        self._now = datetime.min.replace(tzinfo=UTC)
        self._open = ExitStack()
        memory = self._open.enter_context(Memory.open(":memory:", embedder=embedder, clock=lambda: self._now))
        self._scope = memory.scope(user="u1", agent="assistant")
        self._units: dict[str, Unit] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def say(self, said: Say) -> None:
        self._pass_to(said.at)
        self._scope.store(said.text, creator=said.creator, kind="message", timestamp=said.at)

    def write(self, write: Write) -> None:
        self._pass_to(write.at)
        old = self._units.get(write.supersedes or "")
        parents = [self._units[name] for name in write.depends_on]
        if old is not None and write.void:
            self._scope.invalidate(old.ref, by=write.creator, reason=write.text)
            return
        if old is not None:
            made = self._scope.update(old.id, write.text, creator=write.creator, depends_on=parents, timestamp=write.at)
        else:
            made = self._scope.store(
                write.text, creator=write.creator, kind="fact", subject=write.layer, key=write.key,
                depends_on=parents, timestamp=write.at,
            )  # fmt: skip
        self._units |= {write.name: made, write.key: made}

    def ask(self, question: str) -> Handed:
        """What the prompt block quotes, and what it says besides."""
        block = self._scope.retrieve(question, critical=True, limit=LIMIT).to_prompt()
        lines = [html.unescape(line) for line in block.splitlines()]
        quoted = [line.removeprefix("| ") for line in lines if line.startswith("| ")]
        notices = [line for line in lines if line.startswith("<withheld") and "policy" not in line]
        return Handed("\n".join(quoted), "\n".join(notices))

    def _pass_to(self, at: datetime) -> None:
        """Some timelines step back by a minute; a clock does not."""
        self._now = max(self._now, at)


MEMORIES: Final[dict[str, Callable[[Embedder], Asked]]] = {
    "memlineage": _Lineage,
    "corrected": _Corrected,
    "log": _Log,
    "empty": _Empty,
}
