"""One version row against the event that wrote it, and against the rows that follow from versions."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from memlineage.ledger.hashing import SALT_BYTES
from memlineage.store.checking.events import DIGEST, Write
from memlineage.store.checking.faults import Depth, Faults
from memlineage.store.checking.places import Places, WallFields
from memlineage.store.database import Connection

__all__ = ["VersionCheck", "VersionRow", "group_of", "version_rows"]


class VersionRow(NamedTuple):
    """The authoritative columns of a version (schema.sql), and what stands beside it.

    Fields besides the columns:
        context_kept: whether the context that it names is there.
        unit: id of its unit; None if that is not there.
        unit_wall: where its unit stands.
        contest: what it competes in; None if it does not, or that is not there.
    """

    n: int
    u: int
    version: int
    w: int
    ns: int
    seq: int
    content: str | None
    kind: str
    tags: str
    subject: str | None
    key: str | None
    g: int
    creator: int
    actor: int
    owner: int
    creator_id: str | None
    ts_us: int
    ts_offset: int
    recorded_us: int
    confidence: int | None
    pinned: int
    metadata: str
    expires_us: int | None
    valid_to_us: int | None
    waived: int
    context: bytes | None
    recipe: str | None
    reasserts: int | None
    retry: str | None
    salt: bytes | None
    context_kept: int
    unit: str | None
    unit_wall: int | None
    contest: str | None

    @property
    def label(self) -> str:
        """How a fault names it."""
        return f"version {self.n}" if self.unit is None else f"version {self.n} ({self.unit}@{self.version})"


_VERSIONS: Final = f"""
    SELECT {", ".join(f"v.{column}" for column in VersionRow._fields[:-4])},
           v.context IS NULL OR EXISTS (SELECT 1 FROM context x WHERE x.hash = v.context),
           u.id, u.w, (SELECT identity FROM contest t WHERE t.g = v.g AND v.g <> 0)
    FROM version v LEFT JOIN unit u ON u.u = v.u ORDER BY v.n
