"""What is in force: one generation of policy, with all that is worked out from it once."""

from __future__ import annotations

import threading
from typing import Final, Self

import msgspec

from memlineage.engine.masks import Masks
from memlineage.errors import StoreError
from memlineage.policy import PolicySet
from memlineage.policy.fast.form import FastForm
from memlineage.policy.fast.picked import Picked
from memlineage.policy.freshness import asks_for_refresh, by_time_alone
from memlineage.store.database import Connection

__all__ = ["Generation", "Generations", "kept_policies"]

_KNOWN: Final = 8
"""Generations that are kept ready: those of snapshots that began before the last change, and a few that come back."""


class Generation(msgspec.Struct, frozen=True):
    """A set of policies and what decides by it. Reloading puts another in its place; nobody changes this one.

    Attributes:
        policies: the documents, as one set.
        form: decides.
        ageless: decides without what time alone has decided already, by the same masks.
        ages: the rules that set a time limit which is stored with each version.
        refreshers: the rules that ask for a refresh.
        masks: those that rows do not have yet.
    """

    policies: PolicySet
    form: FastForm
    ageless: FastForm
    ages: Picked
    refreshers: Picked
    masks: Masks

    @classmethod
    def of(cls, policies: PolicySet) -> Self:
        """The generation that a set makes."""
        form = FastForm(policies)
        return cls(
            policies,
            form,
            FastForm(policies, without=by_time_alone),
            Picked(policies, by_time_alone),
            Picked(policies, asks_for_refresh),
            Masks(form),
        )

    @property
    def quorum(self) -> int:
        """How many independent supports raise integrity; 0 for off."""
        return self.policies.quorum or 0


class Generations:
    """The generations that the file names, made once each. Thread-safe.

    Attributes:
        latest: the one that was last asked for.
    """

    def __init__(self, path: str, first: Generation) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known = {first.policies.revision: first}
        self.latest = first

    def add(self, generation: Generation) -> None:
        """Have one ready before the file names it."""
        with self._lock:
            self._known.pop(generation.policies.revision, None)
            self._known[generation.policies.revision] = generation
            while len(self._known) > _KNOWN:
                del self._known[next(iter(self._known))]

    def forget_masks(self) -> None:
        """Rows were written anew: what was worked out for the ones before may be of what they were."""
        with self._lock:
            for generation in self._known.values():
                generation.masks.forget()

    def of(self, connection: Connection) -> Generation:
        """The generation in force in a snapshot; of a file that has none yet, the one that it is opened with.

        Another process may have put it there: then it is read from the file. Raises `StoreError` if it cannot be, so
        that nothing is decided by rules that are not in force any more.
        """
        revision = connection.execute("SELECT value FROM meta WHERE name = 'policy'").get
        found = self.latest
        if revision is not None and found.policies.revision != revision:
            found = self._known.get(revision) or self._read(connection, revision)
            self.latest = found
        return found

    def known(self, revision: str) -> PolicySet | None:
        """The policies of a generation that is kept ready."""
        found = self._known.get(revision)
        return None if found is None else found.policies

    def _read(self, connection: Connection, revision: object) -> Generation:
        kept = kept_policies(connection.execute("SELECT value FROM meta WHERE name = 'policy_set'").get)
        if kept is None or kept.revision != revision:
            raise StoreError(
                f"{self._path} is under policy {str(revision)[:12]} now, which cannot be read there, so nothing is "
                "decided: find out where it is damaged with memlineage verify, or open it again with policies=[…]"
            )
        made = Generation.of(kept)
        self.add(made)
        return made


def kept_policies(kept: object) -> PolicySet | None:
    """The policy set that a file keeps; None if it cannot be read, or is not what its revision says."""
    if not isinstance(kept, bytes):
        return None
    try:
        found = PolicySet.from_kept(kept)
    except msgspec.DecodeError:
        return None
    return found if found.is_kept_as(kept) else None
