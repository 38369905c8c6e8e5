"""Settling conflicts: by the documented order, or by an answer (semantics.md, section 10; row C5).

An answer is a statement of whoever gives it: a root unit under the same subject and key, dated after all that it is
about. So the documented order itself makes it stand, and whoever takes the answer back (`invalidate`, `retract`) has
the state before it again. Where no key makes statements compete, what loses is retracted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.admission import exposure_edges
from memlineage.engine.conflicts import (
    Clarification,
    Conflict,
    ConflictPage,
    Option,
    Resolution,
    Settled,
    place,
    quoted,
)
from memlineage.engine.conflicts_checked import Check, Checking
from memlineage.engine.conflicts_found import ConflictView, Contest
from memlineage.engine.conflicts_words import both_or_neither, words_of
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.inputs import Draft, Target
from memlineage.engine.results import Withheld
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.writing import Prepared, Writing
from memlineage.errors import ConflictError, InvalidInputError, PolicyViolationError, UnknownUnitError
from memlineage.lineage.escape import plain, shorten
from memlineage.lineage.integrity import written_integrity
from memlineage.model.content import check_text, normal_form
from memlineage.model.principal import authority
from memlineage.model.scope import Visibility
from memlineage.model.state import CauseKind
from memlineage.model.unit import Unit
from memlineage.store.writer import Writer

__all__ = ["Disputes", "Given"]

Given = Conflict | Clarification | Target
"""What is to be settled: as it was shown, or by one of the units in it."""
Drafting = Callable[[Acting, str, Mapping[str, Any]], Draft]

_BATCH: Final = 200
_RECORD: Final = "resolution"
_QUOTE: Final = 80
_MANY: Final = 10**9
"""More than there are options, ever."""


class _Answer(msgspec.Struct, frozen=True):
    """What somebody answered, as it applies to what stands.

    Attributes:
        how: which sort of answer.
        option: the option chosen, if one was.
        text: what holds; None for `both` and `neither`.
    """

    how: Settled
    option: Option | None = None
    text: str | None = None


class _Case(msgspec.Struct, frozen=True):
    """A conflict as it stands now, and where it comes from."""

    view: ConflictView
    contest: Contest
    conflict: Conflict

    @property
    def options(self) -> tuple[Option, ...]:
        """What may hold."""
        return self.view.options(self.contest, self.conflict)

    @property
    def asked(self) -> tuple[Unit, ...]:
        """The winner, and what is in dispute with it."""
        return (self.conflict.winner, *(self.conflict.disputed or self.conflict.losers))


class Disputes:
    """Finds conflicts and settles them."""

    def __init__(self, core: Core, enforcement: Enforcement, writing: Writing, drafting: Drafting) -> None:
        self._core = core
        self._enforcement = enforcement
        self._writing = writing
        self._drafting = drafting
        self.checking = Checking(core, enforcement)

    # Finding -------------------------------------------------------------------------------------------------------

    def find(
        self,
        acting: Acting,
        *,
        subject: str | None,
        key: str | None,
        check: Check | None,
        flagged: bool | None,
        limit: int,
    ) -> tuple[ConflictPage, tuple[Unit, ...]]:
        """Conflicts, and what a check of the caller's own was shown besides."""
        asks = key is None and (check is not None or self.checking.registered)
        pairs = self.checking.pairs(acting, subject, check) if asks else None
        held: list[Withheld] = []
        with self._core.read() as snapshot:
            view = ConflictView(self._enforcement, acting, snapshot)
            groups = view.groups(subject, key)
            contests = [
                contest
                for start in range(0, len(groups), _BATCH)
                for contest in view.contests(groups[start : start + _BATCH])
            ]
            for one in () if pairs is None else pairs.found:
                contest = self._pair(view, snapshot, one.a, one.b, one.reason)
                contests += [] if contest is None else [contest]
            found: list[Conflict] = []
            for contest in sorted(contests, key=lambda contest: contest.order):
                if flagged and not contest.disputed:
                    continue
                conflict = view.conflict(contest, held)
                if conflict is not None and flagged in (None, conflict.flagged):
                    found.append(conflict)
                if len(found) == limit:
                    break
        return (
            ConflictPage(found, tuple(held), 0 if pairs is None else pairs.unasked),
            () if pairs is None else pairs.shown,
        )

    def _pair(self, view: ConflictView, snapshot: Snapshot, a: int, b: int, reason: str) -> Contest | None:
        """Two contradicting statements, while both may be relied on and nobody said that both hold."""
        nodes = snapshot.graph.load([a, b])
        down = any(not nodes[n].current or nodes[n].winner for n in (a, b)) or not view.standing([a, b])
        if down or view.both_hold([a, b]):
            return None
        return view.pair(a, b, reason)

    def _case(self, acting: Acting, snapshot: Snapshot, given: Given) -> _Case | None:
        """What stands now of a conflict; None if it is none any more, or none for this reader."""
        view = ConflictView(self._enforcement, acting, snapshot)
        if isinstance(given, Target):
            n = snapshot.resolve(acting.scope, given).n
            view.require(n)
            group = view.group_of(n)
            if not group:
                raise InvalidInputError(
                    f"{given.id} competes for no key: give a conflict that conflicts() found, as it is"
                )
            contests = view.contests([group])
        else:
            contests = self._contests(acting, view, snapshot, given)
        conflict = view.conflict(contests[0], []) if contests else None
        return None if conflict is None else _Case(view, contests[0], conflict)

    def _contests(
        self, acting: Acting, view: ConflictView, snapshot: Snapshot, given: Conflict | Clarification
    ) -> list[Contest]:  # fmt: skip
        shown = given.conflict if isinstance(given, Clarification) else given
        try:
            a, b = (snapshot.resolve(acting.scope, Target(*unit.ref)).n for unit in shown.units[:2])
        except UnknownUnitError:  # another scope's, or a share that was revoked since
            raise InvalidInputError("this conflict is not one of this scope: ask it for its own conflicts()") from None
        if shown.reason is None:
            group = view.group_of(a)
            return view.contests([group] if group else [])
        contest = self._pair(view, snapshot, a, b, shown.reason)
        return [] if contest is None else [contest]

    # Settling ------------------------------------------------------------------------------------------------------

    def resolve(
        self,
        acting: Acting,
        given: Given,
        answer: object,
        *,
        content: str | None,
        by: str | None,
        reason: str | None,
        lang: str,
    ) -> Resolution | Clarification:
        """Settle it, or ask."""
        words = words_of(lang)
        if answer is not None and content is not None:
            raise InvalidInputError("give an answer or content, not both")
        text = None if content is None else check_text(content, name="content")
        asks = answer is None and text is None
        principal = acting.decider(by)
        said = None if reason is None else check_text(reason, name="reason", limit=10_000)
        with self._core.read() as snapshot:
            case = self._case(acting, snapshot, given)
            if asks and case is None:
                stands = self._standing(acting, snapshot, given)
                return Resolution(how=Settled.NOTHING, unit=stands, why=words.settled["nothing"])
            case = _unchanged(case, None if asks else given)
            if asks:
                told = case.conflict.explain(lang)
                if case.conflict.flagged:
                    question = _question(case.conflict, lang)
                    return Clarification(question=question, options=case.options, conflict=case.conflict, lang=lang)
                if case.conflict.keyed:
                    return Resolution(how=Settled.ORDER, unit=case.conflict.winner, why=told, conflict=case.conflict)
            if text is not None:
                chosen: _Answer | None = _read_text(text, case.options)
            else:
                chosen = None if asks else _read_answer(answer, case.options)
            words_said = self._words(acting, case, chosen, principal, said)
            mark = case.conflict.mark
        return self._settle(acting, given, chosen, mark, words_said, principal, said, lang)

    def _standing(self, acting: Acting, snapshot: Snapshot, given: Given) -> Unit | None:
        """What stands where nothing is in conflict."""
        target = given if isinstance(given, Target) else None
        shown = given.conflict if isinstance(given, Clarification) else given
        if target is None:
            assert isinstance(shown, Conflict)
            target = Target(*shown.winner.ref)
        view = ConflictView(self._enforcement, acting, snapshot)
        n = snapshot.resolve(acting.scope, target).n
        group = view.group_of(n)
        best = view.holder(group) if group else n
        return None if best is None else view.readable(best)

    def _words(
        self, acting: Acting, case: _Case, answer: _Answer | None, principal: str, reason: str | None
    ) -> Prepared | None:
        """The unit that an answer becomes, with all that is slow about it done; None where it becomes none."""
        if answer is None or (answer.how is Settled.CHOSEN and not case.conflict.keyed):
            return None
        like = answer.option.unit if answer.option is not None else case.conflict.winner
        options: dict[str, Any] = {"creator": principal, "visibility": like.visibility.value}
        if answer.text is not None:
            options |= {"kind": like.kind, "tags": like.tags, "subject": like.subject, "metadata": like.metadata}
            options |= {"key": like.key} if case.conflict.keyed else {}
            text = answer.text
        else:
            refs = [ref for option in case.options for ref in option.refs]
            # It quotes them: rules about what they are about and how they are labelled hold for it as well.
            tags = tuple(dict.fromkeys(tag for option in case.options for tag in option.unit.tags))
            visibility = _narrowest(case.options)
            options |= {"kind": _RECORD, "creator_id": answer.how.value, "depends_on": refs}
            options |= {"tags": tags, "subject": case.conflict.subject, "visibility": visibility.value}
            text = _record_of(answer.how, _quotes(case.options, visibility), reason)
        draft = self._drafting(acting, text, options)
        latest = max(claim.timestamp for claim in case.contest.claims)
        draft = msgspec.structs.replace(draft, ts_us=max(draft.ts_us, latest + 1))
        [prepared] = self._writing.prepare([draft])
        return prepared

    def _settle(
        self,
        acting: Acting,
        given: Given,
        answer: _Answer | None,
        mark: str,
        words_said: Prepared | None,
        principal: str,
        reason: str | None,
        lang: str,
    ) -> Resolution:
        """One transaction: what stood is still what stands, it is permitted, and it is written."""
        with self._core.write(actor=acting.actor) as writer:
            case = _unchanged(self._case(acting, self._core.seen_by(writer), given), mark)
            for unit in case.asked:
                self._permit(writer, acting, "resolve", unit, principal)
            if answer is not None:
                self._refuse_the_lesser(writer, acting, case, words_said, principal)
            losers = self._losers(case, answer)
            for n, unit in losers.items():
                self._permit(writer, acting, "retract", unit, principal)
                told = _why_retracted(case.conflict, answer, principal, reason)
                writer.add_cause(n, CauseKind.RETRACTED, by=principal, reason=told)
            written = None
            if words_said is not None:
                written = self._writing.store_one(writer, acting, words_said, reserved=True).n
            writer.settle()
            after = self._core.seen_by(writer)
            if written is not None and answer is not None and answer.text is not None:
                self._require_standing(writer, acting, after, case, written)
            kept = None if written is None else after.unit(written)
            stands = self._stands(acting, after, case, answer, kept)
            retracted = tuple(loser.ref for loser in losers.values())
        return Resolution(
            how=Settled.ORDER if answer is None else answer.how,
            unit=stands,
            answer=kept,
            retracted=retracted,
            by=principal,
            why=_told(case.conflict, answer, principal, lang),
            conflict=case.conflict,
        )

    def _permit(self, writer: Writer, acting: Acting, verb: str, unit: Unit, principal: str) -> None:
        self._enforcement.act_on(verb, acting, unit, by=principal, now_us=writer.now_us, names=writer.names)

    def _losers(self, case: _Case, answer: _Answer | None) -> dict[int, Unit]:
        """What is no longer claimed, by integer id."""
        every = case.view.candidates(case.contest)
        if answer is not None and answer.how is Settled.NEITHER:
            return every
        if case.conflict.keyed or (answer is not None and answer.how is Settled.BOTH):
            return {}
        kept = case.conflict.winner if answer is None else None if answer.option is None else answer.option.unit
        return {n: unit for n, unit in every.items() if kept is None or unit.ref != kept.ref}

    def _refuse_the_lesser(
        self, writer: Writer, acting: Acting, case: _Case, words_said: Prepared | None, principal: str
    ) -> None:
        """Nobody settles what ranks above his own word: that would be a way around the documented order."""
        edges = () if words_said is None else exposure_edges(writer, acting, words_said.draft, ())
        inputs = writer.earlier.levels({edge.parent for edge in edges})
        mine = written_integrity(
            principal, writer.names.level_of(principal), writer.names.level_of(acting.actor),
            [(inputs[edge.parent], edge.role) for edge in edges],
        )  # fmt: skip
        best = case.contest.winner
        if (mine, authority(principal, mine)) < (best.integrity, best.authority):
            why = f"{case.conflict.winner.creator} said {case.conflict.winner.ref.short}, and ranks above {principal}"
            decision = self._enforcement.refuse("resolve", case.conflict.winner, writer.now_us, why)
            raise PolicyViolationError(decision, f"{decision}; let somebody answer whose word ranks no lower")

    def _require_standing(
        self, writer: Writer, acting: Acting, after: Snapshot, case: _Case, written: int
    ) -> None:  # fmt: skip
        """An answer that does not come to stand (policy holds it back, say) is no answer: nothing is written."""
        view = ConflictView(self._enforcement, acting, after)
        group = view.group_of(written)
        node = after.graph.node(written)
        if node.own or (case.conflict.keyed and view.holder(group) != written):
            why = "the answer would not stand: policy holds it back, or something else ranks above it"
            decision = self._enforcement.refuse("resolve", case.conflict.winner, writer.now_us, why)
            raise PolicyViolationError(decision, str(decision))

    def _stands(
        self, acting: Acting, after: Snapshot, case: _Case, answer: _Answer | None, unit: Unit | None
    ) -> Unit | None:
        if answer is not None and answer.how is Settled.NEITHER:
            return None
        if answer is not None and answer.text is not None and unit is not None:
            return unit
        kept = answer.option.unit if answer is not None and answer.option is not None else case.conflict.winner
        return after.unit(after.resolve(acting.scope, Target(*kept.ref)).n)


