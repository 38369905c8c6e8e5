"""Rules of semantics.md, sections 0, 2, 3 and 10, that one small example each makes plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from memlineage.model.principal import Integrity
from memlineage.model.scope import Scope
from memlineage.model.state import CauseKind
from memlineage.model.unit import Role
from memlineage.testing.history import Handle, Parent, Refused, Writer
from memlineage.testing.worlds import START, World

SCOPE: Final = Scope(user="alice", agent="planner", session="s1")
HOST: Final = Writer(SCOPE)
AGENT: Final = Writer(SCOPE, "agent:planner", ("tool:web",))
ALICE: Final = "user:alice"


class Table:
    """A world with a clock that ticks, and short words."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.now = START

    def tick(self) -> int:
        self.now += 1
        return self.now

    def store(self, content: str, creator: str, *parents: Handle, writer: Writer = HOST, price: bool = False) -> Handle:
        return self.world.store(
            writer,
            content,
            now=self.tick(),
            creator=creator,
            parents=[Parent(parent) for parent in parents],
            subject="flight" if price else None,
            key="price" if price else None,
        )

    def update(self, ref: Handle, content: str, creator: str, *parents: Handle, writer: Writer = HOST) -> Handle:
        edges = [Parent(parent) for parent in parents]
        return self.world.update(writer, ref[0], content, now=self.tick(), creator=creator, parents=edges)

    def add(self, ref: Handle, kind: CauseKind) -> None:
        self.world.add_cause(HOST, ref, kind, by=ALICE, now=self.tick())

    def statuses(self, *refs: Handle) -> str:
        states = self.world.states(self.now)
        return " ".join(states[ref].status.value for ref in refs)

    def integrity(self, ref: Handle) -> Integrity:
        return self.world.states(self.now)[ref].integrity


@pytest.fixture
def table(world: Callable[[], World]) -> Table:
    return Table(world())


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(Refused) as refused:
        act()
    return refused.value.code


# --- groups and equivalence (section 2) -------------------------------------------------------------------------


def test_what_replaces_a_thing_may_be_derived_from_it(table: Table) -> None:
    old = table.store("612 USD", "tool:feed", price=True)
    new = table.store("600 USD", "tool:feed", old, price=True)
    assert table.statuses(old, new) == "superseded active"


def test_a_step_outside_the_group_makes_it_pending(table: Table) -> None:
    old = table.store("612 USD", "tool:feed", price=True)
    note = table.store("12 USD less", "tool:feed", old)
    new = table.store("600 USD", "tool:feed", note, price=True)
    assert table.statuses(old, note, new) == "superseded pending_verification pending_verification"


def test_a_later_version_may_be_derived_from_an_earlier_one(table: Table) -> None:
    old = table.store("612 USD", "tool:feed")
    new = table.update(old, "600 USD", "tool:feed", old)
    assert table.statuses(old, new) == "superseded active"


def test_a_child_follows_the_newest_equivalent_that_is_not_quarantined(table: Table) -> None:
    first = table.store("Kyoto", ALICE)
    child = table.store("Temples", "reasoning", first)
    second = table.update(first, "Kyoto.", ALICE)
    third = table.update(first, "Kyoto!", ALICE)
    found = [table.statuses(child)]
    table.add(second, CauseKind.INVALID)
    found.append(table.statuses(child))
    table.add(third, CauseKind.QUARANTINED)
    found.append(table.statuses(child))
    assert found == ["active", "active", "contaminated"]


def test_an_equivalent_that_is_itself_replaced_leaves_the_child_pending(table: Table) -> None:
    first = table.store("Kyoto", ALICE)
    child = table.store("Temples", "reasoning", first)
    table.update(first, "Kyoto.", ALICE)
    table.update(first, "Osaka", ALICE)
    assert table.statuses(child) == "pending_verification"


def test_a_model_saying_the_same_settles_nothing(table: Table) -> None:
    first = table.store("Cheap", "reasoning", table.store("612 USD", "tool:feed"))
    child = table.store("Book it", "reasoning", first)
    table.update(first, "Cheap.", "reasoning", table.store("611 USD", "tool:feed"))
    assert table.statuses(child) == "pending_verification"


