"""The write path: from what was asked for to what is committed (docs/architecture.md, the life of a memory)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.admission import (
    Admission,
    admit,
    echo_of,
    equivalent_versions,
    exposure_edges,
    link_edges,
    look_up,
    protection_of,
)
from memlineage.engine.core import Core
from memlineage.engine.credence.entry import alike_forms, entered, entry_of
from memlineage.engine.credence.registered import Matched
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.facts import new_facts
from memlineage.engine.inputs import RESERVED_KINDS, Draft, Target, check_identity
from memlineage.engine.snapshot import Known, resolve
from memlineage.errors import ConflictError, InvalidInputError
from memlineage.model.ids import Ref
from memlineage.model.principal import is_model_side, kind_of
from memlineage.model.scope import Visibility, Wall
from memlineage.model.state import PLAIN, Status
from memlineage.model.unit import Role, Unit
from memlineage.policy import Decision, Facts, ObligationKind, valid_until
from memlineage.recall.embedding import embed_texts, to_blobs
from memlineage.recall.text import index_terms
from memlineage.store.database import fetch
from memlineage.store.records import NewVersion, Said
from memlineage.store.sql import QUERIES
from memlineage.store.units import as_written, read_units
from memlineage.store.writer import Writer

__all__ = ["Prepared", "Writing", "Written", "follow"]

_SET_ASIDE = frozenset({Status.ERASED, Status.QUARANTINED, Status.RETRACTED, Status.ARCHIVED})
"""Somebody put it there: making it again does not bring it back."""


class Prepared(msgspec.Struct, frozen=True, gc=False):
    """What was computed before the transaction began: nothing slow happens while others wait.

    Attributes:
        draft: what is to be written.
        vector: its embedding.
        terms: its index terms.
        forms: per distinct form of earlier versions, whether it says the same.
        checks: the entry checks that are about it.
        said: forms that say the same, among those that wait for others to say so.
    """

    draft: Draft
    vector: bytes
    terms: str
    forms: dict[bytes, bool]
    checks: tuple[Matched, ...] = ()
    said: frozenset[bytes] = frozenset()


class Written(msgspec.Struct, frozen=True, gc=False):
    """The version that stands for what was handed in.

    Attributes:
        n: its integer id.
        new: what was written; None where the version was there before this call.
        seq: the event that wrote it.
    """

    n: int
    new: NewVersion | None = None
    seq: int = 0

    @property
    def fresh(self) -> bool:
        """Whether this call wrote it."""
        return self.new is not None


class Writing:
    """Stores and updates."""

    def __init__(self, core: Core, enforcement: Enforcement) -> None:
        self._core = core
        self._enforcement = enforcement

    def prepare(self, drafts: Sequence[Draft], revised: Target | None = None) -> list[Prepared]:
        """Embed, tokenise and compare, outside any transaction."""
        vectors = to_blobs(embed_texts(self._core.embedder, [draft.content for draft in drafts]))
        prepared = [
            Prepared(draft, vector, index_terms(draft.content), self._judge(draft, revised))
            for draft, vector in zip(drafts, vectors, strict=True)
        ]
        return [self._checked(item, revised) for item in prepared] if self._core.entry_checks else prepared

    def _checked(self, item: Prepared, revised: Target | None) -> Prepared:
        """The same, with the entry checks that are about it."""
        draft = item.draft
        entry = entry_of(self._core, draft, revised)
        if entry.kind in RESERVED_KINDS:
            return item
        said = alike_forms(self._core, entry.kind, draft.content)
        return msgspec.structs.replace(item, checks=self._core.entry_checks.about(entry), said=said | {draft.form})

    def _judge(self, draft: Draft, revised: Target | None) -> dict[bytes, bool]:
        """Ask the kind's comparer once per distinct earlier form; equal normal forms are the same anyway."""
        if revised is None:
            return {}
        forms = {draft.form: True}
        if not self._core.comparers:
            return forms
        with self._core.read() as snapshot:
            rows = fetch(
                snapshot.connection,
                "SELECT v.form, v.content, v.kind FROM version v JOIN unit u ON u.u = v.u"
                " WHERE u.id = ? AND v.content IS NOT NULL ORDER BY v.n",
                (revised.id,),
            )
        for form, content, kind in rows:
            compare = self._core.comparers.get(draft.kind or kind)
            if compare is not None and form not in forms:
                forms[form] = bool(compare(content, draft.content))
        return forms

    def store(self, acting: Acting, drafts: Sequence[Draft], *, reserved: bool = False) -> list[Unit]:
        """Write new units, all or none."""
        prepared = self.prepare(drafts)
        with self._core.write(actor=acting.actor) as writer:
            written: list[Written] = []
            before: list[int] = []
            if len(drafts) > 1:
                look_up(writer, drafts)
                writer.rows.gather()
            for item in prepared:
                result = self.store_one(writer, acting, item, reserved=reserved, before=before)
                if result.fresh and is_model_side(item.draft.creator):
                    before = []  # it hangs on all of these, and what follows hangs on it
                before.append(result.n)
                written.append(result)
            writer.settle()
            units = _units(writer, written, anew=any(item.said for item in prepared))
        follow(acting, units, written)
        return units

    def store_one(
        self, writer: Writer, acting: Acting, item: Prepared, *, reserved: bool = False, before: Sequence[int] = ()
    ) -> Written:
        """Write one new unit inside a transaction, or find the one that stands for it; `before` came just before it."""
        draft = item.draft
        if not reserved:
            _refuse_reserved(draft.kind)
        wall = acting.scope.wall(draft.visibility or Visibility.USER)
        check_identity(draft.metadata, wall)
        _refuse_takeover(acting, draft, _owner(acting, draft))
        edges = link_edges(writer, acting, draft.links)
        edges += exposure_edges(writer, acting, draft, edges, before)
        admission = admit(writer, acting, draft, edges, wall)
        new, mask = self._new_version(writer, acting, draft, admission, wall)
        decision = self._enforcement.write(acting, new, admission, now_us=writer.now_us, names=writer.names, mask=mask)
        known = _retried(writer, acting, draft, wall)
        if known is None and not reserved:
            known = echo_of(writer, acting, draft, edges)
        if known is not None:
            return Written(known)
        return self._write(writer, new, item, decision, mask)

    def update(
        self,
        acting: Acting,
        target: Target,
        draft: Draft,
        *,
        if_version: int | None = None,
        replayed: bool = False,
        reserved: bool = False,
    ) -> Unit:
        """Write the next version of a unit."""
        while True:
            [item] = self.prepare([draft], target)
            with self._core.write(actor=acting.actor) as writer:
                if self._unjudged(writer, target, item):
                    continue  # somebody wrote another version while the comparer thought: ask about that as well
                written = self.update_one(
                    writer, acting, target, item, if_version=if_version, replayed=replayed, reserved=reserved
                )
                writer.settle()
                units = _units(writer, [written])
            follow(acting, units, [written])
            return units[0]

    def _unjudged(self, writer: Writer, target: Target, item: Prepared) -> bool:
        if not self._core.comparers:
            return False
        rows = writer.connection.execute(QUERIES["forms_of"], (target.id,))
        return any(
            form not in item.forms and (item.draft.kind or kind) in self._core.comparers for form, kind in rows
        )  # fmt: skip

    def update_one(
        self,
        writer: Writer,
        acting: Acting,
        target: Target,
        item: Prepared,
        *,
        if_version: int | None = None,
        replayed: bool = False,
        reserved: bool = False,
    ) -> Written:
        """Write the next version inside a transaction."""
        known = resolve(writer.connection, writer.names, acting.scope, Target(target.id, None))
        old = read_units(writer.connection, writer.names, writer.states, [known.n])[known.n]
        retried = _retried(writer, acting, item.draft, old.wall)
        if retried is not None:  # it was permitted then; what came after does not take it back
            self._enforcement.act_on(
                "read", acting, old, by=acting.decider(None), now_us=writer.now_us, names=writer.names
            )
            return Written(retried)
        if if_version is not None and if_version != old.version:
            raise ConflictError(f"{old.id} is at version {old.version}, not {if_version}: read it again", str(old.ref))
        if replayed and if_version is not None and old.status in _SET_ASIDE:  # since it was read
            raise ConflictError(f"{old.ref} is {old.status.value} by now: restore it first", str(old.ref))
        draft = _carry_over(item.draft, old)
        if not reserved:
            _refuse_reserved(draft.kind, old.kind)
        check_identity(item.draft.metadata, old.wall)
        _refuse_takeover(acting, draft, old.owner)
        edges = link_edges(writer, acting, draft.links)
        edges += exposure_edges(writer, acting, draft, edges)
        revises = resolve(writer.connection, writer.names, acting.scope, Target(target.id, known.latest)).n
        admission = admit(writer, acting, draft, edges, old.wall, revises=revises)
        says_so = replayed or kind_of(draft.creator) in {"user", "system", "tool"}
        same = equivalent_versions(writer, known, item.forms, admission.edges) if says_so else ()
        new, mask = self._new_version(writer, acting, draft, admission, old.wall, known=known, same_as=same)
        decision = self._enforcement.write(
            acting, new, admission, now_us=writer.now_us, names=writer.names, mask=mask, old=old,
            protection=protection_of(writer.states, writer.graph(), known),
        )  # fmt: skip
        return self._write(writer, new, item, decision, mask)

    def _write(self, writer: Writer, new: NewVersion, item: Prepared, decision: Decision, mask: bytes) -> Written:
        held = decision.obliges(ObligationKind.QUARANTINE)
        if held is not None:
            reason = next((text for text in decision.reasons if text.startswith(held.rule)), held.rule)
            new = msgspec.structs.replace(new, quarantine=reason)
        n = writer.write_version(new, item.draft.form, item.vector, item.terms, mask)
        if item.said:
            entered(writer, self._core, self._enforcement, n, new, item.checks, item.said)
        if decision.deferred:
            self._core.later.written(writer, n, decision)
        return Written(n, new, writer.numbers.seq)

    def _new_version(
        self,
        writer: Writer,
        acting: Acting,
        draft: Draft,
        admission: Admission,
        wall: Wall,
        *,
        known: Known | None = None,
        same_as: tuple[Said, ...] = (),
    ) -> tuple[NewVersion, bytes]:
        """What is to be written, and which rules can matter for it."""
        new = NewVersion(
            unit=None if known is None else known.unit,
            id=self._core.new_id(writer.now_us) if known is None else _id_of(writer, known),
            version=1 if known is None else known.latest + 1,
            wall=wall,
            content=draft.content,
            kind=draft.kind or "fact",
            tags=draft.tags or (),
            subject=draft.subject,
            key=draft.key,
            creator=draft.creator,
            actor=acting.actor,
            competes=all(edge.role != Role.SHARED for edge in admission.edges),
            owner=draft.owner or _owner(acting, draft),
            creator_id=draft.creator_id,
            ts_us=draft.ts_us,
            ts_offset=draft.ts_offset,
            confidence=draft.confidence,
            pinned=bool(draft.pinned),
            metadata=draft.metadata or {},
            expires_us=draft.expires_us,
            valid_to_us=draft.valid_to_us,
            valid_until=_first(draft.expires_us, draft.valid_to_us),
            context=draft.context_hash,
            context_body=draft.context,
            recipe=draft.recipe,
            reasserts=admission.reasserts,
            retry=_retry_key(acting, draft),
            edges=admission.edges,
            same_as=same_as,
            integrity=int(admission.integrity),
        )
        generation = self._core.generation
        facts = Facts(unit=new_facts(new, writer.now_us), now_us=writer.now_us)
        mask = generation.form.mask(facts.unit)
        ages = generation.ages.among(mask)
        if ages:
            by_policy = valid_until(generation.policies, facts, ages)
            new = msgspec.structs.replace(new, valid_until=_first(new.valid_until, by_policy))
        return new, mask


