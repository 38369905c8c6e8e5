"""Numbers of things in words."""

from __future__ import annotations

__all__ = ["count_of"]


def count_of(number: int, thing: str, form: str = "", *, many: str | None = None) -> str:
    """`1 unit`, `2 units`; the number in a format such as `,`, the plural as given where an s does not make it."""
    return f"{number:{form}} {thing if number == 1 else many or thing + 's'}"
