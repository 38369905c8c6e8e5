"""pydantic-ai agents, captured and gated by one capability.

Each run has a copy of its own. Prompts are looked at when nothing can change them any more (`prepare_model_request`).
Tools are gated where they run, behind every hook and validator, so that what is authorized is what runs; a refusal is a
`ToolFailed`, which the model reads as a failure. `SkipToolExecution` would report success.

Only the prompt of a run and the history that the program hands in are a user's words. What a tool, a retry or another
capability puts into a request is not, though the part is called a user's prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, SkipToolExecution, ToolFailed
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturn, UserPromptPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import PydanticSerializationError, to_jsonable_python

from memlineage.capture.calls import ToolCall
from memlineage.capture.conversation import Conversation, Turn
from memlineage.capture.messages import Call, Message, text_of
from memlineage.capture.pydantic_ai_messages import Place, prompt_of, reply_of, with_withheld
from memlineage.capture.recorder import Recorders, Source, current_call

__all__ = ["Lineage"]

_CONTROL = (ApprovalRequired, CallDeferred, SkipToolExecution)
"""Raised to leave a tool that has not failed."""


class Lineage(AbstractCapability[Any]):
    """Captures an agent's runs, withholds from its prompts what may not be relied on, and gates its tools.

    Agent(model, capabilities=[Lineage(memory.scope(user="alice"))], name="planner")
    """

    def __init__(self, source: Source, *, agent: str | None = None) -> None:
        """A capability.

        Args:
            source: a scope or a `Recorder`; or a function that gives one of these for a run, from its run context
                (`lambda ctx: memory.scope(user=ctx.deps.user)`), where one agent serves many users.
            agent: the agent's name, if not its own.

        Raises:
            InvalidInputError: the source is none of these.
        """
        self._recorders = Recorders(source)
        self._agent = agent

    async def for_run(self, ctx: RunContext[Any]) -> _Run:
        """The run's own."""
        recorder = self._recorders.at(ctx)
        name = self._agent or (None if ctx.agent is None else ctx.agent.name) or recorder.agent
        thread = None if current_call.get() is not None else ctx.conversation_id
        return _Run(recorder.conversation(thread, agent=name), name)


class _Run(AbstractCapability[Any]):
    """One run."""

    def __init__(self, conversation: Conversation, agent: str) -> None:
        self._conversation = conversation
        self._agent = agent
        self._given: list[Any] = []
        self._prompt: Any = None
        self._heard = False
        self._turn: Turn | None = None

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """What the program hands in is all that can be a user's word."""
        self._prompt = ctx.prompt
        self._given = [part for message in ctx.messages if isinstance(message, ModelRequest) for part in message.parts]

    # The model -------------------------------------------------------------------------------------------------

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The model sees what it may."""
        prompt = list(prompt_of(request_context.messages))
        if not self._heard:
            self._heard = True
            self._conversation.heard([message for place, message in prompt if self._may_be_heard(place, message)])
        self._turn = self._conversation.shown(
            [message for _, message in prompt], agent=self._agent,
            model=getattr(request_context.model, "model_name", None), instructions=_instructions(request_context),
        )  # fmt: skip
        if not self._turn.redacted:
            return request_context
        redacted = [(prompt[number][0], text) for number, text in self._turn.redacted.items()]
        return replace(request_context, messages=with_withheld(request_context.messages, redacted))

    def _may_be_heard(self, place: Place, message: Message) -> bool:
        if message.role != "user":
            return True
        part = place.object
        if not isinstance(part, UserPromptPart):
            return False
        return part.content == self._prompt or any(part is given or part == given for given in self._given)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """What it answered is recorded."""
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.said(reply_of(response))
        return response

    # The tools -------------------------------------------------------------------------------------------------

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Every tool runs through here."""
        return _Gated(toolset, self._conversation, self._agent)


@dataclass
class _Gated(WrapperToolset[Any]):
    """Tools that run if they may, and of which it is recorded how they ended."""

    conversation: Conversation
    agent: str

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        call_id = ctx.tool_call_id or ""
        call = self.conversation.called(
            Call(id=call_id, name=name, arguments=_plain(tool_args)), agent=self.agent
        )  # fmt: skip
        refused = call.permit()
        if refused is not None:
            raise ToolFailed(refused)
        with _Ends(call), call.inside():
            result = await super().call_tool(name, tool_args, ctx, tool)
        if isinstance(result, ToolReturn):
            instead = call.returned(text_of(_plain(result.return_value)), result.return_value)
        else:
            instead = call.returned(text_of(_plain(result)), result)
        if instead is not None:
            raise ToolFailed(instead)
        return result


class _Ends:
    """How a call ends that does not return."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, _CONTROL):
            self._call.failed(error)
        elif error is not None:
            self._call.abandoned()


def _plain(value: Any) -> Any:
    try:
        return to_jsonable_python(value)
    except PydanticSerializationError:
        return str(value)


def _instructions(request: ModelRequestContext) -> str | None:
    """What the system tells the model in this request."""
    parts = [part.content for part in request.model_request_parameters.instruction_parts or ()]
    parts += [message.text for _, message in prompt_of(request.messages) if message.role == "system"]
    return "\n\n".join(parts) or None
