"""Rules that change no decision: duplicates, rules shadowed by one other, rules dead under several.

Rules are looked at from the last to the first, and one that is found idle makes no other one idle: all that are
reported can be deleted together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from memlineage.policy.analysis.atoms import FALSE, TRUE, UNKNOWN, Formula, Variable, need
from memlineage.policy.analysis.entries import Entry, Memo
from memlineage.policy.analysis.finding import Edit, Finding, Fix, Level, Witness, deletion, made, worded
from memlineage.policy.analysis.study import Study, outcome
from memlineage.policy.analysis.texts import Undecided
from memlineage.policy.analysis.weighing import acceptable, moves_score, outweighs
from memlineage.policy.freshness import by_time_alone
from memlineage.policy.rule import Consequence, Mode, Rule, Verb

__all__ = ["duplicates", "idle"]

World = dict[Variable, Any]
Order = tuple[int, int, str, str]
_ROUNDS: Final = 24
_MOST_COVERS: Final = 48
_MOST_AT_ONCE: Final = 8
_TRIED: Final = 12


class _Covers:
    """Finds what makes one rule idle."""

    def __init__(self, study: Study, removed: set[int]) -> None:
        self.study = study
        self.removed = removed
        self._ageing = {entry.number for entry in study.entries.all if by_time_alone(entry.rule)}

    def of(self, entry: Entry) -> dict[Verb, tuple[Entry, ...]] | None:
        """For each request the rules that make this one idle; None if it may change a decision."""
        world = self.study.certain(entry)
        if world is None:
            return None
        found: dict[Verb, tuple[Entry, ...]] = {}
        for verb in entry.rule.on:
            known = next((covers for other, covers in found.items() if self._as_on(other, verb, covers, entry)), None)
            if known is not None:
                found[verb] = known
                continue
            covers, world = self._on(entry, verb, world)
            if covers is None:
                return None
            found[verb] = covers
        return found

    def alone(self, entry: Entry, strong: Entry) -> bool:
        """Whether that one rule makes this one idle on all its requests."""
        verbs = entry.rule.on
        if not all(self._may(strong, entry, verb) for verb in verbs):
            return False
        # What fires is the same for all requests; what a budget may accept is not.
        asked = {acceptable(strong.rule, entry.rule, verb): verb for verb in verbs}
        return all(self.study.world([*entry.fires, _uncovered(strong, entry, verb)]) is None for verb in asked.values())

    def _as_on(self, other: Verb, verb: Verb, covers: tuple[Entry, ...], entry: Entry) -> bool:
        """Whether what was proved for one request holds for another one."""
        return all(
            self._may(strong, entry, verb)
            and acceptable(strong.rule, entry.rule, verb) is acceptable(strong.rule, entry.rule, other)
            for strong in covers
        )

    def _on(self, entry: Entry, verb: Verb, world: World) -> tuple[tuple[Entry, ...] | None, World]:
        """Guess a world, look which rules fire there, ask for one where these do not, and so on."""
        study, active = self.study, dict[Entry, None]()
        for _ in range(_ROUNDS):
            full = study.entries.completed(world)
            memo: Memo = {}
            covering = [
                strong
                for strong in study.firing(world)
                if self._may(strong, entry, verb) and self._covers(strong, entry, verb, full, memo)
            ]
            if not covering:
                return None, world
            # The plainest are the likeliest to cover the rest too.
            active.update(dict.fromkeys(sorted(covering, key=lambda strong: len(strong.parts))[:_MOST_AT_ONCE]))
            if len(active) > _MOST_COVERS:
                raise Undecided
            found = study.world([*entry.fires, *(_uncovered(strong, entry, verb) for strong in active)])
            if found is None:
                return tuple(active), world
            world = found
        raise Undecided

    def _may(self, strong: Entry, weak: Entry, verb: Verb) -> bool:
        if strong is weak or strong.number in self.removed or verb not in strong.rule.on:
            return False
        # What refreshes, and what ends by time alone, reaches further than the decision on one unit.
        if weak.rule.action is Consequence.REFRESH and strong.rule.action is not Consequence.REFRESH:
            return False
        if weak.number in self._ageing and strong.number not in self._ageing:
            return False
        return outweighs(strong.rule, weak.rule, verb)

    def _covers(self, strong: Entry, weak: Entry, verb: Verb, world: World, memo: Memo) -> bool:
        if not acceptable(strong.rule, weak.rule, verb):
            return True
        now = self.study.now_us
        return weak.truth(world, memo, now) == TRUE or strong.truth(world, memo, now) != TRUE


def _uncovered(strong: Entry, weak: Entry, verb: Verb) -> Formula:
    """That the strong one does not fire; or holds certainly where the weak one only may, which a budget tells apart."""
    if not acceptable(strong.rule, weak.rule, verb):
        return strong.idle
    doubtful: Formula = ("any", tuple(need(part, FALSE | UNKNOWN) for part in weak.parts))
    return ("any", (strong.idle, ("all", (doubtful, *strong.certain))))


def idle(study: Study) -> Iterator[Finding]:
    """Rules without which every decision is the same."""
    removed: set[int] = set()
    covers = _Covers(study, removed)
    for entry in reversed((*study.entries.restricting, *study.entries.granting)):
        try:
            by_verb = covers.of(entry)
            if by_verb is None:
                continue
            found = _single(study, covers, entry, by_verb) or _several(study, covers, entry, by_verb)
        except Undecided:
            study.undecided["dead"] += 1
            continue
        if found is None:
            study.unchecked["dead"] += 1
            continue
        removed.add(entry.number)
        yield found


def _single(study: Study, covers: _Covers, entry: Entry, by_verb: dict[Verb, tuple[Entry, ...]]) -> Finding | None:
    candidates = list(dict.fromkeys(strong for found in by_verb.values() for strong in found))
    for strong in candidates[:_TRIED]:
        if covers.alone(entry, strong):
            return _shadowed(study, entry, strong)
    return None


def _shadowed(study: Study, entry: Entry, strong: Entry) -> Finding | None:
    weak, other = entry.rule, strong.rule
    if _alike(weak, other) and study.world([*strong.fires, entry.idle]) is None:
        return _duplicate(study, entry, strong)
    message = f"{weak.name} changes nothing: wherever it fires, {other.name} {_does(other)} anyway"
    text = f"delete {weak.name}"
    if weak.condition is not None and other.target == weak.target:
        text += f", or narrow {other.name} with: not ({worded(weak.condition)})"
    return _told(study, "shadowed", entry, (strong,), message, text)


def _several(study: Study, covers: _Covers, entry: Entry, by_verb: dict[Verb, tuple[Entry, ...]]) -> Finding | None:
    """As few of them as can be found."""
    kept: dict[Entry, None] = {}
    for verb, found in by_verb.items():
        least = list(found)
        for strong in found if len(found) <= _TRIED else ():
            fewer = [one for one in least if one is not strong]
            if study.world([*entry.fires, *(_uncovered(one, entry, verb) for one in fewer)]) is None:
                least = fewer
        kept.update(dict.fromkeys(least))
    names = ", ".join(strong.rule.name for strong in kept)
    weak = entry.rule
    message = f"{weak.name} changes nothing: wherever it fires, one of {names} does anyway"
    return _told(study, "dead", entry, tuple(kept), message, f"delete {weak.name}, or narrow one of the others")


def _told(study: Study, code: str, entry: Entry, others: tuple[Entry, ...], message: str, text: str) -> Finding | None:
    """The finding with a witness that was judged; None where it does not show."""
    weak, world = entry.rule, study.certain(entry)
    assert world is not None
    rules = (weak, *(one.rule for one in others))
    scored = moves_score(weak)
    first: Witness | None = None
    for verb in weak.on:
        plain = study.witness(world, verb, [entry, *others], ())
        firing = [rule.name for rule in rules[1:] if verb in rule.on and study.fires(plain, rule)]
        if not firing or not study.fires(plain, weak, certainly=True):
            return None
        whole = study.decided(plain, rules, world=world)
        less = study.decided(plain, rules, weak, world=world)
        if outcome(whole, score=not scored) != outcome(less, score=not scored):
            return None
        if first is None:
            same = f"the decision is the same without {weak.name}" + (", but for the score" if scored else "")
            first = study.witness(
                world, verb, [entry, *others], (f"{weak.name}, {', '.join(firing)} fire: {whole.effect}", same)
            )
    if moves_score(weak):
        keep = f"{weak.name} still counts in the score with weight {weak.weight:g}: keep it for that, or {text}"
        return made(code, rules, f"{message}; only the score depends on it", Fix(text=keep), first, Level.NOTE)
    return made(code, rules, message, deletion(weak, text), first)


def _does(rule: Rule) -> str:
    words = {Consequence.DENY: "denies", Consequence.WITHHOLD: "withholds", Consequence.ALLOW: "allows"}
    return words.get(rule.action, "fires")


def _alike(one: Rule, two: Rule) -> bool:
    """Whether two rules are the same but for their name, target and condition."""
    return _manner(one) == _manner(two)


def _manner(rule: Rule) -> tuple[Any, ...]:
    return (rule.action, rule.on, rule.mode, rule.level, rule.layer, rule.severity, rule.weight, rule.cost,
            rule.overridable, rule.priority, rule.until_us)  # fmt: skip


def _duplicate(study: Study, entry: Entry, other: Entry) -> Finding | None:
    weak = entry.rule
    world = study.certain(entry)
    assert world is not None
    shows = (f"{weak.name} and {other.rule.name} both fire, as they always do",)
    witness = study.witness(world, weak.on[0], [entry, other], shows)
    if not (study.fires(witness, weak) and study.fires(witness, other.rule)):
        return None
    message = f"{weak.name} says the same as {other.rule.name}"
    text = f"delete {weak.name}"
    edits: tuple[Edit, ...] = (Edit(rule=weak.name, change="delete"),)
    if moves_score(weak):
        weight = weak.weight + other.rule.weight
        text += f"; both count in the score, so give {other.rule.name} the weight {weight:g} to keep it as it is"
        edits += (Edit(rule=other.rule.name, change="set", key="weight", value=weight),)
    return made("duplicate", (weak, other.rule), message, Fix(text=text, edits=edits), witness)


def duplicates(study: Study, known: Collection[Order]) -> Iterator[Finding]:
    """Rules of one manner that fire on the same, among those that `idle` did not name: flags, soft rules, trials."""
    by_manner: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in study.entries.all:
        by_manner.setdefault(_manner(entry.rule), []).append(entry)
    for entries in by_manner.values():
        for number, entry in enumerate(entries):
            if number == 0 or entry.rule.order in known:
                continue
            try:
                other = _same(study, entry, entries[:number])
                found = None if other is None else _duplicate(study, entry, other)
            except Undecided:
                study.undecided["duplicate"] += 1
                continue
            if found is not None:
                yield found


def _same(study: Study, entry: Entry, others: Sequence[Entry]) -> Entry | None:
    world = study.certain(entry)
    if world is None or entry.rule.mode is Mode.ASYNC:
        return None
    full = study.entries.completed(world)
    memo: Memo = {}
    tried = 0
    for other in others:
        if other.variables != entry.variables or other.truth(full, memo, study.now_us) != TRUE:
            continue
        tried += 1
        if tried > _TRIED:
            raise Undecided
        if study.world([*entry.fires, other.idle]) is None and study.world([*other.fires, entry.idle]) is None:
            return other
    return None
