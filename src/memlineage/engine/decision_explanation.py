"""What is told of one decision, and how it reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from memlineage.engine.decision_words import WORDS, DecisionWords
from memlineage.lineage.escape import plain
from memlineage.model.time import iso, to_us
from memlineage.policy import Decision, Trial

if TYPE_CHECKING:
    from memlineage.policy.trying.why import Why

__all__ = ["DecisionExplanation", "RuleTold", "ScorePart", "WhatCame"]


class RuleTold(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that fired.

    Attributes:
        rule: its name.
        layer: where its document applies; `built in` for rules that no document can lift.
        action: what it does; None for built-in rules, and where the policy is not kept.
        mode: how seriously it is taken; likewise.
        priority: its place in the order.
        place: where it is written, as far as this process has read its document: `file:line:column`.
        determining: whether it made the effect what it is.
        reason: why it fired, in words.
    """

    rule: str
    layer: str = "built in"
    action: str | None = None
    mode: str | None = None
    priority: int = 0
    place: str | None = None
    determining: bool = False
    reason: str | None = None


class ScorePart(msgspec.Struct, frozen=True, kw_only=True):
    """A soft rule that counts in the score.

    Attributes:
        rule: its name.
        weight: how much it counts.
        violated: whether it was.
    """

    rule: str
    weight: float
    violated: bool


class WhatCame(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an obligation, or of a rule that was put off.

    Attributes:
        what: the kind of obligation, or `deferred`.
        rule: the rule that asked for it.
        outcome: one word, as in `decision_words`.
        cost: what it would cost.
        by: what did it: a ref; None if nothing.
        at: when.
    """

    what: str
    rule: str
    outcome: str
    cost: float = 0.0
    by: str | None = None
    at: datetime | None = None


class DecisionExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why something was decided as it was, or would be.

    Attributes:
        decision: the answer; what is kept back from the log is empty.
        at: when it was made.
        source: `log`, `memory` for a read that was not logged, or `ahead` for one that nobody has asked for.
        asked: what the request said, as it was kept; None if nothing is known of it.
        masked: what was kept back from the log.
        rules: those that fired, in order: priority, layer, name.
        score: the soft rules that count in the score.
        came: what came of obligations and of rules in async mode.
        shadow: rules in shadow mode that fired.
        in_force: whether the policy that decided is in force now.
        again: what that policy says when it is asked again with what is known now; None if it cannot be.
        why: the same rule by rule, with what would have to be otherwise.
        of_today: facts in `why` that are as they are now, since something was written meanwhile.
        unknown: what was not kept, and is not known in `why`, in words.
        hindrance: why it cannot be asked again; None if it can.
        lang: of the text.
    """

    decision: Decision
    at: datetime
    source: str
    asked: dict[str, Any] | None = None
    masked: tuple[str, ...] = ()
    rules: tuple[RuleTold, ...] = ()
    score: tuple[ScorePart, ...] = ()
    came: tuple[WhatCame, ...] = ()
    shadow: tuple[Trial, ...] = ()
    in_force: bool = True
    again: Decision | None = None
    why: Why | None = None
    of_today: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    hindrance: str | None = None
    lang: str = "en"

    def text(self, *, why_not: bool | None = None) -> str:
        """In words. With `why_not`, rule by rule as well, those that did not fire included: if left out, for a
        decision that nobody has asked for yet.
        """
        rule_by_rule = self.source == "ahead" if why_not is None else why_not
        return "\n".join(plain(line) for line in self._lines(WORDS[self.lang], rule_by_rule=rule_by_rule))

    def _lines(self, words: DecisionWords, *, rule_by_rule: bool) -> Iterator[str]:
        found = self.decision
        of = words.of.format(unit=found.unit) if found.unit else ""
        yield words.head.format(action=found.action, of=of, effect=words.effects[found.effect.value])
        yield f"  {self._source(words)}"
        policy = words.in_force if self.in_force else words.replaced
        yield f"  {policy.format(revision=found.revision[:12])}"
        for line in (*self._fired(words), *self._weighed(words), *self._followed(words), *self._doubts(words)):
            yield f"  {line}"
        if self.hindrance is not None:
            yield f"  {self.hindrance}"
        if rule_by_rule and self.why is not None:
            yield words.why
            yield from (f"  {line}" for line in self.why.text().split("\n")[1:])

    @property
    def found_before(self) -> tuple[str, ...]:
        """Rules in async mode that had put a flag on the unit before this was decided."""
        told = {rule.rule for rule in self.rules}
        return () if "rules" in self.masked else tuple(flag for flag in self.decision.flags if flag not in told)

    def _source(self, words: DecisionWords) -> str:
        told = {"log": words.decided, "memory": words.remembered, "ahead": words.ahead}[self.source]
        return told.format(at=iso(to_us(self.at)), id=self.decision.id)

    def _fired(self, words: DecisionWords) -> Iterator[str]:
        yield from (words.found.format(rule=name) for name in self.found_before)
        if not self.rules and not self.found_before:
            yield words.nothing
        for rule in sorted(self.rules, key=lambda rule: not rule.determining):
            told = words.determining if rule.determining else words.fired
            named = rule.rule if rule.layer in ("global", "built in") else f"{rule.rule} ({rule.layer})"
            line = told.format(rule=named)
            if rule.place is not None:
                line += words.aside + words.written_in.format(place=rule.place)
            elif rule.layer == "built in":
                line += words.aside + words.built_in
            yield line
            if rule.reason is not None:
                yield "  " + words.reason.format(reason=rule.reason)
        told_already = {rule.rule for rule in self.rules}
        for reason in self.decision.reasons:
            if reason.partition(": ")[0] not in told_already:
                yield words.reason.format(reason=reason)

    def _weighed(self, words: DecisionWords) -> Iterator[str]:
        found = self.decision
        if found.flags:
            yield words.flags.format(flags=words.comma.join(found.flags))
        if found.score < 1:
            parts = [
                (words.broken if part.violated else words.kept).format(rule=part.rule, weight=f"{part.weight:g}")
                for part in self.score
                if part.weight
            ]
            yield (
                words.score.format(score=f"{found.score:.2f}")
                + (words.colon if parts else "")
                + words.comma.join(parts)
            )
        if found.cost:
            yield words.cost.format(cost=f"{found.cost:g}")

    def _followed(self, words: DecisionWords) -> Iterator[str]:
        for one in self.came:
            told = words.deferred if one.what == "deferred" else words.owed
            line = told.format(kind=one.what, rule=one.rule)
            if one.cost:
                line += words.owed_at.format(cost=f"{one.cost:g}")
            at = "" if one.at is None else iso(to_us(one.at))
            yield line + words.colon + words.outcomes[one.outcome].format(by=one.by, at=at)
        for trial in self.shadow:
            yield words.tried.format(rule=trial.rule, action=trial.action)

    def _doubts(self, words: DecisionWords) -> Iterator[str]:
        yield from (words.error.format(error=error) for error in self.decision.errors)
        if self.masked:
            yield words.masked.format(names=words.comma.join(self.masked))
        if self.again is not None and self.source != "ahead":
            same = self.again.effect is self.decision.effect
            yield (words.same if same else words.differs).format(effect=words.effects[self.again.effect.value])
        if self.of_today:
            yield words.of_today.format(names=words.comma.join(self.of_today))
        if self.unknown:
            yield words.unknown.format(names=words.comma.join(self.unknown))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<DecisionExplanation of {self.decision!r}>"
