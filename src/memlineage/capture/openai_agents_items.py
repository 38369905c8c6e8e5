"""Items of the Responses API as messages, and back: which of them say one thing together, and how one is redacted.

A model answers in several items (reasoning, words, calls); together they are one message of one step. What a provider
ran itself (a web search, a hosted MCP call) came from outside: it is a tool's message, seen before the step that tells
of it. Items that say nothing are passed over.

What a session keeps has often no ids of its own. Where a conversation has a name, each message gets one made of what
stands before it, back to the nearest id of the framework's: another process makes the same one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
import orjson
from agents.models.fake_id import FAKE_RESPONSES_ID

from memlineage.capture.messages import Call, Message, Reply, text_of

__all__ = ["Placed", "anchors", "arguments_of", "chain_of", "last_answer", "messages_of", "replied", "with_withheld"]

Item = Mapping[str, Any]

_ASKED: Final = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "mcp_approval_request": "arguments",
}
"""Calls that are run on this side, and where each has its arguments."""
_HOSTED: Final = {
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
    "mcp_list_tools", "tool_search_call", "tool_search_output",
}  # fmt: skip
_ROLES: Final[Mapping[str, Literal["user", "system"]]] = {"user": "user", "system": "system", "developer": "system"}
_START: Final = "start"


class Placed(msgspec.Struct, frozen=True):
    """A message, and where its items stand.

    Attributes:
        message: what they say.
        places: their places in the list.
        chain: what names of later messages are made of.
    """

    message: Message
    places: tuple[int, ...]
    chain: str


def messages_of(items: Iterable[Any], *, named: bool = False, chain: str = _START) -> list[Placed]:
    """Items as messages.

    Args:
        items: of a prompt or of a reply, as mappings or as the SDK's own objects.
        named: whether each message needs an id; one is made where the framework gave none.
        chain: of the message before the first.
    """
    reader = _Reader(named, chain)
    for place, item in enumerate(items):
        reader.read(place, _mapping(item))
    return reader.read_all()


def replied(items: Iterable[Any], *, named: bool = False, chain: str = _START) -> tuple[list[Message], Reply]:
    """A model's answer: what the provider's own tools brought in first, and what it said of that."""
    read = [placed.message for placed in messages_of(items, named=named, chain=chain)]
    said = [message for message in read if message.role == "assistant"]
    reply = Reply(
        text="\n".join(message.text for message in said if message.text),
        calls=tuple(call for message in said for call in message.calls),
        id=next((message.id for message in said if message.id), None),
    )
    return [message for message in read if message.role == "tool"], reply


def chain_of(items: Iterable[Any]) -> str:
    """What the name of a message that comes after these is made of."""
    read = messages_of(items, named=True)
    return read[-1].chain if read else _START


def anchors(items: Iterable[Any]) -> list[str]:
    """The ids of the framework's own by which a conversation is known again, the newest first."""
    found = []
    for item in map(_mapping, items):
        is_answer = item.get("role") == "assistant" or item.get("type") in _ASKED
        found += [str(item[key]) for key in ("id", "call_id") if is_answer and _real(item.get(key))]
    return found[::-1]


def last_answer(items: Iterable[Any]) -> Message | None:
    """The newest message of a model in a history."""
    read = [placed.message for placed in messages_of(items) if placed.message.role == "assistant"]
    return read[-1] if read else None


