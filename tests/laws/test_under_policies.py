"""Laws of semantics.md, section 11, on whole stores: policy changes no state but where it says so, and never undo.

A few dozen histories per law; `MEMLINEAGE_HISTORIES=10000` runs more.
"""

from __future__ import annotations

import dataclasses
import os
import random
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

from memlineage.engine.memory import Memory
from memlineage.model.principal import HOST
from memlineage.model.scope import Scope
from memlineage.model.state import CauseKind
from memlineage.policy import Mode, ObligationKind, Verdict, combining
from memlineage.policy.rule import Consequence
from memlineage.recall.lexical import LexicalEmbedder
from memlineage.testing.history import Handle, Writer
from memlineage.testing.laws import keeper, undo_is_exact
from memlineage.testing.sqlite_world import SqliteWorld
from memlineage.testing.strategies import CAUSES, SCOPES, operations, picks
from memlineage.testing.worlds import Operation, Pick, Play, Store, Update

COUNT: Final = int(os.environ.get("MEMLINEAGE_HISTORIES", "25"))
PATIENCE: Final = pytest.mark.timeout(0 if COUNT > 1000 else 60)

# What changes as the graph does, and what does not.
MOVING: Final = (
    [{"field": "status"}, "!=", "active"],
    [{"field": "status"}, "in", ["contaminated", "pending_verification"]],
    [{"field": "standing"}, ">", "supported"],
    [{"field": "integrity"}, "<", "TRUSTED"],
    [{"lineage": "standing"}, "==", "contaminated"],
    [{"lineage": "integrity"}, "<", "INTERNAL"],
    [{"lineage": "children"}, ">", 0],
    [{"lineage": "depth"}, ">", 1],
)
FIXED: Final = (
    [{"field": "creator_kind"}, "in", ["tool", "external"]],
    [{"field": "content_length"}, ">", 19],
    [{"field": "subject"}, "==", "trip"],
    [{"field": "creator"}, "matches", "agent:*"],
    [{"lineage": "roots"}, "contains", "tool:web"],
)
LAYERS: Final = ("global", "global", "domain:d", "session:s1")


def body(drawn: random.Random, name: str, layer: str, mode: str | None = None) -> dict[str, Any]:
    """A rule that restricts, as its layer may."""
    on = drawn.choice(["read", ["write", "update"], ["read", "write", "update"]])
    if drawn.random() < 0.2:
        return {"name": name, "freshness": {"max_age": 4e-6}, **({"mode": mode} if mode else {})}
    quarantines = drawn.random() < 0.3 and not layer.startswith("session")
    action = "quarantine" if quarantines else drawn.choice(["deny", "withhold", "flag", "flag"])
    parts = [drawn.choice(FIXED if quarantines else MOVING), drawn.choice(FIXED)]
    condition = {drawn.choice(["all", "any"]): parts}
    made = {"name": name, "on": ["write", "update"] if quarantines else on, "action": action, "condition": condition}
    return {**made, "mode": mode or drawn.choice(["enforce", "enforce", "warn", "shadow"])}


def documents(mode: str | None = None, layers: Sequence[str] = LAYERS) -> SearchStrategy[list[dict[str, Any]]]:
    """One to three documents of one to three rules each."""

    def made(seed: int) -> list[dict[str, Any]]:
        drawn = random.Random(seed)
        chosen = [drawn.choice(layers) for _ in range(drawn.randint(1, 3))]
        return [
            {
                "layer": layer,
                "rules": [body(drawn, f"{mode or 'r'}{i}{k}", layer, mode) for k in range(drawn.randint(1, 3))],
            }
            for i, layer in enumerate(chosen)
        ]

    return st.integers(0, 1 << 32).map(made)


class PolicedWorld(SqliteWorld):
    """A store under policies."""

    def __init__(self, policies: Sequence[dict[str, Any]], *, default: bool = True) -> None:
        self.policies = policies
        self.default = default
        super().__init__()

    def _open(self) -> Memory:
        return Memory.open(
            policies=list(self.policies),
            default_policies=self.default,
            embedder=LexicalEmbedder(),
            clock=self._clock,
            durability="normal",
            background=False,
        )

    def add_cause(self, writer: Writer, ref: Handle, kind: CauseKind, *, by: str, now: int) -> None:
        """See `World`; everybody reads at once, so that whatever reading sets off happens."""
        super().add_cause(writer, ref, kind, by=by, now=now)
        seen(self)


