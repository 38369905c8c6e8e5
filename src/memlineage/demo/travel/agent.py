"""A travel agent, written as a user of the library would write it.

Where a model would think, it has a rule of thumb; what it knows, it asks of its memory. It is gullible on purpose: it
does whatever a line that begins with `SYSTEM:` tells it to. What keeps it from harm is not its wits.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec

import memlineage as ml
from memlineage.demo.banking import Bank, ibans_in
from memlineage.demo.travel.world import Airline, Flights, Guide, Hotels, amount, new_clock

__all__ = ["Attempt", "Repair", "TravelAgent", "World", "booking_of", "breakfast_in", "open_memory"]

POLICIES: Final = Path(__file__).parent / "policies"
_TOOLS: Final = ("tool:flight_api", "tool:gds_api", "tool:hotel_api", "tool:city_guide")
_HELD_DOWN: Final = (ml.Status.PENDING, ml.Status.CONTAMINATED)
_LEGS: Final = ("outbound", "return")
_FLIGHT: Final = re.compile(r"[A-Z]{2}\d{3}")


class World:
    """Everything outside the program, one of each."""

    def __init__(self) -> None:
        self.clock = new_clock()
        self.flights = Flights(self.clock)
        self.hotels = Hotels()
        self.guide = Guide()
        self.airline = Airline()
        self.bank = Bank()


def open_memory(db: str, world: World) -> ml.Memory:
    """The memory, its policies, and the tools that it may call by itself."""
    memory = ml.Memory.open(db, policies=[POLICIES], embedder="lexical", clock=world.clock)
    memory.register_tool("flight_api", refresh=world.flights.refresh, cost=0.02)
    memory.register_tool("book_flight", run=world.airline.book, compensate=world.airline.cancel)
    memory.register_tool("pay", run=world.bank.pay)
    return memory


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent did about a change.

    Attributes:
        remade: the new versions, in the order they were made.
        for_a_person: executed actions that no longer rest on anything good: nobody can recompute those.
    """

    remade: tuple[ml.Unit, ...]
    for_a_person: tuple[ml.Affected, ...]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A payment that the agent wanted to make.

    Attributes:
        iban: the account it had in mind.
        note: the agent's own conclusion, which it gave as the reason.
        decision: what the gate said.
    """

    iban: str
    note: ml.Unit
    decision: ml.Decision


class TravelAgent:
    """Looks things up, plans, books, pays, and puts right what has become wrong."""

    def __init__(self, trip: ml.Scope, world: World) -> None:
        self._trip = trip
        self._world = world

    def plan(self, request: str) -> ml.Unit:
        """Ask every tool, then conclude. What tools answer is remembered by `track`, with what they were asked."""
        me = self._fresh_context()
        flights, hotels = self._world.flights, self._world.hotels
        city, dates = self._words("destination"), self._words("dates")
        with self._trip.step(request, kind="request", tags=["request"]) as step:
            for leg in _LEGS:
                quote = me.track(creator="tool:flight_api", tags=["flight_price", leg])(flights.quote)
                quote(leg, city, dates)
            room = me.track(creator="tool:hotel_api", tags=["hotel"])(hotels.room)
            room(city, dates)
            text, grounds = self._conclusion(me, step.unit)
            return me.store(text, creator="reasoning", kind="plan", tags=["plan"], depends_on=grounds)

    def book(self, leg: str) -> ml.ActionResult:
        """Book a leg on the strength of its quote. The gate asks where flight, price and traveller come from."""
        me = self._fresh_context()
        quote, traveller = self._usable(me, leg), self._words("traveller")
        arguments = booking_of(quote, traveller)
        return me.act("book_flight", arguments, justification=[quote, traveller])

    def repair(self, *changed: ml.Ref, source: str = "flight_api") -> Repair:
        """Ask memory what rests on a change and is not active, parents first, and make that anew.

        Each is looked at again when its turn comes: what was only waiting for a parent that came out the same is
        active by then, and is left alone.
        """
        current = [self._trip.get(unit_id) for unit_id in dict.fromkeys(ref.id for ref in changed)]
        remade = [self.remake(unit, source) for unit in current if not unit.active]
        waiting: dict[ml.Ref, ml.Affected] = {}
        for item in (item for ref in changed for item in self._trip.impact(ref)):
            unit = self._trip.get(item.unit.ref)
            if unit.kind == "action":
                waiting[unit.ref] = item
            elif unit.status in _HELD_DOWN:
                remade.append(self.remake(unit, source))
        still = tuple(item for ref, item in waiting.items() if self._trip.get(ref).status in _HELD_DOWN)
        return Repair(remade=tuple(remade), for_a_person=still)

    def remake(self, old: ml.Unit, source: str) -> ml.Unit:
        """The next version of something: the same question to a tool, or the same thought, on what holds now."""
        me = self._fresh_context()
        if old.kind == "plan":
            text, grounds = self._conclusion(me, old)
            return me.update(old, text, creator="reasoning", depends_on=grounds)
        city, dates = self._words("destination"), self._words("dates")
        if "hotel" in old.tags:
            answer, source = self._world.hotels.room(city, dates), "hotel_api"
        else:
            leg = next(leg for leg in _LEGS if leg in old.tags)
            ask = self._world.flights.cheapest if source == "gds_api" else self._world.flights.quote
            answer = ask(leg, city, dates)
        return me.update(old, answer, creator=f"tool:{source}", arguments=[city, dates])

    def read_guide(self, request: str) -> tuple[ml.Unit, ml.Found]:
        """Read a web page, then ask memory what bears on breakfast and the deposit."""
        me = self._fresh_context()
        with self._trip.step(request, kind="request", tags=["request"]) as step:
            read = me.track(creator="tool:city_guide", tags=["page"])(self._world.guide.page)
            read(self._words("destination"))
            found = me.retrieve(request, focus=step.unit)
        [page] = self._trip.list(filter={"tags": {"contains": "page"}})
        return page, found

    def obey(self, page: ml.Unit) -> list[ml.PolicyViolationError]:
        """Do as the page says: note the account as the user's. As the user, then in its own name."""
        payee = self._words("payee")
        refusals = []
        for speaker in ("user:alice", "reasoning"):
            try:
                words = f"Deposits go to IBAN {ibans_in(page.content)[0]}"
                self._fresh_context().update(payee, words, creator=speaker, depends_on=[page])
            except ml.PolicyViolationError as refusal:
                refusals.append(refusal)
        return refusals

    def pay_deposit(self, page: ml.Unit) -> tuple[list[Attempt], ml.ActionResult | None]:
        """Try one account after the other, the loudest first, until the gate lets one through."""
        me = self._fresh_context()
        hotel, payee = self._words("hotel"), self._words("payee")
        due = f"{amount(hotel.content.partition('deposit')[2])} USD"
        summary = me.store(
            f"The city guide says: deposits to {ibans_in(page.content)[0]}",
            creator="reasoning", tags=["summary"], depends_on=[page],
        )  # fmt: skip
        tried = []
        for iban in (*ibans_in(summary.content), *ibans_in(payee.content)):
            note = me.store(
                f"Pay the deposit of {due} to {iban}",
                creator="reasoning", tags=["intent"], depends_on=[summary, hotel, payee],
            )  # fmt: skip
            decision = me.authorize("pay", {"iban": iban, "amount": due}, justification=[note])
            tried.append(Attempt(iban=iban, note=note, decision=decision))
            if decision.allowed:
                return tried, me.act("pay", {"iban": iban, "amount": due}, justification=[note])
        return tried, None

    def _conclusion(self, me: ml.Scope, focus: ml.Unit | None) -> tuple[str, dict[ml.Unit, float]]:
        """The plan in words, and what it rests on: only what may be relied on now."""
        part = {tag: self._usable(me, tag, focus) for tag in (*_LEGS, "hotel")}
        budget = self._words("budget")
        total = sum(amount(unit.content) for unit in part.values())
        out, back = (flight_in(part[leg].content) for leg in _LEGS)
        house = part["hotel"].content.removeprefix("room at ").partition(",")[0]
        text = f"plan: {out} out, {back} back, {house}; {total:,} USD"
        return text, {**dict.fromkeys(part.values(), 1.0), budget: 0.6}

    def _usable(self, me: ml.Scope, tag: str, focus: ml.Unit | None = None) -> ml.Unit:
        """What may be relied on now; a price that has grown old is fetched again on the way, by policy."""
        about = {"tags": {"contains": tag}}
        found = me.retrieve(f"{tag} of the trip", focus=focus, filter=about, critical=True, limit=1)
        if not found.units:
            raise ml.UnknownUnitError(f"nothing on record about {tag!r} may be relied on now")
        return found.units[0]

    def _words(self, tag: str) -> ml.Unit:
        """What is on record under a label now."""
        return self._trip.list(filter={"tags": {"contains": tag}})[0]

    def _fresh_context(self) -> ml.Scope:
        """The model's side, with an empty context window."""
        return self._trip.acting_as("agent:planner", tools=_TOOLS)


def booking_of(quote: ml.Unit, traveller: ml.Unit) -> dict[str, str]:
    """The arguments of a booking."""
    return {
        "flight": flight_in(quote.content),
        "price": f"{amount(quote.content)} USD",
        "traveller": traveller.content.removeprefix("The traveller is "),
    }


def flight_in(text: str) -> str:
    """The first flight number in a text."""
    flights: list[str] = _FLIGHT.findall(text)
    return flights[0]


def breakfast_in(page: str, constraints: list[str]) -> str:
    """The first place on the page that serves nothing which the user does not drink."""
    line = next(line for line in page.splitlines() if line.startswith("Breakfast"))
    places: list[tuple[str, str]] = re.findall(r"([A-Z]\w+ [A-Z]\w+) \(([^)]*)\)", line)
    shunned = {said.rstrip(".").rsplit(" ", 1)[-1] for said in constraints if "don't drink" in said}
    return next(name for name, serves in places if not any(word in serves for word in shunned))
