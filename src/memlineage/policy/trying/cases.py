"""Running the cases of documents, and what they leave untried (docs/how-to/policy-as-code.md).

A case is decided by all documents together, so that it need not say what it is not about, what it leaves out is as in
an ordinary request: a user, within the walls, and a live fact without tags in that user's own words. Everything else
that is left out is not known, and `null` makes that of what would be filled in.

Coverage is the share of the documents' own rules that were *exercised*: at least one case made the rule fire, and at
least one that asked it did not. A rule that cannot but fire (no condition, no target, layer global) need only fire.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from memlineage.model.principal import Integrity, authority, default_level, kind_of
from memlineage.policy.combining import Request, decide, in_force, judge
from memlineage.policy.decision import Decision
from memlineage.policy.facts import Facts
from memlineage.policy.kinds import Kind, conform
from memlineage.policy.language.cases import Case
from memlineage.policy.language.document import Document
from memlineage.policy.language.faults import Fault, hint, quoted, refuse
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import Rule, Target
from memlineage.policy.trying.why import Why, why

__all__ = ["Coverage", "Difference", "Outcome", "Report", "RuleUse", "request_of", "run_cases"]

_SOMEBODY: Final = "user:somebody"
_UNIT: Final[Mapping[str, Any]] = {"kind": "fact", "tags": (), "status": "active", "standing": "supported"}
_REQUEST: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("in_walls", "actor_may_claim"), True),
    **dict.fromkeys(("inspecting", "critical", "is_owner", "is_author", "is_verifier"), False),
    "reassertion": "none",
    "untrusted_justification": False,
}
_CLOSE: Final = 1e-9


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that came out otherwise than a case says.

    Attributes:
        what: `effect`, `rules`, `not_rules`, `determining`, `score`, `cost` or `obligations`.
        expected: what the case says, in words.
        got: what came out, in words.
    """

    what: str
    expected: str
    got: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one case.

    Attributes:
        source: the document it stands in.
        line: where, from 1; 0 for a document made from Python values.
        name: what it shows.
        passed: whether everything came out as it says.
        differences: what did not.
        fired: names of the rules that fired, those in shadow and async mode among them.
        notes: of a case that did not pass, why: the reasons of the decision, and of each rule that was to fire and did
            not, what was false.
        decision: what was decided.
    """

    source: str
    line: int
    name: str
    passed: bool
    differences: tuple[Difference, ...]
    fired: tuple[str, ...]
    notes: tuple[str, ...]
    decision: Decision


class RuleUse(msgspec.Struct, frozen=True, kw_only=True):
    """How often cases asked one rule of the documents.

    Attributes:
        source: the document it stands in.
        rule: its name.
        layer: of its document.
        fired: cases that made it fire.
        silent: cases that asked it, and did not.
        always: whether it cannot but fire.
    """

    source: str
    rule: str
    layer: str
    fired: int
    silent: int
    always: bool

    @property
    def exercised(self) -> bool:
        """Whether some case made it fire, and some did not."""
        return bool(self.fired and (self.silent or self.always))


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the rules of a document its cases, and those of the others, exercise.

    Attributes:
        source: the document; empty for all of them together.
        rules: how many rules it has.
        exercised: how many of them are exercised.
        share: of the rules, 0 to 1; 1 where there are none.
        least: what is demanded; None for nothing.
    """

    source: str
    rules: int
    exercised: int
    share: float
    least: float | None

    @property
    def met(self) -> bool:
        """Whether it is as much as is demanded."""
        return self.least is None or self.share >= self.least


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of all cases.

    Attributes:
        cases: in the order of the documents.
        rules: the documents' own rules, in the order of the documents.
        coverage: of all documents together, then of each that demands some.
        revision: of the set that decided.
    """

    cases: tuple[Outcome, ...]
    rules: tuple[RuleUse, ...]
    coverage: tuple[Coverage, ...]
    revision: str

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The cases that came out otherwise."""
        return tuple(case for case in self.cases if not case.passed)

    @property
    def ok(self) -> bool:
        """Whether there is a case, all of them passed, and all coverage that is demanded is met."""
        return bool(self.cases) and not self.failed and all(part.met for part in self.coverage)


