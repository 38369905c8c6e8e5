"""LangChain agents, captured and gated by one middleware.

It keeps no run in memory: which conversation a run belongs to stands in the agent's own state, so that a run that was
interrupted goes on in it, in any process. Put first, it hears what comes in before anything adds to it. What really
reaches the model and the tools is watched by a callback that lives as long as the call, wherever the middleware stands:
a prompt that something between has added to, tries that something between repeats, arguments that were changed after
they were authorized.

An agent that runs as a node of a larger graph cannot see who said what in there: nobody is the user to it, unless a
`LineageCallback` on the whole graph has heard him.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, NotRequired, Self
from uuid import UUID, uuid4

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse, OmitFromSchema
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tracers.context import register_configure_hook
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command

from memlineage.capture.calls import ToolCall
from memlineage.capture.conversation import Conversation, Turn
from memlineage.capture.langchain_callback import GUARDED, TRYING, LineageCallback, Trying
from memlineage.capture.langchain_messages import messages_of, reply_of, with_withheld, words_of
from memlineage.capture.messages import Call, text_of
from memlineage.capture.recorder import Recorder, Recorders, Source, current_call
from memlineage.errors import InvalidInputError

__all__ = ["LineageMiddleware"]

Ran = ToolMessage | Command[Any]
_KEY = "lineage_conversation"


class _State(AgentState[Any]):
    lineage_conversation: NotRequired[Annotated[str, OmitFromSchema()]]


class LineageMiddleware(AgentMiddleware[_State, Any, Any]):
    """Captures an agent's runs, withholds from its prompts what may not be relied on, and gates its tools.

        create_agent(model, tools, middleware=[LineageMiddleware(memory.scope(user="alice")), ...], name="planner")

    Put it first. A tool call that policy refuses does not run; the model gets the reason as the tool's answer.
    """

    state_schema = _State

    def __init__(self, source: Source, *, agent: str | None = None) -> None:
        """A middleware.

        Args:
            source: a scope or a `Recorder`; or a function that gives one of these for a run, from LangGraph's runtime
                (`lambda runtime: memory.scope(user=runtime.context.user)`), where one agent serves many users.
            agent: its name, if not the one that `create_agent(name=…)` was given.

        Raises:
            InvalidInputError: the source is none of these.
        """
        super().__init__()
        self.tools = []
        self._recorders = Recorders(source)
        self._agent = agent

    # A run -----------------------------------------------------------------------------------------------------

    def before_agent(self, state: _State, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """A run starts: what came in is heard."""
        key = str(state.get(_KEY) or _thread() or uuid4().hex)
        recorder = self._recorders.at(runtime)
        if _heard_around(recorder) is None:
            nested = "|" in str(_configured().get("checkpoint_ns") or "")
            conversation = recorder.conversation(key, agent=self._name(recorder))
            conversation.heard(messages_of(state["messages"]), root=not nested)
        return {_KEY: key}

    async def abefore_agent(self, state: _State, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """A run starts: what came in is heard."""
        return self.before_agent(state, runtime)

    def _conversation(self, state: Any, runtime: Any) -> Conversation:
        recorder = self._recorders.at(runtime)
        around = _heard_around(recorder)
        if around is not None:
            return around
        key = (state.get(_KEY) if isinstance(state, dict) else getattr(state, _KEY, None)) or _thread()
        return recorder.conversation(key, agent=self._name(recorder))

    def _name(self, recorder: Recorder) -> str:
        return self._agent or get_config().get("metadata", {}).get("lc_agent_name") or recorder.agent

    # The model -------------------------------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """The model sees what it may, and what it answers is recorded."""
        turn, filtered = self._shown(request)
        with _watched_by(_Prompt(turn)):
            response = handler(filtered)
        _said(turn, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The model sees what it may, and what it answers is recorded."""
        turn, filtered = self._shown(request)
        with _watched_by(_Prompt(turn)):
            response = await handler(filtered)
        _said(turn, response)
        return response

    def _shown(self, request: ModelRequest[Any]) -> tuple[Turn, ModelRequest[Any]]:
        conversation = self._conversation(request.state, request.runtime)
        turn = conversation.shown(
            messages_of(request.messages), agent=self._name(conversation.recorder), model=_model_name(request.model),
            instructions=request.system_prompt,
        )  # fmt: skip
        if turn.redacted:
            request = request.override(messages=with_withheld(request.messages, turn.redacted))
        return turn, request

    # The tools -------------------------------------------------------------------------------------------------

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Ran]) -> Ran:
        """The tool runs if it may, and how it ends is recorded."""
        call = self._called(request)
        refused = call.permit()
        if refused is not None:
            return _error(request, refused)
        with _Tries(call) as tries, call.inside():
            result = handler(request)
        return _answered(call, tries, request, result)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Ran]]
    ) -> Ran:
        """The tool runs if it may, and how it ends is recorded."""
        call = self._called(request)
        refused = call.permit()
        if refused is not None:
            return _error(request, refused)
        with _Tries(call) as tries, call.inside():
            result = await handler(request)
        return _answered(call, tries, request, result)

    def _called(self, request: ToolCallRequest) -> ToolCall:
        asked = request.tool_call
        call = Call(id=asked["id"] or "", name=asked["name"], arguments=asked["args"])
        conversation = self._conversation(request.state, request.runtime)
        if not conversation.knows(call.id):  # it was asked for in another process
            conversation.see(messages_of(_messages_in(request.state)))
        return conversation.called(call, agent=self._name(conversation.recorder))


