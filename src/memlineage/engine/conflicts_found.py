"""Finding conflicts: what competes for a key, seen by one reader at one moment (semantics.md, section 10; row C5)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Final

import msgspec
import orjson

from memlineage.engine.acting import Acting
from memlineage.engine.conflicts import Conflict, Option
from memlineage.engine.enforcement import Enforcement, Reading
from memlineage.engine.results import Withheld
from memlineage.engine.snapshot import Snapshot
from memlineage.errors import PolicyViolationError
from memlineage.lineage.contest import Claim, Doubt, competes, criterion, doubt, in_order
from memlineage.lineage.paths import roots
from memlineage.model.scope import Scope, Visibility, Wall
from memlineage.model.state import Standing, unpack
from memlineage.model.unit import Unit
from memlineage.policy import Decision
from memlineage.store.database import ids
from memlineage.store.sql import QUERIES

__all__ = ["ConflictView", "Contest"]

_LOSERS: Final = 20
_LOOKED_AT: Final = 200
_UNSAID: Final = 0.5


class Contest(msgspec.Struct, frozen=True):
    """What competes for one key, or two statements that a check found to contradict each other.

    Attributes:
        claims: all of them, best first: the first one stands.
        losers: those that say otherwise than the first.
        disputed: those of the losers that put it in doubt, each with why.
        reason: what the check said; None under a key.
    """

    claims: tuple[Claim, ...]
    losers: tuple[Claim, ...]
    disputed: tuple[tuple[Claim, Doubt], ...]
    reason: str | None = None

    @property
    def winner(self) -> Claim:
        """What stands."""
        return self.claims[0]

    @property
    def order(self) -> tuple[bool, int]:
        """Those in doubt first, then the latest."""
        return (not self.disputed, -max(claim.seq for claim in self.claims))


class ConflictView:
    """Conflicts as one reader sees them in one snapshot."""

    def __init__(self, enforcement: Enforcement, acting: Acting, snapshot: Snapshot) -> None:
        self._enforcement = enforcement
        self._acting = acting
        self._snapshot = snapshot

    @cached_property
    def _reading(self) -> Reading:
        return self._enforcement.reading(self._acting, self._snapshot, inspecting=True)

    # Contests: what the lineage says, whoever asks -----------------------------------------------------------------

    def groups(self, subject: str | None, key: str | None) -> list[int]:
        """Groups of this scope in which something lost its key, by subject and key where these are given."""
        connection = self._snapshot.connection
        if subject is not None and key is not None:
            names = [orjson.dumps([*wall.group, subject, key]).decode() for wall in _walls(self._acting.scope)]
            found = (connection.execute(QUERIES["find_contest"], (name,)).get for name in dict.fromkeys(names))
            return [g for g in found if g is not None]
        rows = [
            row
            for ns in self._snapshot.names.namespaces(self._acting.scope)
            for row in connection.execute(QUERIES["contested"], (ns,))
        ]
        kept = (g for g, about, of in rows if subject in (None, about) and key in (None, of) and g)
        return list(dict.fromkeys(kept))

    def group_of(self, n: int) -> int:
        """What a version competes in; 0 for nothing."""
        return self._snapshot.graph.node(n).group

    def holder(self, group: int) -> int | None:
        """Who holds a key; None if nobody does."""
        graph = self._snapshot.graph
        nodes = graph.load(graph.members([group]).get(group, ()))
        contending = [nodes[n] for n in graph.members([group]).get(group, ()) if competes(nodes[n])]
        return max(contending, key=lambda node: node.rank).n if contending else None

    def contests(self, groups: Collection[int]) -> list[Contest]:
        """Groups in which two candidates say different things: in doubt first, then the latest."""
        graph = self._snapshot.graph
        members = graph.members(groups) if groups else {}
        nodes = graph.load([n for found in members.values() for n in found])
        contending = [[n for n in found if competes(nodes[n])] for found in members.values()]
        # Among equals there is nothing to ask about.
        several = [found for found in contending if len({nodes[n].form for n in found}) > 1]
        written = graph.written([n for found in several for n in found])
        claims = [[Claim.of(nodes[n], written[n].creator) for n in found] for found in several]
        return sorted((self._contest(found, None) for found in claims), key=lambda contest: contest.order)

    def pair(self, a: int, b: int, reason: str) -> Contest:
        """Two statements of which a check said that they contradict each other."""
        nodes, written = self._snapshot.graph.load([a, b]), self._snapshot.graph.written([a, b])
        return self._contest([Claim.of(nodes[n], written[n].creator) for n in (a, b)], reason)

    def _contest(self, claims: Iterable[Claim], reason: str | None) -> Contest:
        ordered = in_order(claims)
        winner, *rest = ordered
        losers = [claim for claim in rest if claim.form != winner.form]
        doubted = [(claim, why) for claim in losers if (why := doubt(winner, claim)) is not None]
        if doubted:
            agreed = self.both_hold([claim.n for claim in ordered])
            doubted = [(claim, why) for claim, why in doubted if frozenset((winner.n, claim.n)) not in agreed]
        return Contest(tuple(ordered), tuple(losers), tuple(doubted), reason)

    def standing(self, numbers: Collection[int]) -> bool:
        """Whether all of these are free of causes, and of premises that are wrong."""
        codes = self._snapshot.states.codes(numbers)
        return all(_stands(codes[n]) for n in numbers)

    def both_hold(self, numbers: Sequence[int]) -> set[frozenset[int]]:
        """Pairs among these of which somebody said that both hold, as long as that word stands."""
        said: dict[int, set[int]] = {}
        for word, n in self._snapshot.connection.execute(QUERIES["both_hold"], (ids(numbers),)):
            said.setdefault(word, set()).add(n)
        codes = self._snapshot.states.codes(said)
        words = [about for word, about in said.items() if _stands(codes[word])]
        return {frozenset((a, b)) for about in words for a in about for b in about if a < b}

    # Conflicts: what this reader may see of them ---------------------------------------------------------------------

    def conflict(self, contest: Contest, held: list[Withheld]) -> Conflict | None:
        """A contest as this reader is told of it; None, with what is withheld put into `held`, if too little is left.

        Whoever may not see the winner is told nothing: not even what it is about.
        """
        kept_back: list[Withheld] = []
        contest = self._in_sight(contest, kept_back)
        considered = _considered(contest)
        units = self._readable([claim.n for claim in considered], kept_back)
        losers = [units[claim.n] for claim in contest.losers[:_LOSERS] if claim.n in units]
        disputed = [(units[claim.n], claim, why) for claim, why in contest.disputed[:_LOSERS] if claim.n in units]
        losers = list(dict.fromkeys((*(unit for unit, _, _ in disputed), *losers)))
        if contest.winner.n not in units or not losers:
            held.extend(kept_back)
            return None
        winner = units[contest.winner.n]
        claims = {claim.n: claim for claim in considered}
        against = disputed[0][1] if disputed else next(c for c in contest.losers if c.n in units)
        rank = {units[n].ref: place for place, n in enumerate(claims) if n in units}
        return Conflict(
            subject=_common(winner.subject, losers[0].subject),
            key=None if contest.reason is not None else winner.key,
            winner=winner,
            losers=tuple(sorted(losers, key=lambda unit: rank[unit.ref])),
            disputed=tuple(unit for unit, _, _ in disputed),
            criterion=criterion(contest.winner, against),
            doubt=disputed[0][2] if disputed else None,
            reason=contest.reason,
            more=max(0, len(contest.losers) - _LOSERS),
            withheld=tuple(kept_back),
            mark=_mark(contest, units),
        )

    def options(self, contest: Contest, conflict: Conflict) -> tuple[Option, ...]:
        """What may hold, once each, the recommended first."""
        contest = self._in_sight(contest, [])
        asked = {unit.ref for unit in (conflict.winner, *(conflict.disputed or conflict.losers))}
        units = self._readable([claim.n for claim in _considered(contest)], [])
        by_form: dict[bytes, list[Claim]] = {}
        for claim in _considered(contest):
            if claim.n in units:
                by_form.setdefault(claim.form, []).append(claim)
        chosen = [claims for claims in by_form.values() if any(units[c.n].ref in asked for c in claims)]
        counted = [(claims, self._origins([c.n for c in claims])) for claims in chosen]

        def recommended(item: tuple[list[Claim], int]) -> tuple[float, ...]:
            best, unit = item[0][0], units[item[0][0].n]
            sure = _UNSAID if unit.confidence is None else unit.confidence
            return (-best.integrity, -best.authority, -sure, -item[1], -best.timestamp, -best.seq)

        return tuple(
            Option(
                number=number, unit=units[claims[0].n], refs=tuple(units[c.n].ref for c in claims), origins=origins,
                stands=contest.winner.n in {c.n for c in claims},
            )
            for number, (claims, origins) in enumerate(sorted(counted, key=recommended), 1)
        )  # fmt: skip

    def candidates(self, contest: Contest) -> dict[int, Unit]:
        """Everything that competes, as far as this reader may see it."""
        return self._readable([claim.n for claim in contest.claims], [])

    def _in_sight(self, contest: Contest, held: list[Withheld]) -> Contest:
        """A contest of many without what this reader may not see, so that it does not crowd out what he may."""
        if len(contest.losers) <= _LOSERS:
            return contest
        disputed = [claim.n for claim, _ in contest.disputed]
        doubted = set(disputed)
        hidden: set[int] = set()
        for numbers in (disputed, [claim.n for claim in contest.losers if claim.n not in doubted]):
            seen = 0
            for start in range(0, min(len(numbers), _LOOKED_AT), _LOSERS):
                some = numbers[start : start + _LOSERS]
                units = self._readable(some, held)
                hidden.update(n for n in some if n not in units)
                seen += len(units)
                if seen >= _LOSERS:
                    break
        return Contest(
            tuple(claim for claim in contest.claims if claim.n not in hidden),
            tuple(claim for claim in contest.losers if claim.n not in hidden),
            tuple((claim, why) for claim, why in contest.disputed if claim.n not in hidden),
            contest.reason,
        )

    def _origins(self, numbers: Sequence[int]) -> int:
        """How many creators of roots there are behind these."""
        begins = roots(self._snapshot.graph, numbers)
        written = self._snapshot.graph.written(begins)
        return len({written[n].creator for n in begins})

    def require(self, n: int) -> None:
        """Raise `PolicyViolationError` if this reader may not see a version."""
        decision = self._enforcement.read(self._reading, self._snapshot.unit(n), n)
        if not decision.allowed:
            raise PolicyViolationError(decision, str(decision))

    def readable(self, n: int) -> Unit | None:
        """A version, if this reader may see it."""
        return self._readable([n], []).get(n)

    def _readable(self, numbers: Sequence[int], held: list[Withheld]) -> dict[int, Unit]:
        shown: dict[int, Unit] = {}
        for n, unit in self._snapshot.units(numbers).items():
            if not self._acting.scope.sees(unit.wall):
                continue  # what lies behind other walls does not exist here, and is not counted either
            decision = self._enforcement.read(self._reading, unit, n)
            if decision.allowed:
                shown[n] = msgspec.structs.replace(unit, flags=decision.flags) if decision.flags else unit
            else:
                held.append(_withheld(unit, decision))
        return shown


def _considered(contest: Contest) -> list[Claim]:
    """The claims that anybody is told of: the winner, what is in dispute, other losers, and their equals; bounded."""
    disputed = [claim for claim, _ in contest.disputed[:_LOSERS]]
    told = {claim.n: claim for claim in (contest.winner, *disputed, *contest.losers[:_LOSERS])}
    forms = {claim.form for claim in told.values()}
    equal = [claim for claim in contest.claims if claim.form in forms and claim.n not in told]
    return in_order([*told.values(), *equal[:_LOSERS]])


def _mark(contest: Contest, units: dict[int, Unit]) -> str:
    """What stood, as far as the reader sees it, in twelve digits."""
    disputed = {claim.n for claim, _ in contest.disputed}
    stood = [(str(units[c.n].ref), *c.rank, c.n in disputed) for c in _considered(contest) if c.n in units]
    return hashlib.sha256(orjson.dumps(stood)).hexdigest()[:12]


def _stands(code: int) -> bool:
    state = unpack(code)
    return state.own == 0 and state.standing != Standing.CONTAMINATED


def _common(a: str | None, b: str | None) -> str | None:
    return a if a == b else None


def _walls(scope: Scope) -> list[Wall]:
    """Walls of every sort that this scope sees into."""
    owners: list[tuple[str | None, str | None]] = []
    owners += [(scope.user, scope.agent)] if scope.user is not None else []
    owners += [(None, scope.agent)] if scope.agent is not None else []
    found = [
        Wall(tenant=scope.tenant, user=user, agent=agent, session=scope.session, visibility=visibility)
        for user, agent in owners
        for visibility in Visibility
    ]
    return [wall for wall in found if scope.sees(wall)]


def _withheld(unit: Unit, decision: Decision) -> Withheld:
    rule = decision.rule or "policy"
    reason = next((text for text in decision.reasons if text.startswith(rule)), rule)
    return Withheld(ref=unit.ref, rule=rule, reason=reason)