def run_cases(policies: PolicySet, documents: Sequence[Document], *, now_us: int, least: float | None = None) -> Report:
    """Decide every case of the documents.

    Args:
        policies: what decides: these documents together, with the default set if it will be in force.
        documents: whose cases are run, and whose rules are counted.
        now_us: the instant of cases that name none, in microseconds.
        least: the coverage that is demanded of all documents together, 0 to 1, instead of what each demands of itself.

    Raises `PolicyDocumentError` where a case names a rule that does not exist.
    """
    refuse(_unknown_names(policies, documents))
    outcomes = []
    uses = {(str(rule.layer), rule.name): [0, 0] for document in documents for rule in document.rules}
    for document in documents:
        for case in document.tests:
            verdicts = _verdicts(policies, case, now_us)
            for rule, fires in verdicts:
                counts = uses.get((str(rule.layer), rule.name))
                if counts is not None:
                    counts[0 if fires else 1] += 1
            outcomes.append(_outcome(policies, document, case, verdicts, now_us))
    rules = tuple(
        RuleUse(
            source=document.source,
            rule=rule.name,
            layer=str(rule.layer),
            fired=uses[str(rule.layer), rule.name][0],
            silent=uses[str(rule.layer), rule.name][1],
            always=_cannot_but_fire(rule),
        )
        for document in documents
        for rule in document.rules
    )
    coverage = [_coverage("", rules, least)]
    if least is None:
        coverage += [
            _coverage(document.source, [use for use in rules if use.source == document.source], document.coverage)
            for document in documents
            if document.coverage is not None
        ]
    return Report(cases=tuple(outcomes), rules=rules, coverage=tuple(coverage), revision=policies.revision)


def request_of(policies: PolicySet, case: Case, now_us: int) -> tuple[Request, Facts]:
    """What a case asks, and what is known: as it says, the rest as in an ordinary request."""
    unit = _unit(policies, case.unit)
    old = None if case.old is None else _unit(policies, case.old)
    context = {**_REQUEST, **_spoken_by(case.context, "principal"), **_ranks(unit, old), **case.context}
    request = Request(
        action=case.action, unit=unit.get("ref"), domain=case.domain, session=case.session, approval=case.approval
    )
    now = now_us if case.now_us is None else case.now_us
    return request, Facts(unit=unit, old=old, context=context, lineage=case.lineage, now_us=now)


