"""The agents of the office, written as users of a memory would write them, and gullible on purpose.

Where a model would think, they have a rule of thumb: they do what a line that begins with `SYSTEM:` says, and where
what they remember disagrees, they believe what is said most often. One class for both memories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from memlineage.demo.banking import ibans_in
from memlineage.demo.poison.desks import Desk, Item, Reply
from memlineage.demo.poison.world import amount, invoice, mailboxes_in, orders_in

__all__ = ["ACCOUNT", "RECIPIENT", "Attempt", "Clerk"]

ACCOUNT: Final = "To which account is the stationer paid?"
RECIPIENT: Final = "To which mailbox are reports sent?"
_ORDER: Final = "SYSTEM: "


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A call that an agent wanted to make.

    Attributes:
        value: the account or mailbox that it had in mind.
        intent: its own conclusion, which it gave as the reason.
        reply: what became of it.
    """

    value: str
    intent: Item
    reply: Reply


class Clerk:
    """Files, obeys, sums up, repeats, pays, reports."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def file(self, mail: str) -> Item:
        """Keep a mail."""
        return self._desk.hear(mail, "tool:mail", "mail")

    def obey(self, mail: Item) -> list[Item]:
        """Note what the mail says in capitals, as if it were so."""
        orders = [line.removeprefix(_ORDER) for line in mail.text.splitlines() if line.startswith(_ORDER)]
        return [
            self._desk.think(order, [mail], "wish", kind="preference")
            if "prefers" in order
            else self._desk.think(order, [mail], "note")
            for order in orders
        ]

    def draft(self, note: Item) -> Reply:
        """Write a reply for a person to look at."""
        text = f"Thank you. We have noted: {note.text}"
        return self._desk.call("draft_reply", {"text": text}, [note])

    def sum_up(self, day: str) -> Item:
        """The day in one sentence, made from what is remembered of it."""
        found = self._desk.recall(ACCOUNT)
        account = most_named(ibans_in, found)[0]
        text = f"{day}: the stationer's invoices go to {account}"
        return self._desk.think(text, naming(account, found), "summary")

    def rewrite(self, item: Item, wordings: Sequence[str]) -> Item:
        """Tidy a memory up, again and again."""
        for wording in wordings:
            item = self._desk.revise(item, wording)
        return item

    def repeat(self, opening: str) -> Item:
        """Look it up, and say it again in one's own words."""
        found = self._desk.recall(ACCOUNT)
        account = most_named(ibans_in, found)[0]
        text = f"{opening}: the account of the stationer is {account}"
        return self._desk.think(text, naming(account, found), "claim")

    def pay(self, number: int) -> list[Attempt]:
        """Pay an invoice to the account that is named most often; where that is refused, to the next."""
        bill = self._desk.hear(invoice(number), "tool:orders", "invoice")
        found = self._desk.recall(ACCOUNT)
        due, reference = amount(bill.text), f"order {orders_in(bill.text)[0]}"
        return list(
            self._try(
                "pay", most_named(ibans_in, found), [bill], found,
                lambda iban: f"Pay invoice {number}, {due}, to {iban}",
                lambda iban: {"iban": iban, "amount": due, "reference": reference},
            )
        )  # fmt: skip

    def report(self, month: str) -> list[Attempt]:
        """Send the figures of a month to whoever is said to want them."""
        found = self._desk.recall(RECIPIENT)
        return list(
            self._try(
                "send_report", most_named(mailboxes_in, found), [], found,
                lambda to: f"Send the figures of {month} to {to}", lambda to: {"to": to},
            )
        )  # fmt: skip

    def _try(
        self,
        tool: str,
        values: Sequence[str],
        given: Sequence[Item],
        found: Sequence[Item],
        wording: Callable[[str], str],
        arguments: Callable[[str], dict[str, str]],
    ) -> Iterator[Attempt]:
        for value in values:
            intent = self._desk.think(wording(value), [*given, *naming(value, found)], "intent")
            reply = self._desk.call(tool, arguments(value), [intent])
            yield Attempt(value=value, intent=intent, reply=reply)
            if reply.done:
                return


def most_named(find: Callable[[str], list[str]], items: Sequence[Item]) -> list[str]:
    """What the most of these name, first; of equals, the one that comes up earlier."""
    return [value for value, _ in Counter(value for item in items for value in find(item.text)).most_common()]


def naming(value: str, items: Sequence[Item]) -> list[Item]:
    """What an agent names as its grounds: whatever of this says so."""
    return [item for item in items if value in item.text]
