"""How decisions, refusals and faults look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from memlineage.cli.answers import as_data
from memlineage.cli.rendering import block, count_of, facts, frame, rows, when, words
from memlineage.errors import PolicyDocumentError, PolicyViolationError
from memlineage.model.time import from_us

__all__ = [
    "decided_at",
    "decision_panel",
    "decision_table",
    "effect_style",
    "fault_lines",
    "show_error",
    "support_table",
]

_UUID: Final = 36
_TAIL: Final = 8
_EFFECTS: Final = {"allow": "green", "flag": "yellow", "ask": "yellow", "withhold": "magenta", "deny": "red"}


def show_error(error: Exception, message: str) -> Iterator[RenderableType]:
    """An error for people: a refusal as its decision, faults as a table, all else as a sentence."""
    if isinstance(error, PolicyViolationError):
        yield decision_panel(as_data(error.decision))
    elif isinstance(error, PolicyDocumentError) and error.faults:
        yield from fault_lines(as_data(error.faults))
    else:
        yield Text.assemble(("✗ ", "bold red"), block(message))


def decision_panel(decision: dict[str, Any]) -> RenderableType:
    """One decision: effect, rule, reasons, unit, what was found for each argument."""
    style = effect_style(decision["effect"])
    title = Text.assemble((decision["effect"], f"bold {style}"), " ", words(decision["action"], "bold"))
    parts: list[RenderableType] = [facts(_decision_facts(decision))]
    support = [item for item in decision["support"] if isinstance(item, dict)]
    if support:
        parts.append(support_table(support))
    return frame(parts, title=title, foot=words(f"decision {decision['id']}", "dim"), style=style)


def _decision_facts(decision: dict[str, Any]) -> Iterator[tuple[str, RenderableType]]:
    if decision["determining"]:
        yield "rule", words(", ".join(decision["determining"]), "bold")
    for reason in decision["reasons"]:
        yield "reason", words(reason.removeprefix(f"{(decision['determining'] or ['?'])[0]}: "))
    if decision["unit"]:
        yield "unit", words(decision["unit"], "cyan")
    if decision["path"]:
        yield "path", words(" → ".join(decision["path"]))
    for name in ("rules", "flags", "errors"):
        if decision[name] and decision[name] != decision["determining"]:
            yield name, words(", ".join(decision[name]))
    if decision["obligations"]:
        yield "must", words(", ".join(f"{item['kind']} ({item['rule']})" for item in decision["obligations"]))
    if decision["score"] < 1 and decision["effect"] != "deny":
        yield "score", words(f"{decision['score']:.2f}")
    if decision["cost"]:
        yield "cost", words(f"{decision['cost']:g}")
    if decision["approval"]:
        yield "approval", words(decision["approval"])
    yield "decided", words(when(decided_at(decision["id"])))
    yield "policy", words(decision["revision"][:12])


def effect_style(effect: str) -> str:
    """The colour of an effect."""
    return _EFFECTS.get(effect, "red")


def support_table(support: Sequence[dict[str, Any]]) -> Table:
    """What was found for each argument."""
    table = rows("argument", "value", "supported", "why")
    for item in support:
        mark = Text("● yes", style="green") if item["supported"] else Text("✗ no", style="red")
        table.add_row(words(item["argument"]), words(item["value"]), mark, words(item["reason"]))
    return table


def decision_table(decisions: Sequence[dict[str, Any]]) -> Table:
    """Decisions from the log, newest first."""
    table = rows("id", "when", "decision", "unit", "why")
    for decision in decisions:
        table.add_row(
            Text(decision["id"][-_TAIL:], style="cyan", no_wrap=True),
            Text(decided_at(decision["id"]).strftime("%m-%d %H:%M"), style="dim", no_wrap=True),
            Text.assemble((decision["effect"], _EFFECTS.get(decision["effect"], "")), " ", words(decision["action"])),
            Text((decision["unit"] or "")[_UUID - _TAIL :], style="cyan", no_wrap=True),
            _why(decision),
        )
    return table


def _why(decision: dict[str, Any]) -> Text:
    """The determining rule and its reason, and what rules in shadow mode would have done; else nothing."""
    lines = []
    if decision["determining"]:
        rule = decision["determining"][0]
        reason = next((said for said in decision["reasons"] if said.startswith(rule)), "").removeprefix(f"{rule}: ")
        lines.append(Text.assemble(words(rule, "yellow"), "  ", words(reason)))
    lines += [words(f"{tried['rule']} would {tried['action']} (shadow)", "dim") for tried in decision["shadow"]]
    return Text("\n").join(lines)


def decided_at(decision: str) -> datetime:
    """The instant in a decision's id, a UUIDv7 (RFC 9562): its first 48 bits are milliseconds."""
    return from_us(int(decision.replace("-", "")[:12], 16) * 1000)


def fault_lines(faults: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    """Faults of policy documents in document order, each with its place as editors and CI read it."""
    for fault in faults:
        place = f"{fault['source']}:{fault['line']}:{fault['column']}" if fault["line"] else fault["source"]
        yield Text.assemble(words(place, "cyan"), "  ", words(fault["path"], "bold"))
        yield Text.assemble("    ", words(fault["message"]), words(f"  [{fault['code']}]", "dim"))
    yield Text(f"✗ {count_of(len(faults), 'fault')}", style="bold red")
