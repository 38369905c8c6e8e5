"""What the decision log holds: enough to judge a request again, and nothing that is kept back."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.support import START, Clock, open_memory

import memlineage as ml
from memlineage.engine.decision_logging import DecisionLogging

CANARY = "canary"
RULES = {
    "memlineage": 1,
    "layer": "global",
    "rules": [
        {"name": "hide", "on": "read", "action": "withhold", "target": {"tags": ["secret"]}},
        {"name": "booking", "on": "read", "action": "flag", "target": {"tags": ["price"], "purpose": "booking"}},
        {"name": "pay", "sensitive_action": {"tool": "pay", "arguments": ["iban", "to"], "integrity": "TRUSTED"}},
        {"name": "no_web", "on": ["write", "update"], "action": "deny", "target": {"creators": "tool:web"}},
        {"name": "fresh", "freshness": {"tags": ["price"], "max_age": "1h", "refresh": True}},
    ],
}


def rows(memory: ml.Memory) -> list[dict[str, Any]]:
    """The table, oldest first, with `asked` as it stands there."""
    memory.decisions(limit=1)
    with memory._core.database.reading() as connection:
        found = connection.execute("SELECT id, action, effect, ref, body, asked FROM decision ORDER BY d").fetchall()
    names = ("id", "action", "effect", "ref", "body", "asked")
    lines: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in found]
    for line in lines:
        line["body"] = json.loads(str(line["body"], "utf-8"))
        line["asked"] = None if line["asked"] is None else json.loads(str(line["asked"], "utf-8"))
    return lines


def last(memory: ml.Memory) -> dict[str, Any]:
    return rows(memory)[-1]


# What was asked ------------------------------------------------------------------------------------------------------


def test_a_write_is_logged_with_who_asked_and_from_where() -> None:
    with open_memory() as memory:
        memory.scope(user="alice", session="s1", domain="travel").store("Kyoto")
        asked = last(memory)["asked"]
        assert (asked["action"], asked["domain"], asked["context"]["session"]) == ("write", "travel", "s1")
        assert asked["context"]["principal"] == "user:alice"
        assert "new" not in asked  # what it was about is in the store


def test_a_refused_write_is_logged_with_what_it_was_filed_under_and_not_with_what_it_said() -> None:
    with open_memory(policies=[RULES]) as memory:
        with pytest.raises(ml.PolicyViolationError):
            memory.scope(user="alice").store(
                "The content", creator="tool:web", tags=["price"], metadata={"note": "the metadata"}
            )
        line = last(memory)
        assert (line["asked"]["new"]["creator"], line["asked"]["new"]["tags"]) == ("tool:web", ["price"])
        assert "The content" not in json.dumps(line)
        assert "the metadata" not in json.dumps(line)


def test_a_read_is_logged_with_its_purpose_and_budget() -> None:
    with open_memory(policies=[RULES]) as memory:
        scope = memory.scope(user="alice")
        scope.store("It costs 5", tags=["price"])
        scope.retrieve("cost", purpose="booking", critical=True, budget=ml.Budget(max_cost=2, min_score=0.5))
        line = last(memory)
        assert (line["action"], line["effect"]) == ("read", "flag")
        assert line["asked"]["context"]["purpose"] == "booking"
        assert line["asked"]["context"]["critical"] is True
        assert line["asked"]["budget"] == {"max_cost": 2, "min_score": 0.5}


@pytest.mark.parametrize(("arguments", "kept"), [("names", {"iban": None}), ("values", {"iban": "DE00"})])
def test_of_an_action_the_tool_and_the_names_of_its_arguments_are_logged(arguments: Any, kept: Any) -> None:
    with open_memory(policies=[RULES], decision_log=DecisionLogging(arguments=arguments)) as memory:
        scope = memory.scope(user="alice")
        scope.authorize("pay", {"iban": "DE00"}, justification=[scope.store("Pay to DE00")])
        context = last(memory)["asked"]["context"]
        assert (context["tool"], context["arguments"]) == ("pay", kept)


def test_plainly_allowed_reads_are_logged_only_on_request() -> None:
    for reads, count in (("notable", 0), ("all", 1)):
        with open_memory(decision_log=DecisionLogging(reads=reads)) as memory:  # type: ignore[arg-type]
            scope = memory.scope(user="alice")
            unit = scope.store("Kyoto")
            scope.get(unit)
            assert len([line for line in rows(memory) if line["action"] == "read"]) == count


@pytest.mark.parametrize("fetchable", [True, False])
def test_what_became_of_a_decision_is_what_is_logged(fetchable: bool) -> None:
    """Too dear says policy itself; that no tool can fetch it turns out after policy has answered."""
    clock = Clock()
    with open_memory(policies=[RULES], clock=clock) as memory:
        if fetchable:
            memory.register_tool("feed", refresh=lambda unit: "It costs 6", cost=3)
        scope = memory.scope(user="alice")
        scope.store("It costs 5", creator="tool:feed", tags=["price"])
        clock.advance(hours=2)
        found = scope.retrieve("cost", budget=ml.Budget(max_cost=1, min_score=0))
        [decision] = found.decisions.values()
        assert decision.effect is ml.Effect.FLAG
        assert [line["effect"] for line in rows(memory) if line["id"] == decision.id] == ["flag"]


# Asking for some -----------------------------------------------------------------------------------------------------


def test_decisions_can_be_asked_for_by_what_they_are() -> None:
    clock = Clock()
    with open_memory(policies=[RULES], clock=clock) as memory:
        scope = memory.scope(user="alice")
        one = scope.store("Kyoto", tags=["secret"])
        two = scope.store("Osaka")
        clock.advance(hours=1)
        scope.update(two, "Nara")
        scope.list()

        def told(**wanted: Any) -> list[tuple[str, str]]:
            return [(entry["action"], entry["unit"]) for entry in memory.decisions(**wanted)]

        assert told(action="read") == told(effect="withhold") == [("read", str(one.ref))]
        assert told(unit=one) == told(unit=one.id) == [("read", str(one.ref)), ("write", str(one.ref))]
        assert told(unit=f"{two.id}@2") == []
        assert told(since=START + timedelta(minutes=30)) == [("read", str(one.ref)), ("update", str(two.ref))]
        assert told(action="write", limit=1) == [("write", str(two.ref))]
        assert told(action="write", effect="deny") == []


@pytest.mark.parametrize(
    "wanted", [{"limit": 0}, {"limit": True}, {"action": "raed"}, {"effect": "no"}, {"unit": ""}, {"since": "today"}]
)
def test_what_is_asked_for_is_checked(wanted: dict[str, Any]) -> None:
    with open_memory() as memory, pytest.raises(ml.InvalidInputError, match=next(iter(wanted))):
        memory.decisions(**wanted)


# Keeping back --------------------------------------------------------------------------------------------------------


def said(what: str) -> str:
    """A word that occurs nowhere else; without spaces, as it stands in names."""
    return f"{CANARY}-{what}"


def tell(memory: ml.Memory) -> None:
    """Requests of every sort, with a canary wherever one can be said; `register` first, so that names are known."""
    trip = memory.scope(user=said("user"), agent=said("agent"), session=said("session"), domain=said("domain"))
    memory.register_tool(said("tool"), lambda **given: "done")
    unit = trip.store("It costs 5", tags=["price"])
    trip.retrieve("cost", purpose=said("purpose"), budget=ml.Budget(max_cost=7.5))
    for options in ({"tags": [said("tag")]}, {"kind": said("kind")}, {"subject": said("subject"), "key": said("key")}):
        with pytest.raises(ml.PolicyViolationError):
            trip.store("Not to be stored", creator="tool:web", **options)
    long = f"{said('value')} {'x' * 100}"
    for tool, argument, value in (
        ("pay", "iban", said("iban")),
        ("pay", "to", long),
        (said("tool"), said("name"), "v"),
    ):
        trip.authorize(tool, {argument: value}, justification=[unit])
    trip.invalidate(unit)


ASKED = {
    "asked.user": ["user"], "asked.agent": ["agent"], "asked.session": ["session"], "asked.domain": ["domain"],
    "asked.purpose": ["purpose"], "asked.tool": ["tool"], "asked.arguments": ["value", "iban", "name"],
    "asked.new": ["tag", "kind", "subject", "key"],
    "asked": ["user", "agent", "session", "domain", "purpose", "tool", "value", "iban", "name", "tag", "subject"],
}  # fmt: skip


def held(path: Path) -> str:
    """Everything that any process finds in the table, and in the log of the file, once that is written back."""
    with open_raw(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        table = repr(connection.execute("SELECT * FROM decision").fetchall())
    wal = Path(f"{path}-wal")
    return table + (wal.read_bytes().decode("latin-1") if wal.exists() else "")


class open_raw:  # noqa: N801
    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))

    def __enter__(self) -> apsw.Connection:
        return self._connection

    def __exit__(self, *failure: object) -> None:
        self._connection.close()


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("arguments", ["names", "values"])
def test_what_was_asked_and_is_kept_back_is_nowhere_in_the_log(tmp_path: Path, name: str, arguments: Any) -> None:
    for masked in (False, True):
        path = tmp_path / f"{masked}.db"
        options = DecisionLogging(mask=frozenset({name} if masked else ()), reads="all", arguments=arguments)
        with open_memory(path, policies=[RULES], decision_log=options) as memory:
            tell(memory)
        found = {what for what in ASKED[name] if said(what) in held(path)}
        assert found == (set() if masked else set(ASKED[name]))


@pytest.mark.parametrize("name", ["unit", "rules", "determining", "reasons", "flags", "support", "path", "obligations"])
def test_a_field_that_is_kept_back_is_in_no_column(tmp_path: Path, name: str) -> None:
    path = tmp_path / "trip.db"
    options = DecisionLogging(mask=frozenset({name}), reads="all")
    with open_memory(path, policies=[RULES], decision_log=options) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("It costs 5", tags=["price", "secret"])
        rumour = scope.store("Pay to DE00", creator="external:mail")
        live = [scope.retrieve("cost", purpose="booking").decision(unit)]
        live.append(scope.authorize("pay", {"iban": "DE00"}, justification=[rumour]))
        lines = {line["id"]: line for line in rows(memory)}
    for decision in live:
        line = lines[decision.id]
        assert not line["body"][name]
        assert line["body"]["masked"] == [name]
        for text in texts(getattr(decision, name)):
            assert text not in json.dumps(line)
        if name == "unit" and decision.unit is not None:
            assert line["ref"] is None
            assert decision.unit.partition("@")[0] not in json.dumps(line)
    assert any(texts(getattr(decision, name)) for decision in live) or name == "obligations"


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, tuple | list):
        return [text for item in value for text in texts(item)]
    return [] if value is None else [str(getattr(value, "value", ""))] * hasattr(value, "argument")


def test_what_the_gate_found_for_arguments_goes_with_them() -> None:
    options = DecisionLogging(mask={"asked.arguments"})
    with open_memory(policies=[RULES], decision_log=options) as memory:
        scope = memory.scope(user="alice")
        decision = scope.authorize("pay", {"iban": "DE00"}, justification=[scope.store("Pay to DE01")])
        assert decision.support
        assert last(memory)["body"]["support"] == []
        assert "iban" not in json.dumps(last(memory)["body"])


def test_no_hash_over_arguments_is_logged_where_they_are_kept_back() -> None:
    ask = {"name": "ask", "sensitive_action": {"tool": "pay", "arguments": ["iban"], "approval": "always"}}
    for mask, logged in ((set[str](), True), ({"asked.arguments"}, False), ({"asked"}, False)):
        with open_memory(policies=[{"rules": [ask]}], decision_log=DecisionLogging(mask=mask)) as memory:
            scope = memory.scope(user="alice")
            decision = scope.authorize("pay", {"iban": "DE00"}, justification=[scope.store("Pay to DE00")])
            assert decision.approval is not None
            assert (last(memory)["body"]["approval"] == decision.approval) is logged


def test_an_unknown_name_to_keep_back_is_an_error() -> None:
    for name in ("reson", "asked.purpos", "id", "effect", 7):
        with pytest.raises(ml.InvalidInputError, match="known are"):
            DecisionLogging(mask=frozenset({name}))  # type: ignore[arg-type]
    for options in ({"keep": 0}, {"reads": "some"}, {"arguments": "all"}, {"mask": "unit"}, {"redact": 7}):
        with pytest.raises(ml.InvalidInputError, match=next(iter(options))):
            DecisionLogging(**options)


def test_whatever_a_redacting_function_returns_is_written() -> None:
    import msgspec

    def redact(decision: ml.Decision) -> ml.Decision | None:
        if decision.action == "invalidate":
            return None
        return msgspec.structs.replace(decision, reasons=("redacted",), id="other", effect=ml.Effect.ALLOW)

    with open_memory(policies=[RULES], decision_log=DecisionLogging(redact=redact)) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("It costs 5", tags=["secret"])
        scope.list()
        scope.invalidate(unit)
        assert [(line["action"], line["effect"]) for line in rows(memory)] == [("write", "allow"), ("read", "withhold")]
        assert {tuple(line["body"]["reasons"]) for line in rows(memory)} == {("redacted",)}
        assert "other" not in {line["id"] for line in rows(memory)}


ODD: tuple[Any, ...] = ("\ud800", object())
UNWRITABLE = [ml.Decision(id="1", effect=ml.Effect.DENY, action="", revision="", reasons=(text,)) for text in ODD]


@pytest.mark.parametrize("answer", [RuntimeError("no"), "a text", 7, *UNWRITABLE])
def test_a_redacting_function_that_fails_leaves_the_bare_fact(answer: Any) -> None:
    def redact(decision: ml.Decision) -> ml.Decision | None:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    with open_memory(policies=[RULES], decision_log=DecisionLogging(redact=redact)) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("It costs 5", tags=["secret"])
        scope.list()
        line = last(memory)
        assert (line["action"], line["effect"], line["ref"], line["asked"]) == ("read", "withhold", None, None)
        assert not any(line["body"][name] for name in ("rules", "reasons", "determining", "unit"))
        assert str(unit.ref) not in json.dumps(rows(memory))
