"""Patterns: `*` stands for any run of characters, everything else for itself. Whole text, case matters.

No other metacharacter, and no regular expressions: a pattern comes from a document and its text from a memory that
an attacker may have written, so matching must take time linear in the text.
"""

from __future__ import annotations

__all__ = ["glob_match"]


def glob_match(pattern: str, text: str) -> bool:
    """Whether the whole text fits the pattern. The leftmost place is taken for every piece: no backtracking."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    *middle, last = rest
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True
