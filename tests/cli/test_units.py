"""store, get, retrieve, list, update, delete, history, init."""

from pathlib import Path
from typing import Any

import pytest


def test_what_is_stored_is_shown_with_all_that_was_said_of_it(desk: Any) -> None:
    city = desk.store("Destination is Kyoto")
    unit = desk.store(
        "NH203 costs 612 USD", "--creator", "tool:flight_api", "--creator-id", "call_1", "--kind", "quote",
        "--tag", "price", "--tag", "flight", "--subject", "trip", "--key", "price", "-d", f"{city}=0.4",
        "--confidence", "0.9", "--timestamp", "2026-01-02T09:30:00+09:00", "--owner", "agent:planner",
        "--metadata", '{"run": 12}', "--meta", "source=gds", "--pinned", "--expires-at", "2999-01-01T00:00:00Z",
    )  # fmt: skip
    shown = desk.ask("get", unit)
    assert {
        "creator": shown["creator"], "creator_id": shown["lineage"]["creator_id"], "kind": shown["kind"],
        "tags": shown["tags"], "subject": shown["subject"], "key": shown["key"], "confidence": shown["confidence"],
        "timestamp": shown["lineage"]["timestamp"], "owner": shown["owner"], "metadata": shown["metadata"],
        "pinned": shown["pinned"], "expires_at": shown["expires_at"], "status": shown["status"],
        "integrity": shown["integrity"], "standing": shown["standing"], "ref": shown["ref"],
        "edges": shown["lineage"]["dependencies"],
    } == {
        "creator": "tool:flight_api", "creator_id": "call_1", "kind": "quote", "tags": ["flight", "price"],
        "subject": "trip", "key": "price", "confidence": 0.9, "timestamp": "2026-01-02T09:30:00+09:00",
        "owner": "agent:planner", "metadata": {"run": 12, "source": "gds"}, "pinned": True,
        "expires_at": "2999-01-01T00:00:00+00:00", "status": "active", "integrity": "INTERNAL",
        "standing": "supported", "ref": f"{unit}@1",
        "edges": [{"parent": f"{city}@1", "weight": 0.4, "role": "depends", "justification": 0}],
    }  # fmt: skip


def test_a_panel_shows_content_origin_and_lineage(desk: Any, trip: dict[str, str]) -> None:
    shown = desk.run("get", trip["flight"])
    for part in ("NH203 costs 612 USD", "tool:flight_api", "● active", "INTERNAL", f"{trip['city'][-8:]}@1", "price"):
        assert part in shown


def test_content_is_read_from_standard_input(desk: Any) -> None:
    unit = desk.ask("store", "-", input="first line\nsecond line\n")
    assert unit["content"] == "first line\nsecond line"


@pytest.mark.parametrize("digits", [4, 8, 12, 36])
def test_the_tail_of_an_id_names_the_unit(desk: Any, digits: int) -> None:
    unit = desk.store("Destination is Kyoto")
    assert desk.ask("get", unit[-digits:])["id"] == unit


def test_a_short_ref_as_printed_names_its_version(desk: Any, trip: dict[str, str]) -> None:
    desk.run("update", trip["city"], "Destination is Osaka")
    printed = f"{trip['city'][-8:]}@1"
    assert printed in desk.run("history", trip["city"])
    assert desk.ask("get", printed)["content"] == "Destination is Kyoto"


def test_a_tail_of_several_ids_is_refused_with_the_candidates(desk: Any) -> None:
    seen: dict[str, str] = {}
    while True:
        unit = desk.store(f"note {len(seen)}")
        if unit[-1] in seen:
            break
        seen[unit[-1]] = unit
    error = desk.ask("get", unit[-1], code=2)["error"]
    assert error["type"] == "InvalidInputError"
    assert unit in error["message"]
    assert seen[unit[-1]] in error["message"]


def test_a_tail_never_reaches_into_other_walls(desk: Any) -> None:
    unit = desk.store("Alice's secret", user="alice")
    error = desk.ask("get", unit[-8:], user="bob", code=1)["error"]
    assert (error["type"], "secret" in error["message"]) == ("UnknownUnitError", False)


def test_an_unknown_unit_is_found_wanting(desk: Any) -> None:
    assert desk.ask("get", "01890000-0000-7000-8000-000000000000", code=1)["error"]["type"] == "UnknownUnitError"


def test_an_update_keeps_labels_and_drops_lineage(desk: Any, trip: dict[str, str]) -> None:
    unit = desk.ask("update", trip["flight"], "NH203 costs 640 USD", "--creator", "tool:flight_api")
    parents = [edge["role"] for edge in unit["lineage"]["dependencies"]]
    assert (unit["version"], unit["tags"], parents) == (2, ["price"], ["revises"])


def test_an_update_of_an_older_version_names_the_winner(desk: Any, trip: dict[str, str]) -> None:
    desk.run("update", trip["city"], "Destination is Osaka")
    error = desk.ask("update", trip["city"], "Destination is Nara", "--if-version", "1", code=1)["error"]
    assert (error["type"], error["winner"]) == ("ConflictError", f"{trip['city']}@2")


def test_history_lists_every_version_with_what_is_held_against_it(desk: Any, trip: dict[str, str]) -> None:
    desk.run("update", trip["city"], "Destination is Osaka")
    desk.run("retract", trip["city"], "--reason", "undecided")
    units = desk.ask("history", trip["city"])["units"]
    assert [(unit["version"], unit["status"]) for unit in units] == [(1, "superseded"), (2, "retracted")]
    assert "retracted by user:alice: undecided" in desk.run("history", trip["city"])


