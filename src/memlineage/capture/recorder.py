"""Recording agents as they run, whatever framework runs them.

An adapter translates its framework's hooks into these calls, and nothing else:

1. `Recorder.conversation(thread)`: who talks with whom; one per thread, however many runs go on in it.
2. `Conversation.heard(messages)` at the start of a run: what came in from outside.
3. `Conversation.shown(messages)` before each model call: what the model is about to see. It tells what of that must be
   withheld by now (`Turn.redacted`).
4. `Turn.said(reply)` after it: the model's step, which depends on what was new to it.
5. `Conversation.called(call)` before each tool call: `permit()`, `inside()` around the run, `returned` or `failed`.

Parents come from the framework's ids first (the call a result answers, the message an id names), from context
variables second (an agent run inside a tool call belongs to it), and from what is declared before both.

Only what comes in from outside, at the root of a run, is a user's word, and only where the scope is the host's. What an
agent says to another is that agent's.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from memlineage.engine.scope import Scope
from memlineage.errors import InvalidInputError
from memlineage.model.unit import Unit

if TYPE_CHECKING:
    from memlineage.capture.attribution import Attributor
    from memlineage.capture.calls import ToolCall
    from memlineage.capture.conversation import Conversation

__all__ = [
    "Gated", "Heard", "Recorded", "Recorder", "Recorders", "Source", "current_call", "current_scope",
]  # fmt: skip

Gated = Literal["policy", "all", "none"] | Collection[str]
"""Which tool calls go through the action gate: those that policy speaks of, all, none, or these."""

Heard = Callable[[Scope, Unit], object]
"""Told of each message that came in from outside, once it is recorded: facts may be extracted from it."""

_CONVERSATIONS: Final = 4096
_RECORDERS: Final = 1024

current_call: ContextVar[ToolCall | None] = ContextVar("memlineage_call", default=None)
"""The captured tool call that runs here."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was recorded, for whoever watches.

    Attributes:
        unit: what was written.
        operation: `heard`, `chat`, `execute_tool`, `refused`, or `invoke_agent`.
        agent: in whose conversation.
        thread: the framework's id of the conversation, if it has one.
        name: of the tool.
        call_id: of the tool call.
        model: that answered.
        started_ns, ended_ns: since the epoch.
        failure: the type of the error that a tool raised.
    """

    unit: Unit
    operation: str
    agent: str
    thread: str | None = None
    name: str | None = None
    call_id: str | None = None
    model: str | None = None
    started_ns: int
    ended_ns: int
    failure: str | None = None


class Recorder:
    """Records the runs of agents into one scope's memory. Safe to share between threads and tasks.

    Attributes:
        scope: where it records: the host's, or one on the model's side, which can write as no user.
        agent: who answers where the framework does not say.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        agent: str = "assistant",
        gate: Gated = "policy",
        attribution: Attributor | None = None,
        on_heard: Heard | None = None,
        critical: bool = False,
        redact: bool = True,
    ) -> None:
        """A recorder.

        Args:
            scope: whose memory.
            agent: name of the agent where the framework names none.
            gate: which tool calls must be authorized before they run: those that policy speaks of (`policy`), `all`,
                `none`, or the tools named.
            attribution: weighs what a step rests on, among what was new to it; everything fully if left out.
            on_heard: called with the host's scope and each message from outside, once it is recorded.
            critical: withhold from the prompt what is pending verification, too.
            redact: whether what may not be relied on any more is taken out of prompts.
        """
        if not isinstance(scope, Scope):
            raise InvalidInputError(f"scope={scope!r:.80} is not a Scope; memory.scope(user=…) makes one")
        if isinstance(gate, str) and gate not in {"policy", "all", "none"}:
            raise InvalidInputError(f"gate={gate!r} is none of 'policy', 'all', 'none'; name tools in a list")
        self.scope = scope
        self.agent = agent
        self.gate: Gated = gate if isinstance(gate, str) else frozenset(gate)
        self.attribution = attribution
        self.on_heard = on_heard
        self.critical = critical
        self.redact = redact
        self._watchers: list[Callable[[Recorded], object]] = []
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._open: dict[ToolCall, None] = {}
        self._lock = threading.Lock()

    def conversation(
        self, thread: str | None = None, *, agent: str | None = None, within: ToolCall | None = None
    ) -> Conversation:
        """The conversation of a thread, as long as it is remembered here; a new one where there is no thread id.

        Args:
            thread: the framework's id. What of it was recorded before, in any process, is recognised.
            agent: who answers in it, unless a step says otherwise.
            within: the tool call in which it runs, if the framework says so; else the one that runs here.
        """
        from memlineage.capture.conversation import Conversation

        within = within or current_call.get()
        if within is not None and within.conversation.recorder.scope._parts is not self.scope._parts:
            within = None
        if thread is None:
            return Conversation(self, None, agent or self.agent, within)
        with self._lock:
            known = self._conversations.pop(thread, None)
            if known is None:
                known = Conversation(self, thread, agent or self.agent, within)
            self._conversations[thread] = known
            while len(self._conversations) > _CONVERSATIONS:
                self._conversations.popitem(last=False)
        return known

    def watch(self, watcher: Callable[[Recorded], object]) -> Callable[[], None]:
        """Call this with everything that is recorded from now on; returns what ends that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def tell(self, recorded: Recorded) -> None:
        """Something was recorded."""
        for watcher in tuple(self._watchers):
            watcher(recorded)

    @property
    def watched(self) -> bool:
        """Whether anybody wants to be told."""
        return bool(self._watchers)

    def opened(self, call: ToolCall) -> None:
        """A tool call runs."""
        with self._lock:
            self._open[call] = None

    def closed(self, call: ToolCall) -> None:
        """It has ended."""
        with self._lock:
            self._open.pop(call, None)

    def asking(self, text: str) -> ToolCall | None:
        """The open call that was given this text: then whoever says it now says it for the agent that called.

        Context variables are lost in a pool; a query that travelled through one is still no user's word.
        """
        with self._lock:
            return next((call for call in reversed(self._open) if call.was_given(text)), None)


Source = Recorder | Scope | Callable[[Any], Recorder | Scope]
"""What an adapter records into: a recorder, a scope, or a function that picks one of these for a run, given what the
framework has at hand in it (LangChain's runtime, pydantic-ai's run context, …): one agent then serves many users.
"""


class Recorders:
    """The recorders that a source stands for: one per scope, however often its runs come back."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: OrderedDict[tuple[Any, ...], Recorder] = OrderedDict()
        self._lock = threading.Lock()
        if not callable(source):
            self.at(None)

    def at(self, run: Any) -> Recorder:
        """The recorder of a run; `run` is what the framework has at hand in it.

        Raises:
            InvalidInputError: the source gave neither a recorder nor a scope.
        """
        return self.of(self._source(run) if callable(self._source) else self._source)

    def of(self, given: Recorder | Scope) -> Recorder:
        """The recorder of what a source gave.

        Raises:
            InvalidInputError: that is neither a recorder nor a scope.
        """
        if isinstance(given, Recorder):
            return given
        if not isinstance(given, Scope):
            raise InvalidInputError(f"{given!r:.80} is neither a Recorder nor a Scope; memory.scope(user=…) makes one")
        acting = given._acting
        key = (id(given._parts), acting.scope, acting.actor, acting.tools, acting.domain)
        with self._lock:
            known = self._known.pop(key, None)
            if known is None or known.scope._parts is not given._parts:
                known = Recorder(given)
            self._known[key] = known
            while len(self._known) > _RECORDERS:
                self._known.popitem(last=False)
        return known


def current_scope(scope: Scope) -> Scope:
    """The scope in which the agent that runs here speaks: what it reads counts as shown to it, and what it writes hangs
    on that. Outside of any captured run, that scope on the model's side.
    """
    call = current_call.get()
    if call is not None and call.conversation.recorder.scope._parts is scope._parts:
        return call.conversation.voice(call.agent)
    if scope.actor.startswith("agent:"):
        return scope
    return scope.acting_as("agent:assistant")
