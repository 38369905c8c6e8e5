"""StateBench: the rule that turns its data into acts, the counting, and the data themselves where they are at hand."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from memlineage.evaluation import bench
from memlineage.evaluation.keeping import Shelf
from memlineage.evaluation.reporting import to_markdown, to_tables
from memlineage.evaluation.statebench import StateRow, statebench
from memlineage.evaluation.statebench.cases import FILES, TRACKS, Ask, Case, Say, Write, read_cases
from memlineage.evaluation.statebench.memories import Handed
from memlineage.evaluation.statebench.running import score
from memlineage.evaluation.statebench.scoring import Tally


def written(name: str, key: str, value: str, source: str = "user", **given: Any) -> dict[str, Any]:
    entry = {"id": name, "layer": "persistent_facts", "key": key, "value": value, "supersedes": None, "depends_on": []}
    return {**entry, "source": {"type": source, "identity": None, "authority": "peer"}, **given}


def event(minute: int, kind: str, *writes: dict[str, Any]) -> dict[str, Any]:
    return {"ts": f"2025-12-01T09:{minute:02}:00", "type": kind, "writes": list(writes)}


def asked(minute: int, prompt: str, must: list[str], must_not: list[str]) -> dict[str, Any]:
    truth = {"must_mention": must, "must_not_mention": must_not}
    return {"ts": f"2025-12-01T09:{minute:02}:00", "type": "query", "prompt": prompt, "ground_truth": truth}


def said(minute: int, text: str, speaker: str = "user") -> dict[str, Any]:
    return {"ts": f"2025-12-01T09:{minute:02}:00", "type": "conversation_turn", "speaker": speaker, "text": text}


def timeline(track: str, *events: dict[str, Any], **state: Any) -> dict[str, Any]:
    start = {"persistent_facts": [], "environment": {"now": "2025-12-01T09:00:00"}, **state}
    return {"id": "T-1", "track": track, "initial_state": start, "events": list(events)}


CHAIN = timeline(
    "dependency_chain",
    event(1, "state_write", written("BASE", "salary", "base salary is $100k")),
    event(2, "state_write", written("TOP", "total", "total pay is $120k", depends_on=["BASE"])),
    event(3, "supersession", written("BASE2", "salary", "base salary is now $130k", supersedes="BASE")),
    asked(4, "What is the total pay?", ["$130k", "recalculat"], ["$120k"]),
)
REPAIR = timeline(
    "repair_propagation",
    said(1, "Say hello to 200 people"),
    event(2, "supersession", written("W", "budget2", "the budget is $120", supersedes="budget")),
    event(3, "state_write", written("W", "left", "$50 are left")),
    event(4, "supersession", written("W", "left2", "[INVALIDATED - wrong] was: $50 are left", supersedes="left")),
    asked(5, "What is the budget?", ["$120", "hello"], ["$200", "$50"]),
    persistent_facts=[{**written("F", "budget", "the budget is $200", "policy"), "ts": "2025-12-01T08:00:00"}],
    environment={"now": "2025-12-01T09:00:00", "deadline": "in two weeks"},
)


def folder(path: Path, *timelines: dict[str, Any]) -> Path:
    (path / "statebench").mkdir()
    for name in FILES:
        lines = [json.dumps(each) for each in timelines] if name == "dev.jsonl" else []
        (path / "statebench" / name).write_text("\n".join(lines), encoding="utf-8")
    return path


def rows(path: Path, *timelines: dict[str, Any]) -> dict[tuple[str, str], StateRow]:
    return {(row.contents, row.memory): row for row in statebench(folder(path, *timelines))}


def figures(row: StateRow) -> tuple[float, ...]:
    return (row.ceiling, row.met, row.met_with_notice, row.avoided, row.right)


def test_data_become_acts_by_one_rule(tmp_path: Path) -> None:
    [case] = read_cases(folder(tmp_path, REPAIR) / "statebench")
    shown = [
        (act.creator, act.text, act.supersedes, act.void) if isinstance(act, Write) else act.text for act in case.acts
    ]
    assert shown == [
        ("system", "the budget is $200", None, False),
        ("system", "in two weeks", None, False),
        "Say hello to 200 people",
        ("user:u1", "the budget is $120", "budget", False),
        ("user:u1", "$50 are left", None, False),
        ("user:u1", "[INVALIDATED - wrong] was: $50 are left", "left", True),
        "What is the budget?",
    ]


def test_tracks_about_other_things_are_left_out(tmp_path: Path) -> None:
    there = folder(tmp_path, CHAIN, timeline("scope_leak"), timeline("hallucination_resistance")) / "statebench"
    assert [case.track for case in read_cases(there)] == ["dependency_chain"]


def test_what_was_derived_from_something_replaced_does_not_reach_the_model(tmp_path: Path) -> None:
    found = rows(tmp_path, CHAIN)
    assert {memory: figures(found["facts", memory]) for memory in ("memlineage", "corrected", "log", "empty")} == {
        "memlineage": (0.5, 0.5, 1.0, 1.0, 1.0),
        "corrected": (0.5, 0.5, 0.5, 0.0, 0.0),
        "log": (0.5, 0.5, 0.5, 0.0, 0.0),
        "empty": (0.5, 0.0, 0.0, 1.0, 0.0),
    }


def test_a_correction_reaches_every_memory_that_can_take_it_in(tmp_path: Path) -> None:
    found = rows(tmp_path, REPAIR)
    assert {memory: figures(found["facts", memory]) for memory in ("memlineage", "corrected", "log", "empty")} == {
        "memlineage": (0.5, 0.5, 0.5, 1.0, 1.0),
        "corrected": (0.5, 0.5, 0.5, 1.0, 1.0),
        "log": (0.5, 0.5, 0.5, 0.0, 0.0),
        "empty": (0.5, 0.0, 0.0, 1.0, 0.0),
    }


def test_turns_are_among_what_is_given_only_where_the_row_says_so(tmp_path: Path) -> None:
    found = rows(tmp_path, REPAIR)
    assert [
        (found[contents, "memlineage"].ceiling, found[contents, "log"].met) for contents in ("facts", "+ turns")
    ] == [
        (0.5, 0.5),
        (1.0, 1.0),
    ]


def test_only_phrases_that_were_given_count_as_temptations_and_none_is_met_by_its_absence() -> None:
    tally = Tally()
    ask = Ask(at=None, text="?", must=("Tea", "milk"), must_not=("coffee", "gin"))  # type: ignore[arg-type]
    tally.add(ask, "tea not coffee", Handed("TEA"))
    tally.add(ask, "tea not coffee", Handed("tea", "coffee"))
    tally.add(ask, "water", Handed("water"))
    row = tally.row("t", "facts", "m")
    assert (row.questions, row.obligations, row.temptations, row.answerable) == (3, 6, 2, 2)
    assert figures(row) == (0.3333, 0.3333, 0.3333, 0.5, 0.5)


def test_a_case_scores_the_same_twice() -> None:
    case = Case(name="c", track=TRACKS[0], acts=())
    assert score([case]) == score([case])


def test_a_report_has_three_tables_and_says_what_was_skipped(tmp_path: Path) -> None:
    state = tuple(statebench(folder(tmp_path, CHAIN)))
    report = bench.Report(machine={}, state=state, skipped=("StateBench: no [folder]",))
    out = StringIO()
    to_tables(report, Console(file=out, width=160))
    lines = [line for line in to_markdown(report).splitlines() if line.startswith("| dependency_chain | facts")]
    assert lines == [
        "| dependency_chain | facts | 2 | 0.50 | 0.50 | 0.50 | 0.50 | 0.00 | 1.00 |",
        "| dependency_chain | facts | 1 | 1.00 | 0.00 | 0.00 | 1.00 |",
        "| dependency_chain | facts | 1 | 1.00 | 0.00 | 0.00 | 0.00 |",
    ]
    assert "Skipped: StateBench: no [folder]" in out.getvalue()


@pytest.mark.parametrize("given", [None, "nowhere"])
def test_without_the_data_it_is_skipped_with_a_reason(
    given: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "recall_rows", list)
    report = bench.measure(["recall"], [], Shelf(tmp_path), None if given is None else tmp_path / given)
    assert (report.state, [("--data" in why, "MEMLINEAGE_DATA" in why) for why in report.skipped]) == (
        (),
        [(True, True)],
    )


def as_told(track: str, found: dict[tuple[str, str, str], StateRow]) -> str:
    """The line of a track in the table of the docs."""
    rows = [found[track, "facts", memory] for memory in ("memlineage", "corrected", "log")]
    own = rows[0]
    avoided = [row.avoided if row.temptations else None for row in rows]
    shares = [own.ceiling, own.met, own.met_with_notice, *avoided, *(row.right for row in rows)]
    cells = ["–" if share is None else f"{int(share * 100 + 1e-9) / 100:.2f}".removeprefix("0") for share in shares]
    return f"| {track} | {own.questions} | {' | '.join(cells)} |"


def test_the_data_set_comes_out_as_the_docs_say(external_data: Path) -> None:
    found = {(row.track, row.contents, row.memory): row for row in statebench(external_data)}
    facts = {track: found[track, "facts", "memlineage"] for track in TRACKS}
    flat = {track: found[track, "facts", "corrected"] for track in TRACKS}
    empty = [found[track, contents, "empty"] for track in TRACKS for contents in ("facts", "+ turns")]
    assert {track: row.questions for track, row in facts.items()} == {
        "supersession": 162, "dependency_chain": 20, "repair_propagation": 110, "environmental_freshness": 96,
        "commitment_durability": 90, "authority_hierarchy": 90, "causality": 90, "brutal_realistic": 333,
        "supersession_detection": 90,
    }  # fmt: skip
    assert [(row.met, row.avoided, row.right) for row in empty] == [(0.0, 1.0, 0.0)] * len(empty)
    chain, direct, repair = facts["dependency_chain"], facts["supersession"], facts["repair_propagation"]
    assert (chain.ceiling, chain.met, chain.met_with_notice, chain.avoided, chain.right) == (0.5, 0.5, 1.0, 1.0, 1.0)
    assert flat["dependency_chain"].avoided == 0.0
    assert (direct.met, direct.avoided > 0.98, direct.right > 0.98) == (1.0, True, True)
    assert (repair.met == repair.ceiling, repair.avoided > 0.94, repair.right > 0.87) == (True, True, True)
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "what-reaches-the-model.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith(tuple(f"| {track} |" for track in TRACKS))]
    assert lines == [as_told(track, found) for track in TRACKS]


def test_a_turn_of_the_assistant_is_not_the_users_word(tmp_path: Path) -> None:
    case = timeline("supersession", said(1, "Noted.", "assistant"), said(2, "Thanks."))
    [read] = read_cases(folder(tmp_path, case) / "statebench")
    assert [act.creator for act in read.acts if isinstance(act, Say)] == ["agent:assistant", "user:u1"]
