"""What callers hand in, checked before anything is written, as one frozen draft."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
import orjson

from memlineage.engine.checks import (
    check_instant,
    check_json,
    check_mapping,
    check_said,
    check_tags,
    check_visibility,
    check_yes,
)
from memlineage.errors import InvalidInputError, QuotaError
from memlineage.model.content import MAX_CONTENT, check_name, check_text, form_key
from memlineage.model.ids import Ref, parse_ref
from memlineage.model.principal import is_model_side
from memlineage.model.scope import Visibility, Wall
from memlineage.model.unit import MICRO, Role, Unit, check_confidence, weight_micro

__all__ = [
    "NAMED_ROLES",
    "RESERVED_KINDS",
    "WORDS",
    "Draft",
    "Limits",
    "Link",
    "Target",
    "check_identity",
    "draft",
    "links",
    "parse_target",
]

RESERVED_KINDS: Final = frozenset({"action", "approval", "resolution", "verification"})
WORDS: Final = RESERVED_KINDS - {"action"}
"""Kinds of units that are somebody's word about others: where they lost their ground, nothing is to be repaired."""
_IDENTITY: Final = {
    "tenant": "tenant",
    "tenant_id": "tenant",
    "user": "user",
    "user_id": "user",
    "agent": "agent",
    "agent_id": "agent",
    "session": "session",
    "session_id": "session",
    "run_id": "session",
}
NAMED_ROLES: Final = (Role.DEPENDS, Role.EXPOSED, Role.ARGUMENT, Role.SUMMARISES)
"""Roles that a caller may name, and that what is made again keeps. Sharing writes `shared`, updating `revises`."""
_ROLES: Final = {role.label: role for role in NAMED_ROLES}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Quotas; exceeding one is a `QuotaError` before anything is written.

    Attributes:
        content: characters of one content.
        tags: labels on one unit.
        edges: parents of one justification.
        justifications: alternatives of one unit.
        metadata: bytes of one unit's metadata as JSON.
        context: bytes of one context snapshot as JSON.
    """

    content: int = MAX_CONTENT
    tags: int = 64
    edges: int = 1000
    justifications: int = 100
    metadata: int = 65_536
    context: int = 16_000_000


class Target(msgspec.Struct, frozen=True, gc=False):
    """A unit as named by a caller: its id, and a version where one was meant."""

    id: str
    version: int | None


class Link(msgspec.Struct, frozen=True, gc=False):
    """A parent as named by a caller, with role and weight (millionths)."""

    target: Target
    role: Role
    weight: int


class Draft(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A write as asked for: checked, in stored units, nothing looked up yet. None means not given.

    `form` is the key of the content's normal form: several rules compare it with what is there. `spoken` says that
    whoever acts put words of their own into it, as with the arguments of a call.
    """

    content: str
    form: bytes
    kind: str | None
    tags: tuple[str, ...] | None
    subject: str | None
    key: str | None
    creator: str
    creator_id: str | None
    owner: str | None
    visibility: Visibility | None
    links: tuple[Link, ...]
    ts_us: int
    ts_offset: int
    confidence: int | None
    metadata: dict[str, Any] | None
    pinned: bool | None
    expires_us: int | None
    valid_to_us: int | None
    context: bytes | None
    idempotency_key: str | None
    recipe: str | None
    spoken: bool = False

    @property
    def context_hash(self) -> bytes | None:
        """The id of the context snapshot."""
        return None if self.context is None else hashlib.sha256(self.context).digest()


def parse_target(item: object, *, pinned: bool = False) -> Target:
    """The unit that a caller names by unit, ref or id string.

    A `Unit` names the unit, that is its current version; where lineage is stated (`pinned`) it names the very
    version that the caller holds. A ref always names its version.
    """
    if isinstance(item, Unit):
        return Target(item.id, item.version if pinned else None)
    if isinstance(item, Ref):
        return Target(item.id, item.version)
    if isinstance(item, str):
        return Target(*parse_ref(item))
    raise InvalidInputError(f"{item!r:.80} is not a unit, a ref or an id string")


