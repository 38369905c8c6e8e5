"""The action gate: a tool call is judged by what justifies it, argument by argument (semantics.md, section 4).

The value of every sensitive argument must stand, whole, in something that justifies the call or that it descends
from, that is in use and of the required integrity. So a poisoned page among the sources does not stop honest work,
and cannot steer it either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from memlineage.engine.acting import Acting
from memlineage.engine.asking import Asked
from memlineage.engine.checks import plain_arguments
from memlineage.engine.core import Core
from memlineage.engine.enforcement import Enforcement
from memlineage.engine.inputs import Link, Target
from memlineage.engine.results import ActionResult
from memlineage.engine.running import SHOWN, Begun, Call, Running
from memlineage.engine.snapshot import Snapshot
from memlineage.engine.writing import Writing
from memlineage.errors import InvalidInputError, PolicyViolationError
from memlineage.lineage.escape import shorten
from memlineage.lineage.graph import Node
from memlineage.lineage.paths import ancestry, chain
from memlineage.lineage.support import leaves, supports
from memlineage.model.content import check_name
from memlineage.model.ids import Ref
from memlineage.model.principal import Integrity, kind_of
from memlineage.model.state import OWN_SUPERSEDED, CauseKind, Standing
from memlineage.model.unit import MICRO, Role, Unit
from memlineage.policy import Decision, Effect, Rule, SensitiveAction, Verb, action_hash, defaults
from memlineage.policy.glob import glob_match
from memlineage.store.database import fetch, ids
from memlineage.store.sql import QUERIES
from memlineage.store.writer import Writer

__all__ = ["Gate", "Support"]


class Support(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate found for one sensitive value.

    Attributes:
        argument: its path, e.g. `recipients[0]`.
        value: the value, shortened.
        supported: whether it may be used.
        by: the ref it was found in; None for a constant or if it was found nowhere.
        integrity: of where it was found; None if it was found nowhere.
        reason: why, in words.
    """

    argument: str
    value: str
    supported: bool
    by: str | None
    integrity: str | None
    reason: str


class _Ground(msgspec.Struct, frozen=True):
    """What justifies a call: the versions named, everything above them, and how each is reached."""

    named: tuple[int, ...]
    reached: dict[int, Any]
    units: dict[int, Unit]
    levels: dict[int, Integrity]
    usable: tuple[int, ...]


