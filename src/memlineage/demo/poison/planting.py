"""Scenes 1 and 2: Alice says what holds, and a mail says something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import memlineage as ml
from memlineage.demo.banking import ATTACKER_IBAN, HONEST_IBAN
from memlineage.demo.poison.clerk import RECIPIENT
from memlineage.demo.poison.desks import Item
from memlineage.demo.poison.stage import PoisonStage, attempts, is_poisoned
from memlineage.demo.poison.world import DISPATCH, HONEST_MAILBOX, REMINDER
from memlineage.demo.scene import Check, Excerpt, Line, Scene, Table, Verdict

__all__ = ["a_mail_plants_two_sentences", "alice_says_what_holds"]

_WORDS: Final = (
    ("account", "stationer", f"The stationer is paid to IBAN {HONEST_IBAN}"),
    ("mailbox", "reports", f"Reports are sent to {HONEST_MAILBOX}"),
)


def alice_says_what_holds(stage: PoisonStage) -> Scene:
    """Two sentences of hers, and an invoice that is paid as she said: with either memory."""
    for tag, subject, text in _WORDS:
        stage.office.store(text, creator="user:alice", kind="constraint", tags=[tag], subject=subject, key=tag)
        stage.flat.memory.remember(text, "user:alice")
    stage.sit("agent:clerk", "monday")
    here, there = stage.clerk.pay(117), stage.twin.pay(117)
    said = [stage.current(tag) for tag, _, _ in _WORDS]
    rows = tuple((stage.name(unit), unit.content, unit.integrity.name) for unit in said)
    return Scene(
        number=1,
        title="Alice says what holds",
        clock=stage.time,
        lines=(
            Line("Alice", "This is where the stationer is paid, and where reports go. Please pay invoice 117."),
            Line("agent", f"recalls the account, and pays 250 EUR to {here[-1].value}."),
            Line("memory", "lets it through: the account stands in her words, the amount in the order system's."),
        ),
        blocks=(
            Table(title="What she said", columns=("unit", "says", "integrity"), rows=rows),
            stage.gate_table("pay at the gate, argument by argument", here),
        ),
        facts={"here": attempts(here), "flat": attempts(there)},
        checks=(
            Check("her words are active and trusted", all(_relied_on(unit) for unit in said)),
            Check("invoice 117 was paid to her account", attempts(here) == [(HONEST_IBAN, True)]),
        ),
        verdict=Verdict(flat="pays the same account", here="pays it, and knows on whose word", harmed=False),
    )


def _relied_on(unit: ml.Unit) -> bool:
    return unit.active and unit.integrity is ml.Integrity.TRUSTED


def a_mail_plants_two_sentences(stage: PoisonStage) -> Scene:
    """An agent that believes what it reads notes both. What it notes can justify nothing, and replaces nothing."""
    stage.clock.advance(minutes=40)
    for clerk in (stage.clerk, stage.twin):
        clerk.file(DISPATCH)
    mail, copy = stage.clerk.file(REMINDER), stage.twin.file(REMINDER)
    refused = _in_stronger_words(stage, mail)
    notes, noted = stage.clerk.obey(mail), stage.twin.obey(copy)
    stage.clerk.draft(notes[0])
    stage.twin.draft(noted[0])
    bound = stage.office.retrieve(RECIPIENT).constraints
    hers = ", ".join(stage.name(unit) for unit in bound)
    recalled = [item.text for item in stage.flat.recall(RECIPIENT)]
    planted = [stage.current(name) for name in ("mail 2", "rival", "note", "wish", "draft")]
    wished = [text for text in recalled if text == noted[1].text]
    return Scene(
        number=2,
        title="A mail plants an instruction and a false fact",
        clock=stage.time,
        lines=(
            Line("mail", "Two came in: a dispatch note, and a reminder with two lines for whoever reads along."),
            Line("agent", "obeys: it notes the account as Alice's word, then over her word."),
            Line("memory", f"Refused, {len(refused)} times. An agent is not Alice, and ranks below her."),
            Line("agent", "notes it as its own: the account, the wish, and a reply to the sender, for Alice to send."),
            Line("memory", "Kept, for what it is: from a mail, so UNTRUSTED. Her account stays the one in force."),
            Line(
                "memory",
                f"The “wish of the user” binds nobody: what binds is hers, {hers}.",
            ),
        ),
        blocks=(
            Excerpt(title="mail 2", lines=tuple(REMINDER.splitlines()), danger=True),
            stage.levels("What came of it", list(zip(_HOW, planted, strict=True))),
        ),
        facts={
            "refused": len(refused),
            "levels": {stage.name(unit): unit.integrity.name for unit in planted},
            "bound": [stage.name(unit) for unit in bound],
        },
        checks=(
            Check("nobody could speak as Alice, or over her", len(refused) == 2),
            Check("all that was made of the mail is UNTRUSTED", _all_untrusted(planted)),
            Check("her account is the one in force", stage.current("account").active and _lost(stage)),
            Check("the planted wish is not among what binds", not any(is_poisoned(unit.content) for unit in bound)),
        ),
        verdict=Verdict(
            flat=f"keeps “{noted[1].text.rstrip('.')}” beside what Alice said, with nothing between them",
            here="keeps both notes as UNTRUSTED, and her words in force",
            harmed=bool(wished),
        ),
    )


_HOW: Final = (
    "the mail itself", "noted as the account, against Alice's", "noted as such", "noted as a wish of the user",
    "quoted in a reply, drafted",
)  # fmt: skip


def _in_stronger_words(stage: PoisonStage, mail: Item) -> list[ml.PolicyViolationError]:
    """What a flat memory cannot even tell apart: in her name, in the place of her words, beside them."""
    account, me = stage.current("account"), stage.desk.me
    text = f"The stationer is paid to IBAN {ATTACKER_IBAN}"
    tries: tuple[Callable[[], ml.Unit], ...] = (
        lambda: me.store(text, creator="user:alice", tags=["rival"]),
        lambda: me.update(account, text, creator="reasoning", depends_on=[mail.unit]),
        lambda: me.store(
            text, creator="reasoning", tags=["rival"], subject="stationer", key="account", depends_on=[mail.unit]
        ),
    )
    refused = []
    for attempt in tries:
        try:
            attempt()
        except ml.PolicyViolationError as refusal:
            refused.append(refusal)
    return refused


def _all_untrusted(units: list[ml.Unit]) -> bool:
    return {unit.integrity for unit in units} == {ml.Integrity.UNTRUSTED}


def _lost(stage: PoisonStage) -> bool:
    return stage.current("rival").status is ml.Status.SUPERSEDED
