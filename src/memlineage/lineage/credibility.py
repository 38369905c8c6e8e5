"""How far a memory is to be believed: who said it, how sure they were, who says so independently (row A5).

    said(u)        = prior(creator) * stated confidence * 2 ^ (-age / half-life)
    conclusion(u)  = min( said(u), worth(p) for every strong premise p )
    support(j)     = min( worth(p) for every strong premise p of a justification that was added later )
    worth(u)       = 1 - (1 - conclusion(u)) * product of (1 - support(j)) over independent j
                   = 0 where u is invalid, quarantined, erased or contaminated

Independent means disjoint origins, as for a quorum, the justification that a version was written with always being
first: what shares an origin with it adds nothing, and what is concluded from it cannot but share one. An origin is the
creator of a root, and also the actor, if an agent wrote it: what one agent wrote under several names is one origin.

The supports are added one by one, as they were recorded, and the best that was reached at any time stands, so no later
one lowers it. Credibility is for ranking and for people; what may justify an action is a matter of integrity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isfinite, prod

import msgspec

from memlineage.errors import InvalidInputError
from memlineage.lineage.graph import Hop, Node
from memlineage.lineage.paths import roots, topological
from memlineage.lineage.quorum import QuorumGraph, goes_back_to, independent
from memlineage.model.principal import HOST, kind_of, parse_principal
from memlineage.model.state import CONTAMINATING, CauseKind, Standing
from memlineage.model.unit import CARRYING, MICRO, TAU_MICRO, Role

__all__ = ["ConfidenceModel", "Judgement", "Voice", "beginnings", "judge", "judged_by", "origins_of"]

_PRIORS = {"user": 0.95, "system": 0.95, "tool": 0.8, "agent": 0.6, "reasoning": 0.6, "external": 0.3}
_DAY_US = 86_400_000_000


class ConfidenceModel(msgspec.Struct, frozen=True, kw_only=True):
    """How far a creator is believed by default, and how that fades (row A5).

    Attributes:
        priors: in [0, 1], by principal (`tool:rumours`) or by kind of principal (`tool`), the principal first. Kinds
            left out keep user and system .95, tool .8, agent and reasoning .6, external .3.
        half_life_days: age at which what was said counts half; None: it does not fade.

    Raises:
        InvalidInputError: a prior is not in [0, 1], a name is no principal, or the half-life is not above 0.
    """

    priors: Mapping[str, float] = {}
    half_life_days: float | None = None

    def __post_init__(self) -> None:
        for name, prior in self.priors.items():
            if name not in _PRIORS:
                parse_principal(name, name="priors")
            if not _is_number(prior) or not 0 <= prior <= 1:
                raise InvalidInputError(f"priors[{name!r}]={prior!r} is not a number from 0 to 1")
        days = self.half_life_days
        if days is not None and not (_is_number(days) and days > 0):
            raise InvalidInputError(f"half_life_days={days!r} is not a number above 0; leave it out for no fading")

    def prior(self, principal: str) -> float:
        """How far this principal is believed before anything else is known."""
        kind = kind_of(principal)
        return self.priors.get(principal, self.priors.get(kind, _PRIORS.get(kind, 0.0)))

    def fading(self, age_us: int) -> float:
        """What is left of the worth of what was said so long ago, in microseconds."""
        if self.half_life_days is None or age_us <= 0:
            return 1.0
        return float(2.0 ** (-age_us / _DAY_US / self.half_life_days))


class Voice(msgspec.Struct, frozen=True, gc=False):
    """Who said a version, how sure they were (in millionths; None: they did not say), and when."""

    creator: str
    actor: str
    confidence: int | None
    ts_us: int


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a version is worth, and of what that is made.

    Attributes:
        score: in [0, 1].
        prior: of its creator.
        stated: the confidence it was written with; None if nobody said.
        fading: what age has left, in [0, 1].
        weakest: the premise, by integer id, that it cannot be worth more than; 0 if none holds it down.
        premise: what that premise is worth; 1 if there is none.
        written: what it is worth by the justification that it was written with.
        supports: what the independent justifications are worth that were added later.
        ignored: how many more were added that count for nothing.
        down: whether it is worth nothing because it, or what it rests on, was found wrong or is held back.
    """

    score: float
    prior: float
    stated: float | None
    fading: float
    weakest: int
    premise: float
    written: float
    supports: tuple[float, ...]
    ignored: int
    down: bool


class _Support(msgspec.Struct, frozen=True):
    worth: float
    origins: frozenset[str]


def origins_of(voice: Voice) -> frozenset[str]:
    """The origins that a root stands for: whoever is said to have said it, and the agent that wrote it down."""
    return frozenset((voice.creator,)) if voice.actor == HOST else frozenset((voice.creator, voice.actor))


