"""One run of an agent: which conversation it belongs to, what its model sees, and what is asked of its tools.

A run is known by the context wrapper that the SDK makes for it; agents handed on to share it, sub-agents that a tool
asks have their own. Which run it is that goes on here stands in a context variable, which the guarded agent sets in the
task of each turn: the filter and the tools of the turn find it there.

A conversation with a session or another name is found by that. One without is known again by the ids in the history
that the program hands in; it then branches, since the same history may be gone on from more than once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from agents import ItemHelpers, Model, RunConfig
from agents.items import ToolApprovalItem
from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData

from memlineage.capture.calls import ToolCall
from memlineage.capture.conversation import Conversation, Turn, branched
from memlineage.capture.messages import Call, Message
from memlineage.capture.openai_agents_items import (
    anchors,
    arguments_of,
    chain_of,
    last_answer,
    messages_of,
    replied,
    with_withheld,
)
from memlineage.capture.recorder import Recorder, current_call
from memlineage.engine.capturing import concerned
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from agents import Agent, ModelResponse, RunContextWrapper, Session
    from agents.run_state import RunState
    from agents.tool_context import ToolContext

__all__ = ["PERMITTED", "RUN", "ContextFilter", "Known", "Permitted", "Run", "filtering", "interrupted_in", "is_gated"]

_KNOWN: Final = 16_384

RUN: ContextVar[Run | None] = ContextVar("memlineage_openai_agents_run", default=None)
"""The run whose turn this is."""

PERMITTED: ContextVar[Permitted | None] = ContextVar("memlineage_openai_agents_permitted", default=None)
"""The tool call that was permitted in this task."""


class Permitted:
    """A tool call between being permitted and running. One that never comes to run (a hook failed, the run was
    cancelled, a person has to approve it first) leaves nothing open.
    """

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self._taken = False
        task = asyncio.current_task()
        if task is not None and call.authorized:
            task.add_done_callback(lambda _: self._end())

    def take(self) -> ToolCall | None:
        """The call, once."""
        taken, self._taken = self._taken, True
        return None if taken else self.call

    def _end(self) -> None:
        if not self._taken:
            self.call.abandoned()


class Known:
    """Conversations by the ids of what was said in them, as long as they are remembered here."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, Conversation] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, conversation: Conversation, ids: Iterable[str]) -> None:
        """These ids were given in it."""
        with self._lock:
            for id in ids:
                self._by_id.pop(id, None)
                self._by_id[id] = conversation
            while len(self._by_id) > _KNOWN:
                self._by_id.popitem(last=False)

    def branch(
        self, recorder: Recorder, ids: Iterable[str], within: ToolCall | None, after: Message | None = None
    ) -> Conversation | None:  # fmt: skip
        """What goes on from the conversation with the first of these ids that is known, if `after` was said in it."""
        with self._lock:
            found = next((self._by_id[id] for id in ids if id in self._by_id), None)
        return None if found is None or found.recorder is not recorder else branched(found, within, after)


class Run:
    """What the SDK's hooks of one run tell, told to the recorder."""

    def __init__(self, wrapper: RunContextWrapper[Any], recorder: Recorder, known: Known) -> None:
        self.recorder = recorder
        self.turn: Turn | None = None
        self._known = known
        self._started_with = list(wrapper.turn_input)
        self._within = current_call.get()
        self._outer = RUN.get() if self._within is not None else None
        self._filter: ContextFilter | None = None
        self._conversation: Conversation | None = None
        self._prompt_chain = ""

    # Which conversation ----------------------------------------------------------------------------------------

    def conversation(self, agent: str, by: ContextFilter | None, ids: Iterable[str] = ()) -> Conversation:
        """Its conversation; what came in is heard when it is first asked for."""
        if self._conversation is None:
            self._filter = by
            own = None if by is None or self._is_inherited(by) else by
            self._conversation = self._open(agent, own, ids)
        return self._conversation

    def _open(self, agent: str, by: ContextFilter | None, ids: Iterable[str]) -> Conversation:
        thread = None if by is None else by.thread
        interrupted = [] if by is None else list(by.interrupted)
        resumed = opened = None
        if thread is None:
            resumed = self._resumed(ids, interrupted)
            opened = resumed or self._earlier(() if by is None else by.earlier)
        conversation = opened or self.recorder.conversation(thread, agent=agent, within=self._within)
        if resumed is not None:
            conversation.heard([])  # nothing came in
            return conversation
        placed = messages_of(interrupted or self._started_with, named=conversation.thread is not None)
        conversation.heard([one.message for one in placed])
        if interrupted:
            conversation.see([one.message for one in placed])
        return conversation

    def _resumed(self, ids: Iterable[str], interrupted: list[Any]) -> Conversation | None:
        """Answers that it was not started with are its own: it goes on where it was interrupted."""
        before = set(anchors(self._started_with))
        own = [id for id in ids if id not in before]
        return self._known.branch(self.recorder, own, self._within, last_answer(interrupted))

    def _earlier(self, ids: Iterable[str]) -> Conversation | None:
        """It goes on from the answer of a provider, or from a history that the program hands in."""
        known = self._known.branch(self.recorder, ids, self._within)
        started = self._started_with
        return known or self._known.branch(self.recorder, anchors(started), self._within, last_answer(started))

    def _is_inherited(self, by: ContextFilter) -> bool:
        """Sub-agents that a tool asks are given the filter of the caller's run; its thread is not theirs."""
        return self._outer is not None and self._outer._filter is by

    # The model -------------------------------------------------------------------------------------------------

    def shown(
        self,
        items: list[Any],
        raw: list[Any],
        *,
        agent: Agent[Any],
        by: ContextFilter | None,
        model: Any,
        instructions: str | None,
    ) -> dict[int, str]:  # fmt: skip
        """A model is about to see these items; which of them must be withheld, and what stands there instead.

        `raw` are those before a filter of the program's changed them: names of messages are made of these.
        """
        conversation = self.conversation(agent.name, by, anchors(items))
        named = conversation.thread is not None
        placed = messages_of(items, named=named)
        self._prompt_chain = chain_of(raw) if named else ""
        self.turn = conversation.shown(
            [one.message for one in placed], agent=agent.name, model=_name(model or agent.model),
            instructions=instructions,
        )  # fmt: skip
        return {place: text for at, text in self.turn.redacted.items() for place in placed[at].places}

    def said(self, response: ModelResponse) -> None:
        """What it answered."""
        turn, self.turn = self.turn, None
        if turn is None or self._conversation is None:
            return
        named = self._conversation.thread is not None
        brought, reply = replied(response.output, named=named, chain=self._prompt_chain)
        self._conversation.see(brought)
        turn.said(reply)
        check_not_run([message.name or "" for message in brought], self.recorder)
        own = [response.response_id] if response.response_id else []
        self._known.keep(self._conversation, [*own, *anchors(response.output)])

    # Tools -----------------------------------------------------------------------------------------------------

    def called(self, context: ToolContext[Any], name: str) -> ToolCall:
        """A tool is about to be run."""
        by = None if context.run_config is None else context.run_config.call_model_input_filter
        agent = context.agent.name if context.agent is not None else self.recorder.agent
        conversation = self.conversation(agent, by if isinstance(by, ContextFilter) else None, [context.tool_call_id])
        call = Call(id=context.tool_call_id, name=name, arguments=arguments_of(context.tool_arguments))
        return conversation.called(call, agent=agent)

    def handed_on(self, name: str, arguments: str) -> ToolCall | None:
        """An agent is about to hand on to another; the SDK does not say under which call."""
        if self._conversation is None:
            return None
        last = self._conversation.last
        asked = [] if last is None else (last.metadata or {}).get("calls", [])
        id = next((call["id"] for call in asked if call["name"] == name), name)
        return self._conversation.called(Call(id=id, name=name, arguments=arguments_of(arguments)))


