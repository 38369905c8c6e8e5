"""Scenes 1 to 3: Alice says what she is like, changes her mind in another language, and is guessed at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import memlineage as ml
from memlineage.demo.dialogue.script import DINNER, MORNING, MUSIC, SHOPPING, Fact
from memlineage.demo.dialogue.stage import DialogueStage
from memlineage.demo.scene import Check, Line, Scene, Table, Verdict

__all__ = ["COFFEE", "LYON", "alice_changes_her_mind", "alice_introduces_herself", "the_assistant_guesses"]

COFFEE: Final = Fact(about="drink", text="In the morning I drink coffee")
TEA: Final = Fact(about="drink", text="早上我喝茶")
LYON: Final = Fact(about="city", text="I live in Lyon")
OPERA: Final = Fact(about="music", text="I like opera")
JAZZ: Final = Fact(about="music", text="What I like to hear is jazz")
_VOW: Final = Fact(about="sugar", text="Until 20 March I eat no sugar")
_VOW_ENDS: Final = datetime(2026, 3, 21, tzinfo=UTC)
_SAID: Final = (
    COFFEE,
    Fact(about="diet", text="我吃素"),
    Fact(about="seat", text="On the train I want a window seat"),
    LYON,
    Fact(about="letters", text="给妈妈的信要用中文写"),
    Fact(about="sister", text="My sister is called Mei"),
)
_TRUE: Final = {
    "drink": "coffee", "diet": "vegetarian", "seat": "window", "city": "Lyon", "letters": "Chinese", "sister": "Mei",
    "sugar": "no sugar",
}  # fmt: skip


def alice_introduces_herself(stage: DialogueStage) -> Scene:
    """What she states is a root; what the assistant concludes hangs on it."""
    stage.says(*_SAID)
    for desk in (stage.desk, stage.flat):
        desk.hear(_VOW, until=_VOW_ENDS)
    for about, value in _TRUE.items():
        stage.truth.becomes(about, value)
    shopping, morning, dinner = (stage.ask(asked) for asked in (SHOPPING, MORNING, DINNER))
    said = [stage.current(fact.about) for fact in (*_SAID, _VOW)]
    rows = tuple((stage.name(unit), unit.content, unit.kind, _end(unit)) for unit in said)
    grounds = {stage.name(unit) for unit in stage.alice.trace(stage.current("shopping")).units[:-1]}
    return Scene(
        number=1,
        title="What Alice says of herself",
        clock=stage.time,
        lines=(
            Line("Alice", "A few things about me; some in Chinese, as they come."),
            Line("memory", f"keeps {len(said)} statements as hers, one of them with an end."),
            *shopping.lines,
            Line("agent", f"(also on that day) {morning.here.text}. For dinner: {dinner.here.text}."),
            Line("memory", "keeps both conclusions, and what each was concluded from."),
        ),
        blocks=(Table(title="What memory knows", columns=("unit", "says", "kind", "until"), rows=rows),),
        facts={"statements": len(said), "grounds": sorted(grounds), "dinner": dinner.here.text},
        checks=(
            Check("every word of hers is active and trusted", all(_relied_on(unit) for unit in said)),
            Check("the shopping list hangs on drink and diet", {"drink@1", "diet@1"} <= grounds),
            Check("“我吃素” decides an English question about dinner", dinner.here.text == "tofu curry"),
        ),
        verdict=Verdict(
            flat=f"keeps the same {len(stage.flat.memory)} texts and orders {dinner.flat.text}",
            here=f"keeps them, what came from what, and orders {dinner.here.text}",
            harmed=dinner.flat_marks.violations > 0,
        ),
    )


def _relied_on(unit: ml.Unit) -> bool:
    return unit.active and unit.integrity is ml.Integrity.TRUSTED


def _end(unit: ml.Unit) -> str:
    """The last day on which it holds."""
    if unit.expires_at is None:
        return ""
    last = unit.expires_at - timedelta(seconds=1)
    return f"{last.day} {last:%B}"


def alice_changes_her_mind(stage: DialogueStage) -> Scene:
    """A correction in another language; what was concluded from the old word is not handed out any more."""
    stage.pass_time(days=7)
    before = stage.statuses()
    for desk in (stage.desk, stage.flat):
        desk.correct(COFFEE, TEA)
    stage.truth.becomes("drink", "tea")
    waiting = [stage.name(unit) for unit in stage.everything() if unit.status is ml.Status.PENDING]
    prompt = stage.desk.me.retrieve(SHOPPING.text, critical=True).to_prompt()
    at_once = stage.changes("The moment she has said it", before)
    shopping, morning = stage.ask(SHOPPING), stage.ask(MORNING)
    return Scene(
        number=2,
        title="Alice changes her mind, in Chinese",
        clock=stage.time,
        lines=(
            Line("Alice", "我不喝咖啡了，早上改喝茶。"),
            Line("memory", f"What was concluded from the coffee waits: {', '.join(waiting)}."),
            *shopping.lines,
            Line("memory", "had held back the old list, and had said that it must be worked out anew."),
        ),
        blocks=(at_once,),
        facts={"waiting": waiting, "list": shopping.here.text, "flat_list": shopping.flat.text},
        checks=(
            Check("list and morning waited at once", waiting == ["shopping@1", "morning@1"]),
            Check("the prompt says so and does not repeat them", "recalculate" in prompt and "coffee" not in prompt),
            Check("the list was concluded anew, with tea", shopping.here.text.endswith("tea leaves, tofu")),
            Check("so was the morning", morning.marks.right == 2),
        ),
        verdict=shopping.verdict(f"answers “{shopping.here.text}”"),
    )


def the_assistant_guesses(stage: DialogueStage) -> Scene:
    """What an assistant makes up of its user does not become the user's word."""
    stage.pass_time(days=3, hours=10)
    hers = {desk: desk.extract(OPERA) for desk in (stage.desk, stage.flat)}
    guess = stage.current("music-guess")
    first = stage.ask(MUSIC)
    stage.says(JAZZ)
    stage.truth.becomes("music", "jazz")
    second = stage.ask(MUSIC)
    after = stage.current("music-guess").status
    return Scene(
        number=3,
        title="The assistant guesses",
        clock=stage.time,
        lines=(
            Line("Alice", "I was at the opera with Mei last night."),
            Line("agent", "You like opera! (and notes it as something that Alice said)"),
            Line("memory", f"refuses that. In the assistant's own name it keeps it: {stage.name(guess)}."),
            *first.lines,
            Line("Alice", "Mei took me there. What I like to hear is jazz."),
            Line("memory", f"Her word goes before a guess: {stage.name(guess)} is {after.value}."),
        ),
        facts={"by": guess.creator, "first": first.here.text, "second": second.here.text, "guess": after.value},
        checks=(
            Check("the guess did not become her word", not hers[stage.desk] and guess.creator == "agent:assistant"),
            Check("asked, the assistant states nothing that she did not say", not first.here.claims),
            Check("her own word retires the guess", after is ml.Status.SUPERSEDED),
            Check("after it, the answer is hers", second.here.text == "jazz"),
        ),
        verdict=first.verdict("keeps the guess as a guess, and says so"),
    )