def links(given: object, role: Role, *, name: str) -> tuple[Link, ...]:
    """Parents from one unit, a list of units or (unit, weight[, role]) tuples, or a mapping unit -> weight."""
    if given is None:
        return ()
    if isinstance(given, Unit | str | Ref):
        return (Link(parse_target(given, pinned=True), role, MICRO),)
    if isinstance(given, Mapping):
        return tuple(Link(parse_target(item, pinned=True), role, weight_micro(w)) for item, w in given.items())
    if not isinstance(given, Iterable) or isinstance(given, bytes | bytearray):
        raise InvalidInputError(f"{name}={given!r:.80} is not a unit, a list of units, or a mapping unit -> weight")
    return tuple([_link(item, role) for item in given])


def _link(item: Any, role: Role) -> Link:
    if isinstance(item, Unit):
        return Link(Target(item.id, item.version), role, MICRO)
    if isinstance(item, tuple) and not isinstance(item, Ref):
        if not 2 <= len(item) <= 3:
            raise InvalidInputError(
                f"{item!r:.80} is not a parent; expected a unit, (unit, weight) or (unit, weight, role)"
            )
        unit, weight, *named = item
        return Link(parse_target(unit, pinned=True), _role(named[0]) if named else role, weight_micro(weight))
    return Link(parse_target(item, pinned=True), role, MICRO)


def _role(name: object) -> Role:
    role = name if isinstance(name, Role) else _ROLES.get(str(name))
    if role is None or role.label not in _ROLES:
        raise InvalidInputError(f"role={name!r} is unknown; choose one of {', '.join(_ROLES)}")
    return role


def draft(
    content: str,
    *,
    creator: str,
    now_us: int,
    limits: Limits,
    kind: str | None = None,
    tags: Iterable[str] | None = None,
    subject: str | None = None,
    key: str | None = None,
    creator_id: str | None = None,
    owner: str | None = None,
    visibility: str | None = None,
    depends_on: object = None,
    exposed: object = None,
    arguments: object = None,
    timestamp: datetime | None = None,
    confidence: float | None = None,
    metadata: Mapping[str, Any] | None = None,
    pinned: bool | None = None,
    expires_at: datetime | None = None,
    valid_to: datetime | None = None,
    context: object = None,
    idempotency_key: str | None = None,
    recipe: str | None = None,
) -> Draft:
    """Check everything that can be checked without looking anything up."""
    said = check_said(timestamp, now_us)
    shown = links(exposed, Role.EXPOSED, name="exposed")
    given = (
        *links(depends_on, Role.DEPENDS, name="depends_on"),
        *(shown if is_model_side(creator) else ()),  # what was in a context matters only for who has one
        *links(arguments, Role.ARGUMENT, name="arguments"),
    )
    if len(given) > limits.edges:
        raise QuotaError(f"{len(given)} parents; the limit is {limits.edges}: summarise some of them first")
    checked = check_text(content, limit=limits.content)
    return Draft(
        content=checked,
        form=form_key(checked),
        kind=_optional(kind, "kind"),
        tags=check_tags(tags, limits.tags),
        subject=_optional(subject, "subject"),
        key=_optional(key, "key"),
        creator=creator,
        creator_id=_optional(creator_id, "creator_id"),
        owner=owner,
        visibility=check_visibility(visibility),
        links=given,
        ts_us=said[0],
        ts_offset=said[1],
        confidence=check_confidence(confidence),
        metadata=None if metadata is None else _metadata(metadata, limits),
        pinned=check_yes(pinned, name="pinned"),
        expires_us=None if expires_at is None else check_instant(expires_at, name="expires_at"),
        valid_to_us=None if valid_to is None else check_instant(valid_to, name="valid_to"),
        context=_context(context, limits),
        idempotency_key=_optional(idempotency_key, "idempotency_key"),
        recipe=recipe,
    )


def _optional(value: str | None, name: str) -> str | None:
    return None if value is None else check_name(value, name=name)


def _metadata(metadata: Any, limits: Limits) -> dict[str, Any]:
    given = check_mapping(metadata, name="metadata")
    checked: dict[str, Any] = orjson.loads(check_json(given, name="metadata", limit=limits.metadata))
    return checked


def check_identity(metadata: Mapping[str, Any] | None, wall: Wall) -> None:
    """Metadata may repeat whose memory this is, never say otherwise: identity is immutable (section 6)."""
    for name, value in (metadata or {}).items():
        field = _IDENTITY.get(name)
        if field is not None and value != getattr(wall, field):
            raise InvalidInputError(f"metadata[{name!r}]={value!r:.80} names another owner; identity never changes")


def _context(context: object, limits: Limits) -> bytes | None:
    return None if context is None else check_json(context, name="context", limit=limits.context)