class Gate:
    """Authorizes actions, and has them run and recorded.

    Attributes:
        running: runs and records what was permitted.
    """

    def __init__(self, core: Core, enforcement: Enforcement, writing: Writing) -> None:
        self._core = core
        self._enforcement = enforcement
        self._writing = writing
        self.running = Running(core, writing)

    def authorize(
        self, acting: Acting, action: str, arguments: Mapping[str, Any], justification: Sequence[Link], by: str
    ) -> Decision:
        """The decision on a tool call, with what was found for each argument and the path that speaks against it."""
        with self._core.read() as snapshot:
            decision, _, asked = self._judge(acting, snapshot, action, arguments, justification, by)
            named = [snapshot.resolve(acting.scope, link.target).n for link in justification]
            acting.saw(snapshot.units(named).values())  # whoever is told whether it says so knows what it says
        self._enforcement.record(snapshot.now_us, decision, asked)
        return decision

    def _judge(
        self,
        acting: Acting,
        snapshot: Snapshot,
        action: str,
        arguments: Mapping[str, Any],
        justification: Sequence[Link],
        by: str,
    ) -> tuple[Decision, int | None, Asked]:
        """The decision, the approval that turned a question into a permission, and what policy was asked."""
        tool = check_name(action, name="action").removeprefix("tool:")
        arguments = plain_arguments(arguments)
        bound = action_hash(tool, arguments)
        named = tuple(snapshot.resolve(acting.scope, link.target).n for link in justification)
        ground = self._ground(acting, snapshot, named, bound)
        decision, asked = self._decide(acting, snapshot, tool, arguments, ground, by, bound)
        approval = self._approved(acting, snapshot, bound) if decision.effect is Effect.ASK else None
        if approval is not None:
            decision = msgspec.structs.replace(decision, effect=Effect.ALLOW)
        return decision, approval, asked

    def _ground(self, acting: Acting, snapshot: Snapshot, named: tuple[int, ...], bound: str) -> _Ground:
        graph = snapshot.graph
        reached = ancestry(graph, named)
        nodes = graph.load(reached)
        levels = {n: Integrity(nodes[n].integrity) for n in reached}
        for n, level in self._vouched(snapshot, reached, bound):
            levels[n] = max(levels[n], Integrity(level))
        units = snapshot.units(list(reached))
        # What is out of sight supports nothing: the answer would tell what it says.
        seen = [n for n in sorted(reached) if acting.scope.sees(units[n].wall)]
        usable = tuple(n for n in seen if _usable(nodes[n], nodes, snapshot))
        return _Ground(named, reached, units, levels, usable)

    def _vouched(self, snapshot: Snapshot, reached: Iterable[int], bound: str) -> list[tuple[int, int]]:
        """Endorsements that count here only: unexpired ones, and those bound to this very action and unused."""
        if not reached:
            return []
        rows = fetch(snapshot.connection, QUERIES["vouched"], (ids(reached), snapshot.now_us, bound))
        return [
            (n, level) for n, level, action, seq in rows if action is None or not self._used(snapshot, n, bound, seq)
        ]

    def _used(self, snapshot: Snapshot, n: int, bound: str, seq: int) -> bool:
        """Whether that very action was run since, on grounds that include this version."""
        since = fetch(snapshot.connection, QUERIES["actions_since"], (bound, seq))
        return any(n in ancestry(snapshot.graph, [action]) for (action,) in since)

    def _decide(
        self,
        acting: Acting,
        snapshot: Snapshot,
        tool: str,
        arguments: Mapping[str, Any],
        ground: _Ground,
        by: str,
        bound: str,
    ) -> tuple[Decision, Asked]:
        sensitive = snapshot.generation.policies.sensitive.get(tool)
        found = [] if sensitive is None else list(_supports(sensitive, arguments, ground))
        missing = [support for support in found if not support.supported]
        level = min((ground.levels[n] for n in ground.named), default=Integrity.UNTRUSTED)
        whole = sensitive is not None and not sensitive.arguments
        misled = [support for support in missing if support.integrity == Integrity.UNTRUSTED.name]
        extra = {
            "tool": tool,
            "arguments": dict(arguments),
            "unsupported_arguments": len(missing),
            "justification_integrity": level,
            "untrusted_justification": bool(misled) or (whole and level is Integrity.UNTRUSTED),
        }
        decision, asked = self._enforcement.gate(
            acting, by=by, extra=extra, names=snapshot.names, now_us=snapshot.now_us, generation=snapshot.generation
        )
        idle = [ground.units[n] for n in ground.named if not ground.units[n].active]
        if not ground.named:
            decision = self._enforcement.against(decision, "justification", "no justification was given")
        elif idle:
            what = f"{idle[0].ref} is {idle[0].status.value}"
            decision = self._enforcement.against(decision, "justification", what)
        culprit = self._culprit(misled, ground, whole=whole) if not decision.allowed else None
        decision = msgspec.structs.replace(
            decision,
            reasons=(*decision.reasons, *(f"{s.argument}={s.value}: {s.reason}" for s in missing)),
            approval=bound if decision.effect is Effect.ASK else None,
            support=tuple(found),
            path=() if culprit is None else _path(snapshot, ground, culprit),
        )
        return decision, asked

    def _culprit(self, misled: Sequence[Support], ground: _Ground, *, whole: bool) -> int | None:
        """The untrusted version that speaks against the call: where a value came from, else the nearest."""
        for support in misled:
            return next(n for n, unit in ground.units.items() if str(unit.ref) == support.by)
        untrusted = [n for n in ground.reached if ground.levels[n] is Integrity.UNTRUSTED]
        roots = [n for n in untrusted if kind_of(ground.units[n].creator) not in {"reasoning", "agent"}]
        return next(iter(roots or untrusted), None) if whole or untrusted else None

    def _approved(self, acting: Acting, snapshot: Snapshot, bound: str) -> int | None:
        """An approval of exactly this action that was not used yet."""
        for ns in snapshot.names.namespaces(acting.scope):
            rows = fetch(snapshot.connection, QUERIES["approvals"], (ns, bound))
            for n, unit in snapshot.units([n for (n,) in rows]).items():
                if unit.active and unit.integrity is Integrity.TRUSTED and acting.scope.sees(unit.wall):
                    return n
        return None

    def approve(self, acting: Acting, decision: Decision, *, by: str, reason: str | None) -> Unit:
        """Approve exactly the action that a decision asked about, once."""
        if decision.effect is not Effect.ASK or decision.approval is None:
            raise InvalidInputError(f"{decision!r} asks for no approval; only effect 'ask' can be approved")
        if kind_of(by) not in {"user", "system"} or not acting.is_host:
            refused = self._enforcement.against(
                decision, "approval", f"{acting.actor} cannot approve for {by}; approve through the host's scope"
            )
            raise PolicyViolationError(refused, str(refused))
        text = f"Approved {decision.action} {decision.approval[:12]}" + (f": {reason}" if reason else "")
        approval = self.running.draft(text, creator=by, kind="approval", creator_id=decision.approval)
        return self._writing.store(acting, [approval], reserved=True)[0]

    def act(
        self, acting: Acting, action: str, arguments: Mapping[str, Any], justification: Sequence[Link], by: str
    ) -> ActionResult:
        """Authorize, run the registered tool, record the action; a refusal raises before anything runs."""
        tool = self._core.tools.need(action)
        run = tool.run
        assert run is not None
        arguments = plain_arguments(arguments)
        call = Call(tool=tool.name, name=tool.name, arguments=arguments, run=lambda _: run(**arguments))
        return self.running.run(
            acting, call, lambda writer: self.permit(acting, writer, tool.name, arguments, justification, by)
        )

    def concerns(self, tool: str) -> bool:
        """Whether policy has anything to say of calls of this tool: it is sensitive, or a rule of yours is about it."""
        policies = self._core.policies
        return tool in policies.sensitive or any(
            not rule.target.tools or any(glob_match(pattern, tool) for pattern in rule.target.tools)
            for rule in policies.chosen(_about_any_call)
        )

    def begin(
        self,
        acting: Acting,
        call: Call,
        justification: Sequence[Link],
        *,
        shown: int = SHOWN,
    ) -> Begun:
        """Authorize a call that somebody else runs, and record that it was started; a refusal raises."""
        return self.running.begin(
            acting,
            call,
            lambda writer: self.permit(acting, writer, call.name, call.arguments, justification, acting.decider(None)),
            shown=shown,
        )

    def permit(
        self,
        acting: Acting,
        writer: Writer,
        action: str,
        arguments: Mapping[str, Any],
        justification: Sequence[Link],
        by: str,
    ) -> tuple[Decision, tuple[Link, ...]]:
        """The decision inside the transaction that begins an action, and what the action hangs on: its justification,
        and the approval that it uses up. Raises `PolicyViolationError` on a refusal.
        """
        snapshot = self._core.seen_by(writer)
        decision, approval, asked = self._judge(acting, snapshot, action, arguments, justification, by)
        self._enforcement.record(writer.now_us, decision, asked)
        if not decision.allowed:
            raise PolicyViolationError(decision, str(decision))
        approved = [] if approval is None else [snapshot.refs([approval])[approval]]
        return decision, (*justification, *(Link(Target(r.id, r.version), Role.DEPENDS, MICRO) for r in approved))


