"""One run over one source: batches of lines become units, each batch in one transaction.

Lines hang on one another inside a batch, so what a line is written as is known to the next before anything is
committed; what a batch found out is kept only when it is. Where a line is refused inside the transaction, all of it is
undone; if bad lines are skipped, the lines before and after are then written apart.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from memlineage.engine.admission import look_up
from memlineage.engine.conversations import Conversations, Talk
from memlineage.engine.frames import around, took
from memlineage.engine.incoming import OF_ONE_LINE, Bad, Incoming, Item
from memlineage.engine.inputs import Draft, Link, Target, links
from memlineage.engine.jsonl import Parent, RawLine, Record
from memlineage.engine.loaded import BadLine, Loaded
from memlineage.engine.writing import Prepared, Written
from memlineage.errors import (
    ConflictError,
    InvalidInputError,
    MemLineageError,
    PolicyViolationError,
    QuotaError,
    UnknownUnitError,
)
from memlineage.model.ids import Ref, parse_ref
from memlineage.model.principal import is_model_side, parse_principal
from memlineage.model.unit import MICRO, Role
from memlineage.store.units import read_refs
from memlineage.store.writer import Writer

if TYPE_CHECKING:
    from memlineage.engine.acting import Acting
    from memlineage.engine.parts import Parts

__all__ = ["Loading"]

_REPORTED: Final = 1000
_RECENT: Final = 50_000


class _RefusedError(Exception):
    """The item at this place of a batch was refused inside the transaction."""

    def __init__(self, place: int, error: MemLineageError) -> None:
        super().__init__(place)
        self.place = place
        self.error = error


class _Batch:
    """What one transaction found out; kept when it is committed, gone when it is not."""

    def __init__(self, talks: Conversations, recent: OrderedDict[str, Ref], lost: int) -> None:
        self._known_talks = talks
        self._recent = recent
        self._named: dict[str, Ref] = {}
        self.talks: dict[str, Talk] = {}
        self.lost = lost
        self.numbers: list[int] = []
        self.written = 0
        self.echoes = 0

    def talk(self, name: str) -> Talk:
        """A conversation as it stands."""
        return self.talks[name] if name in self.talks else self._known_talks.get(name)

    def ref(self, ident: str) -> Ref | None:
        """The version that a line of late was written as, by the file's id."""
        return self._named.get(ident) or self._recent.get(ident)

    def name(self, ident: str, ref: Ref) -> None:
        """That line is this version."""
        self._named[ident] = ref

    def keep(self) -> None:
        """It is committed."""
        for name, talk in self.talks.items():
            self._known_talks.put(name, talk)
        self._recent.update(self._named)
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)