def played(world: PolicedWorld, history: Sequence[Operation]) -> Play:
    play = Play(world)
    play.run(history)
    return play


# --- what is in a store, but for what chance and the name of the policies put there -------------------------------

_SKIPPED: Final = {"decision", "generation", "tile", "text", "vocabulary", "sqlite"}
_CHANCE: Final = {"salt", "lift_salt", "leaf", "mask", "hash"}
_POLICY: Final = {"policy", "policy_set"}
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def tables(memory: Memory) -> dict[str, list[str]]:
    """Every row of every table, ids by number, without salts and what is made of them."""
    known: dict[str, str] = {}

    def plain(value: Any) -> Any:
        text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
        if not isinstance(text, str):
            return text
        return _DIGEST.sub("digest", _ID.sub(lambda found: known.setdefault(found[0], f"id {len(known)}"), text))

    found: dict[str, list[str]] = {}
    with memory._core.database.reading() as connection:
        named = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name <> 'unit', name")
        for name in [name for (name,) in named.fetchall() if name.partition("_")[0] not in _SKIPPED]:
            columns = [column for _, column, *_ in connection.execute(f'PRAGMA table_info("{name}")')]
            rows = [
                {column: plain(value) for column, value in zip(columns, row, strict=True) if column not in _CHANCE}
                for row in connection.execute(f'SELECT * FROM "{name}"').fetchall()
            ]
            found[name] = sorted(repr(row) for row in rows if not (name == "meta" and row["name"] in _POLICY))
    return found


def _listed(world: PolicedWorld, scope: Scope) -> Any:
    return world.memory.scope(tenant=scope.tenant, user=scope.user, agent=scope.agent, session=scope.session).list()


def seen(world: PolicedWorld) -> list[Any]:
    """What readers get, with the flags of the rules, and what is kept from them."""
    pages = []
    for scope in SCOPES:
        page = _listed(world, scope)
        withheld = sorted((str(item.ref), item.reason) for item in page.withheld)
        pages.append((sorted((str(unit.ref), unit.status, unit.flags) for unit in page), withheld))
    return pages


# --- the laws ---------------------------------------------------------------------------------------------------


def shadow_changes_nothing(
    history: Sequence[Operation], base: list[dict[str, Any]], shadow: list[dict[str, Any]]
) -> list[str]:
    """The same history under the same rules, some in shadow besides: the same rows, and the same for all readers."""
    one, two = PolicedWorld(base), PolicedWorld([*base, *shadow])
    try:
        for world in (one, two):
            world.now = played(world, history).now
        left, right = tables(one.memory), tables(two.memory)
        faults = [f"{name}: {set(rows) ^ set(right[name])}" for name, rows in left.items() if rows != right[name]]
        readers = [[(len(page), len(withheld)) for page, withheld in seen(world)] for world in (one, two)]
        return faults + ([f"readers get {readers}"] if readers[0] != readers[1] else [])
    finally:
        one.memory.close()
        two.memory.close()


def policy_keeps_undo_exact(
    history: Sequence[Operation], base: list[dict[str, Any]], acts: Sequence[tuple[Pick, CauseKind]]
) -> list[str]:
    """After acts and their undo, all that is derived and all that readers get is as it was before."""
    world = PolicedWorld(base)
    try:
        play = played(world, history)
        if not play.handles:
            return []
        world.now = play.now  # the last acts may have come to nothing, but time has passed
        before, rows = seen(world), tables(world.memory)["version"]
        faults = undo_is_exact(play, acts)
        after = seen(world)
        faults += [f"seen: {after}, not {before}"] if after != before else []
        return faults + (["versions were changed"] if tables(world.memory)["version"] != rows else [])
    finally:
        world.memory.close()