class _Reader:
    """Puts together what belongs together."""

    def __init__(self, named: bool, chain: str) -> None:
        self._named = named
        self._chain = chain
        self._found: list[Placed] = []
        self._names: dict[str, str] = {}
        self._words: list[str] = []
        self._calls: list[Call] = []
        self._places: list[int] = []
        self._id: str | None = None

    def read(self, place: int, item: Item) -> None:
        kind = item.get("type") or "message"
        role = _ROLES.get(str(item.get("role")))
        if kind == "message" and role is not None:
            self._end_answer()
            self._add(Message(role=role, text=_words(item.get("content")), id=_real(item.get("id"))), (place,))
        elif kind == "message":
            self._answer(place, words=_words(item.get("content")), id=_real(item.get("id")))
        elif kind in _ASKED:
            self._answer(place, call=self._call(kind, item), id=None)
        elif kind == "reasoning":
            self._answer(place)
        elif kind in _HOSTED:
            self._add(_hosted(kind, item), (place,))
        elif kind.endswith("_output"):
            self._end_answer()
            call_id = str(item.get("call_id") or "")
            name = self._names.get(call_id) or kind.removesuffix("_output").removesuffix("_call")
            self._add(Message(role="tool", text=text_of(item.get("output")), call_id=call_id, name=name), (place,))

    def read_all(self) -> list[Placed]:
        self._end_answer()
        return self._found

    def _call(self, kind: str, item: Item) -> Call:
        id = str(item.get("call_id") or item.get("id") or "")
        name = str(item.get("name") or kind.removesuffix("_call"))
        self._names[id] = name
        return Call(id=id, name=name, arguments=arguments_of(item.get(_ASKED[kind])))

    def _answer(self, place: int, *, words: str = "", call: Call | None = None, id: str | None = None) -> None:
        self._places.append(place)
        self._words += [words] if words else []
        self._calls += [] if call is None else [call]
        self._id = self._id or id

    def _end_answer(self) -> None:
        if self._words or self._calls or self._id:
            text = "\n".join(self._words)
            message = Message(role="assistant", text=text, id=self._id, calls=tuple(self._calls))
            self._add(message, tuple(self._places))
        self._words, self._calls, self._places, self._id = [], [], [], None

    def _add(self, message: Message, places: tuple[int, ...]) -> None:
        asked = ",".join(call.id for call in message.calls)
        known = asked or message.call_id or message.id
        if self._named:
            made = "\x1f".join((self._chain, message.role, message.text, asked))
            derived = hashlib.sha256(made.encode("utf-8", "replace")).hexdigest()[:24]
            if message.id is None and message.role in {"user", "assistant"}:
                message = msgspec.structs.replace(message, id=derived)
            self._chain = known or derived
        self._found.append(Placed(message, places, self._chain))


def arguments_of(given: Any) -> Mapping[str, Any] | str:
    """Arguments as they can be looked into; a text where they are no JSON object."""
    if isinstance(given, Mapping):
        return given
    text = given if isinstance(given, str) else text_of(given)
    try:
        parsed = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return text
    return parsed if isinstance(parsed, dict) else text


def _hosted(kind: str, item: Item) -> Message:
    name = str(item.get("name") or kind.removesuffix("_call"))
    told = item.get("output") if kind == "mcp_call" else None
    if told is None:
        told = {key: value for key, value in item.items() if key not in {"id", "type", "status"} and value is not None}
    return Message(
        role="tool", text=text_of(told), call_id=str(item.get("id") or ""), name=name, error=bool(item.get("error"))
    )


def _words(content: Any) -> str:
    """The words of a message; a refusal is words, too."""
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = [_mapping(part) for part in content]
        return text_of([part["refusal"] if part.get("type") == "refusal" else part for part in parts])
    return text_of(content)


def _mapping(item: Any) -> Item:
    if isinstance(item, Mapping):
        return item
    dump = getattr(item, "model_dump", None)
    return dump(exclude_unset=True) if callable(dump) else {"type": "unknown"}


def _real(id: Any) -> str | None:
    """An id that a provider gave; some models have one and the same for everything."""
    return id if isinstance(id, str) and id and id != FAKE_RESPONSES_ID else None


# What is withheld ----------------------------------------------------------------------------------------------


def with_withheld(items: Sequence[Any], withheld: Mapping[int, str]) -> list[Any]:
    """The items, with these texts in the places of what is withheld. None is dropped: a result without its call, or a
    call without its result, is refused by the providers of models.
    """
    return [
        _redacted(dict(_mapping(item)), withheld[place]) if place in withheld else item
        for place, item in enumerate(items)
    ]


def _redacted(item: dict[str, Any], text: str) -> dict[str, Any]:
    kind = item.get("type") or "message"
    if kind == "message":
        is_list = item.get("role") == "assistant" and not isinstance(item.get("content"), str)
        part = {"type": "output_text", "text": text, "annotations": []}
        return item | {"content": [part] if is_list else text}
    if kind == "reasoning":
        return {key: value for key, value in item.items() if key != "content"} | {"summary": []}
    if kind in {"function_call", "mcp_approval_request"}:
        return item | {"arguments": "{}"}
    if kind == "custom_tool_call":
        return item | {"input": ""}
    if kind == "computer_call_output":
        return item | {"output": {"type": "computer_screenshot"}}
    if kind == "shell_call_output":
        outcome = {"type": "exit", "exit_code": 0}
        return item | {"output": [{"stdout": text, "stderr": "", "outcome": outcome}]}
    if kind.endswith("_output") or kind == "mcp_call":
        return item | {"output": text}
    return {key: value for key, value in item.items() if key not in {"results", "outputs", "result"}}
