"""What a LangGraph store writes: all of a batch in one transaction, or nothing.

Which unit a name means is looked up inside it, so that whoever puts under the same name at the same time, from whatever
thread or process, writes a version of the same unit. What is there is replaced only as far as policy lets it be: a
model does not write over what the user said.

Deleting retracts what others said, as far as policy lets the one who deletes. What an agent or a tool said itself, it
takes back by a next version that says so: it may say it again, while what others took back stays down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from langgraph.store.base import PutOp

from memlineage.capture.langgraph_items import (
    DELETED,
    KIND,
    MARK,
    SINCE,
    Kept,
    is_deleted,
    is_gone,
    mark_of,
    named,
    text_of,
)
from memlineage.capture.langgraph_reads import named_so
from memlineage.engine.inputs import NAMED_ROLES, Draft, Link, Target
from memlineage.engine.scope import Scope
from memlineage.engine.tracking import took
from memlineage.engine.writing import Prepared, Written, follow
from memlineage.errors import InvalidInputError, MemLineageError
from memlineage.model.principal import is_model_side, kind_of
from memlineage.model.state import CauseKind, Status
from memlineage.model.time import from_us, to_us
from memlineage.model.unit import MICRO, Role, Unit
from memlineage.store.writer import Writer

__all__ = ["prolong", "put_all"]

_MINUTE_US: Final = 60_000_000
_LONGEST: Final = 60 * 24 * 366 * 1000
"""Minutes that an item may live at most: a thousand years."""
_SLACK: Final = 0.01
"""An item lives longer only once that share of its time has gone by: not every read is a write."""


class _Wish(msgspec.Struct, frozen=True):
    """One put, checked. The draft of a deletion is what stands there then, if it was one's own."""

    op: PutOp
    draft: Draft


def put_all(scope: Scope, ops: Sequence[PutOp], creator: str | None) -> list[Unit]:
    """Write these, each under a name of its own; returns the units that hold what was put.

    Raises:
        PolicyViolationError: one of them was refused; none was written.
        InvalidInputError: one of them cannot be kept; none was written.
    """
    core, writing, acting = scope._parts.core, scope._parts.writing, scope._acting
    wishes = [_wish(scope, op, creator) for op in ops]
    prepared = writing.prepare([wish.draft for wish in wishes])
    written: list[Written] = []
    with core.write(actor=acting.actor) as writer:
        for wish, item in zip(wishes, prepared, strict=True):
            known, change = _known(scope, writer, wish.op), _delete if wish.op.value is None else _put
            done = change(scope, writer, known, _after(written, item))
            written += () if done is None else (done,)
        writer.settle()
        units = list(core.seen_by(writer).units([one.n for one in written]).values())
    follow(acting, units, written)
    return took(core, [unit for unit in units if not is_gone(unit)])


def _wish(scope: Scope, op: PutOp, creator: str | None) -> _Wish:
    subject = named(op.namespace)
    mark: dict[str, Any] = {DELETED: True} if op.value is None else {}
    if op.index is not None:
        mark["index"] = _checked_index(op.index)
    if op.ttl is not None:
        mark["ttl"] = _checked_ttl(op.ttl)
    options = {
        "kind": KIND, "subject": subject, "key": op.key, "creator": creator, "metadata": {MARK: mark} if mark else {},
        "expires_at": None if op.ttl is None else _end(scope._parts.core.now_us(), op.ttl),
    }  # fmt: skip
    return _Wish(op, scope._draft("deleted" if op.value is None else text_of(op.value), options))


def _known(scope: Scope, writer: Writer, op: PutOp) -> dict[int, Unit]:
    """What there is of that name, deleted or not, by integer id; the current one last."""
    numbers = named_so(writer.connection, scope._acting.scope, op.namespace, op.key)
    units = scope._parts.core.seen_by(writer).units(numbers)
    return dict(sorted(units.items(), key=lambda pair: pair[1].status is not Status.SUPERSEDED))


def _left(known: Mapping[int, Unit]) -> dict[int, Unit]:
    return {n: unit for n, unit in known.items() if not is_gone(unit)}


