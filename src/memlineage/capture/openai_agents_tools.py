"""Tools and handoffs of a guarded agent: copies of the program's own, which ask before they run and tell how they
ended.

A function tool asks in a guardrail of its own, behind those that it has: there the SDK knows how to say no to a model.
What is captured is the function itself, beneath the SDK's handling of its errors. A tool that is an agent
(`as_tool`) runs a guarded copy of that agent. Tools that a provider runs cannot be asked for before they run; where
policy or the gate wants that, the run fails.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import types
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from agents import CustomTool, FunctionTool, Handoff, ItemHelpers, RunConfig, Tool, handoff
from agents.agent_tool_state import get_agent_tool_state_scope, peek_agent_tool_run_result
from agents.tool_context import ToolContext
from agents.tool_guardrails import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolInputGuardrailData

from memlineage.capture.messages import text_of
from memlineage.capture.openai_agents_run import PERMITTED, RUN, Permitted, Run, is_gated
from memlineage.errors import InvalidInputError, PolicyViolationError

if TYPE_CHECKING:
    from agents import Agent, RunContextWrapper

    from memlineage.capture.calls import ToolCall

__all__ = ["check_gateable", "guarded_handoff", "guarded_tool"]

GuardAgent = Callable[["Agent[Any]"], "Agent[Any]"]
GuardConfig = Callable[[RunConfig], RunConfig]
Invoke = Callable[[Any, str], Awaitable[Any]]

_MARK: Final = "_memlineage_guarded"


def is_guarded(tool: Any) -> bool:
    """Whether it is a copy that this module made."""
    return getattr(tool, _MARK, False) is True


def guarded_tool(tool: Tool, guard: GuardAgent, config: GuardConfig) -> Tool:
    """A copy of a tool that asks before it runs and tells how it ended; one that cannot be guarded as it is."""
    if is_guarded(tool) or not isinstance(tool, FunctionTool | CustomTool):
        return tool
    copied = copy.copy(tool)
    if isinstance(copied, CustomTool):
        copied.on_invoke_tool = _captured(copied.on_invoke_tool, copied.name)
    else:
        _guard_function(copied, guard, config)
    setattr(copied, _MARK, True)
    return copied


def _guard_function(tool: FunctionTool, guard: GuardAgent, config: GuardConfig) -> None:
    tool.tool_input_guardrails = [*(tool.tool_input_guardrails or []), _gate(tool.qualified_name)]
    invoker = copy.copy(tool.on_invoke_tool)
    inner = getattr(invoker, "_invoke_tool_impl", None)
    if inner is None:
        tool.on_invoke_tool = _captured(tool.on_invoke_tool, tool.qualified_name)
        return
    if tool._agent_instance is not None:
        guarded = guard(tool._agent_instance)
        inner = _running(inner, tool, guarded, config)
        tool._agent_instance = guarded
    # The SDK's own invoker stays around it: what it makes of errors, schemas and approvals remains as it is.
    invoker._invoke_tool_impl = _captured(inner, tool.qualified_name)  # type: ignore[attr-defined]
    invoker._function_tool = None  # type: ignore[attr-defined]
    tool.on_invoke_tool = invoker.__agents_bind_function_tool__(tool)  # type: ignore[attr-defined]


def _running(inner: Invoke, tool: FunctionTool, guarded: Agent[Any], config: GuardConfig) -> Invoke:
    """The same function, for the guarded agent: `as_tool` keeps which agent it runs in a closure."""
    code, cells = getattr(inner, "__code__", None), getattr(inner, "__closure__", None) or ()
    held = {} if code is None else dict(zip(code.co_freevars, cells, strict=True))
    if "self" not in held or held["self"].cell_contents is not tool._agent_instance:
        if guarded is tool._agent_instance:
            return inner
        raise InvalidInputError(
            f"the agent behind the tool {tool.name!r} cannot be guarded; make the tool of a guarded one:"
            " lineage.agent(agent).as_tool(…)"
        )
    held["self"] = types.CellType(guarded)
    if "run_config" in held and held["run_config"].cell_contents is not None:
        held["run_config"] = types.CellType(config(held["run_config"].cell_contents))
    assert isinstance(inner, types.FunctionType)
    made = types.FunctionType(inner.__code__, inner.__globals__, inner.__name__, inner.__defaults__, (*held.values(),))
    return functools.update_wrapper(made, inner)


# Before --------------------------------------------------------------------------------------------------------


def _gate(name: str) -> ToolInputGuardrail[Any]:
    def memlineage_gate(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        call = _run().called(data.context, name)
        refused = call.permit()
        if refused is not None:
            return ToolGuardrailFunctionOutput.reject_content(refused)
        PERMITTED.set(Permitted(call))
        return ToolGuardrailFunctionOutput.allow()

    return ToolInputGuardrail(guardrail_function=memlineage_gate)


def _run() -> Run:
    run = RUN.get()
    if run is None:
        raise InvalidInputError("a guarded tool runs outside of any run of a guarded agent; run lineage.agent(agent)")
    return run


def _permitted(context: Any, name: str) -> ToolCall | str:
    """The call that may run now, or what to answer instead."""
    permitted = PERMITTED.get()
    call = None if permitted is None else permitted.take()
    asked = getattr(context, "tool_call_id", None)
    if call is not None and asked in {None, call.call.id}:
        return call
    if not isinstance(context, ToolContext):
        raise InvalidInputError(f"the tool {name!r} was called without the context of its call")
    call = _run().called(context, name)
    refused = call.permit()
    return call if refused is None else refused


# While it runs, and after --------------------------------------------------------------------------------------


def _captured(inner: Invoke, name: str) -> Invoke:
    @functools.wraps(inner)
    async def invoke(context: Any, arguments: str) -> Any:
        call = _permitted(context, name)
        if isinstance(call, str):
            return call
        with _Telling(call), call.inside():
            result = await inner(context, arguments)
        if _waits(context):
            call.abandoned()
            return result
        instead = call.returned(_told(context, result), result)
        return result if instead is None else instead

    return invoke


def _waits(context: Any) -> bool:
    """Whether the agent that the tool asked waits for a person's approval: then this is no answer yet."""
    if not isinstance(context, ToolContext) or context.tool_call is None:
        return False
    asked = peek_agent_tool_run_result(context.tool_call, scope_id=get_agent_tool_state_scope(context))
    return bool(getattr(asked, "interruptions", None))


