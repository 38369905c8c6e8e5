"""What was answered, as the next version of the unit that it is for: its parents and arguments as they are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from memlineage.engine.core import Core
from memlineage.engine.inputs import NAMED_ROLES, Draft, Link, Target, draft
from memlineage.engine.replay.planning import Affected, Source
from memlineage.engine.replay.recipes import Call
from memlineage.model.ids import Ref
from memlineage.model.unit import MICRO, Role

__all__ = ["Answer", "draft_of", "moved"]


class Answer(msgspec.Struct, frozen=True):
    """What was answered, and what was read for it.

    Attributes:
        fields: of the new version.
        used: what the function read besides its arguments.
    """

    fields: dict[str, Any]
    used: tuple[Ref, ...] = ()


def draft_of(core: Core, item: Affected, answer: Answer, context: bytes | None) -> Draft:
    """The next version, checked. Raises `InvalidInputError` for an answer that cannot be stored."""
    old, given = item.unit, answer.fields
    call = None if item.made.call is None else moved(item.made.call, item.sources, answer.used)
    made = draft(
        given["content"],
        creator=old.creator,
        now_us=core.now_us(),
        limits=core.limits,
        creator_id=f"replay:{old.ref}",
        confidence=given.get("confidence", old.confidence),
        timestamp=given.get("timestamp"),
        metadata=given.get("metadata"),
        context=given.get("context"),
        recipe=None if call is None else call.kept(),
    )
    return msgspec.structs.replace(
        made, links=_links(item, answer.used), context=context if made.context is None else made.context
    )


def moved(call: Call, sources: Iterable[Source], used: Sequence[Ref]) -> Call | None:
    """The call with its arguments as they are now; None if one of them is not among the parents."""
    now: Mapping[Ref, Ref] = {source.edge.parent: source.unit.ref for source in sources}
    if any(ref not in now for ref in call.refs()):
        return None
    return call.moved(now.__getitem__, used)


def _links(item: Affected, used: Sequence[Ref]) -> tuple[Link, ...]:
    """The same parents as they are now, and what the function read this time instead of what it had read."""
    call = item.made.call
    before = frozenset() if call is None else frozenset(call.used)
    found: dict[tuple[Ref, Role], Link] = {}
    for source in item.sources:
        role, ref = source.edge.role, source.unit.ref
        anew = role is Role.DEPENDS and str(source.edge.parent) in before
        if role in NAMED_ROLES and not anew:
            link = Link(Target(*ref), role, round(source.edge.weight * MICRO))
            other = found.get((ref, role))  # two parents may have become one
            found[ref, role] = link if other is None or other.weight < link.weight else other
    for ref in used:
        if (ref, Role.DEPENDS) not in found:
            found[ref, Role.DEPENDS] = Link(Target(*ref), Role.DEPENDS, MICRO)
    return tuple(found.values())