def _delete(scope: Scope, writer: Writer, known: Mapping[int, Unit], item: Prepared) -> Written | None:
    left, acting, me = _left(known), scope._acting, item.draft.creator
    for unit in left.values():
        scope._parts.enforcement.act_on("delete", acting, unit, by=me, now_us=writer.now_us, names=writer.names)
    own = list(left.values())
    if [unit.creator for unit in own] == [me] and kind_of(me) not in {"user", "system"}:
        return _next(scope, writer, own[0], item)
    for n in left:
        writer.add_cause(n, CauseKind.RETRACTED, by=me, reason=None)
    return None


def _put(scope: Scope, writer: Writer, known: Mapping[int, Unit], item: Prepared) -> Written:
    left = list(_left(known).values())
    there = left[-1] if left else next((unit for unit in known.values() if is_deleted(unit)), None)
    if there is None:
        # Reserved: what a model repeats under another name is another item, which hangs on what it saw all the same.
        return scope._parts.writing.store_one(writer, scope._acting, item, reserved=True)
    since = mark_of(there).get(SINCE) if left else writer.now_us
    return _next(scope, writer, there, item if since is None else _since(item, since))


def _next(scope: Scope, writer: Writer, there: Unit, item: Prepared) -> Written:
    item = msgspec.structs.replace(item, forms={item.draft.form: True})
    return scope._parts.writing.update_one(writer, scope._acting, Target(there.id, None), item)


def _since(item: Prepared, since: int) -> Prepared:
    """The same, put for the first time at that instant: its name was free before."""
    metadata = item.draft.metadata or {}
    metadata = {**metadata, MARK: {**metadata.get(MARK, {}), SINCE: since}}
    return msgspec.structs.replace(item, draft=msgspec.structs.replace(item.draft, metadata=metadata))


def _after(written: Sequence[Written], item: Prepared) -> Prepared:
    """What a model puts in one batch hangs on what it put before: it had all that in front of it."""
    last = written[-1].new if written else None
    if last is None or not is_model_side(item.draft.creator):
        return item
    links = (*item.draft.links, Link(Target(last.id, last.version), Role.EXPOSED, MICRO))
    return msgspec.structs.replace(item, draft=msgspec.structs.replace(item.draft, links=links))


def prolong(scope: Scope, item: Kept) -> None:
    """Let an item live on, because whoever put it used it: the same again, by the same creator, on the same grounds.
    What somebody else uses does not live longer for it.
    """
    unit, ttl = item.unit, item.ttl
    if ttl is None or unit.expires_at is None or unit.lineage.actor != scope.actor:
        return
    end = _end(scope._parts.core.now_us(), ttl)
    if (end - unit.expires_at).total_seconds() < _SLACK * ttl * 60:
        return
    mark = {"put_us": to_us(unit.lineage.recorded_at), **mark_of(unit)}
    draft = scope._draft(unit.content, {"creator": unit.creator, "metadata": {MARK: mark}, "expires_at": end})
    same = tuple(
        Link(Target(edge.parent.id, edge.parent.version), edge.role, round(edge.weight * MICRO))
        for edge in unit.lineage.dependencies
        if edge.justification == 0 and edge.role in NAMED_ROLES
    )
    # It is nothing that the reader says: what he has seen has no part in it.
    acting = msgspec.structs.replace(scope._acting, exposure=None)
    draft = msgspec.structs.replace(draft, links=same)
    try:
        scope._parts.writing.update(acting, Target(unit.id, None), draft, if_version=unit.version, replayed=True)
    except MemLineageError:
        return  # somebody wrote it anew meanwhile, or it may not be written: it ends when it ends


def _end(now_us: int, minutes: float) -> datetime:
    return from_us(now_us + round(minutes * _MINUTE_US))


def _checked_ttl(minutes: Any) -> float:
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes <= _LONGEST:
        raise InvalidInputError(f"ttl={minutes!r:.80} must be a number of minutes over 0, or None for no end")
    return float(minutes)


def _checked_index(index: Any) -> Any:
    if index is False or (isinstance(index, list | tuple) and all(isinstance(path, str) for path in index)):
        return index if index is False else list(index)
    raise InvalidInputError(f"index={index!r:.80} must be False, or a list of paths into the value")