class Loading:
    """One run over one source."""

    def __init__(self, parts: Parts, acting: Acting, incoming: Incoming, name: str, *, skip_bad: bool) -> None:
        self.done = Loaded(name=name)
        self.talks = Conversations()
        self._parts = parts
        self._acting = acting
        self._incoming = incoming
        self._skip_bad = skip_bad
        self._recent: OrderedDict[str, Ref] = OrderedDict()
        self._lost = 0
        self._most = max(2, parts.core.limits.edges - 1)

    def take(self, batch: Sequence[tuple[int, RawLine]]) -> None:
        """Write one batch: all of it, or, unless bad lines are skipped, nothing."""
        items, bad = self._incoming.items(batch)
        if bad and not self._skip_bad:
            raise self._placed(*bad[0], more=len(bad) - 1)
        waiting = [items]
        while waiting:
            part = waiting.pop()
            try:
                self._write(part)
            except _RefusedError as refused:
                item = part[refused.place]
                if not self._skip_bad:
                    raise self._placed(item.line, refused.error) from refused.error
                bad.append((item.line, refused.error))
                waiting += [[item.left_out(), *part[refused.place + 1 :]], part[: refused.place]]
        self._report(len(batch), bad)

    def _report(self, lines: int, bad: list[Bad]) -> None:
        self._count(lines=lines, bad_count=len(bad))
        told = [BadLine(line=line, reason=str(error)) for line, error in sorted(bad, key=_line)]
        self.done = msgspec.structs.replace(self.done, bad=(*self.done.bad, *told)[:_REPORTED])

    def _placed(self, line: int, error: MemLineageError, more: int = 0) -> MemLineageError:
        """The same error with its place, and what to do about the rest."""
        done = self.done
        besides = f" ({more} more of the next lines are bad)" if more else ""
        there = f"; the {done.lines} lines before are in" if done.lines else ""
        text = (
            f"{done.name}, line {line}: {error}{besides}. Nothing of this batch was written{there}: correct it and run "
            "again, or leave bad lines out with skip_bad=…"
        )
        if isinstance(error, PolicyViolationError):
            return PolicyViolationError(error.decision, text)
        if isinstance(error, ConflictError):
            return ConflictError(text, error.winner)
        return type(error)(text)

    def _count(self, **more: int) -> None:
        now = {name: getattr(self.done, name) + count for name, count in more.items()}
        self.done = msgspec.structs.replace(self.done, **now)

    # The transaction -------------------------------------------------------------------------------------------

    def _write(self, items: Sequence[Item]) -> None:
        core = self._parts.core
        batch = _Batch(self.talks, self._recent, self._lost)
        if self._writes(batch, items):
            with core.write(actor=self._acting.actor) as writer:
                look_up(writer, [item.draft for item in items if item.prepared is not None and item.draft is not None])
                for place, item in enumerate(items):
                    try:
                        self._write_one(writer, batch, item)
                    except OF_ONE_LINE as error:
                        if item.skipped:  # what stands for a line left out is refused as well: nothing can go on
                            raise
                        raise _RefusedError(place, error) from error
                writer.settle()
                used = around(core) is not None and core.seen_by(writer).units(batch.numbers)
            if used:
                took(core, used.values())
        else:
            for item in items:
                self._follow(batch, item, item.there, anew=True)
        batch.keep()
        self._lost = batch.lost
        taken = [item for item in items if not item.skipped]
        self._count(
            written=batch.written, echoes=batch.echoes, known=sum(item.there is not None for item in taken),
            silent=sum(item.draft is None for item in taken),
        )  # fmt: skip

    def _writes(self, batch: _Batch, items: Sequence[Item]) -> bool:
        """Whether there is anything to write; long stretches and gaps have units of their own, which are looked up."""
        names = {item.record.conversation for item in items if item.record is not None}
        longest = max((len(batch.talk(name).shown) for name in names), default=0)
        return (
            any(item.prepared is not None or item.skipped for item in items)
            or longest + len(items) >= self._most
            or any(batch.talk(name).lost < batch.lost for name in names)
        )

    def _write_one(self, writer: Writer, batch: _Batch, item: Item) -> None:
        if item.skipped:
            self._skip(writer, batch, item)
            return
        ref, anew = item.there, True
        self._catch_up(writer, batch, item)
        if item.prepared is not None and item.draft is not None and item.record is not None:
            draft = self._linked(writer, batch, item.record, item.draft)
            written = self._parts.writing.store_one(
                writer, self._acting, msgspec.structs.replace(item.prepared, draft=draft)
            )
            batch.written += written.fresh
            batch.echoes += not written.fresh
            batch.numbers.append(written.n)
            ref, anew = _ref_of(writer, written), written.fresh
        self._follow(batch, item, ref, anew=anew)
        if item.record is not None and item.record.role is not None:
            self._gather(writer, batch, item, item.record.conversation)

    def _linked(self, writer: Writer, batch: _Batch, record: Record, draft: Draft) -> Draft:
        """The draft with what it hangs on; of a tool, with the name that its call tells."""
        if record.role is None:
            named = [p for p in record.parents if p.role is not Role.EXPOSED or is_model_side(draft.creator)]
            if len(named) > self._parts.core.limits.edges:
                raise QuotaError(f"{len(named)} parents; the limit is {self._parts.core.limits.edges}")
            return msgspec.structs.replace(draft, links=tuple(self._link(writer, batch, p) for p in named))
        talk = batch.talk(record.conversation)
        tool = talk.tool(record.answers)
        if record.role == "tool" and record.name is None and tool is not None and self._incoming.creator is None:
            draft = msgspec.structs.replace(draft, creator=parse_principal(f"tool:{tool}"))
        seen: Iterable[Ref] = ()
        if is_model_side(draft.creator):
            seen = (Ref(*ref) for ref in talk.shown)
        elif record.role == "tool":
            seen = talk.behind(record.answers)
        return msgspec.structs.replace(draft, links=(*draft.links, *map(_exposed, seen)))

    def _link(self, writer: Writer, batch: _Batch, parent: Parent) -> Link:
        """A parent that is another line of this source, or else a unit that the store had already."""
        found = batch.ref(parent.name) or self._incoming.find(writer.connection, writer.names, parent.name)
        if found is None and not _is_ref(parent.name):
            raise UnknownUnitError(
                f"its parent {parent.name[:80]!r} is no line before it that was taken in; put parents first"
            )
        return links([(found or parent.name, parent.weight, parent.role)], parent.role, name="parent")[0]

    def _follow(self, batch: _Batch, item: Item, ref: Ref | None, *, anew: bool) -> None:
        """What comes after this line has it before it."""
        record = item.record
        if record is None:
            return
        if record.id is not None and ref is not None:
            batch.name(record.id, ref)
        if record.role is None:
            return
        talk = batch.talk(record.conversation).answered(record.answers)
        if record.role == "assistant":
            talk = talk.spoke(ref, record.calls, anew=anew)
        elif ref is not None:
            talk = talk.heard(ref)
        batch.talks[record.conversation] = talk

    # What stands for what is not there -------------------------------------------------------------------------

    def _skip(self, writer: Writer, batch: _Batch, item: Item) -> None:
        """A message that is left out was said all the same; one that cannot be read may belong anywhere."""
        if item.record is None:
            batch.lost += 1
        elif item.record.role is not None:
            name = item.record.conversation
            batch.talks[name] = batch.talk(name).heard(self._gap(writer))

    def _catch_up(self, writer: Writer, batch: _Batch, item: Item) -> None:
        """Lines that could not be read count as said in whatever conversation goes on."""
        if item.record is None or item.record.role is None:
            return
        talk = batch.talk(item.record.conversation)
        if talk.lost < batch.lost:
            seen = talk.heard(self._gap(writer))
            batch.talks[item.record.conversation] = msgspec.structs.replace(seen, lost=batch.lost)

    def _gap(self, writer: Writer) -> Ref:
        text = f"Lines of {self.done.name} that were not taken in"
        return self._stand_in(writer, text, "external:out-of-sight", self._incoming.key("not taken in"), ())

    def _gather(self, writer: Writer, batch: _Batch, item: Item, name: str) -> None:
        """One unit for a stretch as long as a unit may have parents: what is left out would be washed clean."""
        talk = batch.talk(name)
        if len(talk.shown) >= self._most:
            text = f"{len(talk.shown)} messages of {self.done.name} up to line {item.line}"
            ref = self._stand_in(
                writer, text, "reasoning", self._incoming.key("up to", item.key), [Ref(*seen) for seen in talk.shown]
            )
            batch.talks[name] = talk.gathered(ref)

    def _stand_in(self, writer: Writer, text: str, creator: str, key: str, seen: Iterable[Ref]) -> Ref:
        options = {"creator": creator, "kind": "step", "idempotency_key": key}
        draft = self._parts.draft(self._acting, text, {**options, "depends_on": ()})
        draft = msgspec.structs.replace(draft, links=tuple(map(_exposed, seen)))
        prepared: Prepared
        [prepared] = self._parts.writing.prepare([draft])
        written = self._parts.writing.store_one(writer, self._acting, prepared)
        return _ref_of(writer, written)


def _ref_of(writer: Writer, written: Written) -> Ref:
    if written.new is not None:
        return Ref(written.new.id, written.new.version)
    return read_refs(writer.connection, [written.n])[written.n]


def _is_ref(text: str) -> bool:
    try:
        parse_ref(text)
    except InvalidInputError:
        return False
    return True


def _exposed(ref: Ref) -> Link:
    return Link(Target(ref.id, ref.version), Role.EXPOSED, MICRO)


def _line(bad: Bad) -> int:
    return bad[0]
