"""Is what was signed still so? Keys, checkpoints and claims from elsewhere against the events as they are now.

Theory. A checkpoint is a claim: the first N events have this root, signed by the key that was in force then. Two
things can be wrong with it. Its signature: no key of this ledger made it, or one that was retired by then. Or its
root: the ledger has fewer events (truncated), or others (forked). Both are asked of the bytes of the events
themselves: keys are those that KEY events name, roots are computed from `event.data`, and nothing derived is trusted.

A claim that the ledger itself keeps (table `checkpoint`) shows accidents. Whoever can write the database can write
that table too, and whoever has the key can sign it anew; so what counts is a claim that was kept elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw
import msgspec

from memlineage.engine.findings import Finding
from memlineage.engine.witness import read_notes
from memlineage.errors import LedgerError
from memlineage.ledger.checkpoint import Checkpoint, TreeHead, parse_tree_head
from memlineage.ledger.notes import Note, parse_note, signers
from memlineage.ledger.signing import check_public
from memlineage.model.counts import count_of
from memlineage.store.checkpoints import ORIGIN, CheckpointRow, KeyRow, checkpoint_rows, read_keys
from memlineage.store.records import EventKind
from memlineage.store.tiles import ledger_size, recomputed_roots

__all__ = ["Against", "Claim", "claims_of", "extends", "keys_of_events", "signed_findings", "unsigned"]

Against = str | os.PathLike[str] | Checkpoint
"""A checkpoint, the text of its note, or a witness file."""

_ALL: Final = -(2**63)
"""Below every size: in a table that others may have written to, sizes under 1 count as well."""

Roots = Callable[[int], bytes | None]
"""The root of the first so many events; None where there are not so many."""


class Claim(msgspec.Struct, frozen=True):
    """What somebody once signed.

    Attributes:
        where: where it is kept, in words.
        note: as it was signed.
        head: what it says.
    """

    where: str
    note: Note
    head: TreeHead

    @classmethod
    def of(cls, where: str, note: Note) -> Claim:
        """From a note. Raises `LedgerError` if it is no checkpoint."""
        head = parse_tree_head(note.text)
        return cls(f"{where}, checkpoint of {count_of(head.size, 'event')}", note, head)


def claims_of(against: Against) -> list[Claim]:
    """The checkpoints that are given, oldest first.

    Raises:
        LedgerError: they cannot be read, or there are none: an empty witness bears witness to nothing.
    """
    if isinstance(against, Checkpoint):
        return [Claim.of("given", parse_note(against.note))]
    if isinstance(against, str) and "\n" in against:
        return [Claim.of("given", parse_note(against))]
    path = Path(against)
    notes = read_notes(path)
    if not notes:
        raise LedgerError(f"there are no checkpoints in {path}; make the first: memlineage checkpoint --witness {path}")
    return [Claim.of(str(path), note) for note in notes]


def extends(connection: apsw.Connection, against: Against, *, root_at: Roots | None = None) -> list[Finding]:
    """What keeps this ledger from being a continuation of what was signed then; nothing if it is one.

    Args:
        connection: with a snapshot to read from.
        against: a checkpoint, its note, or a witness file, of which every checkpoint is checked.
        root_at: roots that were computed from the events already; left out, one more pass over them does it.

    Raises:
        LedgerError: what is given cannot be read.
    """
    claims = claims_of(against)
    keys, _ = keys_of_events(connection)
    roots = root_at or recomputed_roots(connection, [claim.head.size for claim in claims]).get
    return [Finding(claim.where, problem) for claim, problem in _doubts(claims, keys, ledger_size(connection), roots)]


def _doubts(claims: Iterable[Claim], keys: Sequence[KeyRow], size: int, roots: Roots) -> Iterator[tuple[Claim, str]]:
    """Every claim with what is wrong with it. After the first fork all that follow are forks too, and left out."""
    agreed = 0
    for claim in claims:
        problem = unsigned(claim, keys, size)
        if problem is not None:
            yield claim, problem
        if keys and claim.head.origin != keys[0].name:
            continue  # what another ledger holds says nothing about this one
        problem = _fork(claim, size, roots, agreed)
        if problem is not None:
            yield claim, problem
            return
        agreed = max(agreed, claim.head.size)


def _fork(claim: Claim, size: int, roots: Roots, agreed: int) -> str | None:
    head = claim.head
    if head.size > size:
        return f"truncated: the ledger has {count_of(size, 'event')}, so {head.size - size} that were signed are gone"
    found = roots(head.size)
    if found == head.root:
        return None
    if head.size <= agreed:
        return f"forked: its root is {head.root.hex()}, the ledger has {_hex(found)} there"
    return (
        f"forked: among events {agreed + 1} to {head.size}, one is not what was signed "
        f"(root {head.root.hex()}, the ledger has {_hex(found)})"
    )


def _hex(digest: bytes | None) -> str:
    return "none" if digest is None else digest.hex()


def unsigned(claim: Claim, keys: Sequence[KeyRow], size: int) -> str | None:
    """Why a claim does not count as signed by this ledger of `size` events; None if it does."""
    head = claim.head
    if keys and head.origin != keys[0].name:
        return f"signed by an unknown key: it is about another ledger, {head.origin}, not {keys[0].name}"
    try:
        signed = signers(claim.note, [key.verifier for key in keys])
    except LedgerError as error:
        said = str(error)
        return said if keys and "no known key" not in said else f"signed by an unknown key: {said}"
    if head.size > size:
        return None  # which keys were in force by then went with the events
    missing = [key for key in keys if key.signs(head.size) and key.verifier not in signed]
    if missing:
        by = " and ".join(key.key_id.hex() for key in signed)
        wanted = " and ".join(f"{key.verifier.key_id.hex()} (in force since event {key.added})" for key in missing)
        return f"signed by an unknown key: by {by}, not by {wanted}"
    if not any(key.signs(head.size) for key in keys):
        return f"signed by an unknown key: the ledger had none before event {keys[0].added}"
    return None


# What the ledger says about itself ------------------------------------------------------------------------------


class _KeyEvent(msgspec.Struct, frozen=True):
    k: int
    log: str
    public: str
    replaces: int | None


def keys_of_events(connection: apsw.Connection) -> tuple[tuple[KeyRow, ...], list[Finding]]:
    """The keys that the events brought, oldest first; and the events that cannot have brought one."""
    keys: list[KeyRow] = []
    found: list[Finding] = []
    for seq, data in connection.execute(
        "SELECT seq, data FROM event WHERE kind = ? ORDER BY seq", (int(EventKind.KEY),)
    ):
        try:
            said = msgspec.json.decode(data, type=_KeyEvent, strict=True)
            row = KeyRow(said.k, ORIGIN + said.log, bytes.fromhex(said.public), seq, None)
            check_public(row.public)
        except (msgspec.DecodeError, ValueError, LedgerError) as error:
            found.append(Finding(f"event {seq}", f"brings no key: {error}"))
            continue
        last = keys[-1] if keys else None
        if (row.k, said.replaces) != ((1, None) if last is None else (last.k + 1, last.k)):
            found.append(Finding(f"event {seq}", f"key {row.k} cannot come after {0 if last is None else last.k}"))
        if last is not None and row.name != last.name:
            found.append(Finding(f"event {seq}", f"its key is for {row.name}, those before it for {last.name}"))
        if last is not None:
            keys[-1] = KeyRow(last.k, last.name, last.public, last.added, seq)
        keys.append(row)
    return tuple(keys), found


def signed_findings(connection: apsw.Connection, *, root_at: Roots | None = None) -> list[Finding]:
    """What is wrong with the tables `key` and `checkpoint`, in the order of the events they are about.

    Args:
        connection: with a snapshot to read from.
        root_at: as for `extends`.
    """
    keys, found = keys_of_events(connection)
    found += _key_rows(keys, read_keys(connection))
    rows = checkpoint_rows(connection, after=_ALL)
    roots = root_at or recomputed_roots(connection, [row.size for row in rows]).get
    size = ledger_size(connection)
    kept = {row.size for row in rows}
    found += [
        Finding(f"key {key.k}", f"was retired by event {key.retired}, of which no checkpoint is kept")
        for key in keys
        if key.retired is not None and key.retired not in kept
    ]
    claims = []
    for row in rows:
        try:
            claims.append(Claim.of("table checkpoint", parse_note(row.note)))
        except LedgerError as error:
            found.append(Finding(f"checkpoint {row.size}", f"its note cannot be read: {error}"))
            continue
        found += _row_against_note(connection, row, claims[-1].head)
    found += [Finding(f"checkpoint {c.head.size}", problem) for c, problem in _doubts(claims, keys, size, roots)]
    return found


def _key_rows(said: Sequence[KeyRow], rows: Sequence[KeyRow]) -> Iterator[Finding]:
    by_number = {row.k: row for row in rows}
    for key in said:
        row = by_number.pop(key.k, None)
        if row != key:
            where = "there is no such row" if row is None else f"the row says {_told(row)}"
            yield Finding(f"key {key.k}", f"event {key.added} says {_told(key)}; {where}")
    yield from (Finding(f"key {k}", "no event brought it") for k in by_number)


def _told(key: KeyRow) -> str:
    until = "in force" if key.retired is None else f"retired by event {key.retired}"
    return f"{key.name} {key.public.hex()}, added by event {key.added}, {until}"


def _row_against_note(connection: apsw.Connection, row: CheckpointRow, head: TreeHead) -> Iterator[Finding]:
    if (row.size, row.root) != (head.size, head.root):
        yield Finding(
            f"checkpoint {row.size}", f"its note is for {count_of(head.size, 'event')} with root {head.root.hex()}"
        )
    at_us = connection.execute("SELECT ts_us FROM event WHERE seq = ?", (row.size,)).get
    if at_us is not None and at_us != row.at_us:
        yield Finding(f"checkpoint {row.size}", f"its at_us is {row.at_us}, its last event is of {at_us}")
