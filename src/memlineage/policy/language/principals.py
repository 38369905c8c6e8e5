"""Principals in documents: names in their canonical spelling, and patterns of them."""

from __future__ import annotations

from typing import Final

from memlineage.errors import InvalidInputError
from memlineage.model.principal import parse_principal
from memlineage.policy.language.faults import hint, quoted
from memlineage.policy.language.nodes import Node
from memlineage.policy.language.shape import Shape

__all__ = ["read_name", "read_patterns"]

_KINDS: Final = ("user", "system", "tool", "agent", "reasoning", "external")


def read_name(shape: Shape, node: Node) -> str:
    """One principal. A misspelt one would compare with nothing and leave its rule silently idle."""
    text = shape.text(node)
    try:
        return parse_principal(text, name="principal")
    except InvalidInputError as error:
        shape.faults.add(node, "bad_principal", f"{error}; for all of a kind match 'user:*'")
        return text


def read_patterns(shape: Shape, node: Node) -> tuple[str, ...]:
    """Patterns of principals. A kind alone stands for all of that kind; the write-up's spellings are read."""
    nodes = shape.items(node) if isinstance(node.value, tuple) else (node,)
    if node.value == ():
        shape.faults.add(node, "empty", "the list is empty and would match nothing; name a principal")
    return tuple(sorted({pattern for item in nodes for pattern in _patterns(shape, item)}))


def _patterns(shape: Shape, node: Node) -> tuple[str, ...]:
    text = shape.text(node)
    head, colon, rest = text.partition(":")
    if "*" in head:
        return (text,)
    try:
        # Only the head is read: the rest is a name or a pattern.
        kind = parse_principal("system" if head == "system" else f"{head}:x", name="principal").partition(":")[0]
    except InvalidInputError:
        shape.faults.add(node, "bad_principal", f"{quoted(text)} is not a principal; {hint(head, _KINDS)}")
        return (text,)
    if colon and not rest.strip():
        shape.faults.add(node, "bad_principal", f"{quoted(text)} names nobody; write {kind}:* for all of that kind")
    if rest:
        return (f"{kind}:{rest}",)
    alone = {"reasoning": ("reasoning", "reasoning:*"), "system": ("system",)}
    return alone.get(kind, (f"{kind}:*",))
