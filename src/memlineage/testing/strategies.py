"""Random small worlds for hypothesis: few texts with several spellings each, few names, every kind of principal.

Small on purpose: collisions (same form, same key, same parent) are where the rules meet.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from memlineage.model.principal import HOST, Integrity, is_model_side
from memlineage.model.scope import Scope, Visibility
from memlineage.model.state import CauseKind
from memlineage.model.unit import TAU, Role
from memlineage.testing.history import Writer
from memlineage.testing.worlds import (
    AddCause,
    Corroborate,
    Endorse,
    Operation,
    Register,
    Replay,
    Restore,
    Reverify,
    Store,
    Update,
)

__all__ = [
    "CAUSES",
    "CLAIMS",
    "CONTENTS",
    "ROLES",
    "SCENE",
    "SCOPES",
    "SOURCES",
    "attacks",
    "errands",
    "operations",
    "picks",
    "registrations",
    "replays",
    "scopes",
    "supports",
    "writers",
]

CONTENTS: Final = (
    "Destination is Kyoto",
    "Destination is Osaka",
    "NH203 costs 612 USD",
    "Destination is  Kyoto.",
    "Destination is Osaka！",
    "ＮＨ２０３ costs 612 USD",
    "Destination is\u3000Kyoto!",
)
"""Three statements in several spellings."""
HOME: Final = Scope(user="alice", agent="planner", session="s1")
SCOPES: Final = (
    HOME,
    Scope(user="alice", agent="scout", session="s2"),
    Scope(user="bob", agent="planner", session="s1"),
    Scope(agent="planner", session="s1"),
    Scope(tenant="other", user="alice", agent="planner", session="s1"),
)
SOURCES: Final = ("user:alice", "system", "tool:feed", "tool:web", "agent:planner", "reasoning", "external:mail")
CLAIMS: Final = (*SOURCES, "user", "user:bob", "agent:scout", "reasoning:small", "tool:quotes")
"""Who may be named: at home, and everywhere."""
JUDGES: Final = ("user:alice", "system", "user:bob")
CAUSES: Final = tuple(kind for kind in CauseKind if kind is not CauseKind.ERASED)
ROLES: Final = (Role.DEPENDS, Role.ARGUMENT, Role.SUMMARISES)
WEIGHTS: Final = (1.0, TAU, TAU - 0.01, 0.1)


def scopes() -> SearchStrategy[Scope]:
    """Mostly one scope, so that units meet."""
    return st.sampled_from((HOME,) * 24 + SCOPES)


def _limited(scope: Scope, actor: str) -> Writer:
    return Writer(scope, actor, ("tool:web",))


def writers() -> SearchStrategy[Writer]:
    """The host, or an agent acting with one tool."""
    agents = st.builds(_limited, scopes(), st.sampled_from(["agent:planner", "agent:scout"]))
    return st.one_of(scopes().map(Writer), scopes().map(Writer), agents)


def picks() -> SearchStrategy[int]:
    """Any version; numbers fit worlds of up to two dozen."""
    return st.integers(0, 23)


def edges(roles: Sequence[Role] = ROLES, *, least: int = 0) -> SearchStrategy[tuple[tuple[int, float, Role], ...]]:
    """Up to three edges, most of them strong."""
    weights = st.sampled_from((1.0, 1.0, *WEIGHTS))
    edge = st.tuples(picks(), weights, st.sampled_from(roles))
    return st.lists(edge, min_size=least, max_size=3).map(tuple)


@st.composite
def _claims(draw: st.DrawFn, writer: Writer, among: Sequence[str] = CLAIMS) -> str:
    """Mostly what the actor may claim."""
    if writer.actor == HOST or draw(st.integers(0, 9)) == 0:
        names = [name for name in among if name != "user" or writer.scope.user is not None]
        return draw(st.sampled_from(names))
    return draw(st.sampled_from([writer.actor, *writer.tools, "reasoning", "external:mail"]))


def _exposed(model: bool) -> SearchStrategy[tuple[int, ...]]:
    some = st.one_of(st.tuples(), st.tuples(picks()), st.tuples(picks(), picks()))
    return some if model else st.just(())


def _names() -> SearchStrategy[dict[str, str | None]]:
    one = st.sampled_from(["trip", "trip", None, "home"])
    two = st.sampled_from(["destination", "destination", None, "price"])
    return st.fixed_dictionaries({"subject": one, "key": two})


@st.composite
def stores(draw: st.DrawFn, writing: SearchStrategy[Writer], roles: Sequence[Role] = ROLES) -> Store:
    """A `store`; models nearly always have parents."""
    writer = draw(writing)
    creator = draw(_claims(writer))
    model = is_model_side(creator)
    fits = [v for v in Visibility if v is not Visibility.AGENT or writer.scope.agent is not None]
    return Store(
        pause=draw(st.integers(0, 3)),
        writer=writer,
        content=draw(st.sampled_from(CONTENTS)),
        creator=creator,
        parents=draw(edges(roles, least=1 if model and draw(st.integers(0, 4)) else 0)),
        exposed=draw(_exposed(model)),
        **draw(_names()),
        age=draw(st.integers(0, 4)),
        life=draw(st.sampled_from([None, None, None, 2, 8])),
        visibility=draw(st.sampled_from([Visibility.USER, Visibility.USER, Visibility.USER, *fits])),
    )


@st.composite
def updates(draw: st.DrawFn, writing: SearchStrategy[Writer], roles: Sequence[Role] = ROLES) -> Update:
    """An `update`; subject and key mostly carry over."""
    writer = draw(writing)
    creator = draw(_claims(writer))
    return Update(
        pause=draw(st.integers(0, 3)),
        writer=writer,
        target=draw(picks()),
        again=draw(st.integers(0, 2)) == 2,
        content=draw(st.sampled_from(CONTENTS)),
        creator=creator,
        parents=draw(edges(roles)),
        exposed=draw(_exposed(is_model_side(creator))),
        **(draw(_names()) if draw(st.integers(0, 5)) == 0 else {}),
        age=draw(st.integers(0, 4)),
        life=draw(st.sampled_from([None, None, None, 2, 8])),
    )


@st.composite
def acts(draw: st.DrawFn, writing: SearchStrategy[Writer], among: Sequence[str], *, erase: bool = True) -> Operation:
    """An act on one version."""
    writer = draw(writing)
    common: dict[str, Any] = {
        "pause": draw(st.integers(0, 3)),
        "writer": writer,
        "target": draw(picks()),
        "by": draw(_claims(writer, among)),
    }
    which = draw(st.integers(0, 11))
    if which < 5:
        kinds = (CauseKind.INVALID, CauseKind.RETRACTED, *(CauseKind if erase else CAUSES))
        return AddCause(**common, kind=draw(st.sampled_from(kinds)))
    if which < 7:
        return Restore(**common, kind=draw(st.sampled_from([None, *CAUSES])))
    if which < 9:
        return Reverify(**common, evidence=tuple(draw(st.lists(picks(), max_size=2))))
    if which < 11:
        return Corroborate(**common, parents=draw(edges(least=1)))
    return Endorse(**common, level=draw(st.sampled_from(Integrity)))


def registrations() -> SearchStrategy[Register]:
    """A change of the registry; the host itself is left alone."""
    names = [name for name in CLAIMS if name not in (HOST, "user")]
    return st.builds(Register, principal=st.sampled_from(names), level=st.sampled_from(Integrity))


def replays() -> SearchStrategy[Replay]:
    """The host makes again what is down, mostly at home and everywhere."""
    targets = st.one_of(st.just(()), st.just(()), st.lists(picks(), min_size=1, max_size=2).map(tuple))
    return st.builds(Replay, writer=scopes().map(Writer), targets=targets, model=st.sampled_from([True, True, False]))


def supports() -> SearchStrategy[Corroborate | Reverify]:
    """A further justification by a person at home."""
    at_home = {"writer": st.just(Writer(HOME)), "target": picks(), "by": st.sampled_from(JUDGES)}
    words = st.builds(Reverify, **at_home, evidence=st.lists(picks(), max_size=2).map(tuple))
    return st.one_of(words, st.builds(Corroborate, **at_home, parents=edges(least=1)))


def operations(
    *, most: int = 16, register: bool = True, roles: Sequence[Role] = ROLES
) -> SearchStrategy[list[Operation]]:
    """A history: two stores by the host to begin with, then anything. `Role.SHARED` among the roles makes copies."""
    writing = writers()
    kinds: list[SearchStrategy[Operation]] = [
        stores(writing, roles),
        stores(writing, roles),
        stores(writing, roles),
        stores(writing, roles),
        updates(writing, roles),
        updates(writing, roles),
        acts(writing, JUDGES),
        acts(writing, JUDGES),
    ]
    anything = st.one_of(*kinds, *([registrations()] if register else []))
    first: SearchStrategy[list[Operation]] = st.lists(stores(st.just(Writer(HOME)), roles), min_size=2, max_size=2)
    # Lengths are drawn evenly: left to itself, a list of at most 16 has three on the average.
    sizes = st.sampled_from(range(0, most + 1, 4))
    rest = sizes.flatmap(lambda size: st.lists(anything, min_size=size, max_size=size))
    return st.tuples(first, rest).map(lambda parts: [*parts[0], *parts[1]])


def _say(content: str, creator: str, *parents: int, key: str | None = None) -> Store:
    edges = tuple((parent, 1.0, Role.DEPENDS) for parent in parents)
    subject = None if key is None else "trip"
    return Store(writer=Writer(HOME), content=content, creator=creator, parents=edges, subject=subject, key=key)


SCENE: Final[tuple[Operation, ...]] = (
    _say("NH203 costs 612 USD", "tool:quotes"),
    _say("NH203 is cheap", "agent:scout", 0),
    _say("Book NH203", "reasoning", 1),
    _say("NH17 costs 700 USD", "tool:feed", key="price"),
    _say("Destination is Kyoto", "user:alice", key="destination"),
    _say("Look for temples", "reasoning", 4),
    AddCause(writer=Writer(HOME), target=0, by="user:alice", kind=CauseKind.INVALID),
)
"""Something to attack: a chain that has fallen, a price, and what a person said with what follows from it."""


def errands(*, most: int = 6) -> SearchStrategy[list[Operation]]:
    """What the host does at home, so that nearly every act is accepted: chains, second sources, causes, undos."""
    home = st.just(Writer(HOME))
    kinds: list[SearchStrategy[Operation]] = [
        stores(home).filter(lambda act: bool(act.parents)),
        updates(home),
        supports(),
        supports(),
        acts(home, ("user:alice", "system"), erase=False),
        acts(home, ("user:alice", "system"), erase=False),
    ]
    return st.lists(st.one_of(*kinds), min_size=2, max_size=most)


def attacks(writing: SearchStrategy[Writer], claims: Sequence[str]) -> SearchStrategy[list[Operation]]:
    """What an attacker tries from his seat: writes and every act, under his claims."""

    def claimed(operation: Operation, claim: str) -> Operation:
        named: dict[str, Any] = {"creator" if isinstance(operation, Store | Update) else "by": claim}
        return dataclasses.replace(operation, **named)

    tries = st.one_of(stores(writing), updates(writing), updates(writing), acts(writing, claims))
    haste = st.builds(claimed, tries, st.sampled_from(claims)).map(lambda act: dataclasses.replace(act, pause=0))
    return st.lists(haste, min_size=1, max_size=6)
