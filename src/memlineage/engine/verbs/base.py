"""What verbs are given."""

from __future__ import annotations

from collections.abc import Iterable

from memlineage.engine.acting import Acting
from memlineage.engine.core import Core
from memlineage.engine.parts import Parts
from memlineage.engine.tracking import took
from memlineage.model.ids import Ref
from memlineage.model.unit import Unit

__all__ = ["MemoryVerbs", "ScopeVerbs", "Which"]

Which = Unit | Ref | str
"""A unit, its ref, or its id string. A unit or a bare id means the current version, a ref its own."""


class ScopeVerbs:
    """Verbs of somebody within one set of walls."""

    _parts: Parts
    _acting: Acting

    def _shown(self, units: Iterable[Unit]) -> None:
        self._acting.saw(took(self._parts.core, units))


class MemoryVerbs:
    """Verbs of the operator."""

    _parts: Parts
    _core: Core
