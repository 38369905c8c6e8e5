"""The cheapest set of re-runs and re-verifications after which a version is active again (semantics.md, section 8).

A version that is down becomes active in one of three ways:

    vouched   somebody's word stands for it, as it is: at the cost of a re-verification
    by itself the strong parents of one of its justifications all stand, as they are: at no cost of its own
    re-run    it is made again, once each of its inputs is active, as it is or made again: at the cost of the re-run

What is made again is a new version, and whether it will say the same is not known ahead: a plan takes it for
different. So a version is either re-run or stands as it is, never both, and whatever hangs on the old version of what
is re-run must be re-run or vouched for in its turn. Each step is paid for once, however many need it.

Standing by itself is acyclic, re-runs are not always (the current version of an input may descend from the old one of
what is re-run): only sets whose re-runs can be put in an order count.

Choosing is NP-hard (set cover is a case of it: steps that many share). Up to `EXACT` versions that are down, a branch
and bound search finds a cheapest set. Beyond, it ends when it has looked `LOOKS` times at a version; then the answer
is the best it met, at least as cheap as two sets found greedily (each version by the way that costs least if nothing
is shared, or if everything is), none of whose steps can be left out; it says `exact=False`. Either way the set is
checked by carrying it out, on paper, before it is returned. Costs count to the millionth; of equal costs the set with
fewer steps is taken, then the one met first, in an order that depends on the numbers of versions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

__all__ = ["EXACT", "LOOKS", "Down", "Missing", "Steps", "active_after", "cheapest"]

EXACT: Final = 16
LOOKS: Final = 250_000
_SCALE: Final = 1_000_000
_STEP: Final = 1 << 24
"""A millionth of cost, counted so that a step more is always less than it."""
_NEVER: Final = 1 << 100


class Down(msgspec.Struct, frozen=True, kw_only=True):
    """A version that is not active, and what could be done about it.

    Attributes:
        supports: of each justification the strong parents, equivalents in place of what they are equivalent to. None
            if the version is held by a cause of its own, or replaced: then no parent makes it stand.
        verify: what vouching for it costs; None if nobody can.
        inputs: what a re-run needs to be active; None if it cannot be made again.
        rerun: what a re-run costs.
        unvouched: why nobody can vouch for it, in words.
        unmade: why it cannot be made again, in words.
    """

    supports: tuple[tuple[int, ...], ...] = ()
    verify: float | None = None
    inputs: tuple[int, ...] | None = None
    rerun: float = 0.0
    unvouched: str = ""
    unmade: str = ""


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A version that nothing makes active, and that everything which could bring the goal back needs.

    Attributes:
        n: integer id of the version.
        why: in words.
    """

    n: int
    why: str


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, or why nothing helps.

    Attributes:
        reruns: versions to make again, inputs first.
        reverifications: versions to vouch for, in the order of their numbers.
        cost: of all of them.
        exact: whether no cheaper set exists.
        missing: if nothing brings the goal back, what stands in the way; empty otherwise.
    """

    reruns: tuple[int, ...] = ()
    reverifications: tuple[int, ...] = ()
    cost: float = 0.0
    exact: bool = True
    missing: tuple[Missing, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether carrying this out makes the goal active."""
        return not self.missing


def cheapest(goal: int, down: Mapping[int, Down], stands: Collection[int]) -> Steps:
    """What to do so that `goal` is active again.

    Args:
        goal: integer id of a version.
        down: all versions that are not active and may matter.
        stands: those that are active, or whose state is held against nobody. What is in neither never stands again as
            it is: it was replaced by something else.

    Raises:
        ValueError: a cost is negative or not finite.
    """
    if goal in stands:
        return Steps()
    scene = _Scene(down, stands)
    if goal not in scene.down or scene.least(max)[goal][_ACTIVE][0] >= _NEVER:
        return Steps(missing=tuple(scene.obstacles(goal)))
    search = _Search(scene, goal)
    order = scene.carried_out(search.best) or ()
    vouched, rerun = search.best
    assert goal in order
    return Steps(
        reruns=tuple(n for n in order if n in rerun),
        reverifications=tuple(sorted(vouched)),
        cost=scene.price(search.best) // _STEP / _SCALE,
        exact=search.finished,
    )


def active_after(
    down: Mapping[int, Down], stands: Collection[int], vouched: Collection[int], rerun: Collection[int]
) -> tuple[int, ...] | None:
    """Which of `down` are active once these steps are carried out, in an order in which they become so; None if they
    cannot be: a re-run misses an input, or a version is to be re-run and vouched for.
    """
    return _Scene(down, stands).carried_out((frozenset(vouched), frozenset(rerun)))


_AS_IS, _ACTIVE = 0, 1
_ITSELF, _VOUCH, _MAKE = 0, 1, 2

