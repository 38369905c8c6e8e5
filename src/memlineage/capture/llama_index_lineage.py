"""LlamaIndex agents and workflows of agents, captured and gated as guarded copies.

The dispatcher of LlamaIndex swallows whatever its handlers raise, so it can enforce nothing. A guarded copy is of a
subclass made for its class: it hears what a run is given, looks at prompts in the methods that call the model, and
gates a tool where it is called, in an agent by itself and in an `AgentWorkflow` alike. The id of a call is only known
to the step that runs it, so that step leaves it for the method that calls the tool.

Which conversation a run belongs to stands in its context's store, and goes where that goes. What a memory brings into a
prompt is nobody's word but the agent's: only what the run is given is the user's.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast
from uuid import uuid4

from llama_index.core.agent.workflow import AgentOutput, AgentWorkflow, ToolCall, ToolCallResult
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import Memory
from llama_index.core.tools import AsyncBaseTool, ToolOutput
from llama_index.core.workflow import Context, step

from memlineage.capture import calls
from memlineage.capture.conversation import Conversation, Turn
from memlineage.capture.llama_index_messages import calls_of, messages_of, with_withheld, words_of
from memlineage.capture.messages import Call, Reply
from memlineage.capture.recorder import Recorder, Recorders, Source, current_call
from memlineage.engine.scope import Scope
from memlineage.errors import InvalidInputError

__all__ = ["with_lineage"]

_KEY = "memlineage_conversation"
_CALL_ID: ContextVar[str] = ContextVar("memlineage_llama_index_call", default="")
_STEP: ContextVar[_Step | None] = ContextVar("memlineage_llama_index_step", default=None)

Agent = TypeVar("Agent", BaseWorkflowAgent, AgentWorkflow)


Given = Source | Callable[[Any], Awaitable[Recorder | Scope]]


def with_lineage(agent: Agent, source: Given) -> Agent:
    """A copy of an agent, or of a workflow of agents, whose runs are captured, filtered and gated. Yours stays as is.

        agent = with_lineage(FunctionAgent(tools=[...], llm=llm, name="planner"), memory.scope(user="alice"))

    Args:
        agent: a `FunctionAgent`, `ReActAgent`, `CodeActAgent`, or an `AgentWorkflow` of these.
        source: a scope or a `Recorder`; or a function, asynchronous or not, that gives one of these for a run, from the
            workflow's `Context`, where one agent serves many users.

    Raises:
        InvalidInputError: it is no agent, or the source is none of these.
    """
    guard = _Guard(source)
    if isinstance(agent, AgentWorkflow):
        copied: Agent = guard.copy_of(agent, _GuardedWorkflow)
        copied.agents = {name: guard.copy_of(one, _GuardedAgent) for name, one in agent.agents.items()}
        return copied
    if isinstance(agent, BaseWorkflowAgent):
        alone: Agent = guard.copy_of(agent, _GuardedAgent)
        return alone
    raise InvalidInputError(
        f"{agent!r:.80} is no agent of LlamaIndex; give a FunctionAgent, ReActAgent or AgentWorkflow"
    )


class _Guard:
    """What the guarded copies of one agent share."""

    def __init__(self, source: Given) -> None:
        self._source = source
        self._recorders = Recorders(cast("Source", source))

    def copy_of(self, agent: Any, guarded: type[Any]) -> Any:
        """A copy of that class's subclass."""
        kind: Any = type(agent)
        names = {
            "__module__": kind.__module__, "__qualname__": kind.__qualname__, "memlineage_guard": self,
            "__annotations__": {"memlineage_guard": ClassVar[Any]},
        }  # fmt: skip
        copied = copy.copy(agent)
        meta: Any = type(kind)
        object.__setattr__(copied, "__class__", meta(kind.__name__, (guarded, kind), names))
        return copied

    async def begin(self, ctx: Context, ev: Any, agent: str) -> None:
        """A run starts with what it is given."""
        conversation = await self.conversation(ctx, agent, await ctx.store.get("memory", default=None))
        given = list(ev.get("chat_history", None) or [])
        asked = ev.get("user_msg", None)
        if asked is not None:
            given.append(ChatMessage(role=MessageRole.USER, content=asked) if isinstance(asked, str) else asked)
        conversation.heard(messages_of(given))

    async def conversation(self, ctx: Context, agent: str, memory: Any = None) -> Conversation:
        """The one to which a run belongs."""
        key = await ctx.store.get(_KEY, default=None)
        if key is None:
            kept = memory.session_id if isinstance(memory, Memory) and current_call.get() is None else None
            key = kept or uuid4().hex
            await ctx.store.set(_KEY, key)
        return (await self._recorder(ctx)).conversation(key, agent=agent)

    async def _recorder(self, ctx: Context) -> Recorder:
        if not callable(self._source):
            return self._recorders.at(ctx)
        given = self._source(ctx)
        return self._recorders.of(await given if isawaitable(given) else given)

    async def call(self, ctx: Context, agent: str, tool: AsyncBaseTool, given: dict[str, Any]) -> calls.ToolCall:
        """A tool is about to be called."""
        conversation = await self.conversation(ctx, agent)
        named = Call(id=_CALL_ID.get(), name=tool.metadata.get_name(), arguments=given)
        return conversation.called(named, agent=agent)


