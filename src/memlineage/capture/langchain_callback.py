"""Whatever runs in LangChain or LangGraph, captured by a callback, without touching it.

A callback sees and cannot refuse: what must be gated or filtered needs `LineageMiddleware`. Both may be in use: each
call is recorded once.

Runs form a tree. A conversation begins at its root, and at each run that a tool starts; a `thread_id` joins the runs of
one. What a root is given is what came in from outside. A tool's run stands below the node that runs tools, not below
the model that asked for it, so its call is found by its id. A run that is abandoned never ends: the oldest of those are
forgotten.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Final, Self, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook

from memlineage.capture.calls import ToolCall
from memlineage.capture.conversation import Conversation, Turn
from memlineage.capture.langchain_messages import given_messages, messages_of, reply_of, words_of
from memlineage.capture.messages import Call, Message, Reply, text_of
from memlineage.capture.recorder import Recorders, Source, current_call
from memlineage.errors import InvalidInputError

__all__ = ["GUARDED", "TRYING", "Capturing", "LineageCallback", "Trying", "capture"]

_RUNS: Final = 16_384
_CONTROL: Final = ("GraphBubbleUp", "GraphInterrupt", "NodeInterrupt", "ParentCommand")
"""Raised by LangGraph to leave a tool; not failures of it."""


class Trying:
    """Whoever records a tool call already, try by try.

    Attributes:
        call: the call.
        run_id: the try that runs.
    """

    call: ToolCall
    run_id: UUID | None


TRYING: ContextVar[Trying | None] = ContextVar("memlineage_langchain_trying", default=None)
GUARDED: ContextVar[bool] = ContextVar("memlineage_langchain_guarded", default=False)
"""Whether a model runs here whose prompt and answer somebody else records."""


class _Run:
    """A run that has not ended."""

    def __init__(self, conversation: Conversation | None) -> None:
        self.conversation = conversation
        self.call: ToolCall | None = None
        self.inside: AbstractContextManager[None] | None = None
        self.turn: Turn | None = None


class RunTree(BaseCallbackHandler):
    """The runs that have not ended, and the conversation of each."""

    run_inline = True
    raise_error = True

    def __init__(self, source: Source) -> None:
        """A callback.

        Args:
            source: a scope or a `Recorder`; or a function that gives one of these for a run, from its metadata (a
                mapping, in which LangChain puts what `configurable` holds).

        Raises:
            InvalidInputError: the source is none of these.
        """
        self._recorders = Recorders(source)
        self._runs: OrderedDict[UUID, _Run] = OrderedDict()
        self._lock = threading.Lock()

    def conversation_of(self, run_id: UUID | None) -> Conversation | None:
        """The conversation to which a run belongs that has not ended."""
        run = None if run_id is None else self._runs.get(run_id)
        return None if run is None else run.conversation

    def _begin(self, run_id: UUID, parent: UUID | None, about: dict[str, Any], given: Callable[[], Any]) -> _Run:
        """A run begins; at a root, and below a tool, a conversation with it."""
        above = None if parent is None else self._runs.get(parent)
        conversation = None if above is None else above.conversation
        if above is None or above.call is not None:
            metadata = about.get("metadata") or {}
            recorder = self._recorders.at(metadata)
            within = None if above is None else above.call
            thread = metadata.get("thread_id") if within is None and current_call.get() is None else None
            agent = metadata.get("lc_agent_name") or recorder.agent
            conversation = recorder.conversation(None if thread is None else str(thread), agent=agent, within=within)
            conversation.heard(given())
        run = _Run(conversation)
        with self._lock:
            self._runs[run_id] = run
            while len(self._runs) > _RUNS:
                self._runs.popitem(last=False)
        return run

    def _end(self, run_id: UUID) -> _Run | None:
        with self._lock:
            return self._runs.pop(run_id, None)

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **about: Any
    ) -> None:
        """A chain, a graph or a node of one."""
        self._begin(run_id, parent_run_id, about, lambda: given_messages(inputs))

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **about: Any) -> None:
        """It has ended."""
        self._end(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        """It has failed."""
        self._end(run_id)


class LineageCallback(RunTree):
    """Captures the runs that it is given to.

    graph.invoke(inputs, config={"callbacks": [LineageCallback(memory.scope(user="alice"))]})
    """

    # The model -------------------------------------------------------------------------------------------------

    def on_chat_model_start(
        self, serialized: Any, messages: list[list[BaseMessage]], *, run_id: UUID, parent_run_id: UUID | None = None,
        **about: Any,
    ) -> None:  # fmt: skip
        """A model is about to see these messages."""
        if len(messages) == 1:
            self._asked(run_id, parent_run_id, about, messages_of(messages[0]))

    def on_llm_start(
        self, serialized: Any, prompts: list[str], *, run_id: UUID, parent_run_id: UUID | None = None, **about: Any
    ) -> None:
        """A model that completes text is about to see it."""
        if len(prompts) == 1:
            self._asked(run_id, parent_run_id, about, [Message(role="user", text=prompts[0])])

    def _asked(self, run_id: UUID, parent: UUID | None, about: dict[str, Any], messages: Sequence[Message]) -> None:
        if GUARDED.get():
            return
        run = self._begin(run_id, parent, about, lambda: messages)
        assert run.conversation is not None
        metadata = about.get("metadata") or {}
        run.turn = run.conversation.shown(
            messages, agent=metadata.get("lc_agent_name"), model=metadata.get("ls_model_name"),
            instructions="\n".join(message.text for message in messages if message.role == "system") or None,
        )  # fmt: skip

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **about: Any) -> None:
        """It has answered."""
        run = self._end(run_id)
        if run is not None and run.turn is not None and response.generations and response.generations[0]:
            first = response.generations[0][0]
            message = first.message if isinstance(first, ChatGeneration) else AIMessage(content=first.text)
            run.turn.said(reply_of([message]) or Reply(text=first.text))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        """It has not."""
        self._end(run_id)

    # Tools -----------------------------------------------------------------------------------------------------

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: UUID | None = None,
        inputs: dict[str, Any] | None = None, **about: Any,
    ) -> None:  # fmt: skip
        """A tool is about to run."""
        call_id = about.get("tool_call_id")
        arguments = input_str if inputs is None else inputs
        run = self._begin(run_id, parent_run_id, about, list)
        trying = TRYING.get()
        if trying is not None and trying.call.call.id == call_id and trying.run_id in (None, run_id):
            run.call = trying.call
            return
        name = about.get("name") or (serialized or {}).get("name") or "unnamed"
        assert run.conversation is not None
        call = Call(id=str(call_id or run_id), name=name, arguments=arguments)
        run.call = run.conversation.called(call, agent=(about.get("metadata") or {}).get("lc_agent_name"))
        run.inside = run.call.inside()
        run.inside.__enter__()

    def on_tool_end(self, output: Any, *, run_id: UUID, **about: Any) -> None:
        """It has answered."""
        call = self._left(run_id)
        if call is None:
            return
        if isinstance(output, ToolMessage):
            text = words_of(output.content)
            if output.status == "error":
                call.failed(text)
            else:
                call.returned(text, output.content, output.artifact)
        else:
            call.returned(text_of(output), output)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        """It has failed, unless the graph was interrupted in it."""
        call = self._left(run_id)
        if call is None:
            return
        if isinstance(error, Exception) and type(error).__name__ not in _CONTROL:
            call.failed(error)
        else:
            call.abandoned()

    def _left(self, run_id: UUID) -> ToolCall | None:
        """The call that ends here, if it was recorded here."""
        run = self._end(run_id)
        if run is None or run.inside is None:
            return None
        run.inside.__exit__(None, None, None)
        return run.call

    # Retrievers ------------------------------------------------------------------------------------------------

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **about: Any
    ) -> None:
        """A retriever is about to look."""
        run = self._begin(run_id, parent_run_id, about, lambda: given_messages(query))
        name = about.get("name") or (serialized or {}).get("name") or "retriever"
        assert run.conversation is not None
        run.call = run.conversation.called(Call(id=str(run_id), name=name, arguments={"query": query}))

    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **about: Any) -> None:
        """What it has found: each document is one answer, under its own id."""
        run = self._end(run_id)
        if run is None or run.call is None or run.conversation is None:
            return
        for place, document in enumerate(documents):
            call = Call(id=document.id or f"{run_id}/{place}", name=run.call.call.name)
            found = run.conversation.called(call)
            found.returned(document.page_content, document.page_content)
            if found.unit is not None:
                run.conversation.exposure.show([found.unit.ref])

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
        """It has failed."""
        run = self._end(run_id)
        if run is not None and run.call is not None and isinstance(error, Exception):
            run.call.failed(error)


# Everything ----------------------------------------------------------------------------------------------------


class _Everywhere:
    """Where LangChain looks for the callback of everything. It reads a context variable by `get`, and a value that is
    set in one would not be there in the threads of others.
    """

    def __init__(self) -> None:
        self.handler: LineageCallback | None = None
        self.registered = False
        self.lock = threading.Lock()

    def get(self) -> LineageCallback | None:
        """The callback, while there is one."""
        return self.handler


_EVERYWHERE: Final = _Everywhere()


class Capturing:
    """Everything is captured until `stop()`, or until the `with` block ends."""

    def __init__(self, handler: LineageCallback) -> None:
        self._handler = handler

    def stop(self) -> None:
        """Capture no more. What began before goes on to be captured."""
        with _EVERYWHERE.lock:
            if _EVERYWHERE.handler is self._handler:
                _EVERYWHERE.handler = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()


def capture(source: Source) -> Capturing:
    """Capture every run of LangChain and LangGraph in this process, in all threads, from now on.

    Args:
        source: as `LineageCallback` takes it.

    Raises:
        InvalidInputError: everything is captured already; stop that first.
    """
    handler = LineageCallback(source)
    with _EVERYWHERE.lock:
        if _EVERYWHERE.handler is not None:
            raise InvalidInputError("everything is captured already; stop() what capture() returned first")
        if not _EVERYWHERE.registered:
            register_configure_hook(cast("ContextVar[Any]", _EVERYWHERE), inheritable=True)
            _EVERYWHERE.registered = True
        _EVERYWHERE.handler = handler
    return Capturing(handler)
