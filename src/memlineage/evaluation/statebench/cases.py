"""Timelines of StateBench as a memory meets them: what is said, what is written, what is asked.

The rule by which data become acts is the same for every case and every memory:

- an initial fact and each entry of a `state_write` or `supersession` is a *write*, dated by the data, by whom the data
  say: `user` is the user, `system` and `policy` are the system, a `tool` or an `agent` itself, all else external;
- an entry of the initial environment is a write by the system; the `now` of it is the clock's affair;
- `supersedes` names an earlier write by id or key, and a write for a key that its layer holds already replaces that;
- a write that begins with `[INVALIDATED` is how the data say that the write it supersedes was wrong: the memory is told
  so, and the sentence itself, which repeats what was wrong, is not kept;
- `depends_on` is what the write was derived from. Nothing is derived from words, and no case is treated by itself;
- a conversation turn is a message by its speaker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

__all__ = ["TRACKS", "Act", "Ask", "Case", "Say", "Write", "read_cases"]

TRACKS: Final = (
    "supersession",
    "dependency_chain",
    "repair_propagation",
    "environmental_freshness",
    "commitment_durability",
    "authority_hierarchy",
    "causality",
    "brutal_realistic",
    "supersession_detection",
)
"""Tracks about the state of a memory. The others ask who may see what (`scope_leak`, `scope_permission`,
`enterprise_privacy`: here a matter of walls, which the data do not draw), what a model makes up
(`hallucination_resistance`) and what it attends to (`interruption_resumption`)."""

FILES: Final = ("dev.jsonl", "test.jsonl", "train.jsonl", "sbg_dependency_chain.jsonl", "sbg_repair_propagation.jsonl")
_VOID: Final = "[INVALIDATED"
_CREATORS: Final = {"user": "user:u1", "system": "system", "policy": "system"}
_OWN: Final = frozenset({"tool", "agent"})


class Say(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of the conversation."""

    at: datetime
    creator: str
    text: str


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """Something written into the state.

    Attributes:
        at: when.
        name: its id in the data.
        layer: where in the state.
        key: what it is a value of.
        creator: whose word it is.
        text: what it says.
        supersedes: id or key of what it replaces.
        depends_on: ids of what it was derived from.
        void: whether all it says is that what it supersedes was wrong.
    """

    at: datetime
    name: str
    layer: str
    key: str
    creator: str
    text: str
    supersedes: str | None = None
    depends_on: tuple[str, ...] = ()
    void: bool = False


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A question, with what must and what must not reach whoever answers it."""

    at: datetime
    text: str
    must: tuple[str, ...]
    must_not: tuple[str, ...]


Act = Say | Write | Ask


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A timeline."""

    name: str
    track: str
    acts: tuple[Act, ...]


def read_cases(folder: Path) -> Iterator[Case]:
    """Every timeline of the tracks, in the order of the files."""
    for name in FILES:
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            found = msgspec.json.decode(line)
            if found["track"] in TRACKS:
                yield Case(name=found["id"], track=found["track"], acts=tuple(_acts(found)))


def _acts(found: Mapping[str, Any]) -> Iterator[Act]:
    state = found["initial_state"]
    start = _time(state["environment"]["now"])
    for fact in state["persistent_facts"]:
        yield _write(fact, "persistent_facts", _time(fact["ts"]))
    for key, value in state["environment"].items():
        if key != "now":
            yield Write(at=start, name=f"environment.{key}", layer="environment", key=key, creator="system", text=value)
    for event in found["events"]:
        at = _time(event["ts"])
        match event["type"]:
            case "conversation_turn":
                speaker = "user:u1" if event["speaker"] == "user" else "agent:assistant"
                yield Say(at=at, creator=speaker, text=event["text"])
            case "state_write" | "supersession":
                yield from (_write(entry, entry["layer"], at) for entry in event["writes"])
            case "query":
                truth = event["ground_truth"]
                must, must_not = tuple(truth["must_mention"]), tuple(truth["must_not_mention"])
                yield Ask(at=at, text=event["prompt"], must=must, must_not=must_not)


def _write(entry: Mapping[str, Any], layer: str, at: datetime) -> Write:
    kind = entry["source"]["type"]
    creator = (
        f"{kind}:{entry['source']['identity'] or 'data'}" if kind in _OWN else _CREATORS.get(kind, "external:data")
    )
    return Write(
        at=at,
        name=entry["id"],
        layer=layer,
        key=entry["key"],
        creator=creator,
        text=entry["value"],
        supersedes=entry["supersedes"],
        depends_on=tuple(entry["depends_on"]),
        void=bool(entry["supersedes"]) and entry["value"].startswith(_VOID),
    )


def _time(text: str) -> datetime:
    """The data name no zone; all of them are read as UTC."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
