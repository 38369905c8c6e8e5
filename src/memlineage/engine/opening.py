"""What happens once when a store is opened: policy is read, the embedder checked, a new generation taken into force."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import orjson

from memlineage.engine.core import Core
from memlineage.engine.generation import Generation, kept_policies
from memlineage.engine.limits import new_limits
from memlineage.errors import InvalidInputError, StoreError
from memlineage.model.principal import HOST, default_level
from memlineage.policy import Document, PolicySet, defaults, load
from memlineage.policy.freshness import same_limits
from memlineage.recall.embedders import by_name
from memlineage.recall.embedding import Embedder, embed_texts, to_blob
from memlineage.store.database import FORMAT, Database, fetch
from memlineage.store.records import RECORD_LAYOUT, EventKind
from memlineage.store.sql import QUERIES
from memlineage.store.writer import Writer

__all__ = [
    "admit_policy",
    "check_embedder",
    "filled_by",
    "kept_embedder",
    "kept_policy",
    "policy_of",
    "reembed",
]

_BATCH: Final = 1000

Source = str | os.PathLike[str] | Mapping[str, Any] | Document


def policy_of(given: Iterable[Source] | PolicySet, *, defaults: bool) -> PolicySet:
    """One generation from files, folders, mappings and documents."""
    if isinstance(given, PolicySet):
        return given
    items = [given] if isinstance(given, str | os.PathLike | Mapping | Document) else list(given)
    documents: list[Document] = [_defaults()] if defaults else []
    for item in items:
        if isinstance(item, Document):
            documents.append(item)
        elif isinstance(item, Mapping):
            documents.append(Document.from_dict(item))
        else:
            documents.extend(load([item]))
    return PolicySet.of(*documents)


def _defaults() -> Document:
    return defaults()


def kept_policy(database: Database) -> PolicySet | None:
    """The generation that the file was last filled under: in force for whoever opens it without documents."""
    with database.reading() as connection:
        kept = connection.execute("SELECT value FROM meta WHERE name = 'policy_set'").get
    if kept is None:
        return None
    try:
        return PolicySet.from_kept(kept if isinstance(kept, bytes) else str(kept).encode())
    except msgspec.DecodeError as error:
        raise StoreError(f"the policy kept in {database.path} cannot be read; open it with policies=[…]") from error


def kept_embedder(database: Database) -> Embedder | None:
    """The embedder that filled the file, where it is one that ships."""
    filled = filled_by(database)
    if filled is None:
        return None
    try:
        return by_name(filled[0])
    except InvalidInputError as error:
        raise StoreError(f"{database.path} holds vectors of embedder {filled[0]!r}; pass it as embedder=…") from error


def filled_by(database: Database) -> tuple[str, int] | None:
    """Name and dimension of the embedder that filled the file; None for a new one."""
    with database.reading() as connection:
        mark = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").get
    if mark is None:
        return None
    name, _, dimension = str(mark).rpartition("/")
    return name, int(dimension)


def check_embedder(core: Core) -> None:
    """Vectors of two embedders do not compare: the one that wrote them is the one that reads them."""
    mine = core.embedder_mark
    with core.database.reading() as connection:
        known = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").get
    if known is None:
        with core.database.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO meta (name, value) VALUES ('embedder', ?)", (mine,))
            known = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").get
    if known != mine:
        name = str(known).rpartition("/")[0]
        raise StoreError(
            f"{core.database.path} holds vectors of embedder {known}, not {mine}; open it with embedder={name!r}, or "
            f"compute them anew: memlineage reembed {core.database.path} --embedder {core.embedder.name}"
        )


def reembed(core: Core) -> int:
    """Compute every vector anew, in batches, in one transaction."""
    count = 0
    with core.database.writing() as connection:
        last = 0
        while True:
            rows = fetch(
                connection,
                "SELECT n, content FROM version WHERE n > ? AND content IS NOT NULL ORDER BY n LIMIT ?",
                (last, _BATCH),
            )
            if not rows:
                break
            vectors = embed_texts(core.embedder, [content for _, content in rows])
            connection.executemany(
                "UPDATE version SET vector = ? WHERE n = ?",
                [(to_blob(vector), n) for (n, _), vector in zip(rows, vectors, strict=True)],
            )
            count += len(rows)
            last = rows[-1][0]
        connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('embedder', ?)", (core.embedder_mark,))
    return count


def admit_policy(core: Core, admitted: Generation | None = None) -> None:
    """Take a generation into force, for everybody who has the file open: an event, the levels it registers, and the
    time limits it sets. The commit is what does it: whoever reads or writes after that goes by it. Left out, it is
    the one that the memory was made with.
    """
    generation = admitted or core.generation
    core.generations.add(generation)
    with core.database.between_writes():
        with core.database.reading() as connection:
            known = connection.execute("SELECT value FROM meta WHERE name = 'policy'").get
        if known != generation.policies.revision:
            with core.write(let_time_pass=False, admitting=generation) as writer:
                _admit(generation.policies, writer)
        core.generation = core.generations.latest = generation


def _admit(policies: PolicySet, writer: Writer) -> None:
    known = writer.connection.execute("SELECT value FROM meta WHERE name = 'policy'").get
    if known == policies.revision:
        return
    before = kept_policies(writer.connection.execute("SELECT value FROM meta WHERE name = 'policy_set'").get)
    if known is None:  # the first event of all says how the rest is to be read
        writer.event(EventKind.SETTING, {"format": FORMAT, "record": RECORD_LAYOUT})
    seq = writer.event(EventKind.POLICY, {"revision": policies.revision})
    kept = policies.kept()
    writer.connection.executemany(
        "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", [("policy", policies.revision), ("policy_set", kept)]
    )
    writer.connection.execute(
        "INSERT OR REPLACE INTO generation (revision, body, seq) VALUES (?, ?, ?)", (policies.revision, kept, seq)
    )
    _register_levels(policies, writer)
    writer.recount()
    if before is None or before.revision != known or not same_limits(before, policies):
        _renew_limits(policies, writer)
    writer.settle()


def _register_levels(policies: PolicySet, writer: Writer) -> None:
    """The levels that the documents grant; what an earlier generation granted and this one does not ends."""
    stored = writer.connection.execute("SELECT value FROM meta WHERE name = 'policy_levels'").get
    granted: dict[str, int] = {} if stored is None else orjson.loads(str(stored))
    levels = {name: int(level) for name, level in policies.principals.items()}
    ended = {name: int(default_level(name)) for name in granted if name not in levels}
    for name, level in sorted({**ended, **levels}.items()):
        if writer.names.level_of(name) != level:
            writer.register_principal(name, level)
    writer.connection.execute(
        "INSERT OR REPLACE INTO meta (name, value) VALUES ('policy_levels', ?)",
        (orjson.dumps(levels, option=orjson.OPT_SORT_KEYS).decode(),),
    )


def _renew_limits(policies: PolicySet, writer: Writer) -> None:
    """Recompute when each version expires: that follows from policy as much as from its own word.

    What time had ended under the limits before, and would not have under these, is taken back.
    """
    ended = dict(fetch(writer.connection, QUERIES["ended_by_time"]))
    moved = list(new_limits(writer.connection, policies))
    writer.connection.executemany("UPDATE version SET valid_until = ?2 WHERE n = ?1", moved)
    for n, limit in moved:
        if n in ended and (limit is None or limit > writer.now_us):
            writer.lift_cause(n, ended[n], by=HOST, reason=None)
