"""Sets of rules as an organisation would write them, in any number: what speed is measured with.

Most rules name what they are about: a tag of some two hundred, a kind, whoever said it, whose memory it is. They look
at age, confidence, purpose, who asks and at metadata. One in a hundred is about everything. Nothing plainly said by a
user or concluded from it is held back: figures with more rules are figures of the same work.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from memlineage.policy import Document

__all__ = ["CREATORS", "KINDS", "PURPOSES", "REGIONS", "TAGS", "TEAMS", "ruleset"]

_FIELDS: Final = ("travel", "finance", "health", "law", "support", "sales", "shipping", "people")
_THINGS: Final = (
    "price", "quote", "offer", "booking", "invoice", "payment", "address", "contact", "diagnosis", "dose", "contract",
    "deadline", "case", "complaint", "refund", "delivery", "stock", "forecast", "salary", "review", "rating", "route",
    "visa", "policy", "limit",
)  # fmt: skip
TAGS: Final = tuple(f"{field}_{thing}" for field in _FIELDS for thing in _THINGS)
"""The tags that rules are about."""
KINDS: Final = ("price", "event", "instruction", "observation", "summary", "measurement")
"""The kinds that rules are about: none is `fact`, which is what is stored where nothing is said."""
CREATORS: Final = tuple(f"{kind}:{field}_{n}" for kind in ("tool", "external") for field in _FIELDS for n in range(5))
"""Who says what rules are about."""
TEAMS: Final = tuple(f"{field}_team_{n}" for field in _FIELDS for n in range(5))
"""Users whose memories have rules of their own."""
PURPOSES: Final = ("payment", "advice", "report", "training", "audit", "marketing")
"""What is asked for."""
REGIONS: Final = ("eu", "us", "jp", "br")
"""Values of `metadata.region`."""
_AGES: Final = ("15m", "1h", "6h", "1d", "1w")

_Chance = random.Random


def ruleset(count: int, seed: int = 0) -> tuple[Document, ...]:
    """Documents of exactly `count` rules between them, the same for the same numbers: one of layer global, and one of
    a domain for every eighth rule.
    """
    chance = _Chance(seed)
    rules = [_rule(chance, number) for number in range(count)]
    broad = [rule for number, rule in enumerate(rules) if number % 8 != 7]
    narrow = [rule for number, rule in enumerate(rules) if number % 8 == 7]
    documents = [_document("global", broad)] if broad else []
    return (*documents, *([_document("domain:travel", narrow)] if narrow else []))


def _document(layer: str, rules: list[dict[str, Any]]) -> Document:
    return Document.from_dict({"memlineage": 1, "layer": layer, "rules": rules}, source=f"<{len(rules)} of {layer}>")


def _rule(chance: _Chance, number: int) -> dict[str, Any]:
    make = _about_everything if number % 100 == 99 else chance.choices(_MAKERS, _SHARES)[0]
    body = make(chance)
    return {"name": f"{make.__name__.strip('_')}_{number}", "priority": chance.randrange(-20, 20), **body}


def _tags(chance: _Chance) -> list[str]:
    return chance.sample(TAGS, chance.choice([1, 1, 1, 2, 3]))


def _too_old(chance: _Chance) -> dict[str, Any]:
    return {"freshness": {"tags": _tags(chance), "max_age": chance.choice(_AGES), "refresh": chance.random() < 0.3}}


def _old_for_a_purpose(chance: _Chance) -> dict[str, Any]:
    return {
        "on": "read",
        "target": {"tags": _tags(chance), "purpose": [chance.choice(PURPOSES)]},
        "condition": [{"time_since": "lineage.timestamp"}, ">", chance.choice(_AGES)],
        "action": chance.choice(["withhold", "flag"]),
    }


def _unsure(chance: _Chance) -> dict[str, Any]:
    return {
        "on": "read",
        "target": {"tags": _tags(chance)},
        "condition": [{"field": "confidence"}, "<", chance.randrange(3, 9) / 10],
        "action": chance.choice(["withhold", "flag", "flag"]),
        "weight": chance.choice([1, 2, 5]),
    }


def _of_a_kind(chance: _Chance) -> dict[str, Any]:
    return {
        "on": chance.choice(["read", ["write", "update"]]),
        "target": {"kinds": [chance.choice(KINDS)], "creators": [chance.choice(CREATORS)]},
        "condition": [{"field": "confidence"}, "<", chance.randrange(3, 9) / 10],
        "action": chance.choice(["deny", "flag"]),
    }


def _by_creator(chance: _Chance) -> dict[str, Any]:
    whole = chance.choice(CREATORS)
    pattern = whole if chance.random() < 0.7 else whole[:-1] + "*"
    return {
        "on": "read",
        "target": {"creators": [pattern]},
        "condition": {
            "any": [
                [{"field": "integrity"}, "<", "TRUSTED"],
                [{"time_since": "lineage.timestamp"}, ">", chance.choice(_AGES)],
            ]
        },
        "action": chance.choice(["withhold", "flag"]),
    }


def _of_a_user(chance: _Chance) -> dict[str, Any]:
    return {
        "on": "read",
        "target": {"users": [chance.choice(TEAMS)], "purpose": [chance.choice(PURPOSES)]},
        "condition": [{"context": "principal_kind"}, "!=", "user"],
        "action": "withhold",
    }


def _by_region(chance: _Chance) -> dict[str, Any]:
    return {
        "on": ["read", "write"],
        "target": {"tags": _tags(chance)},
        "condition": [{"field": "metadata.region"}, "not_in", chance.sample(REGIONS, 2)],
        "action": chance.choice(["deny", "flag"]),
        "mode": chance.choice(["enforce", "enforce", "shadow", "warn"]),
    }


def _who_asks(chance: _Chance) -> dict[str, Any]:
    return {
        "on": ["invalidate", "retract", "update"],
        "target": {"tags": _tags(chance)},
        "condition": {"not": [{"context": "principal_kind"}, "in", ["user", "system"]]},
        "action": "deny",
    }


def _of_a_tool(chance: _Chance) -> dict[str, Any]:
    return {
        "on": "act",
        "target": {"tools": [f"book_{chance.choice(_THINGS)}"]},
        "condition": [{"context": "arguments.amount"}, ">", chance.randrange(100, 10_000)],
        "action": "deny",
    }


def _about_everything(chance: _Chance) -> dict[str, Any]:
    return {
        "on": "read",
        "target": {"purpose": [chance.choice(PURPOSES)]},
        "condition": [{"lineage": "integrity"}, "<", "INTERNAL"],
        "action": "withhold",
    }


_MAKERS: Final[tuple[Callable[[_Chance], dict[str, Any]], ...]] = (
    _too_old, _old_for_a_purpose, _unsure, _of_a_kind, _by_creator, _of_a_user, _by_region, _who_asks, _of_a_tool,
)  # fmt: skip
_SHARES: Final = (22, 10, 20, 8, 14, 6, 10, 6, 4)
