"""One process's share of the load: what agents and their hosts do all day, in about the proportions that they do it.

A few users at a time, and others after a while, as a service sees them: so memories that nobody asks about any more
can be let go of. Each conversation has a scope of its own on the model's side. What a verb refuses, by policy or
because somebody else was there first, is part of the day.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from memlineage.engine.memory import Memory
from memlineage.engine.scope import Scope
from memlineage.errors import ConflictError, CycleError, InvalidInputError, PolicyViolationError, UnknownUnitError
from memlineage.evaluation.corpus import LANGUAGES, questions, sentences
from memlineage.model.ids import Ref
from memlineage.model.unit import Role, Unit
from memlineage.testing.workload import Acknowledged

__all__ = ["POLICY", "REFUSALS", "Load", "open_memory"]

POLICY: Final[dict[str, Any]] = {
    "memlineage": 1,
    "layer": "global",
    "principals": {"tool:web": "UNTRUSTED"},
    "rules": [
        {"name": "notes", "sensitive_action": {"tool": "note", "arguments": ["text"]}},
        {
            "name": "quotes",
            "target": {"tags": ["quote"]},
            "condition": {
                "operator": ">",
                "left_operand": {"type": "time_since", "memory_field": "lineage.timestamp"},
                "right_operand": {"type": "literal", "value": 60},
            },
            "action": "deactivate_and_trigger_refresh",
        },
    ],
}
"""A tool whose argument must be supported, and quotes that grow old within a minute."""

REFUSALS: Final = (PolicyViolationError, ConflictError, CycleError, InvalidInputError, UnknownUnitError)
"""What a verb may answer instead of doing it."""

_SEARCH_MEMORY: Final = 8 << 20
"""Little, so that what nobody asks about any more has to go within minutes, as it would within days otherwise."""
_ACTIVE: Final = 6
_REMEMBERED: Final = 40
_CONVERSATION: Final = 25
_TOOLS: Final = ("tool:feed", "tool:web")


def open_memory(path: str) -> Memory:
    """A process's own handle on the shared file, with the tools of the day."""
    memory = Memory.open(path, policies=[POLICY], embedder="lexical", search_memory=_SEARCH_MEMORY)
    memory.register_tool("feed", refresh=lambda stale: stale.content, cost=0.01)
    memory.register_tool("note", run=lambda text: f"noted {len(text)} characters", compensate=lambda _: "struck out")
    return memory


