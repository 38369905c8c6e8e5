"""impact, trace, explain."""

from typing import Any

import memlineage as ml


def test_impact_lists_descendants_with_paths_and_what_would_become_of_them(desk: Any, trip: dict[str, str]) -> None:
    found = desk.ask("impact", trip["city"])
    told = {item["unit"]["id"]: (len(item["path"]), item["would_be"]) for item in found["affected"]}
    assert told == {
        trip["flight"]: (2, "contaminated"), trip["hotel"]: (2, "contaminated"), trip["plan"]: (3, "contaminated")
    }  # fmt: skip


def test_impact_is_drawn_as_a_tree_of_shortest_paths(desk: Any, trip: dict[str, str]) -> None:
    lines = desk.run("impact", trip["city"]).splitlines()
    below = next(n for n, line in enumerate(lines) if trip["plan"][-8:] in line)
    assert lines[0].startswith(trip["city"][-8:])
    assert lines[below].startswith("│   └── ")
    assert "active → ✗ contaminated" in lines[below]
    assert "3 of 3 would change" in lines[-1]


def test_impact_changes_nothing(desk: Any, trip: dict[str, str]) -> None:
    desk.run("impact", trip["city"])
    assert desk.ask("get", trip["plan"])["status"] == "active"


def test_impact_of_a_leaf_says_that_nothing_rests_on_it(desk: Any, trip: dict[str, str]) -> None:
    assert "Nothing was concluded from it" in desk.run("impact", trip["plan"])


def test_trace_tells_each_ancestor_once_in_reading_order(desk: Any, trip: dict[str, str]) -> None:
    lines = desk.run("trace", trip["plan"]).splitlines()
    assert sum("Destination is Kyoto" in line for line in lines) == 1
    assert [line.strip("│├└─ ")[:8] for line in lines] == [
        trip[name][-8:] for name in ("plan", "flight", "city", "hotel", "city")
    ]
    assert lines[-1].endswith("(told above)")


def test_trace_shows_why_something_is_down(desk: Any, trip: dict[str, str]) -> None:
    desk.run("invalidate", trip["flight"], "--reason", "feed was stale")
    assert "invalid by user:alice: feed was stale" in desk.run("trace", trip["plan"])


def test_trace_to_a_unit_is_one_chain(desk: Any, trip: dict[str, str]) -> None:
    found = desk.ask("trace", trip["plan"], "--to", trip["city"][-8:])
    assert [unit["id"] for unit in found["units"]] == [trip["city"], trip["flight"], trip["plan"]]
    assert "Ryokan Aoi, 3 nights" not in desk.run("trace", trip["plan"], "--to", trip["city"])


def test_trace_to_something_unrelated_is_misuse(desk: Any, trip: dict[str, str]) -> None:
    assert "does not descend" in desk.run("trace", trip["plan"], "--to", trip["tips"], code=2)


def test_a_long_chain_is_told_as_a_table_of_any_width(desk: Any) -> None:
    chain = [desk.store("step 0")]
    for n in range(1, 15):
        chain.append(desk.store(f"step {n}", "-d", chain[-1]))
    for words in (("trace", chain[-1]), ("impact", chain[0])):
        shown = desk.run(*words, env={"COLUMNS": "80"})
        assert all(unit[-8:] in shown for unit in chain)
        assert max(map(len, shown.splitlines()[:-1])) <= 80


def test_explain_speaks_english_and_chinese(desk: Any, trip: dict[str, str]) -> None:
    desk.run("invalidate", trip["flight"], "--reason", "feed was stale")
    assert "It is held down by “NH203 costs 612 USD”" in desk.run("explain", trip["plan"])
    assert "受污染" in desk.run("explain", trip["plan"], "--lang", "zh")


def test_explain_draws_for_other_programs(desk: Any, trip: dict[str, str]) -> None:
    mermaid = desk.run("explain", trip["plan"], "--format", "mermaid")
    dot = desk.run("explain", trip["plan"], "--format", "dot")
    assert mermaid.startswith("flowchart TD\n")
    assert dot.startswith("digraph lineage {\n")
    assert dot.rstrip().endswith("}")


def test_a_drawing_is_never_broken_by_the_width_of_the_terminal(desk: Any, trip: dict[str, str]) -> None:
    narrow = desk.run("explain", trip["plan"], "--format", "mermaid", env={"COLUMNS": "20"})
    assert narrow == desk.run("explain", trip["plan"], "--format", "mermaid")


def test_an_explanation_as_data_is_what_people_read(desk: Any, trip: dict[str, str]) -> None:
    told = desk.ask("explain", trip["plan"], "--format", "dot")
    assert (told["ref"], told["format"]) == (f"{trip['plan']}@1", "dot")
    assert told["text"] + "\n" == desk.run("explain", trip["plan"], "--format", "dot")


def test_a_language_that_is_not_there_is_misuse(desk: Any, trip: dict[str, str]) -> None:
    assert desk.ask("explain", trip["plan"], "--lang", "xx", code=2)["error"]["type"] == "InvalidInputError"
    assert desk.ask("explain", trip["plan"], "--format", "svg", code=2)["error"]["type"] == "UsageError"


def test_one_action_is_one(desk: Any, trip: dict[str, str]) -> None:
    with ml.Memory.open(desk.file, embedder="lexical", background=False) as memory:
        memory.register_tool("book", lambda: "booked")
        memory.scope(user="alice").act("book", {}, justification=[trip["city"]])
    assert "; 1 is an action already taken." in desk.run("impact", trip["city"]).replace("\n", " ")
    assert "; 0 are actions already taken." in desk.run("impact", trip["flight"]).replace("\n", " ")