_Way = tuple[int, int, tuple[int, ...]]
"""How a version becomes active: `_ITSELF`, `_VOUCH` or `_MAKE`; what it costs; what must stand as it is for it (for
`_MAKE`: be active)."""
_Least = tuple[int, _Way | None]
"""What it takes at least, and the way that takes it."""
_Set = tuple[frozenset[int], frozenset[int]]
"""What is vouched for, and what is re-run."""
_Together = Callable[[Sequence[int]], int]


class _Scene:
    """Versions with their ways, apart from those that lead nowhere."""

    def __init__(self, down: Mapping[int, Down], stands: Collection[int]) -> None:
        self.down = {n: down[n] for n in sorted(down) if n not in stands}
        self.stands = frozenset(stands)
        self.ways = {n: tuple(self._ways(part)) for n, part in self.down.items()}

    def _ways(self, part: Down) -> Iterator[_Way]:
        for parents in part.supports:
            if (needed := self._needed(parents)) is not None:
                yield _ITSELF, 0, needed
        if part.verify is not None:
            yield _VOUCH, _priced(part.verify), ()
        if part.inputs is not None and (needed := self._needed(part.inputs)) is not None:
            yield _MAKE, _priced(part.rerun), needed

    def _needed(self, numbers: Collection[int]) -> tuple[int, ...] | None:
        """Those of them that are down; None if one is beyond help."""
        needed = tuple(sorted(set(numbers) - self.stands))
        return needed if all(p in self.down for p in needed) else None

    def price(self, steps: _Set) -> int:
        """What a set costs, its number of steps counted below a millionth."""
        vouched, rerun = steps
        found = [cost for n in vouched for kind, cost, _ in self.ways[n] if kind == _VOUCH]
        return sum(found) + sum(cost for n in rerun for kind, cost, _ in self.ways[n] if kind == _MAKE)

    def carried_out(self, steps: _Set) -> tuple[int, ...] | None:
        """See `active_after`."""
        vouched, rerun = steps
        active: dict[int, None] = {}

        def reached(n: int) -> bool:
            for kind, _, needed in self.ways[n]:
                make = kind == _MAKE
                had = make == (n in rerun) and (kind != _VOUCH or n in vouched)
                if had and all(p in active and (make or p not in rerun) for p in needed):
                    return True
            return False

        if vouched & rerun:
            return None
        grown = True
        while grown:
            grown = False
            for n in self.down:
                if n not in active and reached(n):
                    active[n], grown = None, True
        return tuple(active) if rerun <= active.keys() else None

    def least(
        self, together: _Together, *, chosen: Mapping[int, int] | None = None, kept: Collection[int] = ()
    ) -> dict[int, list[_Least]]:
        """Of each version what it takes at least to stand as it is, and to be active at all, and by which way.

        With `max` for needs that come together this is a lower bound, as if everything they need were shared; with
        `sum`, what it takes if nothing is. Ways in `chosen` are paid for already; what is in `kept` is not re-run. A
        way is noted where it improves on what was known, so ways never lead in a circle.
        """
        chosen = chosen or {}
        found: dict[int, list[_Least]] = {n: [(_NEVER, None), (_NEVER, None)] for n in self.down}
        moved = True
        while moved:
            moved = False
            for n, ways in self.ways.items():
                mine, taken = found[n], chosen.get(n)
                for way in ways:
                    kind, cost, needed = way
                    make = kind == _MAKE
                    if (make and n in kept) or (taken is not None and make != (taken == _MAKE)):
                        continue
                    values = [found[p][make][0] for p in needed]
                    total = (0 if kind == taken else cost) + (together(values) if values else 0)
                    for want in (_ACTIVE,) if make else (_AS_IS, _ACTIVE):
                        if total < mine[want][0]:
                            mine[want], moved = (total, way), True
        return found

    def obstacles(self, goal: int) -> Iterator[Missing]:
        """What stands in the way, where nothing can make `goal` active: the ends of what would be needed."""
        least, seen, todo = self.least(max), {goal}, [goal]
        while todo:
            n = todo.pop()
            part = self.down.get(n)
            if part is None:
                yield Missing(n=n, why="it was replaced by something else")
                continue
            needed = sorted(set(part.inputs or ()) - self.stands)
            blocked = [p for p in needed if p not in least or least[p][_ACTIVE][0] >= _NEVER]
            if part.inputs is None or not blocked:
                unvouched = part.unvouched or "nobody can vouch for it"
                yield Missing(n=n, why=f"{unvouched}; {part.unmade or 'it cannot be made again'}")
            elif seen.issuperset(blocked):
                yield Missing(n=n, why="what it is made from is itself made from it")
            else:
                todo += [p for p in blocked if p not in seen]
                seen.update(blocked)


def _priced(cost: float) -> int:
    if not 0 <= cost < 1e12:
        raise ValueError(f"a cost of {cost} is not a number from 0 to 1e12")
    return round(cost * _SCALE) * _STEP + 1