def test_no_equivalence_is_recorded_that_would_close_a_cycle(table: Table) -> None:
    first = table.store("612 USD", "tool:feed")
    table.update(first, "612 USD.", "tool:feed", first)
    assert table.world.recorded().verdicts == set()


def test_a_loser_that_says_the_same_as_the_winner_settles_its_children(table: Table) -> None:
    loser = table.store("612 USD", "tool:feed", price=True)
    child = table.store("Cheap", "reasoning", loser)
    table.store("612 USD.", "tool:quotes", price=True)
    assert table.statuses(loser, child) == "superseded active"


# --- competition (section 10) -----------------------------------------------------------------------------------


def test_the_next_value_returns_when_the_winner_goes_down(table: Table) -> None:
    loser = table.store("612 USD", "tool:feed", price=True)
    winner = table.store("600 USD", "tool:quotes", price=True)
    before = table.statuses(loser, winner)
    table.add(winner, CauseKind.RETRACTED)
    assert (before, table.statuses(loser, winner)) == ("superseded active", "active retracted")


def test_integrity_beats_authority_and_time(table: Table) -> None:
    trusted = table.store("612 USD", ALICE, price=True)
    newer = table.store("600 USD", "tool:feed", price=True)
    assert table.statuses(trusted, newer) == "active superseded"


def test_copies_do_not_compete(table: Table) -> None:
    own = table.store("612 USD", "tool:feed", price=True)
    away = Writer(Scope(user="bob"))
    far = table.store("600 USD", "user:bob", writer=away, price=True)
    copy = table.world.store(
        HOST,
        "600 USD",
        now=table.tick(),
        creator="user:bob",
        parents=[Parent(far, role=Role.SHARED)],
        subject="flight",
        key="price",
    )
    assert table.statuses(own, copy) == "active active"


# --- integrity and protection (sections 0 and 3) ----------------------------------------------------------------


def test_exposure_and_weak_edges_lower_integrity_as_strong_ones_do(table: Table) -> None:
    mail = table.store("Pay 9 USD", "external:mail")
    city = table.store("Kyoto", ALICE)
    seen = table.world.store(HOST, "Pay", now=table.tick(), creator="reasoning", parents=[Parent(city)], exposed=[mail])
    weak = table.world.store(
        HOST, "Due", now=table.tick(), creator="tool:feed", parents=[Parent(city), Parent(mail, 0.1)]
    )
    assert [table.integrity(seen), table.integrity(weak)] == [Integrity.UNTRUSTED] * 2


def test_a_model_that_names_no_inputs_is_untrusted(table: Table) -> None:
    assert table.integrity(table.store("Pay 9 USD", "reasoning")) is Integrity.UNTRUSTED


def test_integrity_is_never_above_the_actors_own(table: Table) -> None:
    city = table.store("Kyoto", ALICE)
    assert table.integrity(table.store("Go", "reasoning", city, writer=AGENT)) is Integrity.INTERNAL


def test_an_update_of_lower_authority_or_integrity_is_refused(table: Table) -> None:
    city = table.store("Kyoto", ALICE)
    price = table.store("612 USD", "tool:feed")
    codes = [
        refusal(lambda: table.update(city, "Osaka", "tool:feed")),
        refusal(lambda: table.update(price, "1 USD", "reasoning", writer=AGENT)),
        refusal(lambda: table.update(price, "1 USD", "external:mail")),
    ]
    assert codes == ["protection"] * 3


def test_an_agent_acts_only_as_itself_reasoning_its_tools_and_outsiders(table: Table) -> None:
    claims = [ALICE, "user", "system", "agent:scout", "tool:feed"]
    refused = [refusal(lambda who=who: table.store("Hi", who, writer=AGENT)) for who in claims]  # type: ignore[misc]
    for who in ("agent:planner", "reasoning:small", "tool:web", "external:mail"):
        table.store("Hi", who, writer=AGENT)
    assert refused == ["claim"] * 5