def _first(*limits: int | None) -> int | None:
    """The instant at which a version counts as expired, by its own word or by policy."""
    return min((limit for limit in limits if limit is not None), default=None)


def _owner(acting: Acting, draft: Draft) -> str:
    """Who is told when it falls: the user who said it, else the scope's user, else its agent."""
    if kind_of(draft.creator) == "user":
        return draft.creator
    return f"user:{acting.scope.user}" if acting.scope.user is not None else f"agent:{acting.scope.agent}"


def _refuse_reserved(*kinds: str | None) -> None:
    for kind in kinds:
        if kind in RESERVED_KINDS:
            raise InvalidInputError(f"kind={kind!r} is written by act, approve, resolve and reverify only")


def _refuse_takeover(acting: Acting, draft: Draft, owner: str) -> None:
    """An owner decides over a unit, so the model's side cannot name one."""
    if not acting.is_host and draft.owner not in (None, owner):
        raise InvalidInputError(
            f"owner={draft.owner!r}: {acting.actor} cannot choose who owns a unit; ask the host's scope"
        )


def _id_of(writer: Writer, known: Known) -> str:
    return str(writer.connection.execute("SELECT id FROM unit WHERE u = ?", (known.unit,)).get)


def _carry_over(draft: Draft, old: Unit) -> Draft:
    """Labels carry over unless given; lineage never does."""
    if draft.visibility is not None and draft.visibility is not old.visibility:
        raise InvalidInputError(f"visibility of {old.id} is {old.visibility.value!r} and never changes")
    kept: dict[str, Any] = {
        "kind": old.kind,
        "tags": old.tags,
        "subject": old.subject,
        "key": old.key,
        "metadata": old.metadata,
        "owner": old.owner,
        "pinned": old.pinned,
    }
    return msgspec.structs.replace(draft, **{k: v for k, v in kept.items() if getattr(draft, k) is None})