class _Telling:
    """Tells how it ended badly; whatever was raised goes on."""

    def __init__(self, call: ToolCall | None) -> None:
        self._call = call

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._call is None or error is None:
            return
        if isinstance(error, asyncio.CancelledError):
            self._call.failed("it was cancelled")
        elif isinstance(error, Exception):
            self._call.failed(error)
        else:
            self._call.abandoned()


def _told(context: Any, result: Any) -> str:
    """A tool's answer as the model will see it."""
    asked = getattr(context, "tool_call", None)
    if asked is None or isinstance(result, str):
        return text_of(result)
    return text_of(ItemHelpers.tool_call_output_item(asked, result)["output"])


# What hands on -------------------------------------------------------------------------------------------------


def guarded_handoff(
    given: Agent[Any] | Handoff[Any, Any], guard: GuardAgent, guard_once: GuardAgent
) -> Handoff[Any, Any]:
    """A copy of a handoff that hands on to guarded agents only. It is gated like a tool; but a model cannot be told no
    here, so a refusal ends the run.

    `guard_once` is for an agent that is made by the handoff itself, each time anew.
    """
    if not isinstance(given, Handoff):
        given = handoff(guard(given))
    if is_guarded(given):
        return given
    copied, invoke = copy.copy(given), given.on_invoke_handoff
    target = None if given._agent_ref is None else given._agent_ref()

    async def hand_on(context: RunContextWrapper[Any], arguments: str) -> Any:
        call = _run().handed_on(given.tool_name, arguments)
        refused = None if call is None else call.permit()
        if refused is not None:
            raise PolicyViolationError(None, refused)
        with _Telling(call):
            agent = guard_once(await invoke(context, arguments))
        if call is not None:
            call.returned(given.get_transfer_message(agent))
        return agent

    copied.on_invoke_handoff = hand_on
    if target is not None:
        guarded = guard(target)  # type: ignore[arg-type]
        copied._agent_ref = weakref.ref(guarded)
        copied.__dict__["_memlineage_target"] = guarded  # it is held weakly otherwise
    setattr(copied, _MARK, True)
    return copied


# What cannot be asked ------------------------------------------------------------------------------------------


def check_gateable(tool: Tool, run: Run) -> None:
    """A tool that cannot be asked for before it runs may not be there where it would have to be.

    Raises:
        InvalidInputError: policy or the gate speaks of it.
    """
    if isinstance(tool, FunctionTool | CustomTool):
        return
    if is_gated(run.recorder, tool.name):
        raise InvalidInputError(
            f"{tool.name} does not run as a function tool and cannot be gated, which the recorder or policy demands;"
            " take it from the agent, or out of the gate"
        )
