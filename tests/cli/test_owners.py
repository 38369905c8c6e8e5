"""Owners and compensation from the command line."""

from pathlib import Path
from typing import Any

import pytest

import memlineage as ml

TOOLS = """
def register(memory):
    memory.register_tool("pay", lambda to: "receipt 9", compensate=undo)
    if "mailer" in {one.name for one in memory.subscriptions()}:
        memory.subscribe(tell, name="mailer")

def undo(action):
    %s

def tell(notice):
    %s
"""


def tools(folder: Path, undo: str = 'return "refunded"', tell: str = "pass") -> str:
    path = folder / "tools.py"
    path.write_text(TOOLS % (undo, tell), encoding="utf-8")
    return str(path)


@pytest.fixture
def bill(desk: Any) -> str:
    """A forged bill, for which something was paid; Alice's mailer is to be told."""
    with ml.Memory.open(desk.file, embedder="lexical", background=False) as memory:
        memory.register_tool("pay", lambda to: "receipt 9")
        memory.subscribe(owner="user:alice", name="mailer")
        trip = memory.scope(user="alice")
        made = trip.store("Pay ana", creator="tool:mail")
        plan = trip.store("So pay ana", creator="reasoning", depends_on=[made])
        trip.act("pay", {"to": "ana"}, justification=[plan])
    desk.run("invalidate", made.id, "--reason", "forged")
    return made.id


def test_the_outbox_shows_who_is_told_and_what_waits(desk: Any, bill: str) -> None:
    shown = desk.type("outbox", str(desk.file))
    assert (shown.exit_code, "mailer" in shown.output, "invalidated" in shown.output) == (0, True, True)
    data = desk.type("outbox", str(desk.file), "--json")
    assert '"count": 3' in data.output


def test_a_subscription_is_made_and_ended(desk: Any) -> None:
    made = desk.type("subscribe", str(desk.file), "--owner", "user:bob", "--kind", "pending", "--json")
    assert (made.exit_code, '"user:bob"' in made.output) == (0, True)
    assert desk.type("unsubscribe", "user:bob", str(desk.file)).exit_code == 0
    assert desk.type("unsubscribe", "user:bob", str(desk.file)).exit_code == 2
    assert "Nobody has subscribed" in desk.type("outbox", str(desk.file)).output


def test_what_waits_is_delivered_to_what_a_file_attaches(desk: Any, bill: str, tmp_path: Path) -> None:
    file = tools(tmp_path, tell=f"__import__('pathlib').Path({str(tmp_path / 'told')!r}).write_text(notice.kind.value)")
    done = desk.type("deliver", str(desk.file), "--tools", file)
    assert (done.exit_code, (tmp_path / "told").read_text()) == (0, "invalidated")
    assert "1 notice delivered" in done.output


def test_what_a_handler_refuses_is_shown_with_its_error(desk: Any, bill: str, tmp_path: Path) -> None:
    file = tools(tmp_path, tell="raise ValueError('away [bold]')")
    assert desk.type("deliver", str(desk.file), "--tools", file).exit_code == 1
    assert "ValueError: away [bold]" in desk.type("outbox", str(desk.file)).output


def test_actions_that_lost_their_grounds_are_offered_and_undone_once(desk: Any, bill: str, tmp_path: Path) -> None:
    [offer] = desk.ask("compensations", code=1)["compensations"]
    assert (offer["tool"], offer["arguments"], offer["available"]) == ("pay", {"to": "ana"}, False)
    assert offer["path"][0] == f"{bill}@1"
    paid = offer["unit"]["id"]
    assert "nothing is registered" in desk.ask("compensate", paid, code=1)["error"]["message"]
    done = desk.ask("compensate", paid, "--tools", tools(tmp_path), "--reason", "forged")
    assert (done["result"], done["unit"]["metadata"]["outcome"]) == ("refunded", "done")
    assert desk.ask("compensations")["compensations"] == []
    desk.ask("compensate", paid, "--tools", tools(tmp_path), code=2)
    shown = desk.run("impact", bill)
    assert shown.index("▲") < shown.index("Pay ana  "), "executed actions come first"
    assert "action taken; undone" in shown


def test_what_fails_is_recorded_and_wants_a_look(desk: Any, bill: str, tmp_path: Path) -> None:
    [offer] = desk.ask("compensations", code=1)["compensations"]
    file = tools(tmp_path, undo="raise OSError('no line')")
    error = desk.ask("compensate", offer["unit"]["id"], "--tools", file, code=1)["error"]
    assert "OSError: no line" in error["message"]
    assert "failed before" in desk.run("compensations", code=1)
    desk.ask("compensate", offer["unit"]["id"], "--tools", tools(tmp_path), code=2)
    desk.ask("compensate", offer["unit"]["id"], "--tools", tools(tmp_path), "--retry")


@pytest.mark.parametrize("text", [None, "x = 1", "def register(memory): missing()", "def ("])
def test_a_file_of_tools_that_cannot_be_used_is_misuse(desk: Any, tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "tools.py"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    error = desk.ask("compensations", "--tools", str(path), code=2)["error"]
    assert (error["type"], str(path) in error["message"]) == ("InvalidInputError", True)
