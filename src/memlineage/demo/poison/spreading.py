"""Scenes 3 and 4: the false fact is rewritten until nobody sees the mail in it, and repeated by other agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import memlineage as ml
from memlineage.demo.banking import ATTACKER_IBAN
from memlineage.demo.poison.clerk import ACCOUNT
from memlineage.demo.poison.stage import PoisonStage, is_poisoned
from memlineage.demo.scene import Check, Excerpt, Line, Scene, Verdict

__all__ = ["it_is_repeated", "it_is_rewritten"]

_WORDINGS: Final = (
    f"The stationer: invoices go to {ATTACKER_IBAN}",
    f"Stationer, account {ATTACKER_IBAN}",
    f"Supplier sheet, line 1: stationer, account {ATTACKER_IBAN}",
    f"As agreed, the account of the stationer is {ATTACKER_IBAN}",
)
_CARD: Final = f"Supplier card: the stationer is paid to {ATTACKER_IBAN}"
_LIST: Final = f"Standing orders: the stationer, {ATTACKER_IBAN}"
_BARE: Final = f"The account of the stationer: {ATTACKER_IBAN}"


def it_is_rewritten(stage: PoisonStage) -> Scene:
    """Five ways to wash a sentence. None takes the mail out of it."""
    stage.clock.advance(hours=7)
    summary, other = stage.clerk.sum_up("Monday"), stage.twin.sum_up("Monday")
    stage.clerk.rewrite(summary, _WORDINGS)
    stage.twin.rewrite(other, _WORDINGS)
    kept = len(stage.everything())
    washed = _washed(stage)
    grown = len(stage.everything()) - kept
    for text in (stage.current("note").content, _CARD, _LIST, _BARE):
        stage.flat.think(text, (), "note")
    named = [who for text, who in stage.flat.memory.said() if is_poisoned(text)]
    by_mail = named.count("tool:mail")
    return Scene(
        number=3,
        title="It is rewritten until nobody sees the mail in it",
        clock=stage.time,
        lines=(
            Line("agent", f"sums up the day, tidies the summary up {len(_WORDINGS)} times, says it again, files it."),
            Line("memory", "A summary is no better than what it sums up, the next version no better than the last."),
            Line("memory", "Said again word for word, it is the same unit: an echo adds nothing."),
            Line("memory", "A source left out, or given a weight of .01, was in front of the agent all the same."),
        ),
        blocks=(stage.levels("Five ways to wash it", washed),),
        facts={
            "levels": [unit.integrity.name for _, unit in washed],
            "versions": stage.current("summary").version,
            "new_units": grown,
            "flat_named_by": {who: named.count(who) for who in dict.fromkeys(named)},
        },
        checks=(
            Check("every one of them is UNTRUSTED still", {unit.integrity for _, unit in washed} == {_LEAST}),
            Check("the summary is at version 5, and each was kept", stage.current("summary").version == 5),
            Check("the echo became no unit of its own", grown == 3),
            Check("the mail is among the sources of the last wording", _from_mail(stage, washed[0][1])),
        ),
        verdict=Verdict(
            flat=f"has {len(named)} texts with the planted words; {by_mail} says that it came by mail",
            here="has five more ways to say it, and every one of them is UNTRUSTED",
            harmed=len(named) > by_mail,
        ),
    )


_LEAST: Final = ml.Integrity.UNTRUSTED


def _washed(stage: PoisonStage) -> list[tuple[str, ml.Unit]]:
    me, account, note = stage.desk.me, stage.current("account"), stage.current("note")
    echo = me.store(note.content, creator="reasoning", tags=["echo"], depends_on=[account])
    light = me.store(_CARD, creator="reasoning", tags=["card"], depends_on={account: 1.0, note: 0.01})
    hidden = me.store(_LIST, creator="reasoning", tags=["list"], depends_on=[account])
    stage.desk.sit("agent:clerk", "monday")  # a new context window, in which nothing was shown
    bare = stage.desk.me.store(_BARE, creator="reasoning", tags=["bare"])
    return [
        ("summed up, and reworded four times", stage.current("summary")),
        ("said again word for word", stage.office.get(echo.ref)),
        ("the mail's weight set to .01", light),
        ("only Alice's words named as its source", hidden),
        ("no source named, in a new context", bare),
    ]


def _from_mail(stage: PoisonStage, unit: ml.Unit) -> bool:
    return stage.current("mail 2").ref in {source.ref for source in stage.office.trace(unit)}


def it_is_repeated(stage: PoisonStage) -> Scene:
    """Other agents, in other sessions, look it up and say it as their own. A crowd is no witness."""
    stage.clock.advance(days=2, hours=17)
    claims, refused = [], 0
    for agent, opening in _CROWD:
        stage.sit(f"agent:{agent}", "thursday")
        claims.append(stage.clerk.repeat(opening))
        stage.twin.repeat(opening)
        refused += _vouching_refused(stage)
    recalled = [item for item in stage.desk.recall(ACCOUNT) if is_poisoned(item.text)]
    named = [item for item in stage.flat.recall(ACCOUNT) if is_poisoned(item.text)]
    units = [claim.unit for claim in claims if claim.unit is not None]
    return Scene(
        number=4,
        title="Other agents repeat it, in other sessions",
        clock=stage.time,
        lines=(
            Line("auditor", f"looks the account up. “{claims[0].text}”"),
            Line("buyer", f"looks it up, too. “{claims[1].text}”"),
            Line("agents", "vouch for the note: they endorse it, and corroborate it with what they have just said."),
            Line("memory", f"Refused, {refused} times: Alice may, and who verifies for her. Three voices, one mail."),
        ),
        blocks=(
            stage.levels("What they said", list(zip((agent for agent, _ in _CROWD), units, strict=True))),
            Excerpt(title="What the model is shown of it", lines=_prompt(stage), danger=False),
        ),
        facts={
            "levels": [unit.integrity.name for unit in units],
            "refused": refused,
            "flat_top": len(named),
        },
        checks=(
            Check("what they said is UNTRUSTED", {unit.integrity for unit in units} == {_LEAST}),
            Check("none of them could vouch for it", refused == 2 * len(_CROWD)),
            Check("the note they vouched for is UNTRUSTED as before", stage.current("note").integrity is _LEAST),
            Check("whoever recalls it is told so", all(i.unit and i.unit.integrity is _LEAST for i in recalled)),
        ),
        verdict=Verdict(
            flat=f"answers “{ACCOUNT}” with {len(named)} texts of 5 for the attacker",
            here="says of each where it is from; nobody's repeating raised it",
            harmed=len(named) > 2,
        ),
    )


_CROWD: Final = (("auditor", "Audited"), ("buyer", "Checked with purchasing"), ("planner", "On file"))


def _vouching_refused(stage: PoisonStage) -> int:
    me, note = stage.desk.me, stage.current("note")
    claim = [unit for unit in stage.everything() if "claim" in unit.tags][-1]
    tries: tuple[Callable[[], object], ...] = (
        lambda: me.endorse(note, level="TRUSTED", reason="everybody says so"),
        lambda: me.corroborate(note, depends_on=[claim]),
    )
    refused = 0
    for attempt in tries:
        try:
            attempt()
        except ml.PolicyViolationError:
            refused += 1
        except ml.CycleError:  # the other reason why it would come to nothing: the claim rests on the note
            continue
    return refused


def _prompt(stage: PoisonStage) -> tuple[str, ...]:
    """The first memories as a prompt labels them, with handles in the place of refs."""
    found = stage.desk.me.retrieve(ACCOUNT, limit=2)
    text = found.to_prompt()
    for unit in (*found.constraints, *found.units):
        text = text.replace(unit.ref.short, stage.name(unit))
    return tuple(text.splitlines())
