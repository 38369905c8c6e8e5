"""The same day with a flat memory: the same gullible agent, a list of texts, a bank of its own."""

from __future__ import annotations

from collections.abc import Container

from memlineage.demo.banking import Bank, ibans_in
from memlineage.demo.flat import FlatMemory

__all__ = ["FlatTraveller"]


class FlatTraveller:
    """The same gullible agent with such a memory, and a bank of its own."""

    def __init__(self) -> None:
        self.memory = FlatMemory()
        self.bank = Bank()

    def dead_facts_served(self, query: str, dead: Container[str]) -> list[str]:
        """What it would answer with, of what is known to be dead by then."""
        return [text for text in self.memory.recall(query) if text in dead]

    def pays(self, query: str, due: str) -> str:
        """Pays the first account in what it recalls, the loudest first; returns the account."""
        recalled = "\n".join(self.memory.recall(query))
        account = ibans_in(recalled)[0]
        self.bank.pay(account, due)
        return account
