"""Scenes 6 and 7: the mail is found out, and comes back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

import memlineage as ml
from memlineage.demo.banking import ATTACKER_IBAN, HONEST_IBAN, NEXT_IBAN
from memlineage.demo.poison.clerk import ACCOUNT
from memlineage.demo.poison.stage import PoisonStage, attempts, is_poisoned, went
from memlineage.demo.poison.world import DISPATCH, REMINDER, REWORDED
from memlineage.demo.scene import Check, Line, Scene, Table, Verdict

__all__ = ["it_comes_back", "the_mail_is_found_out"]

T = TypeVar("T")
_FOUND: Final = 5
"""Wrong texts that one question to the flat memory finds: all that it answers with."""


def _down(unit: ml.Unit) -> bool:
    """Out of use for good: wrong, or resting on what is; an old version may be history besides."""
    return unit.status is ml.Status.INVALID or unit.standing is ml.Standing.CONTAMINATED


def _taken(work: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


class _Fall(msgspec.Struct, frozen=True, kw_only=True):
    """What became of everything that was made of the mail, and how long that took.

    Attributes:
        before: how every version stood.
        fell: with the mail, at once.
        seen: what had the mail in view and did not name it: listed by `impact`, taken out on Alice's word.
        bare: what names no source at all: found by asking, taken out on her word.
        done: executed actions that repeated it.
        felling, asking: seconds.
    """

    before: dict[ml.Ref, ml.Status]
    fell: set[ml.Ref]
    seen: list[ml.Unit]
    bare: list[ml.Unit]
    done: list[ml.Affected]
    felling: float
    asking: float


def _felled(stage: PoisonStage, mail: ml.Unit, reason: str) -> _Fall:
    office, before = stage.office, stage.statuses()
    _, felling = _taken(lambda: office.invalidate(mail, by="user:alice", reason=reason))
    fell = {unit.ref for unit in stage.everything() if _down(unit)}
    impact = office.impact(mail)
    seen = [unit for unit in impact.units if unit.active and is_poisoned(unit.content)]
    for unit in seen:
        office.invalidate(unit.ref, by="user:alice", reason=reason)
    bare = [unit for unit in office.retrieve(ACCOUNT, limit=20).units if is_poisoned(unit.content)]
    for unit in bare:
        office.invalidate(unit.ref, by="user:alice", reason=reason)
    _, asking = _taken(lambda: office.retrieve(ACCOUNT, limit=20))
    done = [item for item in impact.actions if item.unit.ref in fell and item.compensation]
    return _Fall(before=before, fell=fell, seen=seen, bare=bare, done=done, felling=felling, asking=asking)


def _cleaned(stage: PoisonStage) -> int:
    """The flat memory gets as much attention: the mail is deleted, and every wrong text of one answer."""
    flat = stage.flat
    flat.memory.drop(REMINDER)
    for item in flat.recall(ACCOUNT):
        if is_poisoned(item.text):
            flat.memory.drop(item.text)
    return sum(is_poisoned(text) for text, _ in flat.memory.said())


def the_mail_is_found_out(stage: PoisonStage) -> Scene:
    """One word of Alice's takes out all that was built on the mail; what hid its sources is found, too."""
    stage.clock.advance(hours=6)
    mail, reason = stage.current("mail 2"), "the stationer never sent it"
    fall = _felled(stage, mail, reason)
    stood = [unit for unit in stage.everything() if unit.ref in fall.before and not _down(unit)]
    served = [unit for unit in stage.office.retrieve(ACCOUNT, limit=20).units if is_poisoned(unit.content)]
    left = _cleaned(stage)
    again = [item for item in stage.flat.recall(ACCOUNT) if is_poisoned(item.text)]
    return Scene(
        number=6,
        title="The mail is found out",
        clock=stage.time,
        lines=(
            Line("Alice", f"That reminder is a fake: {reason}."),
            Line(
                "memory",
                f"{len(fall.fell)} of {len(fall.before)} versions are out of use: it, and all that rests on it.",
            ),
            Line("memory", f"{_names(stage, fall.seen)} had it in view and named other sources: impact lists them."),
            Line(
                "memory", f"{_names(stage, fall.bare)} names no source, so nothing leads there. One question finds it."
            ),
            Line("Alice", "Those, too."),
            Line("memory", f"Done on the strength of it: {_actions(stage, fall)}, which can be discarded. No payment."),
        ),
        blocks=(_by_name(stage, fall.before),),
        facts={
            "fell": len(fall.fell),
            "of": len(fall.before),
            "seen": [stage.name(unit) for unit in fall.seen],
            "bare": [stage.name(unit) for unit in fall.bare],
            "stood": len(stood),
            "served": len(served),
            "actions": [item.unit.metadata["tool"] for item in fall.done],
            "flat_left": left,
        },
        checks=(
            Check("whatever named its sources fell by itself", _had_sources(stage) <= fall.fell),
            Check("what hid them could justify nothing in the meantime", _were_untrusted(fall)),
            Check("now all that names the planted words is out of use", not _standing(stage)),
            Check("nothing else is: her words, the other mail, every payment", _innocent_stand(stage, stood)),
            Check("the one action that repeated it is listed", [i.compensation for i in fall.done] == ["draft_reply"]),
            Check("nothing of it is served", not served),
        ),
        measured={"the fall took": fall.felling, "the next answer": fall.asking},
        verdict=Verdict(
            flat=f"deletes the mail and {_FOUND} more that it is asked for; {left} stay, {len(again)} answer the next",
            here=f"{len(fall.fell)} fall at once, {len(fall.seen) + len(fall.bare)} more are found; 0 are served",
            harmed=bool(again),
        ),
    )