def test_delete_retracts_and_destroys_nothing(desk: Any, trip: dict[str, str]) -> None:
    done = desk.ask("delete", trip["hotel"], "--reason", "closed")
    unit = desk.ask("get", trip["hotel"])
    assert (done["unit"]["status"], unit["content"]) == ("retracted", "Ryokan Aoi, 3 nights")


def test_list_shows_what_may_be_read_and_names_what_is_withheld(desk: Any, trip: dict[str, str]) -> None:
    desk.run("invalidate", trip["flight"])
    page = desk.ask("list")
    assert {unit["id"] for unit in page["units"]} == {trip["city"], trip["hotel"], trip["tips"]}
    assert {held["ref"] for held in page["withheld"]} == {f"{trip['flight']}@1", f"{trip['plan']}@1"}
    shown = desk.run("list")
    assert "Withheld: 2" in shown
    assert trip["plan"][-8:] in shown


def test_list_by_status_finds_what_is_out_of_use(desk: Any, trip: dict[str, str]) -> None:
    desk.run("invalidate", trip["flight"])
    found = desk.ask("list", "--status", "invalid", "--status", "contaminated")["units"]
    assert [unit["id"] for unit in found] == [trip["flight"], trip["plan"]]


def test_list_filters_by_tag_kind_and_filter_together(desk: Any, trip: dict[str, str]) -> None:
    desk.store("JL5 costs 700 USD", "--tag", "price", "--confidence", "0.2")
    dear = desk.store("JL7 costs 900 USD", "--tag", "price", "--confidence", "0.8")
    wanted = '{"confidence": {"gte": 0.5}, "recorded_at": {"gt": "2020-01-01T00:00:00Z"}}'
    found = desk.ask("list", "--tag", "price", "--kind", "fact", "--filter", wanted)["units"]
    assert [unit["id"] for unit in found] == [dear]


def test_retrieve_ranks_scores_and_names_what_is_withheld(desk: Any, trip: dict[str, str]) -> None:
    desk.run("invalidate", trip["flight"])
    found = desk.ask("retrieve", "NH203 costs")
    assert f"{trip['flight']}@1" in {held["ref"] for held in found["withheld"]}
    assert trip["flight"] not in {unit["id"] for unit in found["units"]}
    assert {unit["ref"] for unit in found["units"]} == set(found["scores"])
    assert "Withheld" in desk.run("retrieve", "NH203 costs")


def test_critical_retrieval_withholds_what_is_pending(desk: Any, trip: dict[str, str]) -> None:
    desk.run("update", trip["city"], "Destination is Osaka")
    relaxed = desk.ask("retrieve", "Ryokan Aoi nights")
    strict = desk.ask("retrieve", "Ryokan Aoi nights", "--critical")
    hotel = f"{trip['hotel']}@1"
    assert hotel in {unit["ref"] for unit in relaxed["units"]}
    assert hotel in {held["ref"] for held in strict["withheld"]}


def test_retrieve_shows_what_the_user_laid_down_apart(desk: Any) -> None:
    desk.store("I don't drink coffee", "--kind", "constraint")
    desk.store("The hotel has a bar")
    found = desk.ask("retrieve", "where is the bar?")
    assert [unit["content"] for unit in found["constraints"]] == ["I don't drink coffee"]
    assert "Constraints" in desk.run("retrieve", "where is the bar?")


def test_retrieve_gives_the_block_for_a_model(desk: Any, trip: dict[str, str]) -> None:
    shown = desk.run("retrieve", "carry cash", "--prompt")
    assert shown.startswith("<memories")
    assert 'from="external:web"' in shown


def test_an_empty_memory_says_so(desk: Any) -> None:
    assert "Nothing to list" in desk.run("list")
    assert "Nothing was found" in desk.run("retrieve", "anything")


def test_init_makes_a_file_once_and_then_only_checks_it(desk: Any, tmp_path: Path) -> None:
    new = str(tmp_path / "new.db")
    first = desk.type("init", new, "--embedder", "lexical")
    desk.type("store", "kept", "--db", new, "--user", "alice")
    second = desk.type("init", new)
    assert (first.exit_code, "Made" in first.output) == (0, True)
    assert (second.exit_code, "Already a memory" in second.output) == (0, True)
    assert "kept" in desk.type("list", "--db", new, "--user", "alice").output


def test_reading_never_makes_a_file(desk: Any, tmp_path: Path) -> None:
    typo = tmp_path / "tripp.db"
    result = desk.type("list", "--db", str(typo), "--user", "alice")
    assert (result.exit_code, typo.exists(), "memlineage init" in result.stderr) == (1, False, True)


def test_the_environment_names_the_file(desk: Any, trip: dict[str, str]) -> None:
    result = desk.type("list", "--user", "alice", env={"MEMLINEAGE_DB": str(desk.file)})
    assert "Destination is Kyoto" in result.stdout


def test_an_option_wins_over_the_environment(desk: Any, trip: dict[str, str], tmp_path: Path) -> None:
    result = desk.type(
        "list", "--user", "alice", "--db", str(desk.file), env={"MEMLINEAGE_DB": str(tmp_path / "other.db")}
    )
    assert "Destination is Kyoto" in result.stdout


def test_sessions_and_agents_see_what_visibility_allows(desk: Any) -> None:
    desk.store("for one session only", "--session", "s1", "--visibility", "session")
    seen = [len(desk.ask("list", "--session", session)["units"]) for session in ("s1", "s2")]
    assert seen == [1, 0]
