"""A prompt from memory: what binds, what led here, what is like the question, within a number of tokens (rows D2, D3).

All of it is read in one snapshot and judged once. `recall/profiles.py` says which parts there are and which come
first; `engine/fitting.py` takes in what fits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain as joined
from typing import TYPE_CHECKING, Final, NamedTuple

from memlineage.engine.acting import Acting
from memlineage.engine.chain_results import PlanStep
from memlineage.engine.chains import Gathering, inspected, likeness_to
from memlineage.engine.context_result import Context, ContextWish
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.fitting import Candidate, fitted
from memlineage.engine.found import Found, Query
from memlineage.engine.frames import implied_parents, task_root
from memlineage.engine.inputs import Target
from memlineage.engine.judging import Judge, flagged, held_back, until_fresh
from memlineage.engine.plans import Unfolded
from memlineage.engine.refreshing import Refreshing, Stale
from memlineage.engine.results import Withheld
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.ways import back
from memlineage.errors import InvalidInputError
from memlineage.lineage.outward import outward
from memlineage.lineage.paths import topological
from memlineage.model.ids import Ref
from memlineage.model.state import Status
from memlineage.model.unit import Role, Unit
from memlineage.store.database import fetch, ids
from memlineage.store.sql import QUERIES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memlineage.engine.retrieval import Retrieval

__all__ = ["Contexts"]

_REPLACED: Final = frozenset({Status.SUPERSEDED, Status.EXPIRED})
_UP: Final = frozenset(Role) - {Role.REVISES}
_ASKED: Final = 2_000
"""Characters of the focus that stand for a query where there is none."""


class _Gathered(NamedTuple):
    """Everything that could be in a context, and what could not."""

    candidates: list[Candidate]
    withheld: tuple[Withheld, ...]
    hidden: int
    cost: float


class Contexts:
    """Builds contexts."""

    def __init__(
        self, core: Core, enforcement: Enforcement, refreshing: Refreshing, retrieval: Callable[[], Retrieval]
    ) -> None:
        """`retrieval` is asked for when it is needed: it takes long to load."""
        self._core = core
        self._enforcement = enforcement
        self._refreshing = refreshing
        self._retrieval = retrieval

    def build(self, acting: Acting, wish: ContextWish) -> Context:
        """The context; what policy wants fresh is fetched first."""

        def once(given_up: set[int]) -> tuple[_Gathered, list[Stale]]:
            def work(snapshot: Snapshot, alone: bool) -> tuple[_Gathered, list[Stale]] | None:
                judge = Judge(self._enforcement, self._refreshing, snapshot, wish.asking(acting), given_up)
                assembly = _Assembly(self._core, self._enforcement, snapshot, judge, acting, wish)
                found = self._search(assembly, alone=alone)
                return None if found is None else (assembly.gathered(found), list(judge.stale.values()))

            return self._retrieval().reading(work)

        # The counter is the caller's own, and may take its time: it is asked when nothing is held any more.
        gathered = until_fresh(self._refreshing, once)
        if wish.count is not None:  # it reads what there turns out to be no room for as well
            acting.saw(item.unit for item in gathered.candidates)
        return fitted(
            gathered.candidates, wish, withheld=gathered.withheld, hidden=gathered.hidden, cost=gathered.cost
        )  # fmt: skip

    def _search(self, assembly: _Assembly, *, alone: bool) -> Found | None:
        query = assembly.query
        retrieval = self._retrieval()
        assembly.vector = retrieval.vector(query.text)
        return retrieval.within(assembly.snapshot, assembly.judge, assembly.acting, query, assembly.vector, alone=alone)


class _Assembly:
    """One context in one snapshot."""

    def __init__(
        self,
        core: Core,
        enforcement: Enforcement,
        snapshot: Snapshot,
        judge: Judge,
        acting: Acting,
        wish: ContextWish,
    ) -> None:
        self._core = core
        self.snapshot = snapshot
        self.judge = judge
        self.acting = acting
        self._wish = wish
        self._profile = wish.profile
        numbers = [snapshot.resolve(acting.scope, target).n for target in wish.focus]
        self._focus = inspected(enforcement, snapshot, wish.asking(acting), numbers)
        self._root = task_root(core, acting.scope)
        self._withheld: dict[Ref, Withheld] = {}
        self._hidden: set[int] = set()
        self.vector: NDArray[np.float32] | None = None

    @property
    def query(self) -> Query:
        """What is searched for."""
        profile, wish = self._profile, self._wish
        near = wish.focus or tuple(Target(*ref) for ref in implied_parents(self._core, self.acting.scope))
        wanted = profile.like + profile.anchors if profile.has("like") else profile.anchors
        return Query(
            text=self._text(), focus=near, limit=max(1, wanted), critical=wish.critical, budget=wish.budget,
            purpose=wish.purpose, profile=profile.ranking,
            constraints=profile.constraints if profile.has("constraints") else 0,
        )  # fmt: skip

    def _text(self) -> str:
        if self._wish.query is not None:
            return self._wish.query
        asked = list(self._focus.values())
        if not asked and self._root is not None:
            n = self.snapshot.resolve(self.acting.scope, Target(*self._root)).n
            asked = [self.snapshot.unit(n)]
        text = "\n".join(unit.content for unit in asked)[:_ASKED]
        if not text.strip():
            raise InvalidInputError("there is nothing to build a context for; give a query, or a focus")
        return text

    def gathered(self, found: Found) -> _Gathered:
        """Everything that could be in it."""
        self._withheld.update((item.ref, item) for item in found.withheld)
        candidates = _each_once(list(self._candidates(found)), self._profile.order)
        return _Gathered(candidates, tuple(self._withheld.values()), len(self._hidden), self.judge.cost)

    def _candidates(self, found: Found) -> Iterator[Candidate]:
        has = self._profile.has
        for place, unit in enumerate(found.constraints):
            yield Candidate(unit=unit, part="constraints", label="constraint", place=place)
        anchors = self._anchors(found)
        gathered = self._gather(anchors)
        if has("goal") or has("steps"):
            yield from self._plan(anchors, gathered)
        if has("chain"):
            yield from self._chain(anchors, gathered)
        if has("current"):
            yield from self._current(anchors, gathered)
        if has("like"):
            liked = _by_topic(found.units) if self._profile.by_topic else found.units
            for place, unit in enumerate(liked):
                yield Candidate(unit=unit, part="like", label="memory", place=place)

    # The causal chain ------------------------------------------------------------------------------------------

    def _anchors(self, found: Found) -> dict[int, Unit]:
        """What the chain leads to: the focus, or what is most like the query."""
        if self._focus:
            return self._focus
        best = found.units[: self._profile.anchors]
        return {self.snapshot.resolve(self.acting.scope, Target(*unit.ref)).n: unit for unit in best}

    def _gather(self, anchors: Mapping[int, Unit]) -> Gathering:
        likeness = None
        if self.vector is not None:
            likeness = likeness_to(self.snapshot, self._core.embedder, self.vector)
        gathered = Gathering(
            self.snapshot, self.judge, self.acting.scope, anchors, limit=self._profile.chain, likeness=likeness
        )
        gathered.take(outward(back(self.snapshot, _UP), anchors, hops=self._profile.hops))
        self._withheld.update((item.ref, item) for item in gathered.withheld)
        self._hidden |= gathered.out_of_sight
        return gathered

    def _chain(self, anchors: Mapping[int, Unit], gathered: Gathering) -> Iterator[Candidate]:
        walked = [*anchors, *gathered.walked]
        order = {n: place for place, n in enumerate(topological(walked, self.snapshot.graph.parents(walked)))}
        for n, unit in anchors.items():
            shown = self._usable(n, unit)
            if shown is not None:
                yield Candidate(unit=shown, part="chain", label="focus", place=order[n], hops=0)
        for n, link in zip(gathered.numbers, gathered.links, strict=True):
            yield Candidate(
                unit=link.unit, part="chain", label="premise", place=order[n], hops=link.hops,
                likeness=link.likeness or 0.0,
            )  # fmt: skip

    def _usable(self, n: int, unit: Unit) -> Unit | None:
        """A unit as it may be shown; None if policy withholds it, which is counted."""
        if not self.acting.scope.sees(unit.wall):
            self._hidden.add(n)
            return None
        decision = self.judge.once(n, unit)
        if decision.allowed:
            return flagged(unit, decision)
        self._withheld[unit.ref] = held_back(unit, decision)
        return None

    def _current(self, anchors: Mapping[int, Unit], gathered: Gathering) -> Iterator[Candidate]:
        """What stands now in the place of what the chain rested on."""
        held = {*gathered.held, *(n for n, unit in anchors.items() if unit.ref in self._withheld)}
        units = self.snapshot.units(sorted(held))
        gone = [n for n, unit in units.items() if unit.status in _REPLACED]
        instead = dict.fromkeys(self._instead(gone))
        for place, (n, unit) in enumerate(self.snapshot.units(list(instead)).items()):
            shown = self._usable(n, unit)
            if shown is not None:
                yield Candidate(unit=shown, part="current", label="current", place=place)

    def _instead(self, gone: Collection[int]) -> Iterator[int]:
        """What stands in the place of these: a later version, or what took the key, and what replaced that."""
        seen: set[int] = set()
        wave = sorted(gone)
        while wave:
            seen.update(wave)
            nodes = self.snapshot.graph.load(wave)
            following = []
            for n, _, now in fetch(self.snapshot.connection, QUERIES["current_of"], (ids(wave),)):
                instead = self.snapshot.shift.winner.get(n, nodes[n].winner) or now
                if instead not in seen:
                    following.append(instead)
            yield from following
            wave = sorted(set(following))

    # The plan --------------------------------------------------------------------------------------------------

    def _plan(self, anchors: Mapping[int, Unit], gathered: Gathering) -> Iterator[Candidate]:
        """The goal, and the steps that were taken towards it."""
        above = [(link.unit, n) for link, n in zip(gathered.links, gathered.numbers, strict=True)]
        near = joined(((unit, n) for n, unit in anchors.items()), above)
        goal = next((n for unit, n in near if unit.kind == "goal"), None)
        if self._root is not None:
            goal = self.snapshot.resolve(self.acting.scope, Target(self._root.id, None)).n
        if goal is None:
            return
        unit = self.snapshot.unit(goal)
        shown = self._usable(goal, unit)
        if shown is not None and self._profile.has("goal"):
            yield Candidate(unit=shown, part="goal", label="goal", place=0)
        if self._profile.has("steps"):
            yield from self._steps(self.snapshot.graph.node(goal).unit, goal)

    def _steps(self, root: int, goal: int) -> Iterator[Candidate]:
        unfolded = Unfolded(self.snapshot, root, goal, self._profile.steps)
        wanted = [n for u, n in sorted(unfolded.current.items()) if u != root]
        for place, (n, unit) in enumerate(self.snapshot.units(wanted).items()):
            shown = self._usable(n, unit)
            if shown is not None:
                state = PlanStep(unit=shown).state
                yield Candidate(unit=shown, part="steps", label="step", place=place, more={"state": state})


def _each_once(candidates: Iterable[Candidate], order: Sequence[str]) -> list[Candidate]:
    """A unit stands in the most important of its parts only."""
    found: dict[Ref, Candidate] = {}
    for item in sorted(candidates, key=lambda item: order.index(item.part)):
        found.setdefault(item.unit.ref, item)
    return list(found.values())


def _by_topic(units: Sequence[Unit]) -> list[Unit]:
    """The best of each topic, then the second of each, and so on; topics in the order of their best."""
    topics: dict[str, list[Unit]] = {}
    for unit in units:
        topics.setdefault(unit.subject or next(iter(unit.tags), ""), []).append(unit)
    rounds = max((len(group) for group in topics.values()), default=0)
    return [group[turn] for turn in range(rounds) for group in topics.values() if turn < len(group)]