# Where a run stands --------------------------------------------------------------------------------------------


def _configured() -> dict[str, Any]:
    return get_config().get("configurable") or {}


def _thread() -> str | None:
    """The thread of the run. An agent that a tool asks has none: it would be its caller's."""
    thread = _configured().get("thread_id")
    return None if thread is None or current_call.get() is not None else str(thread)


def _heard_around(recorder: Recorder) -> Conversation | None:
    """The conversation in which a callback on the whole graph has heard who spoke."""
    callbacks = get_config().get("callbacks")
    for handler in getattr(callbacks, "handlers", ()):
        if isinstance(handler, LineageCallback):
            found = handler.conversation_of(getattr(callbacks, "parent_run_id", None))
            if found is not None and found.scope._parts is recorder.scope._parts:
                return found
    return None


def _messages_in(state: Any) -> list[BaseMessage]:
    if isinstance(state, list):
        return state
    found = state.get("messages", []) if isinstance(state, dict) else getattr(state, "messages", [])
    return list(found)


def _model_name(model: Any) -> str | None:
    name = getattr(model, "model_name", None) or getattr(model, "model", None) or getattr(model, "_llm_type", None)
    return name if isinstance(name, str) else None


def _said(turn: Turn, response: Any) -> None:
    answer = response.model_response if isinstance(response, ExtendedModelResponse) else response
    reply = reply_of([answer] if isinstance(answer, AIMessage) else answer.result)
    if reply is not None:
        turn.said(reply)


# What a tool answers -------------------------------------------------------------------------------------------


def _error(request: ToolCallRequest, text: str) -> ToolMessage:
    return ToolMessage(
        content=text, tool_call_id=request.tool_call["id"], name=request.tool_call["name"], status="error"
    )


def _answered(call: ToolCall, tries: _Tries, request: ToolCallRequest, result: Ran) -> Ran:
    message = _told(result, call.call.id)
    if message is None:
        update = result.update if isinstance(result, Command) else result
        instead = call.returned(text_of(update) or f"{call.call.name} handed on")
    elif message.status == "error":
        call.failed(tries.error or words_of(message.content))
        return result
    else:
        instead = call.returned(words_of(message.content), message.content, message.artifact)
    return result if instead is None else _error(request, instead)


def _told(result: Any, call_id: str) -> ToolMessage | None:
    """The message by which a tool answered."""
    if isinstance(result, ToolMessage):
        return result
    update = result.update if isinstance(result, Command) else result
    messages = update.get("messages", []) if isinstance(update, dict) else update
    if not isinstance(messages, list):
        messages = [messages]
    return next((one for one in messages if isinstance(one, ToolMessage) and one.tool_call_id == call_id), None)


# What happens in between ---------------------------------------------------------------------------------------

_WATCH: ContextVar[BaseCallbackHandler | None] = ContextVar("memlineage_langchain_watch", default=None)
register_configure_hook(_WATCH, inheritable=False)


@contextmanager
def _watched_by(handler: BaseCallbackHandler) -> Iterator[None]:
    before = _WATCH.get(), GUARDED.get()
    _WATCH.set(handler)
    GUARDED.set(True)
    try:
        yield
    finally:
        _WATCH.set(before[0])
        GUARDED.set(before[1])


class _Watch(BaseCallbackHandler):
    """In the thread and task of what is watched; what cannot be recorded may not go on."""

    run_inline = True
    raise_error = True


class _Prompt(_Watch):
    """Sees what reaches the model."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **about: Any
    ) -> None:  # fmt: skip
        for prompt in messages:
            self._turn.saw(messages_of(prompt))


class _Tries(_Watch, Trying):
    """Sees each try of one tool call, whoever repeats it. While the tool itself runs, it watches nothing."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.run_id: UUID | None = None
        self.error: Exception | None = None
        self._before = (_WATCH.get(), TRYING.get())

    def __enter__(self) -> Self:
        _WATCH.set(self)
        TRYING.set(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        watch, trying = self._before
        _WATCH.set(watch)
        TRYING.set(trying)
        if isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            self.call.failed(error)
        elif error is not None:
            self.call.abandoned()

    def on_tool_start(
        self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, inputs: Any = None, **about: Any
    ) -> None:
        if about.get("tool_call_id") != self.call.call.id:
            return
        self.run_id = run_id
        _WATCH.set(None)
        if self.call.authorized and inputs != self.call.call.arguments:
            raise InvalidInputError(
                f"the arguments of {self.call.call.name} were changed after they were authorized; put"
                " LineageMiddleware behind whatever changes them"
            )

    def on_tool_end(self, output: Any, *, run_id: UUID, **about: Any) -> None:
        self._ended(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        if self._ended(run_id) and isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            self.error = error
            self.call.failed(error, final=False)

    def _ended(self, run_id: UUID) -> bool:
        mine = run_id == self.run_id
        if mine:
            self.run_id = None
            _WATCH.set(self)
        return mine