def judge(graph: QuorumGraph, n: int, voices: Mapping[int, Voice], model: ConfidenceModel, now_us: int) -> Judgement:
    """What a version is worth now. `voices` has everything of `judged_by` this version."""
    above = judged_by(graph, n)
    nodes = graph.load(above)
    hops = [hop for hop in graph.parents(above) if hop.role != Role.REVISES]
    same = [Hop(m, nodes[m].equivalent, -1, Role.DEPENDS, MICRO) for m in above if _stands_in(nodes[m])]
    strong: dict[int, dict[int, list[int]]] = {}
    for hop in hops:
        parents = strong.setdefault(hop.child, {}).setdefault(hop.justification, [])
        if hop.weight >= TAU_MICRO and hop.role in CARRYING:
            parents.append(hop.parent)
    found: dict[int, Judgement] = {}
    for m in topological(above, [*hops, *same]):
        found[m] = _judged(graph, nodes, m, strong.get(m, {}), voices, found, model, now_us)
    return found[n]


def judged_by(graph: QuorumGraph, n: int) -> set[int]:
    """A version and everything that its worth is read off: what it descends from, and what replaced that, saying the
    same.
    """
    seen: set[int] = set()
    wave = {n}
    while wave:
        seen |= wave
        up = {hop.parent for hop in graph.parents(wave) if hop.role != Role.REVISES}
        nodes = graph.load(wave)
        wave = (up | {nodes[m].equivalent for m in wave if _stands_in(nodes[m])}) - seen
    return seen


def _judged(
    graph: QuorumGraph,
    nodes: Mapping[int, Node],
    n: int,
    justifications: Mapping[int, Sequence[int]],
    voices: Mapping[int, Voice],
    found: Mapping[int, Judgement],
    model: ConfidenceModel,
    now_us: int,
) -> Judgement:
    voice, node = voices[n], nodes[n]
    prior, fading = model.prior(voice.creator), model.fading(now_us - voice.ts_us)
    stated = None if voice.confidence is None else voice.confidence / MICRO
    said = prior * (1.0 if stated is None else stated) * fading

    def worth(p: int) -> float:
        return found[nodes[p].equivalent if _stands_in(nodes[p]) else p].score

    weakest, premise = min(((p, worth(p)) for p in justifications.get(0, ())), key=lambda x: x[::-1], default=(0, 1.0))
    written = min(said, premise)
    late: list[_Support] = []
    numbers = sorted(number for number in justifications if number > 0)
    for number in numbers:
        parents = justifications[number]
        if parents and not goes_back_to(graph, parents, n):
            late.append(_Support(min(map(worth, parents)), _said_by(roots(graph, parents), voices)))
    used = _said_by(beginnings(graph, n), voices) if late and written > 0 else frozenset[str]()
    supports = _best(late, used)
    down = node.own in CONTAMINATING or node.quarantined or node.standing == Standing.CONTAMINATED
    return Judgement(
        score=0.0 if down else 1.0 - (1.0 - written) * _doubt(supports),
        prior=prior, stated=stated, fading=fading, weakest=weakest if premise < said else 0, premise=premise,
        written=written, supports=supports, ignored=len(numbers) - len(supports), down=down,
    )  # fmt: skip


def _best(late: Sequence[_Support], used: frozenset[str]) -> tuple[float, ...]:
    """The worth of the independent ones among those added, as they were when they were worth most."""
    best: tuple[float, ...] = ()
    for count in range(1, len(late) + 1):
        ranked = sorted(late[:count], key=lambda s: (-s.worth, len(s.origins)))
        chosen = tuple(s.worth for s in independent(ranked, used) if s.worth > 0)
        if _doubt(chosen) < _doubt(best):
            best = chosen
    return best


def _doubt(supports: Iterable[float]) -> float:
    return prod(1.0 - worth for worth in supports)


def _said_by(begins: Collection[int], voices: Mapping[int, Voice]) -> frozenset[str]:
    return frozenset[str]().union(*(origins_of(voices[root]) for root in begins))


def beginnings(graph: QuorumGraph, n: int) -> set[int]:
    """The roots of a version by the justification that it was written with alone: itself, if it is a root."""
    written = {hop.parent for hop in graph.parents([n]) if hop.justification == 0 and hop.role != Role.REVISES}
    return roots(graph, written) if written else {n}


def _stands_in(node: Node) -> bool:
    """Whether a later version that says the same is what those go by that were concluded from this one."""
    return bool(node.equivalent) and (node.own > CauseKind.RETRACTED or node.own == 0)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
