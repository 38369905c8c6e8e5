"""Agents of the OpenAI Agents SDK: guarded copies, and the runs of them.

A guarded agent is a copy in a subclass of the program's own: whatever tools, handoffs and hooks are put into it, it
gives out guarded ones, so that copies made of it by `clone`, or by the SDK itself, are guarded too. The program's
agent is not touched. Steps are told by hooks of the agent, not of the run: these reach sub-agents that a tool asks.

What a model sees is filtered by `RunConfig(call_model_input_filter=…)`, the only place where the SDK lets it be. A
guarded agent that runs without that filter is captured and gated all the same; should something have to be withheld
from its model, its run fails.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from agents import Agent, AgentHooks, RunConfig, Runner, Tool
from agents.run_context import RunContextWrapper
from agents.run_state import RunState

from memlineage.capture.openai_agents_run import RUN, Known, Run, filtering, interrupted_in
from memlineage.capture.openai_agents_tools import check_gateable, guarded_handoff, guarded_tool
from memlineage.capture.recorder import Recorders, Source
from memlineage.errors import InvalidInputError

if TYPE_CHECKING:
    from agents import Handoff, ModelResponse, RunResult, RunResultStreaming, TResponseInputItem
    from agents.run_config import RunOptions
    from typing_extensions import Unpack

    Given = str | list[TResponseInputItem] | RunState[Any]
    Made = Mapping[int, tuple[Agent[Any], Agent[Any]]]

__all__ = ["Lineage"]


class Lineage:
    """Captures the runs of agents, redacts what their models see, and gates their tools.

        lineage = Lineage(memory.scope(user="alice"))
        result = await lineage.run(agent, "Plan two days in Kyoto")

    `run`, `run_sync` and `run_streamed` take what those of `Runner` take. The pieces are there, too:
    `Runner.run(lineage.agent(agent), …, run_config=lineage.run_config())`. Safe to share between threads and tasks.
    """

    def __init__(self, source: Source) -> None:
        """What runs are recorded into.

        Args:
            source: a scope or a `Recorder`; or a function that gives one of these for a run, from the SDK's context
                wrapper (`lambda run: memory.scope(user=run.context.user)`), where one agent serves many users.

        Raises:
            InvalidInputError: the source is none of these.
        """
        self._recorders = Recorders(source)
        self._known = Known()
        self._runs: weakref.WeakKeyDictionary[RunContextWrapper[Any], Run] = weakref.WeakKeyDictionary()
        self._classes: dict[type[Any], type[Any]] = {}

    # The pieces ------------------------------------------------------------------------------------------------

    def agent(self, agent: Agent[Any]) -> Agent[Any]:
        """A guarded copy of an agent, of the agents that it hands on to, and of those that its tools ask.

        A run that waits for a person's approval goes on only with the very agent it was started with: keep it.

        Raises:
            InvalidInputError: it is no agent, or another `Lineage` guards it already.
        """
        return Copies(self).of(agent)

    def run_config(self, base: RunConfig | None = None, *, thread: str | None = None) -> RunConfig:
        """A run configuration like that one, whose filter redacts what may not be relied on any more.

        Args:
            base: the program's own; a filter that it has comes first.
            thread: names the conversation, so that it goes on in another process; else `base.group_id` does.
        """
        return filtering(base, thread=thread)

    # Runs ------------------------------------------------------------------------------------------------------

    async def run(self, starting_agent: Agent[Any], input: Given, **options: Unpack[RunOptions[Any]]) -> RunResult:
        """`Runner.run`, captured, redacted and gated.

        A session names the conversation, or `conversation_id`, or `RunConfig(group_id=…)`.
        """
        agent, options = self._prepared(starting_agent, input, options)
        return await Runner.run(agent, input, **options)

    def run_sync(self, starting_agent: Agent[Any], input: Given, **options: Unpack[RunOptions[Any]]) -> RunResult:
        """`Runner.run_sync`, captured, redacted and gated."""
        agent, options = self._prepared(starting_agent, input, options)
        return Runner.run_sync(agent, input, **options)

    def run_streamed(
        self, starting_agent: Agent[Any], input: Given, **options: Unpack[RunOptions[Any]]
    ) -> RunResultStreaming:
        """`Runner.run_streamed`, captured, redacted and gated."""
        agent, options = self._prepared(starting_agent, input, options)
        return Runner.run_streamed(agent, input, **options)

    def _prepared(self, agent: Agent[Any], input: Given, options: Any) -> tuple[Agent[Any], Any]:
        config = options.get("run_config")
        if isinstance(config, dict):
            config = RunConfig(**config)
        session, thread = options.get("session"), options.get("conversation_id")
        earlier = [id for id in (options.get("previous_response_id"),) if id]
        context = options.get("context")
        if isinstance(context, RunContextWrapper):
            self._runs.pop(context, None)  # it served another run
        interrupted = interrupted_in(input) if isinstance(input, RunState) else []
        config = filtering(config, thread=thread, session=session, earlier=earlier, interrupted=interrupted)
        return self.agent(agent), {**options, "run_config": config}

    def _class_for(self, kind: type[Any]) -> type[Any]:
        if kind not in self._classes:
            self._classes[kind] = type(
                kind.__name__, (Guarded, kind), {"_lineage": self, "__module__": kind.__module__}
            )
        return self._classes[kind]

    def _at(self, wrapper: RunContextWrapper[Any]) -> Run:
        run = self._runs.get(wrapper)
        if run is None:
            run = self._runs[wrapper] = Run(wrapper, self._recorders.at(wrapper), self._known)
        return run


class Copies:
    """The guarded copies of agents that belong together: they hand on to one another in circles."""

    def __init__(self, lineage: Lineage, made: Made = MappingProxyType({})) -> None:
        self.lineage = lineage
        self._made = dict(made)

    def of(self, agent: Agent[Any]) -> Agent[Any]:
        """The copy of an agent, and of whomever it asks or hands on to."""
        if not isinstance(agent, Agent):
            raise InvalidInputError(f"agent={agent!r:.80} is no Agent of the OpenAI Agents SDK")
        by = getattr(agent, "_lineage", None)
        if by is self.lineage:
            return agent
        if by is not None:
            raise InvalidInputError(f"the agent {agent.name!r} is guarded by another Lineage; give its original")
        if id(agent) not in self._made:
            copied: Agent[Any] = object.__new__(self.lineage._class_for(type(agent)))
            self._made[id(agent)] = agent, copied
            copied.__dict__.update(vars(agent))
            copied.__dict__["_lineage_copies"] = self
            copied.__dict__["tools"] = self.of_tools(agent.tools)
            copied.__dict__["handoffs"] = self.of_handoffs(agent.handoffs)
        return self._made[id(agent)][1]

    def once(self, agent: Agent[Any]) -> Agent[Any]:
        """The copy of an agent that was made on the way, and may never come again."""
        return Copies(self.lineage, self._made).of(agent)

    def of_tools(self, tools: Sequence[Tool]) -> list[Tool]:
        """Guarded tools."""
        return [guarded_tool(tool, self.of, self.lineage.run_config) for tool in tools]

    def of_handoffs(self, handoffs: Sequence[Agent[Any] | Handoff[Any, Any]]) -> list[Handoff[Any, Any]]:
        """Guarded handoffs."""
        return [guarded_handoff(one, self.of, self.once) for one in handoffs]


class Guarded:
    """What a guarded agent has beside what it is: whatever is put into it comes out guarded."""

    _lineage: ClassVar[Lineage]
    _lineage_guards: ClassVar[bool] = True

    def _copies(self) -> Copies:
        known = self.__dict__.get("_lineage_copies")
        return known if isinstance(known, Copies) else Copies(self._lineage)

    @property
    def tools(self) -> list[Tool]:
        """The agent's tools."""
        given: list[Tool] = self.__dict__.get("tools", [])
        return _kept(self, "tools", given, self._copies().of_tools(given))

    @tools.setter
    def tools(self, tools: list[Tool]) -> None:
        self.__dict__["tools"] = tools

    @property
    def handoffs(self) -> list[Agent[Any] | Handoff[Any, Any]]:
        """What the agent hands on to."""
        given: list[Agent[Any] | Handoff[Any, Any]] = self.__dict__.get("handoffs", [])
        return _kept(self, "handoffs", given, self._copies().of_handoffs(given))

    @handoffs.setter
    def handoffs(self, handoffs: list[Agent[Any] | Handoff[Any, Any]]) -> None:
        self.__dict__["handoffs"] = handoffs

    @property
    def hooks(self) -> AgentHooks[Any]:
        """The agent's hooks, behind those that record its steps."""
        own = self.__dict__.get("hooks")
        if not isinstance(own, _Steps):
            own = self.__dict__["hooks"] = _Steps(self._lineage, own)
        return own

    @hooks.setter
    def hooks(self, hooks: AgentHooks[Any] | None) -> None:
        self.__dict__["hooks"] = hooks

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """The tools of a turn, those of MCP servers among them. The SDK asks in the task of the turn."""
        run = self._lineage._at(run_context)
        RUN.set(run)
        tools: list[Tool] = await super().get_all_tools(run_context)  # type: ignore[misc]
        tools = self._copies().of_tools(tools)
        for tool in tools:
            check_gateable(tool, run)
        return tools