def is_gated(recorder: Recorder, tool: str) -> bool:
    """Whether calls of this tool must be authorized before they run."""
    gate = recorder.gate
    if gate == "policy":
        return concerned(recorder.scope, tool)
    return gate == "all" if isinstance(gate, str) else tool in gate


def check_not_run(tools: Iterable[str], recorder: Recorder) -> None:
    """A provider that ran what had to be authorized first did so behind our back: the run must not go on from there.

    Raises:
        InvalidInputError: one of these had to be.
    """
    for tool in tools:
        if is_gated(recorder, tool):
            raise InvalidInputError(
                f"the provider of the model ran {tool!r} itself, which had to be authorized first; take it from the"
                " agent, or out of the gate"
            )


class ContextFilter:
    """A filter of what models see, for `RunConfig(call_model_input_filter=…)`: what may not be relied on any more is
    redacted. One that the program has of its own comes first.

    Attributes:
        earlier: ids of what it goes on from, if the program gave any.
        interrupted: all that was said in the run that goes on, where it was interrupted.
    """

    def __init__(
        self,
        first: CallModelInputFilter | None,
        *,
        thread: str | None,
        model: Any,
        session: Session | None = None,
        earlier: Iterable[str] = (),
        interrupted: Iterable[Any] = (),
    ) -> None:
        self._thread = thread
        self._session = session
        self.interrupted = tuple(interrupted)
        self.earlier = tuple(earlier)
        self._first = first
        self._model = model

    @property
    def thread(self) -> str | None:
        """The name of the conversation, if it has one. Some sessions have one only once they were asked for it."""
        try:
            return self._session.session_id if self._session is not None else self._thread
        except ValueError:
            return self._thread

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """What the model may see of this."""
        given, raw = data.model_data, list(data.model_data.input)
        if self._first is not None:
            answer = self._first(data)
            given = await answer if inspect.isawaitable(answer) else answer
        run = RUN.get()
        if run is None or not getattr(data.agent, "_lineage_guards", False):
            raise InvalidInputError(
                f"the agent {data.agent.name!r} is not guarded, so its tools are not; run lineage.agent(agent) instead"
            )
        withheld = run.shown(
            given.input, raw, agent=data.agent, by=self, model=self._model, instructions=given.instructions
        )  # fmt: skip
        if not withheld:
            return given
        return ModelInputData(input=with_withheld(given.input, withheld), instructions=given.instructions)


def interrupted_in(state: RunState[Any]) -> list[Any]:
    """What was said in a run up to where it was interrupted."""
    made = [item.to_input_item() for item in state._generated_items if not isinstance(item, ToolApprovalItem)]
    return [*ItemHelpers.input_to_new_input_list(state._original_input), *made]


def filtering(base: RunConfig | None, *, thread: str | None, **about: Any) -> RunConfig:
    """A run configuration like that one, whose filter redacts."""
    base = base or RunConfig()
    first = base.call_model_input_filter
    if isinstance(first, ContextFilter):
        thread = thread or first._thread
        first = first._first
    own = ContextFilter(first, thread=thread or base.group_id, model=base.model, **about)
    return dataclasses.replace(base, call_model_input_filter=own)


def _name(model: str | Model | None) -> str | None:
    named = model if isinstance(model, str) else getattr(model, "model", None)
    return named if isinstance(named, str) else None
