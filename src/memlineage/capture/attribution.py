"""How much of what a model was shown went into what it said: weights for its edges (row E4).

An attributor looks at a model's text and at what was shown to it, and gives weights in (0, 1]; 0.5 and more means that
the text rests on it, so that whatever befalls it reaches the text. What it leaves out supports nothing, and stays
recorded as exposure: no attributor can wash anything clean. What was never shown is never given weight.

Where there is nothing to tell by, everything counts in full: a premise missed is worse than one too many.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from memlineage.capture.premises import labels_for, parse_premises
from memlineage.engine.checks import check_count
from memlineage.engine.strangers import ask
from memlineage.lineage.support import value_tokens
from memlineage.model.ids import Ref
from memlineage.model.unit import TAU
from memlineage.recall.embedding import Embedder, embed_texts
from memlineage.recall.text import query_terms

__all__ = [
    "Attributor", "Embedding", "LeaveOneOut", "Scorer", "SelfReported", "Shown", "checked", "lexical", "uniform",
]  # fmt: skip

_LOG: Final = logging.getLogger(__name__)
_VALUE: Final = 3.0
"""What an exact value counts, in words."""
_SECONDS: Final = 30.0
_EXACT: Final = 0.75
"""Least weight of what shares an exact value with the text that not everything shown has."""


class Shown(msgspec.Struct, frozen=True):
    """Something that was put in front of the model.

    Attributes:
        ref: the version.
        content: what it says.
    """

    ref: Ref
    content: str


Attributor = Callable[[str, Sequence[Shown]], Mapping[Ref, float]]
"""Given a model's text and what was shown to it: weights in (0, 1] by ref."""

Scorer = Callable[[str, Sequence[Shown]], float]
"""How well a text follows from what is shown, e.g. its log-likelihood: the greater, the better."""


def uniform(text: str, shown: Sequence[Shown]) -> dict[Ref, float]:
    """Everything that was shown, in full."""
    return {one.ref: 1.0 for one in shown}


def lexical(text: str, shown: Sequence[Shown]) -> dict[Ref, float]:
    """By words and exact values that both have: ids, amounts, dates and addresses count most. English and Chinese.

    A translation or a paraphrase shares no words: then nothing is strong, and all of it counts in full.
    """
    said = _features(text)
    there = [_features(one.content) for one in shown]
    carriers = Counter(feature for features in there for feature in features)
    weights: dict[Ref, float] = {}
    for one, features in zip(shown, there, strict=True):
        shared = said.keys() & features.keys()
        smaller = min(sum(said.values()), sum(features.values()))
        weight = sum(features[feature] for feature in shared) / smaller if smaller else 0.0
        if any(_is_exact(feature) and carriers[feature] < max(2, len(shown)) for feature in shared):
            weight = max(weight, _EXACT)
        if weight > 0:
            weights[one.ref] = max(weights.get(one.ref, 0.0), min(1.0, weight))
    return _told(weights, shown)


def _features(text: str) -> dict[str, float]:
    """The distinct terms of a text, and the exact values in it, with what each counts."""
    features: dict[str, float] = dict.fromkeys(query_terms(text), 1.0)
    features.update((f"={token}", _VALUE) for token in value_tokens(text) if _tells(token))
    return features


def _tells(token: str) -> bool:
    """Whether it is a value that tells one thing from another: with a digit, or an address."""
    return len(token) > 1 and (any(c.isdigit() for c in token) or "@" in token or "://" in token)


def _is_exact(feature: str) -> bool:
    return feature.startswith("=")


def _told(weights: dict[Ref, float], shown: Sequence[Shown]) -> dict[Ref, float]:
    """The weights, if any of them is strong; else nothing can be told."""
    return weights if any(weight >= TAU for weight in weights.values()) else uniform("", shown)


class Embedding:
    """By nearness in meaning: what is at least half as near to the text as the nearest counts as strong."""

    def __init__(self, embedder: Embedder, *, seconds: float = _SECONDS) -> None:
        """An attributor by an embedder; one that fails, or takes longer than that, makes everything count in full."""
        self._embedder = embedder
        self._seconds = seconds

    def __call__(self, text: str, shown: Sequence[Shown]) -> dict[Ref, float]:
        """The weights."""
        if not shown:
            return {}
        answer = ask(embed_texts, self._embedder, [text, *(one.content for one in shown)], seconds=self._seconds)
        if answer.error is not None:
            return _failed(f"embedder {self._embedder.name!r}", answer.error, shown)
        noise = self._embedder.noise
        said, *there = answer.value
        near = [max(0.0, (float(said @ row) - noise) / (1 - noise)) for row in there]
        return _told(_scaled(near, shown), shown)


