"""`Memory`: one open store with its policy, tools and embedder. Scopes come from here; so do the operator's verbs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from memlineage.engine.acting import Acting
from memlineage.engine.backup import Backup, back_up
from memlineage.engine.checkpoints import Checkpoints
from memlineage.engine.checks import check_count, check_seconds
from memlineage.engine.core import SEARCH_MEMORY, Clock, Core
from memlineage.engine.decision_explanation import DecisionExplanation
from memlineage.engine.decision_logging import DecisionLogging
from memlineage.engine.decisions import Wanted, read_decisions
from memlineage.engine.inputs import Limits, parse_target
from memlineage.engine.keyring import Keyring, KeySource, keyring_of
from memlineage.engine.ledger import Against
from memlineage.engine.opening import (
    admit_policy,
    check_embedder,
    kept_embedder,
    kept_policy,
    policy_of,
    reembed,
)
from memlineage.engine.parts import Parts
from memlineage.engine.reloading import PolicyStatus, Reloading
from memlineage.engine.reports import RebuildReport, VerifyReport, Watcher
from memlineage.engine.results import CaughtUp, Consequences
from memlineage.engine.scope import Scope
from memlineage.engine.sources import Sources
from memlineage.engine.tools import Refresh, Tool
from memlineage.engine.verbs.checks import CheckVerbs
from memlineage.engine.verbs.contradictions import ContradictionVerbs
from memlineage.engine.verbs.owners import OwnerVerbs
from memlineage.engine.verbs.past import PastVerbs
from memlineage.engine.watching import OnReload, Watch
from memlineage.ledger.checkpoint import Checkpoint
from memlineage.ledger.proof import Proof
from memlineage.lineage.credibility import ConfidenceModel
from memlineage.model.content import check_name
from memlineage.model.ids import Ref
from memlineage.model.principal import Integrity, parse_principal
from memlineage.model.scope import Scope as Walls
from memlineage.model.unit import Unit
from memlineage.policy import Decision, Document, PolicySet
from memlineage.recall.embedders import by_name, default_embedder
from memlineage.recall.embedding import Embedder
from memlineage.store.database import MEMORY, Database, closed_on_failure

__all__ = ["Memory"]


class Memory(CheckVerbs, ContradictionVerbs, OwnerVerbs, PastVerbs):
    """A memory that knows its lineage and enforces it. Thread-safe; many processes may open the same file."""

    def __init__(self, core: Core, keyring: Keyring, sources: Sources, *, background: bool) -> None:
        self._core = core
        self._reloading = Reloading(core, sources)
        self._parts = Parts(core)
        self._keyring = keyring
        self._signed = Checkpoints(core, keyring)
        if background:
            self._parts.afterwards.start()
            self._parts.owners.start()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] = MEMORY,
        *,
        policies: Iterable[str | os.PathLike[str] | Mapping[str, Any] | Document] | PolicySet | None = None,
        default_policies: bool = True,
        embedder: Embedder | str | None = None,
        clock: Clock | None = None,
        durability: str = "full",
        limits: Limits | None = None,
        vfs: str | None = None,
        signing_key: KeySource | None = None,
        search_memory: int = SEARCH_MEMORY,
        background: bool = True,
        decision_log: DecisionLogging | None = None,
        confidence_model: ConfidenceModel | None = None,
    ) -> Memory:
        """Open a store, or create it.

        Args:
            path: a SQLite file, or `:memory:`.
            policies: files, folders, mappings or documents, on top of the default set; or a whole `PolicySet`. Left
                out, what the file was last filled under stays in force; `[]` means the default set alone.
            default_policies: leave the default set out only if yours replaces it: an empty set refuses everything.
            embedder: one, or its name. Left out, the file's own; in a new file `wordllama` if installed, else lexical.
            clock: returns the present as an aware datetime; the system's if left out.
            durability: `full` survives power loss at every commit; `normal` may lose the last ones, never consistency.
            limits: quotas.
            vfs: a registered SQLite VFS, for tests of storage faults.
            signing_key: a file (Ed25519, PEM), its text or 32-byte seed; `<path>.key`, made at need, if left out.
            search_memory: bytes for what searches keep in memory (512 MB), the latest users' and agents' longest.
            background: let a thread judge what rules in async mode put off; else that is done by `catch_up`.
            decision_log: what is logged of decisions, what is kept back from the log, and how many are kept.
            confidence_model: how far creators are believed by default, and how that fades; for `credibility`.

        Raises:
            InvalidInputError: `search_memory` is no number of bytes.
            PolicyDocumentError: with all faults of all documents.
            StoreError: the file cannot be opened, is no store, or has another embedder's vectors.
        """
        sources = Sources.of(policies, defaults=default_policies)
        documents = None if sources.items is None else sources.read()
        named = by_name(embedder) if isinstance(embedder, str) else embedder
        keyring = keyring_of(signing_key, os.fspath(path))
        database = Database(os.fspath(path), durability=durability, vfs=vfs)
        with closed_on_failure(database):
            core = Core(
                database,
                policies=documents or kept_policy(database) or policy_of((), defaults=default_policies),
                embedder=named or kept_embedder(database) or default_embedder(),
                limits=limits or Limits(),
                clock=clock,
                search_memory=check_count(search_memory, name="search_memory", least=0),
                decision_log=decision_log,
                confidence_model=confidence_model,
            )
            check_embedder(core)
            admit_policy(core)
        return cls(core, keyring, sources, background=background)

    def scope(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        tenant: str = "default",
        domain: str | None = None,
    ) -> Scope:
        """A scope of the host program. `domain` chooses which domain's policy documents apply; left out, all of them
        restrict. Raises `ScopeRequiredError` without a user or an agent.
        """
        walls = Walls.make(tenant=tenant, user=user, agent=agent, session=session)
        named = None if domain is None else check_name(domain, name="domain")
        return Scope(self._parts, Acting(scope=walls, domain=named))

    # The operator's verbs --------------------------------------------------------------------------------------

    def register(self, principal: str, *, level: str | Integrity | None = None, verifier: bool | None = None) -> None:
        """Set the level of a principal (UNTRUSTED, INTERNAL, TRUSTED), or let it verify. Everything that was written
        from its words follows at once.
        """
        name = parse_principal(principal, name="principal")
        chosen = None if level is None else int(self._parts.level(level))
        with self._core.write() as writer:
            writer.register_principal(name, chosen, verifier)

    def register_tool(
        self,
        name: str,
        run: Callable[..., Any] | None = None,
        *,
        integrity: str | Integrity | None = None,
        refresh: Refresh | None = None,
        cost: float = 0.0,
        backup: str | None = None,
        compensate: Callable[..., Any] | None = None,
    ) -> None:
        """Make a tool known: how `act` runs it, how its values are refreshed, what that costs, what stands in for
        it, how an action of it is compensated. A tool that reads open content is `integrity="UNTRUSTED"`.
        """
        plain = check_name(name, name="name").removeprefix("tool:")
        level = None if integrity is None else self._parts.level(integrity)
        self._core.tools.add(
            Tool(name=plain, run=run, refresh=refresh, cost=cost, backup=backup, compensate=compensate)
        )
        if level is not None:
            with self._core.read() as snapshot:
                known = snapshot.names.level_of(f"tool:{plain}")
            if known != level:
                self.register(f"tool:{plain}", level=level)

    def register_comparer(self, kind: str, same: Callable[[str, str], bool]) -> None:
        """How two contents of a kind are found to say the same (early cutoff); asked once per distinct earlier form."""
        self._core.comparers[check_name(kind, name="kind")] = same

    def distrust(
        self,
        principal: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        reason: str | None = None,
    ) -> list[Consequences]:
        """Invalidate everything that a principal said in a span of time, in one transaction."""
        name = parse_principal(principal, name="principal")
        return self._parts.consequences.distrust(name, since=since, until=until, reason=reason)

    def catch_up(self, limit: int | None = None) -> CaughtUp:
        """Let rules in async mode judge, now, what they put off: what a memory opened with `background=False`, or a
        process that ended, left waiting. Any process may do it, while others read and write.

        Args:
            limit: most answers to look at again; all that wait if left out.
        """
        most = None if limit is None else check_count(limit, name="limit", least=1)
        return self._parts.afterwards.catch_up(most)

    def decisions(
        self,
        *,
        limit: int = 100,
        action: str | None = None,
        effect: str | None = None,
        unit: Unit | Ref | str | None = None,
        since: datetime | None = None,
    ) -> list[dict[str, Any]]:
        """The latest decisions that were logged, newest first.

        Args:
            limit: most of them.
            action: of this request only: `read`, `write`, `update`, `act`, …
            effect: with this effect only: `allow`, `flag`, `ask`, `withhold`, `deny`.
            unit: about this unit, or with a ref about that version of it.
            since: made at this instant or later.
        """
        wanted = Wanted.of(limit=limit, action=action, effect=effect, unit=unit, since=since)
        self._write_log()
        with self._core.database.reading() as connection:
            return read_decisions(connection, wanted)

    def explain_decision(self, decision: Decision | str, *, lang: str = "en") -> DecisionExplanation:
        """Why something was decided as it was, in English or Chinese: the rules that fired and where they are written,
        what they obliged to and what came of it, and, under the policy that decided, what would have to be otherwise.

        Args:
            decision: one that is logged, or a read that was not and was among the last 2,000 of this memory: itself,
                its id, or the last digits of that.
            lang: `en` or `zh`; what documents say stays in their own words.

        Raises:
            UnknownUnitError: no such decision is logged or remembered.
            InvalidInputError: the digits end several ids.
        """
        named = decision.id if isinstance(decision, Decision) else decision
        return self._parts.explaining.decision(named, lang)

    def _write_log(self) -> None:
        if self._core.log.waiting:
            self._core.write_log()

    # Policy ----------------------------------------------------------------------------------------------------

    def reload(
        self,
        policies: Iterable[str | os.PathLike[str] | Mapping[str, Any] | Document] | PolicySet | None = None,
    ) -> PolicySet:
        """Read policy documents again and take them into force, whole or not at all, while others read and write: no
        operation sees half of one generation and half of another. Every process that has the file open goes by the
        new one from its next operation on.

        Args:
            policies: as for `open`; what is read by later reloads too. Left out, what the memory was opened with is
                read again.

        Raises:
            PolicyDocumentError: with all faults; the generation in force stays in force.
            StoreError: it could not be written down; likewise.
            InvalidInputError: the memory was opened without documents, so there is nothing to read again.
        """
        return self._reloading.reload(policies)

    def watch(self, interval: float = 1.0, on_reload: OnReload | None = None) -> Watch:
        """Look at the policy files from time to time, new ones in folders included, and reload what has changed once
        it has stayed the same for one interval: a file that is being written takes no force by halves.

        Args:
            interval: between two looks, in seconds.
            on_reload: told how things stand after each reload, in a thread of the watch.

        Raises:
            InvalidInputError: the memory was opened without policy files.
        """
        return Watch(self._reloading, check_seconds(interval, name="interval"), on_reload).start()

    def policy_status(self) -> PolicyStatus:
        """Which generation is in force, since when, where it is read from, and why the last reload failed if it did."""
        return self._reloading.status()

    def reembed(self) -> int:
        """Compute every vector anew with this memory's embedder; returns how many."""
        count = reembed(self._core)
        self._parts.retrieval.forget_vectors()
        return count

    def checkpoint(self, witness: str | os.PathLike[str] | None = None) -> Checkpoint:
        """Sign what the ledger holds now: how many events, and the root of the Merkle tree over them (semantics.md,
        section 7). The same checkpoint again if nothing was added since. The first makes the key, if none was given.

        Args:
            witness: a file, best on another machine, that gets the signed note. It is what a rewritten history shows
                against, even one that was signed with the stolen key.

        Raises:
            LedgerError: the key cannot be used; or the ledger does not lead on from what was signed before, here or in
                the witness: then nothing is signed.
        """
        return self._signed.checkpoint(witness)

    def rotate_key(self, signing_key: KeySource | None = None) -> Checkpoint:
        """Put another key into force. Both keys sign the checkpoint that says so; the old one signs nothing after it.

        Args:
            signing_key: the new key, as for `open`. Left out, one is made where the old one lies.

        Raises:
            LedgerError: there is no key yet, the old one is not to be had, or the new one was in force before.
        """
        return self._signed.rotate(signing_key)

    def prove(self, unit: Unit | Ref | str) -> Proof:
        """The proof that a version was written and what it said, for `verify_proof`: under the latest checkpoint, or
        under a new one if that does not cover it. Of something erased it proves that it was written, not what it said.

        Raises:
            UnknownUnitError: there is no such version.
            LedgerError: the ledger is damaged: a proof from it would fail.
        """
        return self._signed.prove(parse_target(unit, pinned=True))

    def verify(
        self, against: Against | None = None, *, vectors: bool = True, progress: Watcher | None = None
    ) -> VerifyReport:
        """Hold every row against the ledger, the ledger against what was signed, and what is derived against the rules
        (semantics.md, section 7): in one snapshot, as a stream, while others read and write.

        Args:
            against: a checkpoint, the text of its note, or a witness file that was kept elsewhere: it shows a history
                that was cut short or rewritten, even by whoever has the key.
            vectors: leave out to spare computing every vector anew, which takes most of the time.
            progress: is told what is being checked, how much of it is done, and how much there is.

        Raises:
            LedgerError: what is given as `against` cannot be read, or holds no checkpoint.
        """
        from memlineage.engine.verification import verify  # numpy, which opening a store does without

        return verify(self._core, against=against, vectors=vectors, progress=progress)

    def rebuild(self, *, vectors: bool = True, progress: Watcher | None = None) -> RebuildReport:
        """Write anew whatever is not what events and values give, in one transaction: rows that events determine, and
        all that is derived. Values (contents, names, reasons and their salts) are checked first, and nothing is
        invented in place of one.

        Args:
            vectors: leave out to take the vectors as they are.
            progress: as for `verify`.

        Raises:
            LedgerError: the ledger or a value does not fit; it names the first entry. Nothing was written.
        """
        from memlineage.engine.rebuilding import rebuild

        report = rebuild(self._core, vectors=vectors, progress=progress)
        self._parts.retrieval.forget_vectors()
        return report

    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        with_key: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Backup:
        """Copy the store to a file, as it is at one moment, while everybody goes on reading and writing. The file has
        its name only when all of it is on disk and has been read back; open it like any other.

        Args:
            path: a file that is not there yet.
            overwrite: replace one that is.
            with_key: copy the signing key as well, to `<path>.key`. Whoever has both can sign another history, so it
                is left out unless asked for; without it the copy can be verified, but signs nothing new.
            progress: called with the bytes copied and their number in all.

        Raises:
            InvalidInputError: the path is not one to write to; nothing was written.
            StoreError: there is no room, or the copy is not what was copied; nothing is left of it.
            LedgerError: the key is not in a file that could be copied.
        """
        return back_up(
            self._core.database, self._keyring, path, overwrite=overwrite, with_key=with_key, progress=progress
        )

    @property
    def policies(self) -> PolicySet:
        """The generation that was in force when this memory last read or wrote; `policy_status` asks the file."""
        return self._core.policies

    @property
    def embedder(self) -> Embedder:
        """What turns text into vectors here."""
        return self._core.embedder

    @property
    def path(self) -> str:
        """The file, or `:memory:`."""
        return self._core.database.path

    def close(self) -> None:
        """Close the store; decisions that still wait are written first. Several threads may close it at once."""
        try:
            for watch in tuple(self._reloading.watches):
                watch.stop()
            if not self._core.database.inherited:
                self._parts.afterwards.stop()
                self._parts.owners.stop()
            if self._core.log.waiting and not self._core.database.inherited:
                self._core.write_last_log()
        finally:
            self._parts.close()
            self._core.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Memory {self.path!r}, {self.embedder.name}, {self.policies!r}>"