def _unchanged(case: _Case | None, given: Given | str | None) -> _Case:
    """The case, if it is what was asked about."""
    mark = given if isinstance(given, str) else None if given is None or isinstance(given, Target) else given.mark
    if case is None:
        raise ConflictError("nothing is in conflict here any more: what was asked about has changed; look again", "")
    if mark is not None and mark != case.conflict.mark:
        winner = case.conflict.winner
        raise ConflictError(
            f"what stands has changed since this was asked: now it is {winner.ref} {quoted(winner.content, 60)}; ask "
            "again",
            str(winner.ref),
        )
    return case


def _read_answer(answer: object, options: Sequence[Option]) -> _Answer:
    """An answer as it was given: a number, a unit or ref, `both`, `neither`, or what holds instead."""
    if isinstance(answer, bool) or not isinstance(answer, int | str | tuple | Unit):
        raise InvalidInputError(f"answer={answer!r:.80} is no number, unit, ref or text")
    if isinstance(answer, int):
        return _numbered(answer, str(answer) if abs(answer) < _MANY else "a number so far out", options)
    if isinstance(answer, str):
        said = normal_form(check_text(answer, name="answer"))
        if said.isdecimal():
            return _numbered(int(said[-9:]) if not said[:-9].strip("0") else _MANY, said, options)
        short = both_or_neither(answer)
        if short is not None:
            return _Answer(Settled(short))
    named = answer.ref if isinstance(answer, Unit) else answer
    for option in options:
        if any(named in (ref, str(ref), ref.id) for ref in option.refs):
            return _chosen(option)
    if not isinstance(answer, str):
        raise InvalidInputError(f"answer={named!s:.80} is not among the options; name one of them, or say what holds")
    return _read_text(check_text(answer, name="answer"), options)