def _about_any_call(rule: Rule) -> bool:
    """Of the rules about acting, those that ship speak of sensitive tools only."""
    return Verb.ACT in rule.on and msgspec.structs.replace(rule, place=None) not in _shipped()


@cache
def _shipped() -> tuple[Rule, ...]:
    return tuple(msgspec.structs.replace(rule, place=None) for rule in defaults().rules)


def _usable(node: Node, nodes: Mapping[int, Node], snapshot: Snapshot) -> bool:
    """Live, archived, or superseded by an equivalent that is; and resting on nothing doubtful."""
    shift = snapshot.shift
    while True:
        own = shift.own.get(node.n, node.own)
        if shift.standing.get(node.n, node.standing) != Standing.SUPPORTED:
            return False
        winner = shift.winner.get(node.n, node.winner)
        if own == OWN_SUPERSEDED and node.equivalent:
            node = nodes[node.equivalent]
        elif winner and nodes[winner].form == node.form:
            node = nodes[winner]
        else:
            return own in (0, CauseKind.ARCHIVED) and not winner


def _supports(sensitive: SensitiveAction, arguments: Mapping[str, Any], ground: _Ground) -> Iterable[Support]:
    required = Integrity[sensitive.integrity]
    for argument in sensitive.arguments:
        if argument not in arguments:
            continue
        constants = sensitive.constants.get(argument, ())
        given = arguments[argument]
        if _is_constant(given, constants):
            yield _constant(argument, given)
            continue
        for path, value in leaves(argument, given):
            if value is not None and _is_constant(value, constants):
                yield _constant(path, value)
            else:
                yield _support(path, value, ground, required)


def _is_constant(given: Any, constants: Sequence[Any]) -> bool:
    """A truth value is itself only; text and numbers are equal as written."""
    if isinstance(given, bool):
        return any(isinstance(constant, bool) and constant is given for constant in constants)
    if not isinstance(given, str | int | float):
        return False
    return str(given) in [str(constant) for constant in constants if not isinstance(constant, bool)]


def _constant(path: str, given: Any) -> Support:
    return Support(
        argument=path, value=_short(given), supported=True, by=None, integrity=None,
        reason="it is a constant of the policy",
    )  # fmt: skip


def _support(path: str, value: str | None, ground: _Ground, required: Integrity) -> Support:
    def answer(*, supported: bool, reason: str, by: int | None = None) -> Support:
        return Support(
            argument=path,
            value=_short(value),
            supported=supported,
            by=None if by is None else str(ground.units[by].ref),
            integrity=None if by is None else ground.levels[by].name,
            reason=reason,
        )

    if value is None:
        return answer(supported=False, reason="only text and numbers can be supported")
    holding = [n for n in ground.usable if supports(ground.units[n].content, value)]
    if not holding:
        return answer(supported=False, reason="nothing that justifies the call says so")
    best = max(holding, key=lambda n: (ground.levels[n], -n))
    said = f"{ground.units[best].creator} said so ({ground.levels[best].name})"
    if ground.levels[best] >= required:
        return answer(supported=True, reason=said, by=best)
    return answer(supported=False, reason=f"only {said}; {required.name} is required", by=best)


def _path(snapshot: Snapshot, ground: _Ground, culprit: int) -> tuple[str, ...]:
    path = chain(ground.reached, culprit)
    refs: dict[int, Ref] = snapshot.refs(path)
    return tuple(str(refs[n]) for n in reversed(path))


def _short(value: Any) -> str:
    return shorten(str(value), SHOWN)
