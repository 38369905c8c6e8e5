"""What happens once when a store is opened: policy is read, the embedder checked, a new generation taken into force."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from memlineage.engine.core import Core
from memlineage.engine.facts import unit_facts
from memlineage.errors import StoreError
from memlineage.policy import Document, Facts, PolicySet, defaults, load, valid_until
from memlineage.recall.embedding import embed_texts, to_blob
from memlineage.store.database import fetch
from memlineage.store.records import EventKind
from memlineage.store.units import read_units
from memlineage.store.writer import Writer

__all__ = ["admit_policy", "check_embedder", "policy_of", "reembed"]

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


def check_embedder(core: Core) -> None:
    """Vectors of two embedders do not compare: the one that wrote them is the one that reads them."""
    mine = f"{core.embedder.name}/{core.embedder.dimension}"
    with core.database.reading() as connection:
        known = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").get
    if known is None:
        with core.database.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO meta (name, value) VALUES ('embedder', ?)", (mine,))
            known = connection.execute("SELECT value FROM meta WHERE name = 'embedder'").get
    if known != mine:
        core.database.close()
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
        mine = f"{core.embedder.name}/{core.embedder.dimension}"
        connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('embedder', ?)", (mine,))
    return count


def admit_policy(core: Core, *, only_if_new: bool = False) -> None:
    """Take a generation into force, now or, where the file has another one (`only_if_new`), with the first write.

    It is an event, the levels it registers, and the time limits it sets: whoever merely looks into a file must not
    lift the limits that its own application set.
    """
    with core.database.reading() as connection:
        known = connection.execute("SELECT value FROM meta WHERE name = 'policy'").get
    if known == core.policies.revision:
        return
    if known is not None and only_if_new:
        core.before_first_write = lambda writer: _admit(core, writer)
        return
    with core.write(let_time_pass=False) as writer:
        _admit(core, writer)


def _admit(core: Core, writer: Writer) -> None:
    known = writer.connection.execute("SELECT value FROM meta WHERE name = 'policy'").get
    if known == core.policies.revision:
        return
    writer.event(EventKind.POLICY, {"revision": core.policies.revision})
    writer.connection.execute(
        "INSERT OR REPLACE INTO meta (name, value) VALUES ('policy', ?)", (core.policies.revision,)
    )
    for principal, level in sorted(core.policies.principals.items()):
        if "*" not in principal and writer.names.level_of(principal) != level:
            writer.register_principal(principal, int(level))
    _renew_limits(core, writer)


def _renew_limits(core: Core, writer: Writer) -> None:
    """Recompute when each version expires: that follows from policy as much as from its own word."""
    last = 0
    while True:
        numbers = [
            n
            for (n,) in writer.connection.execute(
                "SELECT n FROM version WHERE n > ? ORDER BY n LIMIT ?", (last, _BATCH)
            )
        ]
        if not numbers:
            return
        for n, unit in read_units(writer.connection, writer.names, numbers).items():
            by_policy = valid_until(core.policies, Facts(unit=unit_facts(unit), now_us=writer.now_us))
            own = writer.connection.execute("SELECT expires_us, valid_to_us FROM version WHERE n = ?", (n,)).get
            limit = min((t for t in (*own, by_policy) if t is not None), default=None)
            writer.connection.execute("UPDATE version SET valid_until = ?2 WHERE n = ?1", (n, limit))
        last = numbers[-1]
