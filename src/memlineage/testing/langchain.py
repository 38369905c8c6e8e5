"""A chat model for tests and examples: it says what it was told to, in any agent of LangChain, without a network.

LangChain's own fakes cannot be given tools, so no agent takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any

from memlineage.errors import InvalidInputError, need_extra

need_extra("langchain", "langchain_core")

from langchain_core.callbacks import CallbackManagerForLLMRun  # noqa: E402
from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage  # noqa: E402
from langchain_core.messages.tool import tool_call_chunk  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult  # noqa: E402
from pydantic import PrivateAttr  # noqa: E402

__all__ = ["ScriptedChatModel", "calling"]

Said = AIMessage | str
Script = Sequence[Said] | Callable[[list[BaseMessage]], Said]


def calling(text: str, *calls: tuple[str, str, dict[str, Any]]) -> AIMessage:
    """A message that asks for tools: each call is (id, name, arguments)."""
    return AIMessage(
        content=text, tool_calls=[{"id": id, "name": name, "args": arguments} for id, name, arguments in calls]
    )


class ScriptedChatModel(BaseChatModel):
    """Says the messages of its script one after another, or what a function makes of the prompt.

    Attributes:
        script: what it says. A function is given the prompt, so one model serves concurrent runs.
        prompts: every prompt that it was given.
    """

    script: Any
    _said: int = PrivateAttr(default=0)
    _prompts: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=Lock)

    def __init__(self, script: Script, **options: Any) -> None:
        """A model with this script."""
        super().__init__(**options | {"script": script})

    @property
    def prompts(self) -> list[list[BaseMessage]]:
        """Every prompt that it was given."""
        return self._prompts

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> ScriptedChatModel:
        """The same model: what it calls is in the script."""
        return self

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        with self._lock:
            self._prompts.append(list(messages))
            place, self._said = self._said, self._said + 1
        if callable(self.script):
            said = self.script(messages)
        elif place < len(self.script):
            said = self.script[place]
        else:
            raise InvalidInputError(f"the script has {len(self.script)} messages, and one more was asked for")
        return AIMessage(content=said) if isinstance(said, str) else said.model_copy()

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> Iterator[ChatGenerationChunk]:
        said = self._next(messages)
        calls = [
            tool_call_chunk(
                name=call["name"], args=_json(call["args"]), id=call["id"], index=place
            )
            for place, call in enumerate(said.tool_calls)
        ]  # fmt: skip
        words = str(said.content).split(" ")
        for place, word in enumerate(words):
            text = word if place == 0 else f" {word}"
            last = place == len(words) - 1
            chunk = AIMessageChunk(content=text, id=said.id, tool_call_chunks=calls if last else [])
            if last:
                chunk.chunk_position = "last"
            made = ChatGenerationChunk(message=chunk)
            if run_manager is not None:
                run_manager.on_llm_new_token(text, chunk=made)
            yield made

    @property
    def _llm_type(self) -> str:
        return "scripted"


def _json(arguments: dict[str, Any]) -> str:
    import orjson

    return orjson.dumps(arguments).decode()
