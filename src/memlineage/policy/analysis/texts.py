"""Texts under patterns, decided exactly: is there a text that fits some of these and none of those?

A pattern is the pieces between its stars, so that `("tool:", "")` is `tool:*` and `("a*",)` the text `a*` itself. Each
pattern becomes an automaton with no more states than it has characters: the leftmost place of every piece is enough,
as in `glob_match`. Their product is walked breadth first, so that a text that is found is a short one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

__all__ = ["MAX_STATES", "Apart", "Pattern", "Undecided", "any_fits", "apart", "exact", "fits", "glob", "some_text"]

Pattern = tuple[str, ...]

MAX_STATES: Final = 4000
MAX_PATTERNS: Final = 50_000
_FILLINGS: Final = ("x", "1", "")
# What stands for a text that no rule names, in the order tried.
_ANYTHING: Final = ("other", "another", "x", "")


class Undecided(Exception):  # noqa: N818  not an error: an answer that the bounds on work leave open
    """The bounds on work were reached before there was an answer."""


def exact(text: str) -> Pattern:
    """The pattern that only this text fits."""
    return (text,)


def glob(text: str) -> Pattern:
    """The pattern of a document, where `*` stands for any run of characters."""
    return tuple(text.split("*"))


def fits(pattern: Pattern, text: str) -> bool:
    """Whether the whole text fits."""
    if len(pattern) == 1:
        return text == pattern[0]
    first, last = pattern[0], pattern[-1]
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in pattern[1:-1]:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


Apart = tuple[frozenset[str], tuple[Pattern, ...]]
"""Patterns without stars, as their texts; and the others."""


def apart(patterns: Iterable[Pattern]) -> Apart:
    """Patterns in the form in which long lists of texts are looked up at once."""
    kept = tuple(patterns)
    texts = frozenset(pattern[0] for pattern in kept if len(pattern) == 1)
    return texts, tuple(pattern for pattern in kept if len(pattern) > 1)


def any_fits(patterns: Apart, text: str) -> bool:
    """Whether the text fits one of them."""
    texts, globs = patterns
    return text in texts or any(fits(pattern, text) for pattern in globs)


def some_text(wanted: Sequence[Iterable[Pattern]], unwanted: Iterable[Pattern], most: int = MAX_STATES) -> str | None:
    """A text that fits at least one pattern of each group that is wanted, and none that is unwanted; None if there is
    none. Raises `Undecided` when that takes more than so many states.
    """
    groups = [tuple(group) for group in wanted]
    against = tuple(dict.fromkeys(unwanted))
    if len(against) + sum(map(len, groups)) > MAX_PATTERNS:
        raise Undecided
    taken, refused = [apart(group) for group in groups], apart(against)
    for text in _likely(groups):
        if not any_fits(refused, text) and all(any_fits(group, text) for group in taken):
            return text
    if any(not globs for _, globs in taken):
        return None  # every text that this group allows was tried
    return _walked(groups, against, most)


def _likely(groups: Sequence[tuple[Pattern, ...]]) -> Iterator[str]:
    """Every text of a group without stars; else the first patterns with something short for their stars."""
    listed = [group for group in groups if not apart(group)[1]]
    if listed:
        yield from (pattern[0] for pattern in min(listed, key=len))
        return
    if not groups:
        yield from _ANYTHING
    for group in sorted(groups, key=len):
        for pattern in group[:4]:
            yield from dict.fromkeys(filling.join(pattern) for filling in _FILLINGS)


class _Automaton:
    """One pattern as a deterministic automaton; state -1 is where nothing can fit any more."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.last = len(pattern) - 1
        # (piece, characters of it that are read) by state; a piece that is whole gives way to the next.
        self._fall = [_borders(piece) for piece in pattern]

    def begin(self) -> tuple[int, int]:
        return self._on(0, 0)

    def accepts(self, state: tuple[int, int]) -> bool:
        piece, read = state
        return piece == self.last and read == len(self.pattern[piece])

    def step(self, state: tuple[int, int], character: str) -> tuple[int, int]:
        piece, read = state
        if piece < 0:
            return state
        text = self.pattern[piece]
        if piece == 0:  # the beginning is fixed
            if read < len(text) and text[read] == character:
                return self._on(0, read + 1)
            return (-1, 0)
        fall = self._fall[piece]
        while True:
            if read < len(text) and text[read] == character:
                return self._on(piece, read + 1)
            if read == 0:
                return (piece, 0)
            read = fall[read]

    def _on(self, piece: int, read: int) -> tuple[int, int]:
        """The next piece begins where one is whole; the last has to be whole at the end of the text."""
        while piece < self.last and read == len(self.pattern[piece]):
            piece, read = piece + 1, 0
        return (piece, read)


@lru_cache(maxsize=4096)
def _automaton(pattern: Pattern) -> _Automaton:
    return _Automaton(pattern)


def _borders(piece: str) -> list[int]:
    """For each length of a beginning, the longest shorter beginning that is its end too (Knuth, Morris, Pratt)."""
    fall = [0] * (len(piece) + 1)
    for length in range(2, len(piece) + 1):
        shorter = fall[length - 1]
        while shorter and piece[shorter] != piece[length - 1]:
            shorter = fall[shorter]
        fall[length] = shorter + (piece[shorter] == piece[length - 1])
    return fall


def _walked(groups: Sequence[tuple[Pattern, ...]], against: tuple[Pattern, ...], most: int) -> str | None:
    machines = [_automaton(pattern) for group in groups for pattern in group] + [_automaton(one) for one in against]
    letters = sorted({character for machine in machines for piece in machine.pattern for character in piece})
    letters.append(_stranger(letters))
    if len(machines) * len(letters) > 200 * MAX_STATES:
        raise Undecided
    ends, at = [], 0
    for group in groups:
        ends.append((at, at + len(group)))
        at += len(group)
    begin = tuple(machine.begin() for machine in machines)
    seen: dict[tuple[tuple[int, int], ...], tuple[tuple[tuple[int, int], ...], str] | None] = {begin: None}
    queue = deque([begin])
    work = 0
    while queue:
        states = queue.popleft()
        ok = [machine.accepts(state) for machine, state in zip(machines, states, strict=True)]
        if not any(ok[at:]) and all(any(ok[low:high]) for low, high in ends):
            return _spelled(seen, states)
        for letter in letters:
            work += len(machines)
            after = tuple(machine.step(state, letter) for machine, state in zip(machines, states, strict=True))
            if after in seen or any(all(s[0] < 0 for s in after[low:high]) for low, high in ends):
                continue
            seen[after] = (states, letter)
            queue.append(after)
        if len(seen) > most or work > 100 * most:
            raise Undecided
    return None


def _stranger(letters: list[str]) -> str:
    """A character that no pattern names."""
    return next(c for c in map(chr, range(ord("a"), 0x10000)) if c not in letters and c.isalnum())


def _spelled(
    seen: dict[tuple[tuple[int, int], ...], tuple[tuple[tuple[int, int], ...], str] | None],
    states: tuple[tuple[int, int], ...],
) -> str:
    letters = []
    step = seen[states]
    while step is not None:
        states, letter = step
        letters.append(letter)
        step = seen[states]
    return "".join(reversed(letters))
