"""Which constraints bear on a question (row D3).

"I don't drink coffee" shares no word with "recommend a café" and must still bind; "use metric units" must not crowd
it out. So evidence is taken from three sides, and the strongest decides:

- words: terms shared with the question, counted by how few of the constraints have them; those of subject and tags
  count as the constraint's own;
- topics: groups and topics of the lexicon that both touch (`topics.py`); this works with no model;
- meaning: cosine of the vectors above what is usual among these constraints for this question. The usual is their
  median, because two short Chinese sentences are alike to some models whatever they say.

A constraint below the threshold on all three is left out. Importance and kind order what remains; they never let in
what does not bear on the question. A constraint that lies outside the lexicon, shares no word and is missed by
the embedder is missed.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memlineage.errors import InvalidInputError
from memlineage.recall.topics import Meaning, meaning

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CONSTRAINT_KINDS", "CONSTRAINT_LIMIT", "Binding", "ConstraintCandidate", "rank_constraints"]

CONSTRAINT_KINDS: Final = frozenset({"constraint", "preference", "goal"})
"""Kinds of units that constrain."""
CONSTRAINT_LIMIT: Final = 8
"""How many constraints accompany one question by default."""
RELEVANT: Final = 0.35
"""Least evidence, in [0, 1], on the strongest of the three sides."""

_GROUP: Final = 0.95
_TOPIC: Final = 0.5
_WORD: Final = 0.8
_FULL_SHARE: Final = 0.7
"""An embedder of this share or more is believed in full."""
_FEW: Final = 8
"""From this many vectors on, their median says what is usual."""
_KIND: Final = {"constraint": 1.0, "preference": 0.95, "goal": 0.9}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ConstraintCandidate:
    """A current constraint of the user.

    Attributes:
        id: the caller's name for it; ties are settled by it, lowest first.
        content: its text.
        subject: what it is about, if said.
        tags: its labels.
        kind: `constraint`, `preference` or `goal`.
        importance: in [0, 1].
        vector: its embedding, if there is one.
    """

    id: int
    content: str
    subject: str | None = None
    tags: Sequence[str] = ()
    kind: str = "constraint"
    importance: float = 0.5
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """A constraint that bears on the question, and why.

    Attributes:
        id: of the candidate.
        score: what it is ordered by, in [0, 1].
        words: evidence of shared terms.
        topics: evidence of shared groups and topics.
        meaning: evidence of the vectors.
        shared: the terms and groups they share, sorted; what an explanation names.
    """

    id: int
    score: float
    words: float
    topics: float
    meaning: float
    shared: tuple[str, ...]


def rank_constraints(
    query: str,
    candidates: Sequence[ConstraintCandidate],
    *,
    query_vector: NDArray[np.float32] | None = None,
    noise: float = 0.0,
    vector_share: float = 0.7,
    limit: int = CONSTRAINT_LIMIT,
    threshold: float = RELEVANT,
) -> list[Binding]:
    """The constraints that bear on the query, best first, at most `limit`.

    `noise` and `vector_share` are the embedder's: one that knows spelling only has less to say here too.

    Raises:
        InvalidInputError: a negative limit, or a threshold outside [0, 1].
    """
    if limit < 0:
        raise InvalidInputError(f"limit={limit} of constraints is negative; 0 turns them off")
    if not 0 <= threshold <= 1:
        raise InvalidInputError(f"threshold={threshold} must be in [0, 1]")
    asked = meaning(query)
    meant = [_own_meaning(candidate) for candidate in candidates]
    carriers = Counter(term for each in meant for term in each.terms & asked.terms)
    near = _evidence_of_vectors(query_vector, candidates, noise, min(1.0, vector_share / _FULL_SHARE))
    found = []
    for candidate, own, semantic in zip(candidates, meant, near, strict=True):
        words = _evidence_of_words(own.terms & asked.terms, carriers, len(candidates))
        topics = _evidence_of_topics(asked, own)
        strongest = max(words, topics, semantic)
        if strongest < threshold or strongest == 0:
            continue
        backing = (words + topics + semantic - strongest) / 2
        relevance = 0.8 * strongest + 0.2 * backing
        binding = Binding(
            id=candidate.id,
            score=relevance * (0.7 + 0.3 * _unit(candidate.importance)) * _KIND.get(candidate.kind, 0.9),
            words=words,
            topics=topics,
            meaning=semantic,
            shared=tuple(sorted((own.terms & asked.terms) | (own.groups & asked.groups))),
        )
        found.append(binding)
    found.sort(key=lambda binding: (-round(binding.score, 9), binding.id))
    return found[:limit]


def _own_meaning(candidate: ConstraintCandidate) -> Meaning:
    labels = [candidate.subject or "", *candidate.tags]
    return meaning("\n".join([candidate.content, *labels]))


def _evidence_of_words(shared: frozenset[str], carriers: Counter[str], total: int) -> float:
    """One telling word nearly suffices; a word that most constraints have says nothing."""
    missing = 1.0
    for term in sorted(shared):
        rarity = 1 - math.log(carriers[term]) / math.log(total + 1)
        missing *= 1 - _WORD * rarity
    return 1 - missing


def _evidence_of_topics(asked: Meaning, own: Meaning) -> float:
    """A shared group is near certain; a shared topic counts less the more topics the two have besides."""
    if asked.groups & own.groups:
        return _GROUP
    shared = len(asked.topics & own.topics)
    if not shared:
        return 0.0
    spread = math.sqrt(len(asked.topics) * len(own.topics))
    return _TOPIC * min(1.0, 0.6 + 0.4 * shared / spread)


def _evidence_of_vectors(
    query: NDArray[np.float32] | None, candidates: Sequence[ConstraintCandidate], noise: float, say: float
) -> list[float]:
    """How far each cosine lies above the usual one, on a scale that ends at 1."""
    import numpy as np

    none = [0.0] * len(candidates)
    if query is None or not np.any(query):
        return none
    having = [i for i, candidate in enumerate(candidates) if candidate.vector is not None]
    if not having:
        return none
    cosines = np.array([candidates[i].vector for i in having], dtype=np.float64) @ query.astype(np.float64)
    usual = max(noise, float(np.median(cosines))) if len(having) >= _FEW else noise
    above = say * np.clip((cosines - usual) / max(1e-6, 1 - usual), 0.0, 1.0)
    for i, value in zip(having, above.tolist(), strict=True):
        none[i] = value
    return none


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0
