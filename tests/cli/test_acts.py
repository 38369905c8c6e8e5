"""invalidate, retract, restore, reverify, corroborate, endorse: what changes, and what is refused."""

from typing import Any

import pytest


def statuses(desk: Any, trip: dict[str, str]) -> dict[str, str]:
    return {name: desk.ask("get", unit)["status"] for name, unit in trip.items()}


def test_invalidate_and_restore_follow_the_worked_example(desk: Any, trip: dict[str, str]) -> None:
    before = statuses(desk, trip)
    desk.run("invalidate", trip["flight"])
    desk.run("invalidate", trip["city"])
    fallen = statuses(desk, trip)
    desk.run("restore", trip["city"])
    desk.run("restore", trip["flight"])
    assert fallen == {
        "city": "invalid", "flight": "invalid", "hotel": "contaminated", "plan": "contaminated", "tips": "active"
    }  # fmt: skip
    assert statuses(desk, trip) == before


def test_an_act_names_everything_that_changed_with_it(desk: Any, trip: dict[str, str]) -> None:
    done = desk.ask("retract", trip["city"], "--reason", "undecided")
    changed = {item["ref"]: (item["before"], item["after"]) for item in done["changed"]}
    pending = ("active", "pending_verification")
    assert changed == {f"{trip[name]}@1": pending for name in ("flight", "hotel", "plan")}
    assert (done["count"], done["unit"]["causes"][0]["reason"]) == (3, "undecided")


def test_people_see_content_of_what_changed(desk: Any, trip: dict[str, str]) -> None:
    shown = desk.run("invalidate", trip["flight"], "--reason", "feed was stale")
    assert "invalid by user:alice" in shown
    assert "feed was stale" in shown
    row = next(line for line in shown.splitlines() if line.strip().startswith(trip["plan"][-8:]))
    assert " ".join(row.split()) == f"{trip['plan'][-8:]}@1 ● active ✗ contaminated NH203 + Ryokan Aoi"


def test_only_the_cause_that_is_named_is_taken_back(desk: Any, trip: dict[str, str]) -> None:
    desk.run("retract", trip["tips"])
    desk.run("invalidate", trip["tips"])
    unit = desk.ask("restore", trip["tips"], "--cause", "retracted")["unit"]
    assert (unit["status"], [cause["kind"] for cause in unit["causes"]]) == ("invalid", ["invalid"])


def test_reverify_gives_a_pending_unit_back(desk: Any, trip: dict[str, str]) -> None:
    desk.run("update", trip["city"], "Destination is Osaka")
    desk.run("reverify", trip["hotel"], "--by", "user:alice")
    assert desk.ask("get", trip["hotel"])["status"] == "active"
    assert desk.ask("get", trip["plan"])["status"] == "pending_verification"


def test_a_corroborated_unit_stands_when_one_support_falls(desk: Any, trip: dict[str, str]) -> None:
    quote = desk.store("GDS: NH203 612 USD", "--creator", "tool:gds")
    desk.run("corroborate", trip["flight"], "-d", quote[-8:])
    desk.run("invalidate", trip["city"])
    assert desk.ask("get", trip["flight"])["status"] == "active"


def test_corroborate_needs_something_that_says_so(desk: Any, trip: dict[str, str]) -> None:
    assert "--depends-on" in desk.run("corroborate", trip["flight"], code=2)


def test_endorse_raises_integrity_with_a_reason(desk: Any, trip: dict[str, str]) -> None:
    assert desk.ask("get", trip["tips"])["integrity"] == "UNTRUSTED"
    unit = desk.ask("endorse", trip["tips"], "--reason", "checked by phone", "--level", "internal")["unit"]
    assert unit["integrity"] == "INTERNAL"


def test_an_agent_is_refused_with_rule_reason_and_unit(desk: Any, trip: dict[str, str]) -> None:
    error = desk.ask("invalidate", trip["city"], "--as", "planner", code=1)["error"]
    decision = error["decision"]
    assert (error["type"], decision["effect"], decision["determining"], decision["unit"]) == (
        "PolicyViolationError", "deny", ["acts"], f"{trip['city']}@1",
    )  # fmt: skip
    shown = desk.run("invalidate", trip["city"], "--as", "planner", code=1)
    for part in ("deny invalidate", "rule", "acts", "only users, the host, the owner", f"{trip['city']}@1"):
        assert part in shown
    assert desk.ask("get", trip["city"])["status"] == "active"


def test_an_agent_cannot_write_as_the_user(desk: Any) -> None:
    error = desk.ask("store", "Pay to X", "--as", "agent:planner", "--creator", "user:alice", code=1)["error"]
    assert error["decision"]["determining"] == ["claims"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("restore", "ID"), 2),
        (("restore", "ID", "--cause", "bored"), 2),
        (("endorse", "ID", "--reason", "x", "--level", "royal"), 2),
        (("endorse", "ID"), 2),
        (("endorse", "ID", "--reason", "x", "--expires", "tomorrow"), 2),
        (("invalidate", "ID", "--by", "nobody"), 2),
        (("corroborate", "ID", "-d", "PLAN"), 1),
        (("corroborate", "ID", "-d", "PLAN=heavy"), 2),
    ],
)
def test_misuse_and_refusals_have_their_codes(
    desk: Any, trip: dict[str, str], words: tuple[str, ...], code: int
) -> None:
    names = {"ID": trip["city"], "PLAN": trip["plan"], "PLAN=heavy": f"{trip['plan']}=heavy"}
    assert "error" in desk.ask(*(names.get(word, word) for word in words), code=code)
