"""The laws can fail: rules of the oracle are broken one at a time, and the law in question has to notice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from tests.support import caught

from memlineage.model.state import CauseKind, Standing
from memlineage.model.unit import CARRYING, Role
from memlineage.testing import laws, oracle
from memlineage.testing.history import Handle, Parent, Writer
from memlineage.testing.oracle import Oracle
from memlineage.testing.reading import Reading
from memlineage.testing.strategies import CAUSES, HOME, SCENE, attacks, operations, picks, supports
from memlineage.testing.worlds import Operation, OracleWorld, Play

HISTORY: Final = operations(register=False)
CLAIMS: Final = ("agent:planner", "reasoning", "external:mail")
ATTACK: Final = attacks(st.just(Writer(HOME, "agent:planner")), CLAIMS)
ACTS: Final = st.lists(st.tuples(picks(), st.sampled_from(CAUSES)), min_size=1, max_size=4)


def played(history: Sequence[Operation]) -> Play:
    play = Play(OracleWorld())
    play.run(history)
    return play


Law = tuple[dict[str, SearchStrategy[Any]], Callable[..., list[str]]]
LAWS: Final[dict[str, Law]] = {
    "cascade": ({"history": HISTORY}, lambda history: laws.cascade_is_exact(played(history))),
    "taint": ({"history": HISTORY}, lambda history: laws.taint_persists(played(history))),
    "one current": ({"history": HISTORY}, lambda history: laws.one_current_value(played(history))),
    "undo": ({"history": HISTORY, "acts": ACTS}, lambda history, acts: laws.undo_is_exact(played(history), acts)),
    "determinism": ({"history": HISTORY}, lambda history: laws.same_answers(OracleWorld, history)),
    "adding": (
        {"history": HISTORY, "act": supports()},
        lambda history, act: laws.adding_never_worsens(played(history), act, act.target),
    ),
    "attackers": (
        {"history": operations(register=False, most=4), "attempts": ATTACK},
        lambda history, attempts: laws.attack_fails(played([*SCENE, *history]), attempts, CLAIMS, "agent:planner"),
    ),
}


# --- broken rules ----------------------------------------------------------------------------------------------

_condition, _earned, _rank = Reading.condition, Reading.earned, Reading.rank


def retracted_parents_are_fine(self: Reading, ref: Handle, child: Handle, competition: bool) -> Standing:
    if self.holds(ref, CauseKind.RETRACTED) and not self.holds(ref, CauseKind.INVALID, CauseKind.ERASED):
        return Standing.SUPPORTED
    return _condition(self, ref, child, competition)


def only_the_last_justification_counts(self: Reading, ref: Handle, competition: bool = True) -> Standing:
    parents = [self.history.versions[ref].parents, *self.history.late.get(ref, ())][-1]
    found = [self.condition(p.ref, ref, competition) for p in parents if p.strong]
    return max(found, default=Standing.SUPPORTED)


def exposure_does_not_taint(self: Reading, creator: str, actor: str, parents: Sequence[Parent]) -> Any:
    return _earned(self, creator, actor, [p for p in parents if p.role is not Role.EXPOSED] or parents)


def newest_wins(self: Reading, ref: Handle) -> Any:
    return (self.history.versions[ref].timestamp, *_rank(self, ref)[1:])


def the_contaminated_compete(self: Reading, group: Any) -> list[Handle]:
    return [r for r, v in self.history.versions.items() if v.group == group and self.current(r[0]) == r]


_TURNS = itertools.count()


def the_winner_is_drawn(self: Reading, group: Any) -> Handle | None:
    found = self.candidates(group)
    return found[next(_TURNS) % len(found)] if found else None  # another one at every call


def restore_clears_the_kind(
    self: Oracle, writer: Writer, ref: Handle, kind: CauseKind | None = None, *, by: str, now: int
) -> None:
    left = tuple(cause for cause in self.history.causes.get(ref, ()) if cause[1] is not kind)
    self.history.causes[ref] = left


def anyone_may_judge(self: Oracle, writer: Writer, ref: Handle, by: str, *, own: bool = False) -> str:
    self._see(writer, [ref])
    return by


MUTANTS: Final[dict[str, tuple[object, str, object, str]]] = {
    "weak edges carry standing": (
        Parent, "strong", property(lambda self: self.role in CARRYING), "cascade",
    ),
    "retracted parents are fine": (Reading, "condition", retracted_parents_are_fine, "cascade"),
    "nothing is exempt": (Reading, "exempt", lambda self, ref, child: False, "cascade"),
    "only the last justification counts": (Reading, "standing", only_the_last_justification_counts, "adding"),
    "exposure does not taint": (Reading, "earned", exposure_does_not_taint, "taint"),
    "losers are not superseded": (Reading, "lost_to", lambda self, ref: None, "one current"),
    "the contaminated compete": (Reading, "candidates", the_contaminated_compete, "one current"),
    "the winner is drawn": (Reading, "winner", the_winner_is_drawn, "determinism"),
    "restore clears the kind": (Oracle, "restore", restore_clears_the_kind, "undo"),
    "newest wins": (Reading, "rank", newest_wins, "attackers"),
    "updates are not protected": (Oracle, "_protect", lambda self, *update: None, "attackers"),
    "anyone may judge": (Oracle, "_empower", anyone_may_judge, "attackers"),
    "a model settles what is equal": (
        oracle, "_JUDGES", ("user", "system", "tool", "agent", "reasoning", "external"), "attackers",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("where", "name", "broken", "law"), MUTANTS.values(), ids=MUTANTS.keys())
def test_a_broken_rule_breaks_its_law(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, broken: object, law: str
) -> None:
    monkeypatch.setattr(where, name, broken)
    assert caught(*LAWS[law], examples=1500)


@pytest.mark.parametrize("law", LAWS)
def test_the_unbroken_oracle_breaks_no_law(law: str) -> None:
    assert not caught(*LAWS[law], examples=50)