"""
_EMPTY: Final[dict[str, Any]] = {"[]": [], "{}": {}}


def version_rows(connection: Connection) -> Iterator[VersionRow]:
    """All versions, in the order of writing."""
    return map(VersionRow._make, connection.execute(_VERSIONS))


class VersionCheck:
    """Checks version rows, in their order, against their events.

    Attributes:
        latest: per unit, the highest version number met so far.
        waived: per version, whether its row says that its time limit was waived.
        gone: versions whose content and salt are destroyed.
        contests: per contest, whether anything competes in it.
        contexts: the first eight bytes of every context that is named.
    """

    def __init__(self, connection: Connection, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults
        self.places = Places(connection, faults)
        units, contests, events = (_most(connection, table) for table in ("unit", "contest", "event"))
        self.latest = array("i", bytes(4 * (units + 1)))
        self.contests = bytearray(contests + 1)
        self.waived = bytearray(events + 1)
        self.gone: set[int] = set()
        self.contexts: set[bytes] = set()

    def check(self, row: VersionRow, said: Write) -> None:
        """Every column that the event, the record commitment or other rows determine."""
        if row.seq != said.seq or row.recorded_us != said.ts_us or row.version != said.version:
            self._add(row, said, f"seq, recorded_us or version are not those of event {said.seq}", Depth.RECORD)
        wall = self.places.wall(row.w, row.ns, said.seq)
        if wall is None and row.unit_wall == row.w:
            self._faults.add("wall", f"wall {row.w}", "is not there, and versions stand in it", seq=said.seq)
        elif wall is None:
            self._add(row, said, f"stands in wall {row.w}, which is not there")
        fits = wall is not None and self._check_values(row, said, wall)
        if wall is not None and row.ns != wall.ns and self.places.sound(row.w):
            self._add(row, said, f"namespace {row.ns} is not that of its wall {row.w}", Depth.RECORD)
        if row.unit != said.unit:
            self._blame_unit(row, said)
        elif row.unit_wall != row.w and fits:
            self._add_unit(row, said, f"stands in wall {row.unit_wall}, its versions in {row.w}")
        self._count_up(row, said)
        if row.g and wall is not None:
            self._check_contest(row, said, wall)
        if row.waived:
            self._note_waived(row, said)
        if row.context is not None:
            self.contexts.add(row.context[:8])
            if not row.context_kept:
                self._faults.add("context", f"context {row.context.hex()[:16]}", "is not there", seq=said.seq)

    def _add(self, row: VersionRow, said: Write, problem: str, depth: Depth = Depth.VALUE) -> None:
        self._faults.add("version", row.label, problem, seq=said.seq, depth=depth)

    def _check_values(self, row: VersionRow, said: Write, wall: WallFields) -> bool:
        """Content and record against their commitments; whether they fit."""
        content, salt = row.content, row.salt
        if content is None or salt is None:
            self.gone.add(row.n)
            if content is not None or salt is not None:
                self._add(row, said, "content and salt are destroyed together or not at all")
            if not DIGEST.fullmatch(said.content) or not DIGEST.fullmatch(said.record):
                self._faults.add("event", f"event {said.seq}", "holds text where a commitment belongs", seq=said.seq)
            return True
        if sha256(salt[:SALT_BYTES] + content.encode()).hexdigest() != said.content or len(salt) != 2 * SALT_BYTES:
            self._add(row, said, f"content does not fit the commitment of event {said.seq}")
            return False
        return self._check_record(row, said, wall, salt[SALT_BYTES:])

    def _check_record(self, row: VersionRow, said: Write, wall: WallFields, salt: bytes) -> bool:
        # Whether it may compete is committed to, and shows in g where there is something to compete for.
        contested = row.subject is not None and row.key is not None
        competes = row.g != 0 if contested else True
        try:
            record = self._record(row, wall, competes)
        except ValueError as error:
            self._add(row, said, str(error))
            return False
        if sha256(salt + record).hexdigest() == said.record and (contested or not row.g):
            return True
        other = self._record(row, wall, not competes)
        if sha256(salt + other).hexdigest() == said.record:
            if contested or row.g:
                wanted = "a group" if contested and not row.g else "no group"
                self._add(row, said, f"competes in group {row.g}, must in {wanted}", Depth.RECORD)
            return True
        if row.g and not contested and sha256(salt + record).hexdigest() == said.record:
            self._add(row, said, f"competes in group {row.g}, and has no subject and key", Depth.RECORD)
            return True
        self._add(row, said, f"a column does not fit the record commitment of event {said.seq}")
        return False

    def competes(self, row: VersionRow, said: Write, wall: WallFields) -> bool:
        """Whether it competes for its key, as its record commitment says; it fits one way or the other."""
        if row.subject is None or row.key is None or row.salt is None:
            return row.g != 0 and row.salt is None  # once erased, nothing but the row says so
        record = self._record(row, wall, True)
        return sha256(row.salt[SALT_BYTES:] + record).hexdigest() == said.record

    def _record(self, row: VersionRow, wall: WallFields, competes: bool) -> bytes:
        """The bytes of `record_bytes` (store/records.py), from a row."""
        name = self.places.name
        if not 0 <= row.pinned <= 1:
            raise ValueError(f"pinned is {row.pinned}; it is 0 or 1")
        return orjson.dumps(
            {
                "actor": name(row.actor),
                "competes": competes,
                "confidence": row.confidence,
                "context": None if row.context is None else row.context.hex(),
                "creator": name(row.creator),
                "creator_id": row.creator_id,
                "expires_us": row.expires_us,
                "key": row.key,
                "kind": row.kind,
                "metadata": _stored_json(row.metadata, "metadata"),
                "owner": name(row.owner),
                "pinned": row.pinned == 1,
                "reasserts": row.reasserts,
                "recipe": row.recipe,
                "retry": row.retry,
                "subject": row.subject,
                "tags": _stored_json(row.tags, "tags"),
                "ts_offset": row.ts_offset,
                "ts_us": row.ts_us,
                "valid_to_us": row.valid_to_us,
                "wall": wall.fields,
            },
            option=orjson.OPT_SORT_KEYS,
        )

    def _blame_unit(self, row: VersionRow, said: Write) -> None:
        """Version and event name different units: either the version points elsewhere, or the unit row is not it."""
        found = self._connection.execute("SELECT u FROM unit WHERE id = ?", (said.unit,)).get
        if found is not None and 0 < found < len(self.latest):
            self._add(row, said, f"belongs to unit {row.u}, its event says {said.unit}", Depth.RECORD)
        elif row.unit is None:
            self._add_unit(row, said, "is not there, and has versions")
        else:
            self._add_unit(row, said, f"its id is not that of event {said.seq}, {said.unit}")

    def _add_unit(self, row: VersionRow, said: Write, problem: str) -> None:
        named = f"unit {row.u} ({said.unit})"
        self._faults.add("unit", named, problem, seq=said.seq, depth=Depth.RECORD)

    def _count_up(self, row: VersionRow, said: Write) -> None:
        """Versions of a unit are numbered without a gap. Where an event is sound its number is what counts."""
        if row.unit == said.unit and 0 < row.u < len(self.latest):
            if said.version != self.latest[row.u] + 1:
                self._add(row, said, f"is version {said.version} after {self.latest[row.u]}", Depth.RECORD)
            self.latest[row.u] = min(max(said.version, 0), 0x7FFFFFFF)

    def _check_contest(self, row: VersionRow, said: Write, wall: WallFields) -> None:
        if 0 < row.g < len(self.contests):
            self.contests[row.g] = 1
        wanted = orjson.dumps([*group_of(wall), row.subject, row.key]).decode()
        if row.contest == wanted:
            return
        found = self._connection.execute("SELECT g FROM contest WHERE identity = ?", (wanted,)).get
        if found is not None and 0 < found < len(self.contests):
            self._add(row, said, f"competes in group {row.g}, must in {found}", Depth.RECORD)
        else:
            problem = (
                "is not there, and versions compete in it" if row.contest is None else "is not what competes in it"
            )
            self._faults.add("contest", f"contest {row.g}", problem, seq=said.seq, depth=Depth.RECORD)

    def _note_waived(self, row: VersionRow, said: Write) -> None:
        if row.waived != 1:
            self._add(row, said, f"waived is {row.waived}; it is 0 or 1", Depth.RECORD)
        if 0 < row.n < len(self.waived):
            self.waived[row.n] = 1


def group_of(wall: WallFields) -> list[str]:
    """What two units must share to compete (`Wall.group`)."""
    tenant, user, agent, session, visibility = wall.fields
    owner = ["u", user] if user is not None else ["a", agent or ""]
    inner = {"agent": [agent or ""], "session": [session or ""]}.get(visibility or "", [])
    return [str(part) for part in (tenant, *owner, visibility, *inner)]


def _stored_json(text: str, column: str) -> Any:
    """What a column holds, which is written in one way only."""
    if text in _EMPTY:
        return _EMPTY[text]
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{column} cannot be read: {error}") from None
    if orjson.dumps(value).decode() != text:
        raise ValueError(f"{column} is not written as it was")
    return value


def _most(connection: Connection, table: str) -> int:
    """How many rows a table has: its integers count up without a gap."""
    return int(connection.execute(f"SELECT count(*) FROM {table}").get)