def _numbered(number: int, said: str, options: Sequence[Option]) -> _Answer:
    """The option of a number. One that is not on offer is a slip, not what holds."""
    if not 1 <= number <= len(options):
        raise InvalidInputError(
            f"answer={shorten(said, 20)} is not among the options 1 to {len(options)}; where a number itself is what "
            "holds, say it with content="
        )
    return _chosen(options[number - 1])


def _read_text(text: str, options: Sequence[Option]) -> _Answer:
    """What holds, in words: those of an option choose it."""
    for option in options:
        if normal_form(option.content) == normal_form(text):
            return _chosen(option)
    return _Answer(Settled.STATED, None, text)


def _chosen(option: Option) -> _Answer:
    return _Answer(Settled.CHOSEN, option, option.content)


def _question(conflict: Conflict, lang: str) -> str:
    words = words_of(lang)
    if conflict.keyed:
        asked = words.question.format(place=place(conflict.subject, conflict.key))
    else:
        asked = words.contradiction.format(
            winner=quoted(conflict.winner.content), loser=quoted(conflict.losers[0].content),
            reason=shorten(str(conflict.reason)),
        )  # fmt: skip
    return f"{asked} {conflict.explain(lang)}"


def _narrowest(options: Sequence[Option]) -> Visibility:
    """Who may see what quotes all of them."""
    seen = {option.unit.visibility for option in options}
    return next((one for one in (Visibility.SESSION, Visibility.AGENT) if one in seen), Visibility.USER)