def _kept(agent: Guarded, name: str, given: list[Any], guarded: list[Any]) -> list[Any]:
    """The list itself while nothing in it had to be copied: the SDK goes by the identity of tools."""
    if all(one is other for one, other in zip(given, guarded, strict=True)):
        return given
    agent.__dict__[name] = guarded
    return guarded


class _Steps(AgentHooks[Any]):
    """Hooks of an agent that record its steps, and call the program's own."""

    def __init__(self, lineage: Lineage, own: AgentHooks[Any] | None) -> None:
        self._lineage = lineage
        self._own: AgentHooks[Any] = own or AgentHooks()

    async def on_llm_start(
        self, context: RunContextWrapper[Any], agent: Agent[Any], system_prompt: str | None, input_items: list[Any]
    ) -> None:
        run = self._lineage._at(context)
        if run.turn is None and run.shown(
            input_items, input_items, agent=agent, by=None, model=None, instructions=system_prompt
        ):
            raise InvalidInputError(
                f"{agent.name} would see what must be withheld from it; pass run_config=lineage.run_config(), or call"
                " lineage.run instead of Runner.run"
            )
        await self._own.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        self._lineage._at(context).said(response)
        await self._own.on_llm_end(context, agent, response)

    async def on_start(self, context: Any, agent: Any) -> None:
        await self._own.on_start(context, agent)

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        await self._own.on_end(context, agent, output)

    async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
        await self._own.on_handoff(context, agent, source)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        await self._own.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        await self._own.on_tool_end(context, agent, tool, result)
