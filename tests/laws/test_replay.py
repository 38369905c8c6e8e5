"""Replay obeys its laws on random webs, against a naive reference; and engines that break a rule break a law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.laws.replay_scenes import scenes
from tests.support import caught

from memlineage.engine import writing
from memlineage.engine.replay.results import ReplayReport
from memlineage.engine.scope import Scope
from memlineage.engine.writing import Writing
from memlineage.testing.replay_laws import LAWS, Invalidate, Replay, Restore, Scene, State, broken_laws
from memlineage.testing.webs import Step, Web

CHECKS = settings(
    max_examples=80, deadline=None, suppress_health_check=list(HealthCheck),
    phases=[phase for phase in Phase if phase is not Phase.explain],
)  # fmt: skip


@CHECKS
@given(scene=scenes())
def test_no_law_of_replay_is_broken(scene: Scene) -> None:
    assert broken_laws(scene) == []


@CHECKS
@given(scene=scenes(("recipe",)))
def test_no_law_is_broken_where_everything_has_a_recipe(scene: Scene) -> None:
    assert broken_laws(scene) == []


SAME: Final = Web(1, (Step((0,), answers=1, maker="model"), Step((1,)), Step((0, 2))))
BACK: Final = Web(2, (Step((0,), answers=1), Step((2,), maker="person"), Step((1, 3)), Step((1, 4), maker="tool")))


@pytest.mark.parametrize(
    "scene",
    [
        Scene(SAME, (0,), (State(0, 1), Replay(model=True))),
        Scene(SAME, (0,), (State(0, 1), Replay(), State(0, 2), Replay((1,), model=True), Replay())),
        Scene(BACK, (0, 0), (State(0, 1), State(1, 1), Replay())),
        Scene(BACK, (0, 0), (Invalidate(2), Replay(), Restore(2), State(1, 2), Replay((2,)), Replay())),
    ],
    ids=["a model says the same", "below a model first", "back through a person", "wrong above a person"],
)
def test_no_law_is_broken_by_hand(scene: Scene) -> None:
    assert broken_laws(scene) == []


@CHECKS
@given(scene=scenes(wrong=False, tainted=True))
def test_taint_persists_through_replay(scene: Scene) -> None:
    assert broken_laws(scene) == []


# --- broken engines ----------------------------------------------------------------------------------------------

_update, _replay = Writing.update_one, Scope.replay


def nothing_is_run(self: Scope, targets: Any = None, **options: Any) -> Any:
    return ReplayReport()


def the_report_is_silent(self: Scope, targets: Any = None, **options: Any) -> Any:
    return msgspec.structs.replace(_replay(self, targets, **options), ran=())


def targets_are_forgotten(self: Scope, targets: Any = None, **options: Any) -> Any:
    return _replay(self, None, **options)


def something_else_is_touched(self: Scope, targets: Any = None, **options: Any) -> Any:
    report = _replay(self, targets, **options)
    first = self.list(limit=1)
    if first:
        self.update(first[0], f"{first[0].content}.", creator=first[0].creator)
    return report


def everything_is_vouched_for(self: Scope, targets: Any = None, **options: Any) -> Any:
    report = _replay(self, targets, **options)
    for unit in self.list():
        self.endorse(unit, reason="it was made again")
    return report


def pending_is_good_enough(self: Scope, targets: Any = None, **options: Any) -> Any:
    report = _replay(self, targets, **options)
    for unit in self.list(status="pending_verification"):
        self.reverify(unit)
    return report


def what_is_made_again_hangs_on_nothing(self: Writing, *args: Any, replayed: bool = False, **options: Any) -> Any:
    writer, acting, target, item = args
    if replayed:
        item = msgspec.structs.replace(item, draft=msgspec.structs.replace(item.draft, links=()))
    return _update(self, writer, acting, target, item, replayed=replayed, **options)


MUTANTS: Final[dict[str, tuple[object, str, Callable[..., Any], str]]] = {
    "nothing is run": (Scope, "replay", nothing_is_run, "scratch"),
    "the report is silent": (Scope, "replay", the_report_is_silent, "exact"),
    "targets are forgotten": (Scope, "replay", targets_are_forgotten, "exact"),
    "something else is touched": (Scope, "replay", something_else_is_touched, "apart"),
    "everything is vouched for": (Scope, "replay", everything_is_vouched_for, "taint"),
    "pending is good enough": (Scope, "replay", pending_is_good_enough, "barrier"),
    "what is made again hangs on nothing": (Writing, "update_one", what_is_made_again_hangs_on_nothing, "scratch"),
    "nothing says the same": (writing, "equivalent_versions", lambda *args: (), "exact"),
}


def search(law: str) -> tuple[dict[str, Any], Callable[..., list[str]]]:
    drawn = scenes(wrong=False, tainted=True) if law == "taint" else scenes()
    return {"scene": drawn}, lambda scene: broken_laws(scene, laws=[law])


@pytest.mark.parametrize(("where", "name", "broken", "law"), MUTANTS.values(), ids=MUTANTS.keys())
def test_a_broken_engine_breaks_its_law(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, broken: object, law: str
) -> None:
    monkeypatch.setattr(where, name, broken)
    assert caught(*search(law), examples=300)


def test_every_law_is_looked_at() -> None:
    assert {law for *_, law in MUTANTS.values()} == set(LAWS) - {"reuse", "consistent"}
