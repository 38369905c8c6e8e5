"""Loading what others kept: JSONL of messages or units, in batches, each line through the same gate as `store`.

- *Idempotent.* Every line has an idempotency key: of the source's name and the line's own id, else of the name, the
  line's number and what it says. What is there under its key is left as it is, so a second run adds nothing, and one
  that was killed goes on where it stopped: a batch is one transaction.
- *No better than it was.* A line's creator follows from its role or its own word, `creator=` can only lower it, and a
  model's words hang on what came before them (see `conversations`), on lines that were left out by something untrusted
  that stands for them.
- *Bounded.* One batch is in memory. Ids of earlier lines are looked up in the store itself, by their keys.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from memlineage.engine.admission import look_up
from memlineage.engine.conversations import Conversations, Talk
from memlineage.engine.frames import around, took
from memlineage.engine.incoming import OF_ONE_LINE, Bad, Incoming, Item
from memlineage.engine.inputs import Draft, Link, Target, links
from memlineage.engine.jsonl import Parent, RawLine, Record, read_lines
from memlineage.engine.writing import Prepared, Written
from memlineage.errors import (
    ConflictError,
    InvalidInputError,
    MemLineageError,
    PolicyViolationError,
    QuotaError,
    StoreError,
    UnknownUnitError,
)
from memlineage.model.content import check_name
from memlineage.model.ids import Ref, parse_ref
from memlineage.model.principal import is_model_side, parse_principal
from memlineage.model.unit import MICRO, Role
from memlineage.store.units import read_refs
from memlineage.store.writer import Writer

if TYPE_CHECKING:
    from memlineage.engine.acting import Acting
    from memlineage.engine.parts import Parts

__all__ = ["BadLine", "Loaded", "Progress", "Source", "load"]

_BATCH: Final = 500
_BATCH_BYTES: Final = 8_000_000
_REPORTED: Final = 1000
_RECENT: Final = 50_000

Source = str | os.PathLike[str] | Iterable[str | bytes | Mapping[str, Any]]
"""A file of JSONL, or lines, or objects as `json.loads` makes them of lines."""


class BadLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was not taken in.

    Attributes:
        line: its number, from 1.
        reason: why, and what would cure it.
    """

    line: int
    reason: str


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a load has come; told after each batch.

    Attributes:
        lines: read so far, blank ones apart.
        written: units written by this run.
        bytes: read so far.
        total: bytes in all; None where nobody knows.
    """

    lines: int
    written: int
    bytes: int
    total: int | None


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What a load did: every line is counted once.

    Attributes:
        name: of the source, as in the keys of its lines.
        lines: lines that are not blank.
        written: units written by this run.
        known: lines that were there already.
        echoes: lines in which a model merely repeats what stands before it (semantics.md, section 10).
        silent: messages without text, such as bare tool calls.
        bad_count: lines that were not taken in.
        bad: the first thousand of them, with reasons.
    """

    name: str
    lines: int = 0
    written: int = 0
    known: int = 0
    echoes: int = 0
    silent: int = 0
    bad_count: int = 0
    bad: tuple[BadLine, ...] = ()

    def __repr__(self) -> str:
        return f"<Loaded {self.name!r}: {self.written} written, {self.known} known, {self.bad_count} bad>"


class _RefusedError(Exception):
    """The item at this place of a batch was refused inside the transaction."""

    def __init__(self, place: int, error: MemLineageError) -> None:
        super().__init__(place)
        self.place = place
        self.error = error


def load(
    parts: Parts,
    acting: Acting,
    source: Source,
    *,
    name: str | None,
    creator: str | None,
    skip_bad: bool,
    progress: Callable[[Progress], object] | None,
) -> Loaded:
    """See `Scope.load`."""
    if not acting.is_host:
        raise InvalidInputError(f"{acting.actor} cannot vouch for who said what in a file; ask the host's scope")
    called = _source_name(source, name)
    said = None if creator is None else parse_principal(creator, user=acting.scope.user)
    with ExitStack() as stack:
        lines, total = _opened(source, stack)
        loading = _Loading(parts, acting, Incoming(parts, acting, called, said), called, skip_bad=skip_bad)
        stack.callback(loading.talks.close)
        for batch, read in _batches(lines):
            try:
                loading.take(batch)
            except StoreError as error:
                raise _stopped(error, loading.done.lines) from error
            if progress is not None:
                done = loading.done
                progress(Progress(lines=done.lines, written=done.written, bytes=read, total=total))
    return loading.done


def _stopped(error: StoreError, lines: int) -> StoreError:
    """What the store says of the batch that it refused, and what there is of the others."""
    if not lines:
        return error
    said = str(error).replace("nothing was written", "nothing of this batch was written")
    return StoreError(f"{said}; the {lines} lines before are in, and running it again goes on after them")


def _source_name(source: Any, name: str | None) -> str:
    """What the keys of lines begin with: a file's own name, so that it may be moved."""
    if name is not None:
        return check_name(name, name="name")
    if isinstance(source, str | os.PathLike):
        return check_name(Path(source).name, name="name")
    raise InvalidInputError("name the source: name='…'; it tells its lines from others, and finds them again")


def _opened(source: Any, stack: ExitStack) -> tuple[Iterator[tuple[int, int, RawLine]], int | None]:
    if isinstance(source, str) and source.lstrip().startswith(("{", "[")):
        raise InvalidInputError("source is a path or lines; for one text of many lines pass text.splitlines()")
    if isinstance(source, str | os.PathLike):
        try:
            file = stack.enter_context(Path(source).open("rb"))  # noqa: SIM115 - the stack is the context manager
        except OSError as error:
            raise InvalidInputError(f"{source} cannot be read: {error.strerror}; check the name") from error
        return read_lines(file), os.fstat(file.fileno()).st_size
    if not isinstance(source, Iterable) or isinstance(source, Mapping | bytes):
        raise InvalidInputError(f"source={source!r:.80} is neither a path nor lines")
    return read_lines(source), None


def _batches(lines: Iterable[tuple[int, int, RawLine]]) -> Iterator[tuple[list[tuple[int, RawLine]], int]]:
    """Lines as they are written together: so many, or so many bytes of them."""
    batch: list[tuple[int, RawLine]] = []
    before = read = 0
    for number, read, line in lines:
        batch.append((number, line))
        if len(batch) >= _BATCH or read - before >= _BATCH_BYTES:
            yield batch, read
            batch, before = [], read
    if batch:
        yield batch, read


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


class _Loading:
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