class SelfReported:
    """By what the model itself said it relied on, in the trailer that `prompt_fragment` asks for.

    Labels go by the order of what was shown: m1, m2, … What it named and was not shown does not count. If it named
    nothing that it saw, the fallback decides; if it said that it relied on nothing, nothing supports it.
    """

    def __init__(self, fallback: Attributor = uniform) -> None:
        """An attributor by the model's own word."""
        self._fallback = fallback

    def __call__(self, text: str, shown: Sequence[Shown]) -> Mapping[Ref, float]:
        """The weights."""
        premises = parse_premises(text, labels_for([one.ref for one in shown]))
        if premises.weights or premises.nothing:
            return premises.weights
        return checked(self._fallback, premises.text, shown)


class LeaveOneOut:
    """By how much worse the text follows without it: the scorer is asked with each left out in turn."""

    def __init__(self, scorer: Scorer, *, calls: int = 33, seconds: float = _SECONDS) -> None:
        """An attributor by a scorer of yours.

        Args:
            scorer: how well the text follows from what is shown.
            calls: most calls for one text. What could not be tried counts in full.
            seconds: for one call. If one fails, or answers with no finite number, everything counts in full.
        """
        check_count(calls, name="calls", least=2)  # with everything, and without one
        self._scorer = scorer
        self._calls = calls
        self._seconds = seconds

    def __call__(self, text: str, shown: Sequence[Shown]) -> dict[Ref, float]:
        """The weights."""
        if not shown:
            return {}
        tried = list(shown[: self._calls - 1])
        scores: list[float] = []
        for without in (None, *range(len(tried))):
            rest = [one for place, one in enumerate(shown) if place != without]
            answer = ask(self._scorer, text, rest, seconds=self._seconds)
            wrong = answer.error or _no_number(answer.value)
            if wrong is not None:
                return _failed("the scorer", wrong, shown)
            scores.append(float(answer.value))
        drops = [max(0.0, scores[0] - score) for score in scores[1:]]
        if not all(map(math.isfinite, drops)):
            return _failed("the scorer", "its scores lie too far apart", shown)
        weights = _told(_scaled(drops, tried), tried)
        return weights | {one.ref: 1.0 for one in shown[len(tried) :]}


def _scaled(amounts: Sequence[float], shown: Sequence[Shown]) -> dict[Ref, float]:
    """Shares of the greatest; one named twice has the greater."""
    most = max(amounts, default=0.0)
    weights: dict[Ref, float] = {}
    for one, amount in zip(shown, amounts, strict=True):
        share = amount / most if most > 0 else 0.0
        if share > 0:
            weights[one.ref] = max(weights.get(one.ref, 0.0), min(1.0, share))
    return weights


def _no_number(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return f"it answered {value!r:.80}, which is no finite number"
    return None


def _failed(who: str, why: str, shown: Sequence[Shown]) -> dict[Ref, float]:
    _LOG.warning("%s could not attribute: %s; everything shown counts in full", who, why)
    return uniform("", shown)


def checked(
    attributor: Attributor, text: str, shown: Sequence[Shown], *, seconds: float | None = None
) -> dict[Ref, float]:
    """What an attributor says, as far as it may be believed: weights in (0, 1] of what was shown, and of nothing else.

    One of the user's own that fails, or gives something that is no weight, makes everything count in full.
    """
    if attributor is uniform or attributor is lexical:
        return dict(attributor(text, shown))
    answer = ask(attributor, text, shown, seconds=_SECONDS if seconds is None else seconds)
    if answer.error is not None:
        return _failed(f"attributor {_name(attributor)}", answer.error, shown)
    seen = {one.ref for one in shown}
    weights: dict[Ref, float] = {}
    if not isinstance(answer.value, Mapping):
        return _failed(f"attributor {_name(attributor)}", f"{answer.value!r:.80} is no mapping ref -> weight", shown)
    for ref, weight in answer.value.items():
        if ref not in seen:
            continue
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1:
            return _failed(f"attributor {_name(attributor)}", f"weight {weight!r:.80} is not in (0, 1]", shown)
        weights[ref] = float(weight)
    return weights


def _name(attributor: Attributor) -> str:
    return getattr(attributor, "__name__", type(attributor).__name__)
