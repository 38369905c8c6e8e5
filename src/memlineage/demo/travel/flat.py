"""The same day with a flat memory: a list of texts, and the same embedder. It is really run, beside the other.

It is a fair one: what the user corrects is replaced in place, and it notes who said what. It has no edges, so it
cannot know what else a correction concerns; and nothing stands between what it serves and what is done with it.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from memlineage.demo.travel.agent import ibans_in
from memlineage.demo.travel.world import Bank
from memlineage.recall.embedders import LexicalEmbedder, embed_query, embed_texts

__all__ = ["FlatMemory", "FlatTraveller"]


class FlatMemory:
    """Texts, found by likeness."""

    def __init__(self) -> None:
        self._embedder = LexicalEmbedder()
        self._texts: list[str] = []
        self._said_by: list[str] = []

    def remember(self, text: str, said_by: str) -> None:
        """Keep a text."""
        self._texts.append(text)
        self._said_by.append(said_by)

    def replace(self, old: str, new: str) -> None:
        """Correct a text in place."""
        self._texts[self._texts.index(old)] = new

    def forget(self, said_by: str) -> int:
        """Drop all that somebody said; returns how many texts."""
        kept = [(text, who) for text, who in zip(self._texts, self._said_by, strict=True) if who != said_by]
        dropped = len(self._texts) - len(kept)
        self._texts = [text for text, _ in kept]
        self._said_by = [who for _, who in kept]
        return dropped

    def recall(self, query: str, limit: int = 5) -> list[str]:
        """The most similar texts, best first."""
        vectors = embed_texts(self._embedder, self._texts)
        likeness = vectors @ embed_query(self._embedder, query)
        order = np.argsort(-likeness.round(6), kind="stable")
        return [self._texts[place] for place in order[:limit]]

    def __len__(self) -> int:
        return len(self._texts)


class FlatTraveller:
    """The same gullible agent with such a memory, and a bank of its own."""

    def __init__(self) -> None:
        self.memory = FlatMemory()
        self.bank = Bank()

    def dead_facts_served(self, query: str, dead: Container[str]) -> list[str]:
        """What it would answer with, of what is known to be dead by then."""
        return [text for text in self.memory.recall(query) if text in dead]

    def pays(self, query: str, due: str) -> str:
        """Pays the first account in what it recalls, the loudest first; returns the account."""
        recalled = "\n".join(self.memory.recall(query))
        account = ibans_in(recalled)[0]
        self.bank.pay(account, due)
        return account