def a_session_sets_no_cause(history: Sequence[Operation], session: list[dict[str, Any]]) -> list[str]:
    """Where nothing but rules of a session restricts, writing and reading leaves no cause, and no version an end."""
    allowing = {"rules": [{"name": "open", "on": "all", "action": "allow"}]}
    world = PolicedWorld([allowing, *session], default=False)
    try:
        played(world, [dataclasses.replace(act, life=None) for act in history if isinstance(act, Store | Update)])
        world.now += 10
        seen(world)
        with world.memory._core.database.reading() as connection:
            causes = connection.execute("SELECT n, kind FROM cause").fetchall()
            ends = connection.execute("SELECT count(*) FROM version WHERE valid_until IS NOT NULL").get
        return [*(f"{n} has cause {kind}" for n, kind in causes), *([f"{ends} versions end"] if ends else [])]
    finally:
        world.memory.close()


Law = tuple[dict[str, SearchStrategy[Any]], Callable[..., list[str]]]
HISTORY: Final = operations(most=12)
ACTS: Final = st.lists(
    st.tuples(picks(), st.sampled_from([kind for kind in CAUSES if kind is not CauseKind.EXPIRED])),
    min_size=1,
    max_size=4,
)
LAWS: Final[dict[str, Law]] = {
    "shadow changes nothing": (
        {"history": HISTORY, "base": documents(), "shadow": documents("shadow")}, shadow_changes_nothing,
    ),
    "policy keeps undo exact": ({"history": HISTORY, "base": documents(), "acts": ACTS}, policy_keeps_undo_exact),
    "a session sets no cause": (
        {"history": HISTORY, "session": documents(layers=("session:s1",))}, a_session_sets_no_cause,
    ),
}  # fmt: skip


@PATIENCE
@pytest.mark.parametrize("law", LAWS)
def test_the_law_holds(law: str) -> None:
    strategies, faults = LAWS[law]

    # A store per try: a history that fails is shown as it was found.
    @settings(max_examples=COUNT, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(**strategies)
    def search(**drawn: Any) -> None:
        assert faults(**drawn) == []

    search()


# --- that the laws can fail --------------------------------------------------------------------------------------

_combined, _seen = combining._combined, seen


def shadows_are_enforced(verdicts: list[Verdict], *others: Any) -> Any:
    replace = msgspec.structs.replace
    enforced = [
        replace(one, rule=replace(one.rule, mode=Mode.ENFORCE)) if one.rule.mode is Mode.SHADOW else one
        for one in verdicts
    ]
    return _combined(enforced, *others)


def what_is_flagged_is_quarantined(world: PolicedWorld) -> list[Any]:
    """What rules that read the state of things must not do: leave a cause behind."""
    pages = _seen(world)
    for ref in sorted({ref for page, _ in pages for ref, _, flags in page if flags}):
        listed = [unit for scope in SCOPES for unit in _listed(world, scope) if str(unit.ref) == ref]
        if not listed:  # it went down with one before it
            continue
        unit = listed[0]
        SqliteWorld.add_cause(
            world, keeper(unit.wall), world._known(unit.ref), CauseKind.QUARANTINED, by=HOST, now=world.now
        )
    return pages


_FLAGS_QUARANTINE: Final = {**combining._OBLIGATIONS, Consequence.FLAG: ObligationKind.QUARANTINE}


MUTANTS: Final[dict[str, tuple[object, str, object, str]]] = {
    "shadows are enforced": (combining, "_combined", shadows_are_enforced, "shadow changes nothing"),
    "what is flagged is quarantined": (
        sys.modules[__name__], "seen", what_is_flagged_is_quarantined, "policy keeps undo exact",
    ),
    "flags quarantine": (combining, "_OBLIGATIONS", _FLAGS_QUARANTINE, "a session sets no cause"),
}  # fmt: skip


@PATIENCE
@pytest.mark.parametrize(("where", "name", "broken", "law"), MUTANTS.values(), ids=MUTANTS.keys())
def test_what_is_broken_breaks_its_law(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, broken: object, law: str
) -> None:
    monkeypatch.setattr(where, name, broken)
    strategies, faults = LAWS[law]

    @settings(max_examples=100, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(**strategies)
    def search(**drawn: Any) -> None:
        if faults(**drawn):
            raise NoSuchExample("found")

    with pytest.raises(NoSuchExample):
        search()
