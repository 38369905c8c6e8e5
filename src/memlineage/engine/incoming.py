"""Lines of a source on their way in: whose words they are, under which key they are found again, what is there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import orjson

from memlineage.engine.inputs import Draft
from memlineage.engine.jsonl import RawLine, Record, read_record
from memlineage.engine.writing import Prepared
from memlineage.errors import (
    ConflictError,
    CycleError,
    InvalidInputError,
    MemLineageError,
    PolicyViolationError,
    UnknownUnitError,
)
from memlineage.model.ids import Ref
from memlineage.model.principal import Integrity, authority, parse_principal
from memlineage.model.scope import Visibility
from memlineage.store.database import Connection
from memlineage.store.names import Names
from memlineage.store.sql import QUERIES

if TYPE_CHECKING:
    from memlineage.engine.acting import Acting
    from memlineage.engine.parts import Parts

__all__ = ["OF_ONE_LINE", "Bad", "Incoming", "Item"]

OF_ONE_LINE: Final = (InvalidInputError, PolicyViolationError, ConflictError, UnknownUnitError, CycleError)
"""Errors that are about what one line says, whatever else goes on."""

Bad = tuple[int, MemLineageError]
"""A line that cannot be taken in, and why."""


class Item(msgspec.Struct, kw_only=True):
    """A line on its way.

    Attributes:
        line: its number.
        record: what it says; None where that could not be read.
        key: its idempotency key.
        draft: what is to be written; None where it has no text, or is skipped.
        prepared: the draft with what takes time; None where nothing is to be written.
        there: the version that an earlier run wrote for it.
        skipped: whether it is left out although it was said.
    """

    line: int
    record: Record | None = None
    key: str = ""
    draft: Draft | None = None
    prepared: Prepared | None = None
    there: Ref | None = None
    skipped: bool = False

    def left_out(self) -> Item:
        """The same, without being written."""
        return Item(line=self.line, record=self.record, skipped=True)


class Incoming:
    """Makes items of lines: for one scope, one source, and, if it is named, one creator who says all of it."""

    def __init__(self, parts: Parts, acting: Acting, name: str, creator: str | None) -> None:
        self._parts = parts
        self._acting = acting
        self._name = name
        self.creator = creator

    def items(self, batch: Sequence[tuple[int, RawLine]]) -> tuple[list[Item], list[Bad]]:
        """The items of a batch in order, and which of its lines are bad; these are among the items as skipped."""
        items: list[Item] = []
        bad: list[Bad] = []
        with self._parts.core.read() as snapshot:
            for line, raw in batch:
                item = Item(line=line)
                try:
                    item.record = read_record(raw)
                    self._draw_up(item, item.record)
                    if item.draft is not None:
                        item.there = self._there(snapshot.connection, snapshot.names, item.record, item.draft)
                except OF_ONE_LINE as error:
                    bad.append((line, error))
                    item = item.left_out()
                items.append(item)
        self._prepare(items)
        return items, bad

    def find(self, connection: Connection, names: Names, ident: str) -> Ref | None:
        """The version that a line was written as, by the file's own id of it."""
        found = self._under(connection, names, self.key(ident))
        return None if found is None else Ref(found[3], found[4])

    def key(self, *what: object) -> str:
        """An idempotency key of this source."""
        return f"import {hashlib.sha256(orjson.dumps([self._name, *what])).hexdigest()[:40]}"

    def _draw_up(self, item: Item, record: Record) -> None:
        item.key = self._key_of(item.line, record)
        if record.content is None:
            return
        options = {**record.options, "creator": self._speaker(record), "idempotency_key": item.key}
        if record.role is not None:
            options["metadata"] = self._origin(item.line, record)
            options["creator_id"] = record.answers
        if record.parents:
            options["depends_on"] = ()  # it names its own, so the step that this runs in is none of them
        item.draft = self._parts.draft(self._acting, record.content, options)

    def _key_of(self, line: int, record: Record) -> str:
        if record.id is not None:
            return self.key(record.id)
        return self.key(line, record.role, record.name, record.conversation, record.content)

    def _origin(self, line: int, record: Record) -> dict[str, Any]:
        """Where a message came from, kept with it."""
        told = {"id": record.id, "name": record.name, "conversation": record.conversation or None}
        return {"source": self._name, "line": line, **{k: v for k, v in told.items() if v is not None}}

    def _speaker(self, record: Record) -> str:
        """Who said it by the line's own word; `creator=` replaces that by somebody who ranks no higher."""
        stated = record.options.get("creator") if record.role is None else self._by_role(record)
        if self.creator is None:
            if stated is None:
                raise InvalidInputError("nobody says who said it: write a 'creator' into the line, or give creator=…")
            return str(stated)
        if stated is not None:
            own = "tool:any" if record.role == "tool" else parse_principal(stated, user=self._acting.scope.user)
            if authority(self.creator, Integrity.TRUSTED) > authority(own, Integrity.TRUSTED):
                raise InvalidInputError(f"creator={self.creator!r} ranks above {stated}, who said this; leave it out")
        return self.creator

    def _by_role(self, record: Record) -> str:
        scope = self._acting.scope
        if record.role == "user":
            if scope.user is None:
                raise InvalidInputError("a user's words need a scope with a user; say whose they are: user=…")
            return f"user:{scope.user}"
        if record.role == "system":
            return "system"
        if record.role == "tool":  # one without a name gets it from its call, as soon as that is known
            return "external:unnamed-tool" if record.name is None else f"tool:{record.name}"
        agent = scope.agent if record.name is None else record.name
        return "reasoning" if agent is None else f"agent:{agent}"

    def _there(self, connection: Connection, names: Names, record: Record, draft: Draft) -> Ref | None:
        """The version that an earlier run wrote for this line."""
        found = self._under(connection, names, str(draft.idempotency_key))
        if found is None:
            return None
        ref, by = Ref(found[3], found[4]), names.principal(found[2])
        named = record.role != "tool" or record.name is not None or self.creator is not None
        if found[1] != draft.form or (named and by != draft.creator):
            other = "with other content" if found[1] != draft.form else f"as said by {by}, not {draft.creator}"
            raise ConflictError(
                f"it was imported before {other} ({ref}): update that unit, or give this source another name", str(ref)
            )
        return ref

    def _under(self, connection: Connection, names: Names, key: str) -> Any:
        ns = names.find_namespace(self._acting.scope.wall(Visibility.USER))
        return connection.execute(QUERIES["retried"], (ns, f"{self._acting.actor} {key}")).get

    def _prepare(self, items: Sequence[Item]) -> None:
        """Embed what is new, all at once, before anybody has to wait for it."""
        fresh = [(item, item.draft) for item in items if item.draft is not None and item.there is None]
        if fresh:
            ready = self._parts.writing.prepare([draft for _, draft in fresh])
            for (item, _), prepared in zip(fresh, ready, strict=True):
                item.prepared = prepared