def _quotes(options: Sequence[Option], visibility: Visibility) -> list[str]:
    """What each says, shortened, where whoever sees the quote may see it: a session has other agents in it."""
    open_to = (Visibility.USER, visibility)
    return [quoted(one.content, _QUOTE) if one.unit.visibility in open_to else "“…”" for one in options]


def _record_of(how: Settled, said: Sequence[str], reason: str | None) -> str:
    told = f"{how.value.capitalize()} of these hold{'s' if how is Settled.NEITHER else ''}: {', '.join(said)}"
    return told if reason is None else f"{told}. {reason}"


def _why_retracted(conflict: Conflict, answer: _Answer | None, principal: str, reason: str | None) -> str:
    """The reason kept with a cause: who decided, and for what."""
    if answer is None:
        told = f"contradicts {conflict.winner.ref}, which stands by {conflict.criterion.value}"
    elif answer.option is not None:
        told = f"contradicts {answer.option.unit.ref}, which holds according to {principal}"
    else:
        told = f"does not hold according to {principal}"
    return told if reason is None else f"{told}: {reason}"[:10_000]


def _told(conflict: Conflict, answer: _Answer | None, principal: str, lang: str) -> str:
    words = words_of(lang)
    if answer is None:
        return conflict.explain(lang)
    name = "both keyed" if answer.how is Settled.BOTH and conflict.keyed else answer.how.value
    return words.settled[name].format(by=plain(principal))
