"""Checks of single values of a document. A check that fails adds a fault and returns a harmless stand-in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from memlineage.errors import InvalidInputError
from memlineage.model.time import to_us
from memlineage.policy.language.faults import Faults, hint, quoted
from memlineage.policy.language.nodes import Node

__all__ = ["DURATION", "MAX_LIST", "MAX_SECONDS", "MAX_TEXT", "Shape"]

MAX_SECONDS: Final = 1e11
"""Longest duration, about 3,000 years: a larger number is microseconds by mistake."""
MAX_TEXT: Final = 2_000
"""Longest text that stands for itself: a name, a reason, a value, a pattern."""
MAX_LIST: Final = 10_000
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([smhdw])")


class Shape:
    """Checks that share one list of faults."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults

    def mapping(self, node: Node, known: Iterable[str], *, required: Iterable[str] = ()) -> dict[str, Node]:
        """The entries with known keys; a fault for every other key and for every required one that is absent."""
        if not isinstance(node.value, dict):
            self.faults.add(node, "wrong_type", f"expected a mapping, found {node.word}")
            return {}
        names = set(known)
        for key, child in node.value.items():
            if key not in names:
                self.faults.add_key(child, "unknown_key", f"unknown key {quoted(key)}; {hint(key, names)}")
        for key in required:
            if key not in node.value:
                self.faults.add(node, "missing_key", f"{key!r} is missing; add it")
        return {key: child for key, child in node.value.items() if key in names}

    def items(self, node: Node) -> tuple[Node, ...]:
        """The elements of a list."""
        if not isinstance(node.value, tuple):
            self.faults.add(node, "wrong_type", f"expected a list, found {node.word}")
            return ()
        if len(node.value) > MAX_LIST:
            self.faults.add(node, "too_large", f"the list has {len(node.value):,} elements; the limit is {MAX_LIST:,}")
            return ()
        return node.value

    def text(self, node: Node) -> str:
        """A text that is not empty."""
        if not isinstance(node.value, str):
            cure = f'; put it in quotes: "{node.value}"' if isinstance(node.value, int | float) else ""
            self.faults.add(node, "wrong_type", f"expected text, found {node.word}{cure}")
            return "?"
        if not node.value.strip() or len(node.value) > MAX_TEXT:
            self.faults.add(node, "wrong_value", f"expected text of 1 to {MAX_TEXT:,} characters")
            return "?"
        return node.value

    def texts(self, node: Node) -> tuple[str, ...]:
        """One text, or a list of at least one: sorted, each once."""
        if not isinstance(node.value, tuple):
            return (self.text(node),)
        if not node.value:
            self.faults.add(node, "empty", "the list is empty and would match nothing; name something or leave it out")
        return tuple(sorted({self.text(item) for item in self.items(node)}))

    def boolean(self, node: Node) -> bool:
        """true or false, and nothing that looks like it."""
        if not isinstance(node.value, bool):
            self.faults.add(node, "wrong_type", f"expected true or false, found {quoted(node.value_or_word)}")
            return False
        return node.value

    def number(self, node: Node, *, least: float, most: float) -> float:
        """A number within bounds."""
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            self.faults.add(node, "wrong_type", f"expected a number, found {quoted(node.value_or_word)}")
            return least
        if not least <= node.value <= most:
            self.faults.add(node, "wrong_value", f"{node.value} is not between {least:g} and {most:g}")
            return least
        return float(node.value)

    def integer(self, node: Node, *, least: int, most: int) -> int:
        """A whole number within bounds."""
        if isinstance(node.value, bool) or not isinstance(node.value, int):
            self.faults.add(node, "wrong_type", f"expected a whole number, found {quoted(node.value_or_word)}")
            return least
        return int(self.number(node, least=least, most=most))

    def choice(self, node: Node, known: Iterable[str], code: str) -> str | None:
        """One of a few words."""
        names = sorted(known)
        if not isinstance(node.value, str):
            self.faults.add(node, "wrong_type", f"expected one of {', '.join(names)}; found {node.word}")
            return None
        if node.value not in names:
            self.faults.add(node, code, f"unknown {quoted(node.value)}; {hint(node.value, names)}")
            return None
        return node.value

    def seconds(self, node: Node) -> float:
        """A duration: a number of seconds, or a text such as '90s', '30m', '1h', '2d', '1w'."""
        found = DURATION.fullmatch(node.value) if isinstance(node.value, str) else None
        if found is not None:
            return float(found[1]) * _UNITS[found[2]]
        if isinstance(node.value, str):
            message = f"{quoted(node.value)} is not a duration; write seconds, or e.g. '30m', '1h', '2d'"
            self.faults.add(node, "bad_duration", message)
            return 0.0
        return self.number(node, least=0, most=MAX_SECONDS)

    def instant(self, node: Node) -> int:
        """An ISO 8601 instant with a UTC offset, in microseconds."""
        try:
            return to_us(datetime.fromisoformat(node.value if isinstance(node.value, str) else ""))
        except (ValueError, OverflowError, InvalidInputError):
            message = f"{quoted(node.value_or_word)} is not an instant; write e.g. '2030-01-31T00:00:00Z'"
            self.faults.add(node, "bad_time", message)
            return 0
