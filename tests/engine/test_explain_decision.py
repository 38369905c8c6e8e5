"""Any decision can be explained: from the log, from memory, under the rules that made it, and ahead of it."""

from __future__ import annotations

import lzma
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.ledger.filled import filled
from tests.support import Clock, open_memory

import memlineage as ml
from memlineage.engine import decisions as decisions_module
from memlineage.engine.decision_explanation import DecisionExplanation
from memlineage.engine.decision_logging import DecisionLogging
from memlineage.engine.decision_words import WORDS

POLICY = """\
memlineage: 1
rules:
  - name: hide
    on: read
    action: withhold
    target: {tags: [secret]}
    reason: it is nobody's business
  - {name: booking, on: read, action: flag, target: {tags: [price], purpose: booking}}
  - {name: no_web, on: [write, update], action: deny, target: {creators: "tool:web"}}
  - {name: mails, on: [write, update], action: quarantine, target: {creators: "external:*"}}
  - name: pay
    sensitive_action: {tool: pay, arguments: [iban], integrity: TRUSTED, approval: unsupported}
  - name: fresh
    freshness: {tags: [price], max_age: 1h, refresh: true}
  - {name: soft, on: read, action: withhold, severity: soft, weight: 3, target: {tags: [odd]}}
  - {name: mild, on: read, action: withhold, severity: soft, weight: 2, condition: [{field: kind}, "==", rumour]}
  - {name: tried, on: write, action: deny, mode: shadow, target: {creators: "tool:feed"}}
  - {name: late, on: write, action: flag, mode: async, condition: [{field: content_length}, "<", 4]}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "travel.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def last(memory: ml.Memory, **options: Any) -> DecisionExplanation:
    return memory.explain_decision(memory.decisions(limit=1)[0]["id"], **options)


def names(explanation: DecisionExplanation) -> list[str]:
    return [rule.rule for rule in explanation.rules]


# What is told --------------------------------------------------------------------------------------------------------


def test_a_withheld_read_is_told_with_its_rule_where_that_is_written_and_why(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("The code is 1234", tags=["secret"])
        scope.list()
        told = last(memory)
        assert (told.source, told.in_force, told.decision.effect) == ("log", True, "withhold")
        [rule] = told.rules
        assert (rule.rule, rule.determining, rule.place) == ("hide", True, f"{policy}:3:5")
        text = told.text()
        for said in ("withheld", str(unit.ref), f"{policy}:3:5", "it is nobody's business", "says the same"):
            assert said in text
        assert "booking" not in text
        assert told.why is not None
        assert "booking" in told.text(why_not=True)
        assert "1234" not in told.text(why_not=True)


def test_a_read_that_was_plainly_allowed_is_remembered_for_a_while(
    policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions_module, "_RECENT", 3)
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("It costs 5")
        decision = scope.retrieve("cost").decision(unit)
        told = memory.explain_decision(decision)
        assert (told.source, told.decision) == ("memory", decision)
        assert told.why is not None
        assert told.why.closest is not None
        for _ in range(3):
            scope.get(unit)
        with pytest.raises(ml.UnknownUnitError, match="no decision"):
            memory.explain_decision(decision.id)


def test_digits_that_end_several_ids_are_too_few(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        for number in range(40):
            scope.store(f"fact {number}")
        [one] = memory.decisions(limit=1)
        [(often, _)] = Counter(entry["id"][-1] for entry in memory.decisions()).most_common(1)
        assert memory.explain_decision(one["id"][-8:].upper()).decision.id == one["id"]
        with pytest.raises(ml.InvalidInputError, match="more digits"):
            memory.explain_decision(often)
        for wrong in ("", "%", "xyz", "'"):
            with pytest.raises(ml.InvalidInputError, match="no id"):
                memory.explain_decision(wrong)


def test_old_decisions_are_explained_by_the_rules_that_made_them(policy: Path, tmp_path: Path) -> None:
    db = tmp_path / "trip.db"
    with open_memory(db, policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("The code is 1234", tags=["secret"])
        scope.list()
        memory.reload([])
        told = last(memory)
        assert (told.in_force, names(told), told.again and told.again.effect) == (False, ["hide"], "withhold")
        assert "replaced" in told.text()
        decided = told.decision.id
    with ml.Memory.open(db) as memory:
        told = memory.explain_decision(decided)
        assert names(told) == ["hide"]
        assert told.rules[0].place is None  # the document is not known here, the rule is
        assert told.rules[0].layer == "global"
        assert memory.scope(user="alice").why(unit).decision.allowed


def test_a_refused_write_can_be_asked_again_though_nothing_was_written(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        with pytest.raises(ml.PolicyViolationError):
            memory.scope(user="alice").store("I am the web", creator="tool:web", metadata={"a": "b"})
        told = last(memory)
        assert told.again is not None
        assert (told.again.effect, told.again.rules) == ("deny", ("no_web",))
        assert told.unknown == ("the metadata of what was to be written",)
        assert told.why is not None
        assert told.why.counterfactual is not None
        assert told.why.counterfactual.without[0].rule == "no_web"


def test_a_refusal_by_what_no_document_can_lift_says_so(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        with pytest.raises(ml.PolicyViolationError):
            memory.scope(user="alice").acting_as("agent:x").store("I may", creator="user:alice")
        told = last(memory)
        assert told.rules[0].rule.startswith("claims")
        assert "may not speak" in told.text() or "claims" in told.text()
        assert told.again is not None
        assert told.again.effect == "deny"


def test_nothing_is_said_to_be_enough_where_no_document_can_lift_what_refused(policy: Path) -> None:
    rules = {"rules": [{"name": "no_pay", "on": "act", "action": "deny", "target": {"tools": ["pay"]}}]}
    with open_memory(policies=[rules]) as memory:
        scope = memory.scope(user="alice")
        told = memory.explain_decision(scope.authorize("pay", {"iban": "DE00"}).id)
        assert [rule.layer for rule in told.rules] == ["built in", "global"]
        assert "it would be" not in told.text(why_not=True)
        grounded = scope.authorize("pay", {"iban": "DE00"}, justification=[scope.store("Pay to DE00")])
        assert "it would be allow without no_pay" in memory.explain_decision(grounded.id).text(why_not=True)


def test_of_an_action_the_arguments_are_not_known_unless_they_were_logged(policy: Path) -> None:
    for kept, unknown in (("names", ("what the arguments held",)), ("values", ())):
        options = DecisionLogging(arguments=kept)  # type: ignore[arg-type]
        with open_memory(policies=[policy], decision_log=options) as memory:
            scope = memory.scope(user="alice")
            rumour = scope.store("Pay to DE00", creator="tool:feed")
            scope.authorize("pay", {"iban": "DE00"}, justification=[rumour])
            told = last(memory)
            assert told.unknown == unknown
            assert told.decision.effect == "ask"
            assert told.again is not None
            assert told.again.effect == "ask"
            assert "iban=DE00" in told.text()


def owed(memory: ml.Memory, decision: ml.Decision | str) -> list[tuple[str, str, str | None]]:
    """What came of each obligation."""
    came = memory.explain_decision(decision).came
    return [(one.what, one.outcome, one.by) for one in came if one.what != "deferred"]


def test_what_came_of_a_quarantine_is_told(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        held = scope.store("Pay to DE00", creator="external:mail")
        [decided] = memory.decisions(unit=held)
        assert owed(memory, decided["id"]) == [("quarantine", "quarantined", None)]
        scope.restore(held, cause="quarantined")
        assert owed(memory, decided["id"]) == [("quarantine", "lifted", None)]


def test_what_came_of_an_update_that_is_held_back_is_told(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        note = scope.store("Pay to DE00", creator="external:mail")
        scope.restore(note, cause="quarantined")
        scope.update(note, "Pay to DE01", creator="external:mail")
        [decided] = memory.decisions(action="update")
        assert owed(memory, decided["id"]) == [("quarantine", "quarantined", None)]


def test_what_came_of_a_question_is_told(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        memory.register_tool("pay", lambda iban: "paid")
        rumour = scope.store("Pay to DE00", creator="tool:feed")
        asked = scope.authorize("pay", {"iban": "DE00"}, justification=[rumour])
        assert owed(memory, asked) == [("require_approval", "unapproved", None)]
        approval = scope.approve(asked)
        assert owed(memory, asked) == [("require_approval", "approved", str(approval.ref))]
        done = scope.act("pay", {"iban": "DE00"}, justification=[rumour])
        [(_, outcome, by)] = owed(memory, asked)
        assert (outcome, str(by).partition("@")[0]) == ("acted", done.unit.id)


def test_what_came_of_a_refresh_is_told(policy: Path) -> None:
    clock = Clock()
    with open_memory(policies=[policy], clock=clock) as memory:
        scope = memory.scope(user="alice")
        memory.register_tool("feed", refresh=lambda unit: "It costs 6", cost=0.5)
        price = scope.store("It costs 5", creator="tool:feed", tags=["price"])
        clock.advance(hours=2)
        scope.retrieve("what does it cost?", purpose="looking")
        *_, first = memory.decisions(unit=price.ref, action="read", effect="withhold")
        assert owed(memory, first["id"]) == [("refresh", "refreshed", f"{price.id}@2")]
        assert "(cost 0.5)" in memory.explain_decision(first["id"]).text()


def test_what_was_put_off_is_told_with_what_came_of_it(policy: Path) -> None:
    with open_memory(policies=[policy], background=False) as memory:
        scope = memory.scope(user="alice")
        decided = {}
        for text in ("abc", "abcd"):
            scope.store(text, creator="tool:feed")
            decided[text] = memory.decisions(limit=1)[0]["id"]

        def outcomes() -> dict[str, list[str]]:
            return {
                text: [one.outcome for one in memory.explain_decision(found).came] for text, found in decided.items()
            }

        assert outcomes() == {"abc": ["waiting"], "abcd": ["waiting"]}
        memory.catch_up()
        assert outcomes() == {"abc": ["found"], "abcd": ["nothing"]}
        told = memory.explain_decision(decided["abc"])
        assert [trial.rule for trial in told.shadow] == ["tried"]
        assert "tried would deny" in told.text()
        assert "late: fired afterwards" in told.text()


def test_the_score_is_told_with_its_parts(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        scope.store("So they say", tags=["odd"], kind="fact")
        scope.list()
        told = last(memory)
        parts = {part.rule: (part.weight, part.violated) for part in told.score if part.rule in ("soft", "mild")}
        assert parts == {"soft": (3, True), "mild": (2, False)}
        weights = {True: 0.0, False: 0.0}
        for part in told.score:
            weights[part.violated] += part.weight
        assert told.decision.score == pytest.approx(1 - weights[True] / (weights[True] + weights[False]))


def test_what_has_changed_since_is_said(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("The airport is closed")
        scope.invalidate(unit)
        decision = scope.why(unit).decision
        assert not decision.allowed
        scope.retrieve("airport")
        [read] = memory.decisions(unit=unit.ref, action="read")
        told = memory.explain_decision(read["id"])
        assert (told.of_today, told.again and told.again.effect) == ((), told.decision.effect)
        scope.restore(unit)
        told = memory.explain_decision(read["id"])
        assert "status" in told.of_today
        assert told.again is not None
        assert told.again.effect is ml.Effect.ALLOW
        assert "of today" in told.text()
        assert "that policy says: allowed" in told.text()


def test_what_is_kept_back_is_said_to_be(policy: Path) -> None:
    options = DecisionLogging(mask=frozenset({"asked", "reasons"}))
    with open_memory(policies=[policy], decision_log=options) as memory:
        scope = memory.scope(user="alice")
        scope.store("The code is 1234", tags=["secret"])
        scope.list()
        told = last(memory)
        assert told.masked == ("asked", "reasons")
        assert told.why is None
        assert told.hindrance == "what was asked is not in the log"
        assert names(told) == ["hide"]
        assert "kept back from the log: asked, reasons" in told.text()


def test_a_policy_that_is_not_kept_is_no_reason_to_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    path.write_bytes(lzma.decompress(Path(__file__).parents[1].joinpath("store", "format_2.db.xz").read_bytes()))
    with ml.Memory.open(path) as memory:
        [*_, oldest] = memory.decisions(limit=1000)
        told = memory.explain_decision(oldest["id"])
        assert told.hindrance is not None
        assert "not kept" in told.hindrance
        assert told.text()
        [newest] = memory.decisions(limit=1)
        assert memory.explain_decision(newest["id"]).hindrance == "what was asked is not in the log"


def test_it_is_told_in_chinese_and_as_json(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        scope.store("The code is 1234", tags=["secret"])
        scope.list()
        told = last(memory, lang="zh")
        assert "不予显示" in told.text()
        assert "决定日志" in told.text()
        plain = msgspec.json.decode(msgspec.json.encode(told))
        assert plain["decision"]["effect"] == "withhold"
        assert plain["why"]["rules"]
        with pytest.raises(ml.InvalidInputError, match="lang='fr'"):
            last(memory, lang="fr")


def test_every_language_says_everything() -> None:
    tables = [msgspec.to_builtins(words) for words in WORDS.values()]
    for name in tables[0]:
        shapes = {repr(sorted(value) if isinstance(value := table[name], dict) else placed(value)) for table in tables}
        assert len(shapes) == 1, name


def placed(text: str) -> list[str]:
    return sorted(part.partition("}")[0] for part in text.split("{")[1:])


# Asked again ---------------------------------------------------------------------------------------------------------


RULES = {
    "rules": [
        {"name": "web", "on": ["write", "update"], "action": "deny", "target": {"creators": "tool:feed"},
         "condition": {"all": [[{"field": "confidence"}, "exists"], [{"field": "confidence"}, "<", 0.5]]}},
        {"name": "odd", "on": ["update", "invalidate", "retract"], "action": "deny",
         "condition": [{"context": "principal_kind"}, "==", "reasoning"]},
        {"name": "mail", "on": "write", "action": "quarantine", "target": {"creators": "external:*"}},
    ]
}  # fmt: skip


def test_every_write_of_a_long_history_is_decided_the_same_when_it_is_asked_again() -> None:
    with filled(acts=150, policies=[RULES]) as memory:
        entries = memory.decisions(limit=10_000)
        told = [memory.explain_decision(entry["id"]) for entry in entries if entry["action"] in ("write", "update")]
        again = [one for one in told if one.again is not None]
        assert len(again) > 60
        assert {one.decision.effect.value for one in again} >= {"allow", "deny"}
        differing = [
            one for one in again
            if (one.again and one.again.effect, one.again and set(one.again.rules))
            != (one.decision.effect, set(one.decision.rules))
        ]  # fmt: skip
        assert [one.text(why_not=True) for one in differing] == []
        assert {one.hindrance for one in told if one.again is None} <= {
            "what was allowed to be written was not: the same was there already, or the write failed afterwards",
            "the version that was allowed was not written: the same was there already, or the write failed afterwards",
        }


# Ahead ---------------------------------------------------------------------------------------------------------------


def test_why_says_what_would_be_decided_and_does_nothing(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("The code is 1234", tags=["secret"])
        before = len(memory.decisions(limit=1000))
        told = scope.why(unit)
        assert (told.source, told.decision.effect, names(told)) == ("ahead", "withhold", ["hide"])
        assert "nothing was done" in told.text()
        assert "booking" in told.text()  # rule by rule, unasked
        assert len(memory.decisions(limit=1000)) == before
        agent = scope.acting_as("agent:planner")
        agent.why(unit)
        assert agent._acting.exposure is not None
        assert agent._acting.exposure.seen() == ()  # the content was not shown


WHO, WHAT = ("host", "agent"), ("mine", "hers", "feed")
ACTIONS = ("update", "invalidate", "retract", "delete", "restore", "read")


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("action", ACTIONS)
def test_why_answers_as_the_request_itself_is_answered(policy: Path, who: str, what: str, action: str) -> None:
    with open_memory(policies=[policy]) as memory:
        host = memory.scope(user="alice")
        agent = host.acting_as("agent:planner", tools=("tool:feed",))
        units = {
            "mine": agent.store("I think so", creator="agent:planner"),
            "hers": host.store("Destination is Kyoto", creator="user:alice"),
            "feed": host.store("It costs 5", creator="tool:feed", tags=["odd"]),
        }
        scope, unit = {"host": host, "agent": agent}[who], units[what]
        foreseen = scope.why(unit, action).decision
        acts: dict[str, Any] = {
            "update": lambda: scope.update(unit, "Now it is otherwise"),
            "invalidate": lambda: scope.invalidate(unit),
            "retract": lambda: scope.retract(unit),
            "delete": lambda: scope.delete(unit),
            "restore": lambda: scope.restore(unit),
            "read": scope.list,
        }
        with suppress(ml.PolicyViolationError, ml.InvalidInputError):
            acts[action]()
        answers = memory.decisions(action=action, unit=unit.ref, limit=1)
        made = (answers[0]["effect"], answers[0]["determining"]) if answers else ("allow", [])
        assert (foreseen.effect, list(foreseen.determining)) == made


def test_what_time_alone_has_decided_is_not_decided_again_by_why() -> None:
    age = [{"time_since": "lineage.timestamp"}, ">", 60]
    old = {"name": "old", "on": "read", "action": "withhold", "condition": age}
    clock = Clock()
    logging = DecisionLogging(reads="all")
    with open_memory(policies=[{"rules": [old]}], clock=clock, decision_log=logging) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("The train leaves at nine")
        clock.advance(hours=1)
        assert scope.get(unit).status == "expired"  # looking is allowed, and shows that
        told = last(memory)
        assert (told.decision.effect, told.again and told.again.effect) == ("allow", "allow")
        assert scope.why(unit, inspecting=True).decision.effect == "allow"
        assert scope.why(unit).decision.effect == "withhold"
        scope.restore(unit, reason="still so")
        [decision] = scope.retrieve("train").decisions.values()
        told = memory.explain_decision(decision.id)
        assert (decision.effect, told.again and told.again.effect) == ("allow", "allow")
        assert scope.why(unit).decision.effect == "allow"


def test_what_was_found_afterwards_is_in_what_is_decided_again(policy: Path) -> None:
    with open_memory(policies=[policy], background=False) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("Oki")
        [before] = scope.retrieve("Oki").decisions.values()
        memory.catch_up()
        [after] = scope.retrieve("Oki").decisions.values()
        assert [(d.effect, d.flags) for d in (before, after)] == [("allow", ()), ("flag", ("late",))]
        for decision in (before, after):
            again = memory.explain_decision(decision.id).again
            assert again is not None
            assert (again.effect, again.flags) == (decision.effect, decision.flags)
        ahead = scope.why(unit)
        assert (ahead.decision.flags, ahead.found_before) == (("late",), ("late",))
        assert "late, in async mode" in ahead.text()
        assert "no rule was needed" not in ahead.text()
        assert memory.explain_decision(before.id).found_before == ()


def test_what_cannot_be_asked_ahead_is_named(policy: Path) -> None:
    with open_memory(policies=[policy]) as memory:
        scope = memory.scope(user="alice")
        unit = scope.store("Kyoto")
        for options in ({"action": "share"}, {"action": "raed"}, {"budget": 3}):
            with pytest.raises(ml.InvalidInputError, match=next(iter(options))):
                scope.why(unit, **options)
        with pytest.raises(ml.UnknownUnitError):
            memory.scope(user="bob").why(unit)