def _names(stage: PoisonStage, units: Sequence[ml.Unit]) -> str:
    return " and ".join(map(stage.name, units)) or "nothing"


def _actions(stage: PoisonStage, fall: _Fall) -> str:
    return _names(stage, [item.unit for item in fall.done])


def _had_sources(stage: PoisonStage) -> set[ml.Ref]:
    """What was made of the mail by an agent that said so."""
    hidden = {"card", "list", "bare"}
    return {unit.ref for unit in stage.poisoned() if unit.kind == "action" or unit.tags[0] not in hidden}


def _were_untrusted(fall: _Fall) -> bool:
    return {unit.integrity for unit in (*fall.seen, *fall.bare)} == {ml.Integrity.UNTRUSTED}


def _standing(stage: PoisonStage) -> list[ml.Unit]:
    return [unit for unit in stage.poisoned() if not _down(unit)]


def _innocent_stand(stage: PoisonStage, stood: Sequence[ml.Unit]) -> bool:
    current = [unit for unit in stood if unit.active]
    payments = [unit for unit in current if unit.kind == "action"]
    said = [unit for unit in current if unit.creator == "user:alice" or unit.content == DISPATCH]
    return len(payments) == 3 and len(said) == 3 and not any(is_poisoned(unit.content) for unit in stood)


def _by_name(stage: PoisonStage, before: Mapping[ml.Ref, ml.Status]) -> Table:
    """What fell, counted by what it is called and how it stood."""
    fell = [unit for unit in stage.everything() if unit.ref in before and _down(unit)]
    counts = Counter((_what(stage, unit), before[unit.ref].value, _now(unit)) for unit in fell)
    rows = tuple((what, str(count), was, now) for (what, was, now), count in counts.items())
    return Table(title="What is out of use now", columns=("what", "versions", "before", "now"), rows=rows)


def _now(unit: ml.Unit) -> str:
    return "invalid" if unit.status is ml.Status.INVALID else "contaminated"


def _what(stage: PoisonStage, unit: ml.Unit) -> str:
    return stage.name(unit).partition("@")[0].rstrip(" 0123456789")


def it_comes_back(stage: PoisonStage) -> Scene:
    """The same words once more, from the agent and from outside; then Alice really changes the account."""
    stage.clock.advance(days=2, hours=18)
    stage.sit("agent:clerk", "next monday")
    note = stage.current("note")
    said = stage.desk.think(note.content, (), "again")
    mailed = stage.desk.hear(note.content, "tool:mail", "mail")
    reworded, copied = stage.clerk.file(REWORDED), stage.twin.file(REWORDED)
    heeded = stage.clerk.obey(reworded)[0]
    for text in (note.content, note.content, stage.twin.obey(copied)[0].text):
        stage.flat.think(text, (), "again")
    first, first_there = stage.clerk.pay(119), stage.twin.pay(119)
    old = stage.current("account")
    moved = f"The stationer is paid to IBAN {NEXT_IBAN}"
    stage.office.update(old, moved, creator="user:alice")
    stage.flat.memory.replace(old.content, moved)
    stage.sit("agent:clerk", "next monday")
    last, last_there = stage.clerk.pay(120), stage.twin.pay(120)
    units = [item.unit for item in (said, mailed, reworded, heeded) if item.unit is not None]
    how = ("the agent, word for word", "a mail, word for word", "a mail, in other words", "the agent, obeying that")
    lost = [iban for tried in (first_there, last_there) for iban, done in attempts(tried) if done]
    return Scene(
        number=7,
        title="It comes back, and Alice changes her mind",
        clock=stage.time,
        lines=(
            Line("agent", "says it again, out of an old log; a second mail repeats it; a third says it differently."),
            Line(
                "memory",
                "Word for word, it is held back: it was found wrong. Reworded, it is as UNTRUSTED as any mail.",
            ),
            Line("Alice", "Invoice 119 is due."),
            Line("agent", f"pays 310 EUR to {went(first)}."),
            Line("Alice", f"The stationer has really moved: {NEXT_IBAN} from now on. Invoice 120, please."),
            Line("agent", f"pays 190 EUR to {went(last)}. Her word holds at once."),
        ),
        blocks=(stage.levels("The same words once more", list(zip(how, units, strict=True))),),
        facts={
            "statuses": [unit.status.value for unit in units],
            "paid": [attempts(first), attempts(last)],
            "flat_paid": [attempts(first_there), attempts(last_there)],
        },
        checks=(
            Check("word for word, it is quarantined", [u.status for u in units[:2]] == [ml.Status.QUARANTINED] * 2),
            Check("reworded, it is UNTRUSTED", {u.integrity for u in units[2:]} == {ml.Integrity.UNTRUSTED}),
            Check("invoice 119 was paid as Alice had said", attempts(first)[-1] == (HONEST_IBAN, True)),
            Check("invoice 120 was paid as she says now", attempts(last)[-1] == (NEXT_IBAN, True)),
            Check("the attacker never got a cent", ATTACKER_IBAN not in dict(stage.desk.outside.bank.sent)),
        ),
        verdict=Verdict(
            flat=f"pays {lost.count(ATTACKER_IBAN)} of 2 invoices to {ATTACKER_IBAN}",
            here="holds it back, and pays both to the account that Alice names",
            harmed=ATTACKER_IBAN in lost,
        ),
    )