class _Step:
    """One step of an agent: the prompts that its model is shown, and what came of them."""

    def __init__(self, conversation: Conversation, agent: str, model: str | None) -> None:
        self._conversation = conversation
        self._agent = agent
        self._model = model
        self._turn: Turn | None = None
        self._before = _STEP.get()

    def __enter__(self) -> Self:
        _STEP.set(self)
        return self

    def __exit__(self, *failure: object) -> None:
        _STEP.set(self._before)

    def shown(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """The model is about to see these; returned as it may."""
        told = messages_of(messages)
        self._turn = self._conversation.shown(
            told, agent=self._agent, model=self._model,
            instructions="\n".join(one.text for one in told if one.role == "system") or None,
        )  # fmt: skip
        return with_withheld(messages, self._turn.redacted)

    def said(self, output: AgentOutput) -> None:
        """What came of it."""
        if self._turn is not None:
            self._turn.said(Reply(text=words_of(output.response), calls=calls_of(output.tool_calls)))


if TYPE_CHECKING:
    from llama_index.core.agent.workflow import AgentWorkflow as _WorkflowBase
    from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent as _AgentBase
else:
    _AgentBase = _WorkflowBase = object  # the class itself comes in beside it, when a copy is made


async def _run_tool(call: calls.ToolCall, run: Any, given: dict[str, Any]) -> ToolOutput:
    """Call a tool if it may be, and record how that ends."""
    refused = call.permit()
    if refused is not None:
        return _failed(call, refused, given)
    with _Ends(call), call.inside():
        output: ToolOutput = await run()
    if output.is_error:
        call.failed(output.exception or output.content)
        return output
    instead = call.returned(output.content, output.raw_output)
    return output if instead is None else _failed(call, instead, given)


def _failed(call: calls.ToolCall, text: str, given: dict[str, Any]) -> ToolOutput:
    return ToolOutput(content=text, tool_name=call.call.name, raw_input=given, raw_output=text, is_error=True)


class _Ends:
    """A call that is left by an exception waits for an event, or was cancelled."""

    def __init__(self, call: calls.ToolCall) -> None:
        self._call = call

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._call.abandoned()


class _GuardedAgent(_AgentBase):
    memlineage_guard: ClassVar[_Guard]

    async def _init_context(self, ctx: Context, ev: Any) -> None:
        await super()._init_context(ctx, ev)
        await self.memlineage_guard.begin(ctx, ev, self.name)

    async def take_step(self, ctx: Any, llm_input: Any, tools: Any, memory: Any) -> AgentOutput:
        conversation = await self.memlineage_guard.conversation(ctx, self.name, memory)
        model = getattr(self.llm.metadata, "model_name", None)
        with _Step(conversation, self.name, model) as taken:
            found: Any = super()
            output: AgentOutput = await found.take_step(ctx, llm_input, tools, memory)
        taken.said(output)
        return output

    async def _get_response(self, current_llm_input: Any, *tools: Any) -> Any:
        found: Any = super()
        return await found._get_response(_as_it_may_be(current_llm_input), *tools)

    async def _get_streaming_response(self, ctx: Any, current_llm_input: Any, *tools: Any) -> Any:
        found: Any = super()
        return await found._get_streaming_response(ctx, _as_it_may_be(current_llm_input), *tools)

    async def _call_tool(self, ctx: Context, tool: AsyncBaseTool, tool_input: dict[str, Any]) -> ToolOutput:
        call = await self.memlineage_guard.call(ctx, self.name, tool, tool_input)
        run = super()._call_tool
        return await _run_tool(call, lambda: run(ctx, tool, tool_input), tool_input)

    @step
    async def call_tool(self, ctx: Context, ev: ToolCall) -> ToolCallResult:
        """Leave the id of the call for whoever runs the tool."""
        _CALL_ID.set(ev.tool_id)
        called: ToolCallResult = await super().call_tool(ctx, ev)
        return called


class _GuardedWorkflow(_WorkflowBase):
    memlineage_guard: ClassVar[_Guard]

    async def _init_context(self, ctx: Context, ev: Any) -> None:
        await super()._init_context(ctx, ev)
        await self.memlineage_guard.begin(ctx, ev, await self._speaking(ctx))

    async def _speaking(self, ctx: Context) -> str:
        return str(await ctx.store.get("current_agent_name", default=self.root_agent))

    async def _call_tool(self, ctx: Context, tool: AsyncBaseTool, tool_input: dict[str, Any]) -> ToolOutput:
        call = await self.memlineage_guard.call(ctx, await self._speaking(ctx), tool, tool_input)
        run = super()._call_tool
        return await _run_tool(call, lambda: run(ctx, tool, tool_input), tool_input)

    @step
    async def call_tool(self, ctx: Context, ev: ToolCall) -> ToolCallResult:
        """Leave the id of the call for whoever runs the tool."""
        _CALL_ID.set(ev.tool_id)
        called: ToolCallResult = await super().call_tool(ctx, ev)
        return called


def _as_it_may_be(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    taken = _STEP.get()
    return list(messages) if taken is None else taken.shown(messages)
