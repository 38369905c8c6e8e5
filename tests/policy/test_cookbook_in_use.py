"""The documents of the cookbook at work: what the store, the search and the gate really do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support import Clock, contents, open_memory

import memlineage as ml

COOKBOOK = Path(__file__).resolve().parents[2] / "docs" / "cookbook"


class Counted:
    """A tool that counts its runs."""

    def __init__(self, answer: str = "done") -> None:
        self.answer = answer
        self.runs = 0

    def __call__(self, *_: Any, **__: Any) -> str:
        self.runs += 1
        return self.answer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["alone", "among all fifteen"])
def under(request: pytest.FixtureRequest, clock: Clock) -> Iterator[Callable[[str], ml.Memory]]:
    """Opens a memory under one document and the default set, or under all documents and that."""
    opened: list[ml.Memory] = []

    def memory(name: str) -> ml.Memory:
        policies = COOKBOOK / f"{name}.yaml" if request.param == "alone" else COOKBOOK
        opened.append(open_memory(policies=[policies], clock=clock))
        return opened[-1]

    yield memory
    for one in opened:
        one.close()


@contextmanager
def refused(rule: str) -> Iterator[None]:
    with pytest.raises(ml.PolicyViolationError) as caught:
        yield
    assert caught.value.decision.rule == rule


def withheld(found: ml.Found) -> dict[str, str]:
    """Rule by ref of what was kept back."""
    return {str(item.ref): item.rule for item in found.withheld}


# Finance -------------------------------------------------------------------------------------------------------


def test_payments(under: Callable[[str], ml.Memory]) -> None:
    memory = under("payments")
    run = Counted()
    memory.register_tool("pay", run)
    memory.register_tool("mail", integrity="UNTRUSTED")
    office = memory.scope(user="alice")
    known = office.store("The landlord has DE89 3704 0044 0532 0130 00; rent is 900, the deposit 2700")
    mail = office.store("New account: GB33 BUKB 2020 1555 5555 55", creator="tool:mail")

    office.act("pay", {"iban": "DE89370400440532013000", "amount": 900}, justification=[known])
    with refused("account:support"):
        office.act("pay", {"iban": "GB33BUKB20201555555555", "amount": 900}, justification=[known, mail])
    deposit = {"iban": "DE89370400440532013000", "amount": 2700}
    with refused("four_eyes"):
        office.act("pay", deposit, justification=[known])
    question = office.authorize("pay", deposit, justification=[known])
    office.approve(question, by="user:bob")
    office.act("pay", deposit, justification=[known])
    with refused("four_eyes"):  # once
        office.act("pay", deposit, justification=[known])
    assert run.runs == 2


def test_quotes(under: Callable[[str], ml.Memory], clock: Clock) -> None:
    memory = under("quotes")
    feed = Counted("ACME at 12.40")
    memory.register_tool("exchange", refresh=feed, cost=0.01)
    desk = memory.scope(user="alice")
    desk.store("ACME at 12.10", creator="tool:exchange", tags=["quote"])
    clock.advance(minutes=2)
    assert contents(desk.retrieve("ACME", purpose="overview")) == ["ACME at 12.10"]
    assert feed.runs == 0
    assert contents(desk.retrieve("ACME", purpose="order")) == ["ACME at 12.40"]
    clock.advance(minutes=2)
    feed.answer = ""  # nothing that could be kept: deactivated for everybody
    assert contents(desk.retrieve("ACME", purpose="order")) == contents(desk.retrieve("ACME", purpose="overview")) == []


def test_quotes_are_fetched_again_when_they_are_old(under: Callable[[str], ml.Memory], clock: Clock) -> None:
    memory = under("quotes")
    feed = Counted("ACME at 12.70")
    memory.register_tool("exchange", refresh=feed, cost=0.01)
    desk = memory.scope(user="alice")
    desk.store("ACME at 12.10", creator="tool:exchange", tags=["quote"])
    clock.advance(minutes=6)
    assert contents(desk.retrieve("ACME", purpose="overview", budget=ml.Budget(max_cost=0))) == []
    assert contents(desk.retrieve("ACME", purpose="overview")) == ["ACME at 12.70"]
    assert feed.runs == 1


def test_forecasts(under: Callable[[str], ml.Memory]) -> None:
    memory = under("forecasts")
    sent = Counted()
    memory.register_tool("send_advice", sent)
    desk = memory.scope(user="analyst")
    forecast = desk.store("ACME will rise by 5 %", creator="tool:predictor", tags=["forecast"])
    advice = desk.store("Buy ACME", creator="reasoning", depends_on=[forecast])
    [shown] = desk.retrieve("ACME rise", filter={"tags": "forecast"}, purpose="discussion")
    assert shown.flags == ("forecast_unverified",)
    found = desk.retrieve("ACME rise", filter={"tags": "forecast"}, purpose="advice")
    assert withheld(found) == {str(forecast.ref): "forecast_for_advice"}
    with refused("advice:support"):
        desk.act("send_advice", {"text": "Buy ACME"}, justification=[advice])

    desk.endorse(forecast, by="user:analyst", reason="checked against the books")
    assert len(desk.retrieve("ACME rise", filter={"tags": "forecast"}, purpose="advice").units) == 1
    desk.act("send_advice", {"text": "Buy ACME"}, justification=[advice])
    assert sent.runs == 1


# Medicine ------------------------------------------------------------------------------------------------------


def test_patient_statements(under: Callable[[str], ml.Memory]) -> None:
    chart = under("patient_statements").scope(user="patient")
    said = chart.store("I take no aspirin", kind="statement", subject="aspirin", key="taken")
    doctor = chart.acting_as("agent:doctor")
    doctor.get(said)
    with refused("said_by_people:update"):
        doctor.update(said, "Takes aspirin daily", kind="conclusion")
    with refused("said_by_people:delete"):
        doctor.retract(said)
    with refused("no_invented_statements"):
        doctor.store("I take aspirin", kind="statement", creator="reasoning", depends_on=[said])
    doctor.store(
        "Takes aspirin", kind="conclusion", creator="reasoning", depends_on=[said], subject="aspirin", key="taken"
    )
    assert "I take no aspirin" in contents(chart.retrieve("aspirin"))
    assert chart.update(said, "I take aspirin since May").version == 2


def test_allergies(under: Callable[[str], ml.Memory], clock: Clock) -> None:
    chart = under("allergies").scope(user="patient")
    with refused("allergy_is_a_constraint"):
        chart.store("I am allergic to penicillin", tags=["allergy", "clinical"])
    allergy = chart.store("I am allergic to penicillin", kind="constraint", tags=["allergy", "clinical"])
    pressure = chart.store("Blood pressure 140/90", tags=["clinical"])
    clock.advance(days=4 * 365)
    found = chart.retrieve("blood pressure")
    assert contents(found.constraints) == ["I am allergic to penicillin"]
    assert withheld(found)[str(pressure.ref)] == "old_notes"
    with refused("allergy_stays"):
        chart.invalidate(allergy, by="system")
    chart.retract(allergy, by="user:patient")
    assert chart.retrieve("blood pressure").constraints == ()


def test_doses(under: Callable[[str], ml.Memory]) -> None:
    memory = under("doses")
    run = Counted()
    memory.register_tool("prescribe", run)
    chart = memory.scope(user="doctor")
    official = chart.store("ibuprofen: 400 mg", creator="tool:formulary", tags=["dose"])
    rumour = chart.store("ibuprofen: take 4000 mg", creator="tool:forum", tags=["dose"])
    found = chart.retrieve("ibuprofen dose", critical=True)
    assert (contents(found), withheld(found)) == (["ibuprofen: 400 mg"], {str(rumour.ref): "dose_when_critical"})
    assert {unit.ref: unit.flags for unit in chart.retrieve("ibuprofen dose")} == {
        official.ref: (), rumour.ref: ("dose_unsure",)
    }  # fmt: skip
    chart.act("prescribe", {"drug": "ibuprofen", "dose": "400 mg"}, justification=[official, rumour])
    with refused("prescription:support"):
        chart.act("prescribe", {"drug": "ibuprofen", "dose": "4000 mg"}, justification=[official, rumour])
    assert run.runs == 1


def test_research_only(under: Callable[[str], ml.Memory]) -> None:
    ward = under("research_only").scope(user="patient")
    with refused("consent"):
        ward.store("HbA1c 6.1", tags=["research_only"])
    record = ward.store("HbA1c 6.1", tags=["research_only"], metadata={"consent": "C-17"})
    assert contents(ward.retrieve("HbA1c", purpose="research")) == ["HbA1c 6.1"]
    for purpose in ("billing", None):
        assert withheld(ward.retrieve("HbA1c", purpose=purpose)) == {str(record.ref): "research_only"}
    with refused("research_only"):  # nobody can say what `get` is for
        ward.get(record)


# Law -----------------------------------------------------------------------------------------------------------


def test_privileged(under: Callable[[str], ml.Memory]) -> None:
    firm = under("privileged").scope(user="lawyer")
    with refused("privileged_has_a_matter"):
        firm.store("The client was there", tags=["privileged"])
    note = firm.store("The client was there", tags=["privileged"], metadata={"matter": "M-1"})
    assert contents(firm.retrieve("client", purpose="M-1")) == ["The client was there"]
    for purpose in ("M-2", None):
        assert withheld(firm.retrieve("client", purpose=purpose)) == {str(note.ref): "privileged"}
    with refused("privileged_stays_so"):
        firm.update(note, "The client was not there", tags=["note"])
    assert firm.update(note, "The client was there at nine").tags == ("privileged",)


def test_citations(under: Callable[[str], ml.Memory]) -> None:
    memory = under("citations")
    filed = Counted()
    memory.register_tool("file_brief", filed)
    firm = memory.scope(user="lawyer")
    with refused("listed_source"):
        firm.store("1 BvR 1/26: the state pays", kind="citation", creator="reasoning")
    with refused("statute_has_its_place"):
        firm.store("Within 14 days", creator="tool:statute_book", tags=["statute"])
    ruling = firm.store("1 BvR 16/13: a right to be forgotten", kind="citation", creator="tool:court_register")
    statute = firm.store(
        "Withdrawal within 14 days", creator="tool:statute_book", tags=["statute"], subject="355", key="text"
    )  # fmt: skip
    opinion = firm.store("It is too late to withdraw", creator="reasoning", tags=["opinion"], depends_on=[statute])
    assert contents(firm.retrieve("withdraw", filter={"tags": "opinion"})) == ["It is too late to withdraw"]

    firm.update(statute, "Withdrawal within 30 days", creator="tool:statute_book")
    assert withheld(firm.retrieve("withdraw", filter={"tags": "opinion"})) == {str(opinion.ref): "opinion_on_old_law"}
    assert firm.get(opinion).status is ml.Status.PENDING
    firm.reverify(opinion, by="user:lawyer")
    assert len(firm.retrieve("withdraw", filter={"tags": "opinion"}).units) == 1

    firm.act("file_brief", {"citation": "1 BvR 16/13"}, justification=[ruling])
    with refused("filing:support"):
        firm.act("file_brief", {"citation": "1 BvR 1/26"}, justification=[ruling])
    assert filed.runs == 1


def test_retention_hold(under: Callable[[str], ml.Memory]) -> None:
    firm = under("retention_hold").scope(user="alice")
    kept = firm.store("Ship it before they test it", tags=["mail", "hold"])
    other = firm.store("Lunch at noon?", tags=["mail"])
    for act in (firm.delete, firm.retract, firm.invalidate):
        with refused("hold"):
            act(kept, by="user:alice")
    with refused("hold_stays"):
        firm.update(kept, "Ship it after they test it", tags=["mail"])
    firm.delete(other)
    assert (firm.get(kept).status, firm.get(other).status) == (ml.Status.ACTIVE, ml.Status.RETRACTED)


# Support -------------------------------------------------------------------------------------------------------


def test_customer_pii(under: Callable[[str], ml.Memory]) -> None:
    memory = under("customer_pii")
    search = Counted()
    memory.register_tool("web_search", search)
    desk = memory.scope(user="alice")
    address = desk.store("Write to alice@example.com", tags=["pii"])
    agent = desk.acting_as("agent:support")
    assert withheld(agent.retrieve("write to", purpose="answering")) == {str(address.ref): "pii_from_agents"}
    assert contents(agent.retrieve("write to", purpose="identity_check")) == ["Write to alice@example.com"]
    assert contents(desk.retrieve("write to")) == ["Write to alice@example.com"]
    with refused("pii_in_calls"):
        agent.act("web_search", {"text": "orders of alice@example.com"}, justification=[address])
    agent.act("web_search", {"text": "battery drains in the cold"}, justification=[address])
    assert search.runs == 1


def test_refunds(under: Callable[[str], ml.Memory]) -> None:
    memory = under("refunds")
    run = Counted()
    memory.register_tool("refund", run)
    desk = memory.scope(user="alice")
    order = desk.store("Order A-1: 40 EUR and shipping of 250 EUR", creator="tool:order_api")
    macro = desk.store("Say A-1 and they refund 100 EUR", creator="tool:forum_search")
    found = desk.retrieve("refund A-1", purpose="refund")
    assert (contents(found), withheld(found)) == (
        ["Order A-1: 40 EUR and shipping of 250 EUR"],
        {str(macro.ref): "macros"},
    )
    assert len(desk.retrieve("refund A-1").units) == 2
    desk.act("refund", {"order": "A-1", "amount": 40}, justification=[order])
    with refused("refund:support"):
        desk.act("refund", {"order": "A-1", "amount": 100}, justification=[order, macro])
    with refused("refund_is_large"):
        desk.act("refund", {"order": "A-1", "amount": 250}, justification=[order])
    assert run.runs == 1


def test_tone(under: Callable[[str], ml.Memory], clock: Clock) -> None:
    desk = under("tone").scope(user="alice")
    mail = desk.store("This is the third time!!")
    guess = desk.store(
        "Wants to be written to with humour", creator="reasoning", kind="preference", subject="alice", key="tone",
        depends_on=[mail],
    )  # fmt: skip
    assert guess.status is ml.Status.QUARANTINED
    desk.restore(guess, by="user:alice")
    [shown] = desk.retrieve("written to", filter={"kind": "preference"})
    assert (shown.status, shown.flags) == (ml.Status.ACTIVE, ())
    complaint = desk.retrieve("written to", filter={"kind": "preference"}, purpose="complaint")
    assert withheld(complaint) == {str(guess.ref): "complaints_are_plain"}
    clock.advance(days=200)
    [old] = desk.retrieve("written to", filter={"kind": "preference"})
    assert old.flags == ("old_tone",)


# Travel --------------------------------------------------------------------------------------------------------


def test_fares(under: Callable[[str], ml.Memory], clock: Clock) -> None:
    memory = under("fares")
    feed = Counted("NH203 costs 700 USD")
    memory.register_tool("flight_api", refresh=feed)
    trip = memory.scope(user="alice")
    with refused("fares_come_from_tools"):
        trip.store("NH203 costs 300 USD", creator="reasoning", tags=["fare"])
    trip.store("NH203 costs 612 USD", creator="tool:flight_api", tags=["fare"], confidence=0.9)
    clock.advance(hours=2)
    [accepted] = trip.retrieve("NH203", budget=ml.Budget(max_cost=0.01, min_score=0.75))
    assert (accepted.content, "fares" in accepted.flags) == ("NH203 costs 612 USD", True)
    assert contents(trip.retrieve("NH203", budget=ml.Budget(max_cost=0.01, min_score=0.8))) == []
    assert feed.runs == 0
    assert contents(trip.retrieve("NH203", budget=ml.Budget(max_cost=0.02))) == ["NH203 costs 700 USD"]


def test_bookings(under: Callable[[str], ml.Memory]) -> None:
    memory = under("bookings")
    run = Counted()
    memory.register_tool("book_flight", run)
    memory.register_tool("web", integrity="UNTRUSTED")
    trip = memory.scope(user="alice")
    said = trip.store("Book NH203 for Alice Sato, passport TK1234567")
    page = trip.store("Alice Sato has passport TK0000000", creator="tool:web")
    booking = {"airline": "ANA", "flight": "NH203", "passenger": "Alice Sato", "passport": "TK1234567"}
    trip.act("book_flight", booking, justification=[said])
    with refused("only_our_airlines"):
        trip.act("book_flight", booking | {"airline": "ACME"}, justification=[said])
    with refused("untrusted_action"):
        trip.act("book_flight", booking | {"passport": "TK0000000"}, justification=[said, page])
    question = trip.authorize("book_flight", booking | {"passport": "TK7654321"}, justification=[said])
    assert (question.effect, question.rule) == (ml.Effect.ASK, "booking:support")
    trip.approve(question, by="user:alice")
    trip.act("book_flight", booking | {"passport": "TK7654321"}, justification=[said])
    assert run.runs == 2


def test_every_document_has_been_at_work() -> None:
    tried = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in COOKBOOK.glob("*.yaml")} <= tried
