"""Does the store hold what its ledger says, and does what is derived follow? (semantics.md, section 7)

The order is that of trust. First the ledger itself and every authoritative row against it, then what was signed, here
and elsewhere; and only where all of that fits, what follows from it: to hold derived values against rows that are
themselves wrong would name consequences for causes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from memlineage.engine.core import Core
from memlineage.engine.findings import Finding
from memlineage.engine.generation import kept_policies
from memlineage.engine.ledger import Against, claims_of, extends, signed_findings
from memlineage.engine.limits import odd_by_policy
from memlineage.engine.past import check_generations, past_policies
from memlineage.engine.reports import VerifyReport, Watcher
from memlineage.policy import PolicySet
from memlineage.recall.embedding import embed_texts, to_blob
from memlineage.store.checking.beside import check_index_file
from memlineage.store.checking.contents import Embed, check_contents
from memlineage.store.checking.declared import check_schema
from memlineage.store.checking.derived import Labels, check_derived
from memlineage.store.checking.extra import check_extra
from memlineage.store.checking.faults import Depth, Fault, Faults
from memlineage.store.checking.record import RecordCheck
from memlineage.store.checkpoints import checkpoint_rows
from memlineage.store.database import Connection
from memlineage.store.salvage import Damage

__all__ = ["Checking", "verify"]

_META: Final = frozenset({"embedder", "policy", "policy_levels", "policy_set"})
_TABLES: Final = (
    "event", "version", "unit", "edge", "cause", "endorsement", "alike", "verdict", "principal", "wall", "namespace",
    "contest", "context", "generation", "key", "checkpoint", "state", "lost", "tile", "text",
)  # fmt: skip


def verify(
    core: Core, *, against: Against | None = None, vectors: bool = True, progress: Watcher | None = None
) -> VerifyReport:
    """Check everything, in one snapshot. See `Memory.verify`."""
    started = time.perf_counter()
    claims = [] if against is None else claims_of(against)
    damage = core.database.find_damage()
    if damage.beyond or damage.replaceable:
        return _damaged(damage, time.perf_counter() - started)
    with core.database.reading() as connection:
        checking = Checking(core, connection, progress)
        record = checking.record(claim.head.size for claim in claims)
        elsewhere = [] if against is None else extends(connection, against, root_at=record.leaves.roots.get)
        checking.witnessed(elsewhere)
        left_out = checking.derived(vectors=vectors)
        rows = {table: _count(connection, table) for table in _TABLES}
    faults, seconds = checking.faults, time.perf_counter() - started
    return VerifyReport(
        ok=not faults.count,
        first=_finding(faults.first),
        findings=tuple(found for fault in faults.kept if (found := _finding(fault)) is not None),
        found=faults.count,
        derived_only=bool(faults.count) and not faults.authoritative,
        mendable=bool(faults.count) and faults.beyond_repair is None,
        rows=rows,
        events=record.last,
        root=record.leaves.tree.root().hex(),
        witnessed=0 if elsewhere else max((claim.head.size for claim in claims), default=0),
        left_out=left_out,
        seconds=round(seconds, 3),
        rate=round(rows["version"] / seconds),
    )


def _damaged(damage: Damage, seconds: float) -> VerifyReport:
    """Of pages that cannot be read nothing more can be said."""
    findings = [Finding(name, "its pages are damaged, and nothing else holds what they held") for name in damage.beyond]
    findings += [Finding(name, "its pages are damaged") for name in damage.replaceable]
    return VerifyReport(
        ok=False, first=findings[0], findings=tuple(findings), found=len(findings), derived_only=not damage.beyond,
        mendable=not damage.beyond, rows={}, events=0, root="", seconds=round(seconds, 3),
        left_out=("everything else: it cannot be read as long as that is so",),
    )  # fmt: skip


class Checking:
    """The stages of a check on one snapshot.

    Attributes:
        faults: what was found so far.
    """

    def __init__(self, core: Core, connection: Connection, progress: Watcher | None = None) -> None:
        self._core = core
        self._connection = connection
        self._progress = progress or _silent
        self._total = _count(connection, "version")
        self.faults = Faults()

    def record(self, sizes: Iterable[int] = ()) -> RecordCheck:
        """The ledger, and all that is authoritative; roots are kept at these sizes."""
        connection, faults = self._connection, self.faults
        check_schema(connection, faults)
        wanted = {*sizes, *(row.size for row in checkpoint_rows(connection))}
        record = RecordCheck(connection, faults, self._progress, wanted)
        record.run()
        check_extra(connection, record, faults)
        for found in signed_findings(connection, root_at=record.leaves.roots.get):
            faults.add("key or checkpoint", found.entry, found.problem, seq=record.last + 1, depth=Depth.RECORD)
        _check_meta(connection, record, faults)
        check_generations(connection, record, faults, self.known_policies)
        return record

    def known_policies(self, revision: str) -> PolicySet | None:
        """A generation, wherever it can be had from: table `meta`, table `generation`, or this memory."""
        kept = kept_policies(self._connection.execute("SELECT value FROM meta WHERE name = 'policy_set'").get)
        if kept is None or kept.revision != revision:
            kept = past_policies(self._connection, revision)
        return kept or self._core.generations.known(revision)

    def witnessed(self, elsewhere: Sequence[Finding]) -> None:
        """What does not fit what was signed and kept elsewhere."""
        for found in elsewhere:
            self.faults.add("witness", found.entry, found.problem, seq=1 << 62)

    def derived(self, *, vectors: bool) -> tuple[str, ...]:
        """What follows from it; returns what was left out."""
        if self.faults.authoritative:
            return ("what is derived: the rows that it follows from do not fit",)
        connection, labels = self._connection, Labels(self._connection, self.faults)
        generation = self._core.generations.of(connection)
        check_derived(connection, self.faults, quorum=generation.quorum)
        check_index_file(connection, self._core.database.file, self.faults)
        left_out: list[str] = []
        known = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").get
        if vectors and known != self._core.embedder_mark:
            cure = f"this memory has {self._core.embedder_mark}: open it with that one, or memlineage reembed"
            self.faults.add("meta", "meta embedder", f"is {known}; {cure}", seq=0, depth=Depth.DERIVED)
        check_contents(
            connection,
            self._total,
            lambda n, what, problem: labels.add(n, "text" if what == "text" else "version", problem),
            self._embedding(vectors and known == self._core.embedder_mark, left_out),
            self._tick,
        )
        for odd in odd_by_policy(connection, generation):
            labels.add(odd.n, "version", odd.problem)
        return tuple(left_out)

    def odd_contents(self, *, vectors: bool) -> tuple[dict[str, list[int]], list[str]]:
        """The versions whose form, text or vector is not that of their content, and what was left out."""
        odd: dict[str, list[int]] = {"form": [], "text": [], "vector": []}
        left_out: list[str] = []
        check_contents(
            self._connection,
            self._total,
            lambda n, what, _: odd[what].append(n),
            self._embedding(vectors, left_out),
            self._tick,
        )
        return odd, left_out

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of these texts, as they are stored."""
        return [to_blob(vector) for vector in embed_texts(self._core.embedder, texts)]

    def _embedding(self, vectors: bool, left_out: list[str]) -> Embed | None:
        if vectors:
            return self.embed
        left_out.append("vectors: not compared")
        return None

    def _tick(self, done: int) -> None:
        self._progress("contents", done, self._total)


def _silent(what: str, done: int, total: int) -> None:
    """Nobody wants to know."""


def _finding(fault: Fault | None) -> Finding | None:
    return None if fault is None else Finding(fault.entry, fault.problem)


def _count(connection: Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").get)


def _check_meta(connection: Connection, record: RecordCheck, faults: Faults) -> None:
    meta: dict[str, Any] = dict(connection.execute("SELECT name, value FROM meta"))

    def add(name: str, problem: str) -> None:
        faults.add("meta", f"meta {name}", problem, seq=record.last + 1, depth=Depth.RECORD)

    for name in sorted(meta.keys() - _META):
        add(name, "nothing of that name is kept here")
    if meta.get("policy") != record.revision:
        add("policy", f"is not the generation of the last policy event, {record.revision}")
    policies = kept_policies(meta.get("policy_set"))
    if policies is None or policies.revision != record.revision:
        add("policy_set", f"is not the policy of revision {record.revision}")
    else:
        levels = {name: int(level) for name, level in policies.principals.items()}
        if meta.get("policy_levels") != orjson.dumps(levels, option=orjson.OPT_SORT_KEYS).decode():
            add("policy_levels", "are not the levels that the policy grants")
