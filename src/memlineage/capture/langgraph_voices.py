"""Who speaks through a LangGraph store, and in front of whom what it answers is put.

A store is handed to graphs, and nobody in a graph is the user. So it is an agent that reads and puts, whatever the
scope: the one that runs here. A program that stores its user's own words says so, by a store of its own with
`creator="user:…"`, and even that one's words are an agent's inside of a run.

What an agent was shown is what the run's conversation knows, where the run is captured: the tool call that runs here,
else the callback that hears the graph, else the thread, if middleware and store record into one `Recorder`. A run that
nobody captures has at least what was read through this store in its thread. What has no thread is told apart by
nothing, and counts as one.

Lineage does not lead through walls. Where the run is recorded within others than the store's, what is put counts as
something from outside; what is read counts as whatever the tool or node answers that read it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.runtime import get_runtime

from memlineage.capture.calls import ToolCall
from memlineage.capture.conversation import Conversation
from memlineage.capture.langchain_callback import LineageCallback
from memlineage.capture.recorder import Recorder, Recorders, current_call
from memlineage.engine.async_scope import AsyncScope
from memlineage.engine.capturing import voice
from memlineage.engine.scope import Scope
from memlineage.model.principal import kind_of
from memlineage.model.scope import Visibility

__all__ = ["Given", "Voice", "Voices"]

Given = Recorder | Scope | AsyncScope | Callable[[Any], Recorder | Scope | AsyncScope]
"""Whose memory a store is over; a function picks it for a run, given LangGraph's runtime, or None outside of any."""

_ALONE: Final = 1024


class Voice(msgspec.Struct, frozen=True):
    """Somebody who uses a store.

    Attributes:
        scope: reads and writes within its walls, as that one.
        creator: who says what is put; the scope's own principal if None.
    """

    scope: Scope
    creator: str | None


class Voices:
    """Finds out who uses a store. Thread-safe."""

    def __init__(self, given: Given, creator: str | None) -> None:
        """`creator` says what is put; inside of runs only where an agent may claim it, such as a tool's name."""
        self._recorders = Recorders(_unwrapped(given))
        self._creator = creator
        self._lock = threading.Lock()
        self._alone: OrderedDict[Recorder, Conversation] = OrderedDict()

    def here(self) -> Voice:
        """Who uses a store here and now."""
        recorder = self._recorder()
        inside = var_child_runnable_config.get() or _call(recorder) is not None
        if self._creator is None or inside:
            return self._inside(recorder)
        return Voice(recorder.scope, self._creator)

    def agent(self) -> Scope:
        """The scope of the agent that runs here; never the host's."""
        return self._inside(self._recorder()).scope

    def _recorder(self) -> Recorder:
        return self._recorders.at(_runtime())

    def _inside(self, recorder: Recorder) -> Voice:
        scope, call = recorder.scope, _call(recorder)
        if call is not None:
            return self._agent(scope, call.agent, call.conversation)
        config: Mapping[str, Any] = var_child_runnable_config.get() or {}
        conversation = _heard(config, scope) or _thread(config, recorder)
        name = (config.get("metadata") or {}).get("lc_agent_name")
        return self._agent(scope, name or recorder.agent, conversation or self._threadless(recorder))

    def _agent(self, scope: Scope, name: str, conversation: Conversation) -> Voice:
        agent, exposure, given = conversation.principal("agent", name), conversation.exposure, self._creator
        if _group(conversation.scope) != _group(scope):
            alone = self._threadless(self._recorder()).exposure
            return Voice(voice(scope, agent, alone), agent.replace("agent:", "external:", 1))
        if scope._acting.exposure is not None:  # whoever reads by it outside of the run may have told the agent
            exposure.show(ref for ref in scope._acting.exposure.seen() if not exposure.ever(ref))
        speaker = voice(scope, agent, exposure, tool=given if given and kind_of(given) == "tool" else None)
        return Voice(speaker, given if given and speaker._acting.may_claim(given) else None)

    def _threadless(self, recorder: Recorder) -> Conversation:
        with self._lock:
            known = self._alone.pop(recorder, None) or recorder.conversation()
            self._alone[recorder] = known
            while len(self._alone) > _ALONE:
                self._alone.popitem(last=False)
        return known


def _unwrapped(given: Any) -> Any:
    if isinstance(given, AsyncScope):
        return given._scope
    if callable(given):
        return lambda run: _unwrapped(given(run))
    return given


def _runtime() -> Any:
    """LangGraph's runtime; None outside of any run, and in a chain that is no graph."""
    return get_runtime() if (var_child_runnable_config.get() or {}).get("configurable") else None


def _call(recorder: Recorder) -> ToolCall | None:
    """The captured tool call that runs here, if it is recorded in the same memory."""
    call = current_call.get()
    return call if call is not None and call.conversation.scope._parts is recorder.scope._parts else None


def _heard(config: Mapping[str, Any], scope: Scope) -> Conversation | None:
    """The conversation in which a callback hears what runs here."""
    callbacks = config.get("callbacks")
    for handler in getattr(callbacks, "handlers", ()):
        if isinstance(handler, LineageCallback):
            found = handler.conversation_of(getattr(callbacks, "parent_run_id", None))
            if found is not None and found.scope._parts is scope._parts:
                return found
    return None


def _thread(config: Mapping[str, Any], recorder: Recorder) -> Conversation | None:
    thread = (config.get("configurable") or {}).get("thread_id")
    return None if thread is None else recorder.conversation(str(thread))


def _group(scope: Scope) -> Any:
    return scope._acting.scope.wall(Visibility.USER).group