def _spoken_by(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A principal and its kind: of what is said of them, the other follows; where nothing is said, a user."""
    kind = f"{name}_kind"
    if name not in said and kind in said:
        return {}
    speaker = said.get(name, _SOMEBODY)
    return {name: speaker, kind: kind_of(speaker)} if isinstance(speaker, str) else {}


def _unit(policies: PolicySet, said: Mapping[str, Any]) -> dict[str, Any]:
    spoken = _spoken_by(said, "creator")
    creator = spoken.get("creator")
    level = {} if creator is None else {"integrity": policies.principals.get(creator, default_level(creator))}
    return {**_UNIT, **spoken, **level, **said}


def _ranks(unit: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any]:
    """What an update is held against, as far as creators are known; with nothing to protect, nothing is held."""
    protected = {"creator": "external:nobody", "integrity": Integrity.UNTRUSTED} if old is None else old
    found: dict[str, Any] = {}
    for about, rank, level in (
        (unit, "authority", "integrity_rank"),
        (protected, "protected_authority", "protected_integrity"),
    ):
        creator, integrity = about.get("creator"), about.get("integrity")
        found[level] = integrity
        if isinstance(creator, str) and integrity is not None:
            found[rank] = authority(creator, Integrity(conform(integrity, Kind.INTEGRITY)))
    return found


def _verdicts(policies: PolicySet, case: Case, now_us: int) -> list[tuple[Rule, bool]]:
    """The rules that a case asks, and whether each fires; those in async mode as they will be judged afterwards."""
    request, facts = request_of(policies, case, now_us)
    asked = [rule for rule in policies.by_request[request.action] if in_force(rule, facts)]
    return [(rule, judge(rule, request, facts).fires) for rule in asked]


def _outcome(
    policies: PolicySet, document: Document, case: Case, verdicts: Iterable[tuple[Rule, bool]], now_us: int
) -> Outcome:
    request, facts = request_of(policies, case, now_us)
    decision = decide(policies, request, facts, case.budget, decision_id=case.name)
    fired = tuple(rule.name for rule, fires in verdicts if fires)
    differences = tuple(_differences(case, decision, fired))
    notes: tuple[str, ...] = ()
    if differences:
        asleep = [name for name in case.rules if name not in fired]
        notes = (*_silence(why(policies, request, facts, case.budget), asleep), *decision.reasons)
    return Outcome(
        source=document.source,
        line=0 if case.place is None else case.place.line,
        name=case.name,
        passed=not differences,
        differences=differences,
        fired=fired,
        notes=notes,
        decision=decision,
    )


def _silence(told: Why, names: Sequence[str]) -> Iterator[str]:
    """Why rules of these names did not fire."""
    became = {one.rule.rule: one for one in told.rules}
    for name in names:
        one = became.get(name)
        words = f"it does not judge {told.decision.action}" if one is None else "; ".join(one.because)
        yield f"{name} does not fire: {words}"


def _differences(case: Case, decision: Decision, fired: tuple[str, ...]) -> Iterator[Difference]:
    if decision.effect is not case.effect:
        yield Difference(what="effect", expected=case.effect.value, got=decision.effect.value)
    asleep = [name for name in case.rules if name not in fired]
    if asleep:
        yield Difference(what="rules", expected=_list(asleep), got=_list(fired))
    awake = [name for name in case.not_rules if name in fired]
    if awake:
        yield Difference(what="not_rules", expected=f"not {_list(awake)}", got=_list(fired))
    if case.determining not in (None, decision.rule):
        yield Difference(what="determining", expected=str(case.determining), got=decision.rule or "none")
    for what, expected, got in (("score", case.score, decision.score), ("cost", case.cost, decision.cost)):
        if expected is not None and abs(expected - got) > _CLOSE:
            yield Difference(what=what, expected=f"{expected:g}", got=f"{got:g}")
    owed = tuple(sorted({obligation.kind for obligation in decision.obligations}))
    if case.obligations is not None and tuple(sorted(set(case.obligations))) != owed:
        yield Difference(what="obligations", expected=_list(case.obligations), got=_list(owed))


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _unknown_names(policies: PolicySet, documents: Iterable[Document]) -> Iterator[Fault]:
    known = {rule.name for rule in policies.rules}
    for document in documents:
        for case in document.tests:
            named = (*case.rules, *case.not_rules, *([case.determining] if case.determining else ()))
            place = case.place
            for name in dict.fromkeys(name for name in named if name not in known):
                yield Fault(
                    source=document.source,
                    line=0 if place is None else place.line,
                    column=0 if place is None else place.column,
                    path=case.name if place is None else place.path,
                    code="unknown_rule",
                    message=f"there is no rule {quoted(name)} here; {hint(name, known)}",
                )


def _cannot_but_fire(rule: Rule) -> bool:
    return rule.condition is None and rule.target == Target() and not rule.layer.rank and not rule.permissive


def _coverage(source: str, rules: Sequence[RuleUse], least: float | None) -> Coverage:
    exercised = sum(rule.exercised for rule in rules)
    share = exercised / len(rules) if rules else 1.0
    return Coverage(source=source, rules=len(rules), exercised=exercised, share=share, least=least)
