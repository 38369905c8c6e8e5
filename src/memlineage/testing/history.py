"""What a world of memories records, as plain values: the common ground of oracle, laws and stores under test.

Nothing here is derived but `State`, which is an answer.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from memlineage.errors import MemLineageError
from memlineage.model.content import normal_form
from memlineage.model.principal import HOST, Integrity
from memlineage.model.scope import Scope, Wall
from memlineage.model.state import CauseKind, Standing, Status
from memlineage.model.unit import CARRYING, TAU, Role

__all__ = ["Group", "Handle", "History", "Parent", "Refused", "State", "Version", "Writer"]

Handle = tuple[int, int]
"""A version: number of its unit in order of creation (from 0), and version (from 1)."""
Group = tuple[tuple[str, ...], str, str]
"""Walls, subject and key."""


class Refused(MemLineageError):  # noqa: N818  # an answer that is checked for, no fault
    """An act was not accepted, and nothing was written.

    Attributes:
        code: claim (above the actor), invisible, authority (`by` may not), protection (of an update),
            weak (no strong edge), integrity (of new support), cycle, nothing (to restore).
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Writer(NamedTuple):
    """Who acts and from where: the authenticated actor, and which tools a limited one ran itself."""

    scope: Scope
    actor: str = HOST
    tools: tuple[str, ...] = ()


class Parent(NamedTuple):
    """One edge, seen from the child."""

    ref: Handle
    weight: float = 1.0
    role: Role = Role.DEPENDS

    @property
    def strong(self) -> bool:
        """Whether it carries standing."""
        return self.weight >= TAU and self.role in CARRYING


class Version(NamedTuple):
    """What was written. `content` is None once erased; `parents` hold `exposed` and `revises` edges, too."""

    content: str | None
    creator: str
    actor: str
    wall: Wall
    subject: str | None
    key: str | None
    timestamp: int
    valid_until: int | None
    seq: int
    parents: tuple[Parent, ...]
    reasserts: Handle | None

    @property
    def group(self) -> Group | None:
        """What it competes in. A copy competes in nothing and replaces nothing."""
        copied = any(parent.role is Role.SHARED for parent in self.parents)
        named = self.subject is not None and self.key is not None
        return (self.wall.group, self.subject or "", self.key or "") if named and not copied else None

    def same_form(self, other: Version) -> bool:
        """Whether both have content, and it says the same."""
        if self.content is None or other.content is None:
            return False
        return normal_form(self.content) == normal_form(other.content)

    def says(self, other: Version) -> bool:
        """Same normal form, and same subject and key where both have one."""
        pairs = ((self.subject, other.subject), (self.key, other.key))
        return self.same_form(other) and all(a == b or a is None or b is None for a, b in pairs)


class State(NamedTuple):
    """All that is derived of one version."""

    status: Status
    standing: Standing
    integrity: Integrity
    current: bool


@dataclasses.dataclass
class History:
    """All that was recorded. Causes are (seq, kind); a verdict is (older, equivalent newer)."""

    versions: dict[Handle, Version] = dataclasses.field(default_factory=dict)
    late: dict[Handle, tuple[tuple[Parent, ...], ...]] = dataclasses.field(default_factory=dict)
    causes: dict[Handle, tuple[tuple[int, CauseKind], ...]] = dataclasses.field(default_factory=dict)
    verdicts: set[tuple[Handle, Handle]] = dataclasses.field(default_factory=set)
    waived: set[Handle] = dataclasses.field(default_factory=set)
    endorsed: dict[Handle, Integrity] = dataclasses.field(default_factory=dict)
    registry: dict[str, Integrity] = dataclasses.field(default_factory=dict)
    seq: int = 0

    def clone(self) -> History:
        """A copy that shares no container with this one."""
        return History(**{name: value if name == "seq" else value.copy() for name, value in vars(self).items()})