class Load:
    """Picks a user and a verb, again and again."""

    def __init__(self, memory: Memory, rng: random.Random, *, name: str, turnover: float) -> None:
        """`name` keeps contents of several processes apart; `turnover` is the seconds after which users change."""
        self.memory = memory
        self.acknowledged: list[Acknowledged] = []
        self._rng = rng
        self._name = name
        self._turnover = turnover
        self._count = 0
        self._texts = {language: sentences(language, 200, seed=1) for language in LANGUAGES}
        self._questions = [text for language in LANGUAGES for text in questions(language, 20)]
        self._known: dict[str, deque[Ref]] = {}
        self._down: dict[str, deque[Ref]] = {}
        self._models: dict[str, tuple[int, Scope]] = {}
        self._verbs = self._mix()
        self._weights = [weight for weight, _ in self._verbs.values()]

    @property
    def verbs(self) -> tuple[str, ...]:
        """What it picks from."""
        return tuple(self._verbs)

    def step(self) -> tuple[str, bool]:
        """One verb, for one user; its name, and whether it was done. The time it took is the caller's to measure."""
        [verb] = self._rng.choices(self.verbs, self._weights)
        user = self._user()
        try:
            self._verbs[verb][1](user)
        except REFUSALS:
            return verb, False
        return verb, True

    def reopened(self, memory: Memory) -> None:
        """The memory was closed and opened again: conversations begin anew, what is known of its content stays."""
        self.memory = memory
        self._models.clear()

    def _mix(self) -> Mapping[str, tuple[float, Callable[[str], object]]]:
        return {
            "retrieve": (34, self._retrieve),
            "get": (10, lambda user: self._host(user).get(self._any(user))),
            "list": (3, lambda user: self._host(user).list(filter={"tags": {"contains": "quote"}}, limit=20)),
            "history": (2, lambda user: self._host(user).history(self._any(user))),
            "explain": (3, lambda user: self._host(user).explain(self._any(user), lang=self._rng.choice(("en", "zh")))),
            "trace": (2, lambda user: self._host(user).trace(self._any(user))),
            "impact": (3, lambda user: self._host(user).impact(self._any(user))),
            "store": (18, self._store),
            "store_many": (1, self._store_many),
            "update": (5, self._update),
            "invalidate": (2, self._invalidate),
            "restore": (2, self._restore),
            "retract": (1, lambda user: self._host(user).retract(self._any(user), reason="no longer claimed")),
            "reverify": (1, lambda user: self._host(user).reverify(self._any(user))),
            "corroborate": (1, self._corroborate),
            "endorse": (0.5, lambda user: self._host(user).endorse(self._any(user), reason="checked by hand")),
            "authorize": (3, self._authorize),
            "act": (2, self._act),
            "distrust": (0.1, lambda _: self.memory.distrust(f"tool:odd{self._rng.randrange(50)}", reason="odd")),
            "decisions": (0.3, lambda _: self.memory.decisions(limit=20)),
        }

    # Who and what --------------------------------------------------------------------------------------------------

    def _user(self) -> str:
        """One of those who are there now."""
        shift = int(time.time() / self._turnover)
        return f"user-{shift % 1_000_000}-{self._rng.randrange(_ACTIVE)}"

    def _host(self, user: str) -> Scope:
        return self.memory.scope(user=user, agent="helper", session="today")

    def _model(self, user: str) -> Scope:
        """The model's side of the running conversation; after some turns another one begins."""
        turns, scope = self._models.get(user, (0, None))
        if scope is None or turns >= _CONVERSATION:
            if len(self._models) > 4 * _ACTIVE:
                self._models.clear()  # the others have left
            turns, scope = 0, self._host(user).acting_as("agent:helper", tools=_TOOLS)
        self._models[user] = (turns + 1, scope)
        return scope

    def _any(self, user: str) -> Ref:
        """Something of that user's; stored, if nothing is known yet."""
        known = self._known.get(user)
        return self._rng.choice(known) if known else self._stored(user, self._host(user).store(self._say()))

    def _some(self, user: str, most: int) -> list[Ref]:
        known = self._known.get(user) or ()
        return self._rng.sample(list(known), min(len(known), self._rng.randint(1, most)))

    def _say(self) -> str:
        self._count += 1
        return f"{self._rng.choice(self._texts[self._rng.choice(LANGUAGES)])} ({self._name}, {self._count})"

    def _keep(self, users: dict[str, deque[Ref]], user: str, ref: Ref) -> None:
        if user not in users and len(users) > 4 * _ACTIVE:
            del users[next(iter(users))]
        users.setdefault(user, deque(maxlen=_REMEMBERED)).append(ref)

    def _stored(self, user: str, unit: Unit, verb: str = "store") -> Ref:
        written = (e for e in unit.lineage.dependencies if e.role is Role.DEPENDS and e.justification == 0)
        parents = tuple(sorted(str(edge.parent) for edge in written))
        self._keep(self._known, user, unit.ref)
        self.acknowledged.append(Acknowledged(verb=verb, ref=str(unit.ref), content=unit.content, parents=parents))
        return unit.ref

    # Verbs that need more than a line --------------------------------------------------------------------------------

    def _retrieve(self, user: str) -> None:
        side = self._model(user) if self._rng.random() < 0.7 else self._host(user)
        side.retrieve(self._rng.choice(self._questions), limit=8, critical=self._rng.random() < 0.2)

    def _store(self, user: str) -> None:
        kind = self._rng.random()
        if kind < 0.25:
            key = f"key {self._rng.randrange(5)}" if self._rng.random() < 0.4 else None
            unit = self._host(user).store(
                self._say(), kind=self._rng.choice(("fact", "preference")), subject=key and "self", key=key
            )
        elif kind < 0.55:
            tool = self._rng.choice((*_TOOLS, f"tool:odd{self._rng.randrange(50)}"))
            tags = ["quote"] if tool == "tool:feed" else []
            unit = self._host(user).store(self._say(), creator=tool, tags=tags, arguments=self._some(user, 2))
        else:
            unit = self._model(user).store(self._say(), creator="reasoning", depends_on=self._some(user, 3))
        self._stored(user, unit)

    def _store_many(self, user: str) -> None:
        for unit in self._host(user).store_many([self._say() for _ in range(20)]):
            self._stored(user, unit)

    def _update(self, user: str) -> None:
        host, ref = self._host(user), self._any(user)
        said = host.get(ref.id).content if self._rng.random() < 0.2 else self._say()  # a fifth say the same again
        self._stored(user, host.update(ref.id, said, creator=f"user:{user}"), "update")

    def _invalidate(self, user: str) -> None:
        ref = self._any(user)
        causes = self._host(user).invalidate(ref, reason="found wrong").unit.causes
        self._keep(self._down, user, ref)
        cause = max(cause.seq for cause in causes)
        self.acknowledged.append(Acknowledged(verb="invalidate", ref=str(ref), cause=cause))

    def _restore(self, user: str) -> None:
        if not self._down.get(user):
            self._invalidate(user)
        ref = self._down[user].pop()
        self._host(user).restore(ref)
        self.acknowledged.append(Acknowledged(verb="restore", ref=str(ref)))

    def _corroborate(self, user: str) -> None:
        evidence = self._stored(user, self._host(user).store(self._say()))
        self._host(user).corroborate(self._any(user), depends_on=[evidence])

    def _authorize(self, user: str) -> None:
        ref = self._any(user)
        words = self._host(user).get(ref).content.split()
        self._model(user).authorize("note", {"text": words[0]}, justification=[ref])

    def _act(self, user: str) -> None:
        ref = self._any(user)
        words = self._host(user).get(ref).content.split()
        self._model(user).act("note", {"text": words[0]}, justification=[ref])
