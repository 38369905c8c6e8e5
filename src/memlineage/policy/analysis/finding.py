"""What an analysis says: findings, each with its rules, a witness that was judged, and what to do about it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from memlineage.model.time import SECOND_US, iso
from memlineage.policy.combining import Request
from memlineage.policy.facts import Facts
from memlineage.policy.rule import Condition, Rule
from memlineage.policy.wording import describe

__all__ = [
    "CODES",
    "Analysis",
    "Code",
    "Edit",
    "Finding",
    "Fix",
    "Level",
    "Witness",
    "deletion",
    "made",
    "place_of",
    "worded",
]


_WORDS: Final = 240


class Level(enum.StrEnum):
    """How much a finding matters."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for note to 2 for error."""
        return list(Level).index(self)


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of finding.

    Attributes:
        name: its code.
        title: in a few words.
        help: what it means, and what it does not.
        level: how much it usually matters.
        usual: whether it is reported without being asked for.
    """

    name: str
    title: str
    help: str
    level: Level
    usual: bool


def _codes(*codes: Code) -> Mapping[str, Code]:
    return {code.name: code for code in codes}


CODES: Final = _codes(
    Code(
        name="unsatisfiable", title="can never hold", level=Level.ERROR, usual=True,
        help="No facts that are known make the rule hold. A rule that restricts may still fire where something is not "
        "known.",
    ),
    Code(
        name="duplicate", title="says the same again", level=Level.WARNING, usual=True,
        help="Two rules with the same action fire on the same requests and units, whatever is known.",
    ),
    Code(
        name="shadowed", title="changes nothing beside another rule", level=Level.WARNING, usual=True,
        help="Wherever the rule fires another one does too, and no decision differs without it: neither in effect nor "
        "in score, obligations, approval, nor in what a budget may accept.",
    ),
    Code(
        name="dead", title="changes nothing beside several others", level=Level.WARNING, usual=True,
        help="Wherever the rule fires at least one of several others does, and no decision differs without it.",
    ),
    Code(
        name="opposite", title="opposite effects at equal priority", level=Level.WARNING, usual=True,
        help="An allow and a rule that restricts have the same priority and hold of the same request and unit. The "
        "restriction stands: only an allow of higher priority overrules, and only what is overridable.",
    ),
    Code(
        name="co_fires", title="both fire on stored units", level=Level.NOTE, usual=True,
        help="Two rules of different effect hold of the same units of the store, and what one of them asks for is "
        "lost on these.",
    ),
    Code(
        name="refresh_loop", title="a refresh does not cure it", level=Level.WARNING, usual=False,
        help="A rule that asks for a refresh fires on a version of less than a second that is otherwise as before, or "
        "several of them leave no fresh version in peace.",
    ),
    Code(
        name="constant", title="the condition is always true", level=Level.NOTE, usual=False,
        help="Where the target matches and everything is known the condition is never false.",
    ),
    Code(
        name="ended", title="an exception has run out", level=Level.NOTE, usual=False,
        help="The instant under 'until' has passed; the rule is never asked again.",
    ),
    Code(
        name="idle_allow", title="an allow that overrules nothing", level=Level.NOTE, usual=False,
        help="No overridable rule of lower priority, in the same or a narrower layer, fires where the allow holds. "
        "Without it everything is decided the same.",
    ),
    Code(
        name="loosens", title="a narrower layer tries to loosen", level=Level.WARNING, usual=False,
        help="An allow of a domain or session has a higher priority than an overridable rule of a broader layer and "
        "holds of the same. It does not overrule it: a narrower layer may only tighten.",
    ),
    Code(
        name="gap", title="a list misses a source", level=Level.NOTE, usual=False,
        help="A rule refuses every creator that it does not list, and a creator that other rules, the registered "
        "principals or stored units name is not listed.",
    ),
    Code(
        name="uncovered", title="no rule of a family covers it", level=Level.NOTE, usual=False,
        help="Several rules do the same for different tags or kinds, and a tag or kind that the documents or stored "
        "units name has none of them.",
    ),
)  # fmt: skip


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """A unit and a request on which a finding shows; the interpreter has judged it.

    Attributes:
        request: the request.
        facts: everything that was known, also what other rules look at.
        shown: (table, name) of the facts that the rules of the finding look at.
        shows: what was seen, one sentence each.
    """

    request: Request
    facts: Facts
    shown: tuple[tuple[str, str], ...]
    shows: tuple[str, ...]

    def lines(self) -> list[tuple[str, str]]:
        """What to show: a word and what it is, one pair a line."""
        parts: dict[str, list[str]] = {}
        for table, name in self.shown:
            source = getattr(self.facts, table) or {}
            parts.setdefault(table, []).append(f"{name} {_told(source.get(name), name, self.facts.now_us)}")
        where = f" in domain {self.request.domain}" if self.request.domain else ""
        said = ", ".join(parts.pop("context", ()))
        lines = [("request", f"{self.request.action}{where}" + (f", {said}" if said else ""))]
        lines += [(table, ", ".join(found)) for table, found in parts.items()]
        return lines + [("shows", sentence) for sentence in self.shows]

    def as_data(self) -> dict[str, Any]:
        """As JSON data."""
        facts = self.facts
        return {
            "request": {"action": self.request.action, "domain": self.request.domain},
            "unit": dict(facts.unit),
            "old": None if facts.old is None else dict(facts.old),
            "context": dict(facts.context),
            "lineage": dict(facts.lineage),
            "now": iso(facts.now_us),
            "shows": list(self.shows),
        }


_TIMES: Final = ("timestamp", "recorded_at", "expires_at", "valid_from", "valid_to")


def _told(value: Any, name: str, now_us: int) -> str:
    if value is None:
        return "missing"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(str(item) for item in value) + "]"
    if name.endswith(_TIMES):
        seconds = (now_us - value) / SECOND_US
        return f"{_span(abs(seconds))} {'ago' if seconds >= 0 else 'from now'}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value) or '""'


def _span(seconds: float) -> str:
    parts = []
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        whole, seconds = divmod(seconds, size)
        if whole:
            parts.append(f"{whole:,.0f} {word}")
    if seconds or not parts:
        parts.append(f"{seconds:.6f}".rstrip("0").rstrip(".") + " s")
    return " ".join(parts)


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a document that a program could make.

    Attributes:
        rule: name of the rule.
        change: `delete` the rule, or `set` a key of it.
        key: which; empty for delete.
        value: to what.
    """

    rule: str
    change: str
    key: str = ""
    value: Any = None


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """What to do.

    Attributes:
        text: in words.
        edits: the same as changes, where it comes to that.
    """

    text: str
    edits: tuple[Edit, ...] = ()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was found.

    Attributes:
        code: one of `CODES`.
        level: how much it matters here.
        message: what is the matter, in a sentence.
        rules: the rule that it is about first, then those that it is about too.
        witness: where it shows; None only where nothing shows it, because the rule can never fire.
        fix: what to do.
    """

    code: str
    level: Level
    message: str
    rules: tuple[Rule, ...]
    witness: Witness | None
    fix: Fix

    @property
    def rule(self) -> Rule:
        """The rule that it is about."""
        return self.rules[0]

    def as_data(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "code": self.code,
            "level": self.level.value,
            "message": self.message,
            "rules": [{"name": rule.name, "layer": str(rule.layer), "place": place_of(rule)} for rule in self.rules],
            "witness": None if self.witness is None else self.witness.as_data(),
            "fix": {"text": self.fix.text, "edits": [msgspec.to_builtins(edit) for edit in self.fix.edits]},
        }


def made(
    code: str,
    rules: tuple[Rule, ...],
    message: str,
    fix: Fix,
    witness: Witness | None = None,
    level: Level | None = None,
) -> Finding:
    """A finding, at the usual level of its code unless another is given."""
    return Finding(
        code=code, level=level or CODES[code].level, message=message, rules=rules, witness=witness, fix=fix
    )  # fmt: skip


def deletion(rule: Rule, text: str) -> Fix:
    """To delete a rule."""
    return Fix(text=text, edits=(Edit(rule=rule.name, change="delete"),))


def worded(condition: Condition) -> str:
    """A condition in words, cut to a readable length."""
    text = describe(condition)
    return text if len(text) <= _WORDS else f"{text[:_WORDS]}…"


def place_of(rule: Rule) -> str:
    """Where a rule stands, as editors read it: file:line:column."""
    place = rule.place
    if place is None:
        return "<python>"
    return f"{place.source}:{place.line}:{place.column}" if place.line else place.source


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `analyse`.

    Attributes:
        findings: most severe first, then in the order of the rules.
        rules: how many rules were looked at.
        units: how many stored units were looked at.
        undecided: questions that the bounds on work left open, by code; none of them is a finding.
        revision: of the policy set.
    """

    findings: tuple[Finding, ...]
    rules: int
    units: int
    undecided: Mapping[str, int]
    revision: str

    def at_least(self, level: Level) -> tuple[Finding, ...]:
        """The findings of that level and above."""
        return tuple(finding for finding in self.findings if finding.level.rank >= level.rank)

    def text(self) -> str:
        """All of it for people, one block per finding."""
        blocks = []
        for finding in self.findings:
            lines = [f"{finding.level}: {finding.message} [{finding.code}]"]
            lines += [f"  {rule.name}  {place_of(rule)}" for rule in finding.rules]
            shown = [] if finding.witness is None else finding.witness.lines()
            lines += [f"  {word:<8} {told}" for word, told in (*shown, ("fix", finding.fix.text))]
            blocks.append("\n".join(lines))
        return "\n\n".join((*blocks, self.summary()))

    def summary(self) -> str:
        """One line: how much was looked at and found."""
        said = f"{_count(len(self.findings), 'finding')} in {_count(self.rules, 'rule')}"
        if self.units:
            said += f" and {_count(self.units, 'unit')}"
        left = sum(self.undecided.values())
        return said + (f"; {_count(left, 'question')} left open" if left else "")

    def to_sarif(self) -> dict[str, Any]:
        """The same as a SARIF 2.1.0 log."""
        from memlineage.policy.analysis.sarif import log

        return log(self)

    def as_data(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "findings": [finding.as_data() for finding in self.findings],
            "rules": self.rules,
            "units": self.units,
            "undecided": dict(self.undecided),
            "revision": self.revision,
        }


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
