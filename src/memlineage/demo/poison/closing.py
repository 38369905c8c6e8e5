"""Scene 8: the week is compared with a flat memory's."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from memlineage.demo.banking import ATTACKER_IBAN
from memlineage.demo.poison.stage import PoisonStage
from memlineage.demo.scene import Check, Line, Scene
from memlineage.demo.stage import compared, inspections
from memlineage.engine.reports import VerifyReport

__all__ = ["the_week_with_a_flat_memory"]

_INSPECT: Final = {"impact": ["mail 2"], "explain": ["summary", "payment 2"], "history": ["account"]}


def the_week_with_a_flat_memory(stage: PoisonStage, told: Sequence[Scene], kept: str | None) -> Scene:
    """The comparison, computed from what both really did."""
    table, harmed, count = compared(told)
    begun = time.perf_counter()
    record = stage.memory.verify()
    checking = time.perf_counter() - begun
    lost = [due for iban, due in stage.flat.outside.bank.sent if iban == ATTACKER_IBAN]
    commands = () if kept is None else ("Look into it:", *inspections(stage, kept, "alice", _INSPECT))
    return Scene(
        number=len(told) + 1,
        title="The same week with a flat memory",
        clock=stage.time,
        lines=(
            Line("story", "The same agents, the same words, the same tools, the same embedder: a list of texts."),
            Line("story", "It is a fair one: what Alice corrects is replaced, the mail she names is deleted."),
            Line("story", f"It lost {_total(lost)}. Here nothing was lost, and every invoice was paid."),
            Line("memory", f"verify: {_verified(record)}"),
        ),
        blocks=(table,),
        facts={"flat_harmed_in": harmed, "flat_lost": lost, "events": record.events, "verified": record.ok},
        checks=(
            Check("every scene before came out as told", all(scene.ok for scene in told)),
            Check("the comparison covers every scene", count == len(told)),
            Check("all four invoices were paid here", len(stage.desk.outside.bank.sent) == 4),
            Check("the record of it verifies, from the first event to the last", record.ok),
        ),
        measured={"verify took": checking},
        commands=commands,
    )


def _verified(record: VerifyReport) -> str:
    rows = sum(record.rows.values())
    if not record.ok:
        return f"{record.found} entries do not fit, first {record.first}"
    return f"{record.events} events and {rows} rows fit one another; nobody has rewritten who said what."


def _total(lost: Sequence[str]) -> str:
    return f"{sum(int(due.removesuffix(' EUR')) for due in lost)} EUR in {len(lost)} payments"
