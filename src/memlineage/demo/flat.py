"""A flat memory: a list of texts, found by likeness. It is really run, beside the other, with the same embedder.

It is a fair one: what the user corrects is replaced in place, what is known to be bad is deleted, and it notes who
said what. It has no edges, so it cannot know what else a correction concerns; and nothing stands between what it
serves and what is done with it.
"""

from __future__ import annotations

import numpy as np

from memlineage.recall.embedders import LexicalEmbedder, embed_query, embed_texts

__all__ = ["FlatMemory"]


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

    def drop(self, text: str) -> None:
        """Delete a text, however often it is there."""
        kept = [(known, who) for known, who in zip(self._texts, self._said_by, strict=True) if known != text]
        self._texts = [known for known, _ in kept]
        self._said_by = [who for _, who in kept]

    def said(self) -> list[tuple[str, str]]:
        """Every text, oldest first, and who said it."""
        return list(zip(self._texts, self._said_by, strict=True))

    def recall(self, query: str, limit: int = 5) -> list[str]:
        """The most similar texts, best first."""
        vectors = embed_texts(self._embedder, self._texts)
        likeness = vectors @ embed_query(self._embedder, query)
        order = np.argsort(-likeness.round(6), kind="stable")
        return [self._texts[place] for place in order[:limit]]

    def __len__(self) -> int:
        return len(self._texts)