class _Search:
    """Branch and bound, from the goal upwards: what is needed, and by which way it is had."""

    def __init__(self, scene: _Scene, goal: int) -> None:
        self._scene = scene
        self._left = LOOKS // len(scene.down) if len(scene.down) > EXACT else None
        self.finished = True
        self.best = min((_greedy(scene, goal, together) for together in (sum, max)), key=scene.price)
        self._least = scene.price(self.best)
        self._chosen: dict[int, int] = {}
        self._branch({goal: _ACTIVE}, 0)

    def _branch(self, needs: Mapping[int, int], cost: int) -> None:
        """Try every way of what is needed and has none yet, the highest number first: what it needs comes after."""
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self.finished = False
                return
        least = self._scene.least(max, chosen=self._chosen)
        if cost + self._bound(needs, least) >= self._least:
            return
        if not needs:
            self._take(cost)
            return
        n = max(needs)
        rest = {p: want for p, want in needs.items() if p != n}
        ways = [way for way in self._scene.ways[n] if way[0] != _MAKE or needs[n] == _ACTIVE]
        for _, (kind, price, needed) in sorted((_hope(way, least), way) for way in ways):
            more = self._more(rest, needed, _ACTIVE if kind == _MAKE else _AS_IS)
            if more is not None:
                self._chosen[n] = kind
                self._branch(more, cost + price)
                del self._chosen[n]

    def _more(self, needs: Mapping[int, int], needed: tuple[int, ...], want: int) -> dict[int, int] | None:
        """The needs with these added; None if one must stand as it is and is re-run already."""
        more = dict(needs)
        for p in needed:
            taken = self._chosen.get(p)
            if taken is None:
                more[p] = min(want, more.get(p, _ACTIVE))
            elif taken == _MAKE and want == _AS_IS:
                return None
        return more

    def _bound(self, needs: Mapping[int, int], least: Mapping[int, Sequence[_Least]]) -> int:
        """What the needs cost at least: the dearest of them alone, or what each must pay for itself."""
        dearest = max((least[n][want][0] for n, want in needs.items()), default=0)
        return max(dearest, sum(self._own(n, want) for n, want in needs.items()))

    def _own(self, n: int, want: int) -> int:
        return min((cost for kind, cost, _ in self._scene.ways[n] if kind != _MAKE or want == _ACTIVE), default=_NEVER)

    def _take(self, cost: int) -> None:
        """A complete choice, if its re-runs can be put in an order."""
        vouched = frozenset(n for n, kind in self._chosen.items() if kind == _VOUCH)
        rerun = frozenset(n for n, kind in self._chosen.items() if kind == _MAKE)
        if self._scene.carried_out((vouched, rerun)) is not None:
            self._least, self.best = cost, (vouched, rerun)


def _hope(way: _Way, least: Mapping[int, Sequence[_Least]]) -> int:
    kind, cost, needed = way
    return cost + max((least[p][kind == _MAKE][0] for p in needed), default=0)


def _greedy(scene: _Scene, goal: int, together: _Together) -> _Set:
    """Each version by the way that costs least, then without what can be left out.

    What is to be re-run and is needed as it is as well is kept from then on. So the set can always be carried out,
    since nothing that stands as it is waits for a re-run.
    """
    kept: set[int] = set()
    while True:
        least = scene.least(together, kept=kept)
        seen: set[tuple[int, int]] = set()
        todo = [(goal, _ACTIVE)]
        ways: dict[int, set[int]] = {}
        while todo:
            n, want = todo.pop()
            way = least[n][want][1]
            assert way is not None
            kind, _, needed = way
            ways.setdefault(n, set()).add(kind)
            new = {(p, _ACTIVE if kind == _MAKE else _AS_IS) for p in needed} - seen
            seen |= new
            todo += sorted(new)
        clashes = {n for n, kinds in ways.items() if _MAKE in kinds and len(kinds) > 1}
        if not clashes:
            vouched = frozenset(n for n, kinds in ways.items() if _VOUCH in kinds)
            rerun = frozenset(n for n, kinds in ways.items() if _MAKE in kinds)
            return _without_idle(scene, goal, (vouched, rerun))
        kept |= clashes


def _without_idle(scene: _Scene, goal: int, steps: _Set) -> _Set:
    """Leave out, the dearest first, every step without which the goal is active all the same."""
    vouched, rerun = steps
    single = [(scene.price((frozenset([n]), frozenset())), n) for n in vouched]
    single += [(scene.price((frozenset(), frozenset([n]))), n) for n in rerun]
    for _, n in sorted(single, reverse=True):
        fewer = steps[0] - {n}, steps[1] - {n}
        if goal in (scene.carried_out(fewer) or ()):
            steps = fewer
    return steps
