"""One tree of errors. Each message says whose fault it is, names the value, and says what to do about it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "CapabilityError",
    "ConflictError",
    "CycleError",
    "InvalidInputError",
    "LedgerError",
    "MemLineageError",
    "MissingExtraError",
    "PolicyDocumentError",
    "PolicyViolationError",
    "QuotaError",
    "ScopeRequiredError",
    "StoreError",
    "UnknownUnitError",
    "need_extra",
]


class MemLineageError(Exception):
    """The root of every error that this package raises on purpose."""


class InvalidInputError(MemLineageError, ValueError):
    """A value handed in by the caller cannot be accepted. Nothing was written."""


class QuotaError(InvalidInputError):
    """A value is well-formed but larger than the configured quota. Nothing was written."""


class ScopeRequiredError(MemLineageError):
    """A read or write named neither a user nor an agent, so no wall can be drawn around it."""


class UnknownUnitError(MemLineageError, LookupError):
    """No unit of that id or version is visible in this scope."""


class PolicyViolationError(MemLineageError):
    """Policy refused the request.

    Attributes:
        decision: the `Decision` that refused it: fired and determining rules, reasons, unit.
    """

    def __init__(self, decision: object, message: str) -> None:
        super().__init__(message)
        self.decision = decision


class ConflictError(MemLineageError):
    """Somebody else updated the unit first, or an idempotency key was reused for other content.

    Attributes:
        winner: the ref (`id@version`) that stands now.
    """

    def __init__(self, message: str, winner: str) -> None:
        super().__init__(message)
        self.winner = winner


class CycleError(MemLineageError):
    """The requested edge would make a unit its own ancestor."""


class PolicyDocumentError(MemLineageError, ValueError):
    """A policy document has faults. All of them are listed, each with line and column.

    Attributes:
        faults: the faults in document order.
    """

    def __init__(self, message: str, faults: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class StoreError(MemLineageError):
    """The database refused an operation: locked, full, read-only, damaged, or of another format."""


class LedgerError(MemLineageError):
    """An event, leaf or commitment does not fit the record."""


class CapabilityError(MemLineageError):
    """What was asked for needs an extra, a tool or a model that is not there; the message names it."""


class MissingExtraError(CapabilityError, ImportError):
    """A package that only an extra brings is not installed; the message names the extra."""


def need_extra(extra: str, *modules: str) -> None:
    """Raise `MissingExtraError` unless all these top-level modules can be imported.

    Looked for before they are imported, so that a fault inside of one is told as what it is.
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtraError(f"{module} is not installed: pip install 'memlineage[{extra}]'", name=module)
