"""What recording somebody else's agent needs beside the verbs of a scope: a voice for each of those who speak in it.

A conversation has one exposure, whoever of its agents speaks: what one of them was shown, the next one goes on from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from memlineage.engine.acting import Exposure
from memlineage.engine.frames import Frame, current
from memlineage.engine.inputs import Target, links
from memlineage.engine.running import Begun, Call
from memlineage.engine.scope import Scope
from memlineage.engine.tracking import TrackedCall
from memlineage.errors import UnknownUnitError
from memlineage.model.ids import Ref
from memlineage.model.unit import Role, Unit
from memlineage.policy import Decision

__all__ = ["CapturedCall", "Exposure", "begin", "concerned", "judged", "limit_of", "permitted", "recorded", "voice"]


def voice(scope: Scope, agent: str, exposure: Exposure | None, *, tool: str | None = None) -> Scope:
    """The scope in which an agent speaks, or a tool that its adapter ran; `exposure` is None for what no model sees.

    Made from the host's scope, it speaks as that agent. Made from one on the model's side, it stays who that is, and
    claims no tool that it was not given.
    """
    acting = scope._acting
    if acting.is_host:
        tools = frozenset() if tool is None else frozenset({tool})
        acting = msgspec.structs.replace(acting, actor=agent, tools=tools)
    return Scope(scope._parts, msgspec.structs.replace(acting, exposure=exposure))


def permitted(scope: Scope, claimed: str) -> str:
    """The principal itself, if this scope may speak as it; else what it is then: something from outside."""
    if scope._acting.may_claim(claimed):
        return claimed
    kind, _, name = claimed.partition(":")
    return f"external:{name or kind}" if kind == "tool" else f"external:{kind}"


def limit_of(scope: Scope) -> int:
    """Characters that one unit may hold."""
    return scope._parts.core.limits.content


def judged(scope: Scope, refs: Collection[Ref], *, critical: bool = False) -> dict[Ref, tuple[Unit, Decision]]:
    """Whether each of these may be relied on now, as a read by this scope decides it; what is refused is logged.

    What is out of sight is left out.
    """
    parts, found = scope._parts, {}
    with parts.core.read() as snapshot:
        reading = parts.enforcement.reading(scope._acting, snapshot, critical=critical)
        numbers: dict[int, Ref] = {}
        for ref in refs:
            try:
                numbers[snapshot.resolve(scope._acting.scope, Target(ref.id, ref.version)).n] = ref
            except UnknownUnitError:
                continue
        for n, unit in snapshot.units(list(numbers)).items():
            decision, asked = parts.enforcement.judged(reading, unit, n, 0.0)
            if not decision.allowed:
                parts.enforcement.record(snapshot.now_us, decision, asked)
            found[numbers[n]] = (unit, decision)
    return found


def recorded(scope: Scope, text: str, options: Mapping[str, Any]) -> Unit:
    """Something that was said. Whoever says again what he was shown says it anew, on what he knows by then: what is
    recorded is never taken for an echo.
    """
    return scope._parts.writing.store(scope._acting, [scope._draft(text, options)], reserved=True)[0]


def concerned(scope: Scope, tool: str) -> bool:
    """Whether policy has anything to say of calls of this tool."""
    return scope._parts.gate.concerns(tool)


def begin(scope: Scope, tool: str, arguments: Mapping[str, Any], justification: Iterable[Ref], **about: Any) -> Begun:
    """Authorize a call that the framework runs, and record that it was started. A refusal raises."""
    grounds = links(list(justification), Role.DEPENDS, name="justification")
    call = Call(tool=tool, name=tool, arguments=arguments, run=lambda _: None, metadata=about)
    return scope._parts.gate.begin(scope._acting, call, grounds, shown=limit_of(scope) // 2)


class CapturedCall(TrackedCall):
    """A tool call of a framework: what runs inside hangs on the step that asked for it."""

    def __init__(self, scope: Scope, name: str, options: Mapping[str, Any], step: Unit | None) -> None:
        before = current.get()
        core = scope._parts.core
        try:
            if step is not None:
                current.set(Frame(core, step, before))
            super().__init__(scope, name, options, (), implied=False)
        finally:
            current.set(before)

    def answered(self, scope: Scope, text: str, options: Mapping[str, Any], values: Iterable[Any]) -> Unit:
        """Remember what it answered, by that voice; whoever tracks the run around it hangs on how that ends."""
        self._scope, self._options = scope, options
        self.callers.clear()
        return self.wrote(text, *values)