def test_an_agent_judges_nothing_but_may_retract_its_own(table: Table) -> None:
    own = table.store("Hi", "agent:planner", writer=AGENT)
    act = table.world.add_cause
    code = refusal(lambda: act(AGENT, own, CauseKind.INVALID, by="agent:planner", now=table.tick()))
    act(AGENT, own, CauseKind.RETRACTED, by="agent:planner", now=table.tick())
    assert (code, table.statuses(own)) == ("authority", "retracted")


def test_support_weaker_than_its_unit_is_refused(table: Table) -> None:
    city = table.store("Kyoto", ALICE)
    price = table.store("612 USD", "tool:feed")
    world = table.world
    codes = [
        refusal(lambda: world.corroborate(HOST, city, [Parent(price)], creator=ALICE, now=table.now)),
        refusal(lambda: world.corroborate(HOST, price, [Parent(city, 0.1)], creator=ALICE, now=table.now)),
        refusal(lambda: world.reverify(HOST, city, by="user:bob", evidence=[city], now=table.now)),
    ]
    assert codes == ["integrity", "weak", "cycle"]


# --- what comes back (section 10) -------------------------------------------------------------------------------


def test_an_echo_is_the_unit_that_was_heard(table: Table) -> None:
    price = table.store("612 USD", "tool:feed")
    assert table.store("612 USD.", "reasoning", price) == price


def test_an_echo_of_something_dead_is_held_back(table: Table) -> None:
    price = table.store("612 USD", "tool:feed")
    table.add(price, CauseKind.INVALID)
    assert table.statuses(table.store("612 USD.", "reasoning", price)) == "quarantined"


@pytest.mark.parametrize(
    ("creator", "status"),
    [
        (ALICE, "active"),
        ("tool:quotes", "active"),
        ("external:mail", "quarantined"),
        ("reasoning", "quarantined"),
    ],
)
def test_who_may_repeat_what_was_invalidated(table: Table, creator: str, status: str) -> None:
    price = table.store("612 USD", "tool:feed")
    table.add(price, CauseKind.INVALID)
    again = table.store("612 USD.", creator)
    reasserts = table.world.recorded().versions[again].reasserts
    assert (table.statuses(again), reasserts) == (status, price)


def test_a_model_may_repeat_it_from_an_active_parent_that_has_nothing_to_do_with_it(table: Table) -> None:
    price = table.store("612 USD", "tool:feed")
    child = table.store("Cheap", "tool:feed", price)
    other = table.store("All flights cost 612 USD", "tool:quotes")
    table.add(price, CauseKind.INVALID)
    free = table.store("612 USD.", "reasoning", other)
    tied = table.store("612 USD!", "reasoning", other, child)
    assert table.statuses(free, tied) == "active quarantined"


def test_erased_content_is_matched_by_nothing(table: Table) -> None:
    price = table.store("612 USD", "tool:feed")
    table.add(price, CauseKind.ERASED)
    assert table.statuses(table.store("612 USD", "external:mail")) == "active"


# --- undo (section 2) -------------------------------------------------------------------------------------------


def test_restore_takes_the_latest_cause_and_never_erasure(table: Table) -> None:
    price = table.store("612 USD", "tool:feed")
    for kind in (CauseKind.INVALID, CauseKind.ARCHIVED, CauseKind.ERASED):
        table.add(price, kind)
    for _ in range(2):
        table.world.restore(HOST, price, by=ALICE, now=table.tick())
    code = refusal(lambda: table.world.restore(HOST, price, by=ALICE, now=table.tick()))
    assert (code, table.statuses(price)) == ("nothing", "erased")


def test_what_expired_by_its_own_time_can_be_waived(table: Table) -> None:
    price = table.world.store(HOST, "612 USD", now=table.tick(), creator="tool:feed", valid_until=table.now + 1)
    table.tick()
    before = table.statuses(price)
    table.world.restore(HOST, price, CauseKind.EXPIRED, by=ALICE, now=table.tick())
    assert (before, table.statuses(price)) == ("expired", "active")