def _retry_key(acting: Acting, draft: Draft) -> str | None:
    """Keys are an actor's own: nobody can use up another's."""
    return None if draft.idempotency_key is None else f"{acting.actor} {draft.idempotency_key}"


def _retried(writer: Writer, acting: Acting, draft: Draft, wall: Wall) -> int | None:
    """The version that this actor wrote under the same idempotency key; other content is a conflict."""
    if draft.idempotency_key is None:
        return None
    row = writer.connection.execute(
        QUERIES["retried"], (writer.names.find_namespace(wall), _retry_key(acting, draft))
    ).get
    if row is None:
        return None
    n, form, creator, unit, version, w = row
    if not acting.scope.sees(writer.names.wall(w)):
        raise ConflictError(f"idempotency_key={draft.idempotency_key!r} was used out of this scope's sight", "")
    if form != draft.form or writer.names.principal(creator) != draft.creator:
        ref = str(Ref(unit, version))
        raise ConflictError(
            f"idempotency_key={draft.idempotency_key!r} was used for other content ({ref}); use a new key", ref
        )
    return int(n)


def follow(acting: Acting, units: Sequence[Unit], written: Sequence[Written]) -> None:
    """After the commit: the model's chain of exposure goes on from what it wrote, and a tool's output joins it."""
    if acting.exposure is None:
        return
    for unit, result in zip(units, written, strict=True):
        if result.fresh and is_model_side(unit.creator):
            acting.exposure.wrote(unit.ref, [edge.parent for edge in unit.lineage.dependencies])
        else:
            acting.exposure.show([unit.ref])


def _units(writer: Writer, written: Sequence[Written], *, anew: bool = False) -> list[Unit]:
    """The units as a reader would find them, made from what was handed in where that is all there is to them: not where
    others of the same batch may support them (`anew`).
    """
    refs = writer.earlier.refs({edge.parent for one in written if one.new is not None for edge in one.new.edges})
    found = {
        one.n: as_written(one.new, one.seq, writer.now_us, refs)
        for one in written
        if one.new is not None and not anew and one.new.reasserts is None and writer.states.code(one.n) == PLAIN
    }
    others = list({one.n for one in written if one.n not in found})
    found |= read_units(writer.connection, writer.names, writer.states, others)
    return [found[one.n] for one in written]
