"""What a model had before it when it spoke, rebuilt from a transcript (semantics.md, sections 1 and 3).

A transcript says who spoke in which order, not what a model was given. The safe reading is all of it: a model's words
hang (role `exposed`) on every message of the same conversation since the model's word before, and on that word. That
word hangs on the ones before it, so that the whole conversation is reached by a chain, each message by one edge. What
a tool was called with are the model's words, so its output hangs on what the model had before it when it called,
unless the log says that the call had no arguments. Outputs of calls made together do not hang on one another.

So an untrusted page early in a log keeps everything that the model said later untrusted, as it would have live.

Both bounds keep that: a stretch without a word of the model is gathered by one unit in between as soon as it is as
long as a unit may have parents; conversations that wait while others go on lie in a temporary file.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import apsw
import msgspec

from memlineage.model.ids import Ref

__all__ = ["Conversations", "Talk"]

_AT_HAND: Final = 50_000  # refs and calls, some 10 MB
_OPEN_CALLS: Final = 1000


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A tool call that was not answered yet: the tool, and whether it was given arguments."""

    tool: str
    arguments: bool


class Talk(msgspec.Struct, frozen=True, array_like=True):
    """One conversation, as far as it has been read. Refs are kept as (id, version).

    Attributes:
        shown: what the model has before it: its last word and all since.
        asked: what it had before it when it last spoke or called, that word included; None before its first turn.
        calls: calls without an answer, by id.
        lost: how many lines of the file that could not be read it accounts for.
    """

    shown: tuple[tuple[str, int], ...] = ()
    asked: tuple[tuple[str, int], ...] | None = None
    calls: dict[str, Call] = {}
    lost: int = 0

    def heard(self, ref: Ref) -> Talk:
        """Somebody else said this."""
        return msgspec.structs.replace(self, shown=(*self.shown, (ref.id, ref.version)))

    def spoke(self, ref: Ref | None, calls: tuple[tuple[str, str, bool], ...], *, anew: bool = True) -> Talk:
        """The model said this, or nothing, and made these calls. What it merely repeated hangs on nothing of what came
        in between, so all of that is still before it.
        """
        said = () if ref is None else ((ref.id, ref.version),)
        shown = said if said and anew else (*self.shown, *said)
        made = {ident: Call(tool, arguments) for ident, tool, arguments in calls}
        waiting = dict(list({**self.calls, **made}.items())[-_OPEN_CALLS:])
        return Talk(shown, shown, waiting, self.lost)

    def gathered(self, ref: Ref) -> Talk:
        """This stands for all that was before the model."""
        return msgspec.structs.replace(self, shown=((ref.id, ref.version),))

    def answered(self, call: str | None) -> Talk:
        """That call has its answer."""
        if call is None or call not in self.calls:
            return self
        return msgspec.structs.replace(self, calls={k: v for k, v in self.calls.items() if k != call})

    def behind(self, call: str | None) -> tuple[Ref, ...]:
        """What the output of a call hangs on."""
        known = None if call is None else self.calls.get(call)
        if known is not None and not known.arguments:
            return ()
        return tuple(Ref(*ref) for ref in (self.shown if self.asked is None else self.asked))

    @property
    def size(self) -> int:
        """How many refs and calls it keeps."""
        return 1 + len(self.shown) + len(self.asked or ()) + len(self.calls)

    def tool(self, call: str | None) -> str | None:
        """Which tool was called."""
        known = None if call is None else self.calls.get(call)
        return None if known is None else known.tool


class Conversations:
    """The conversations of one file, however many there are and however they are interleaved."""

    def __init__(self) -> None:
        self._at_hand: OrderedDict[str, Talk] = OrderedDict()
        self._size = 0
        self._aside: apsw.Connection | None = None

    def get(self, name: str) -> Talk:
        """A conversation; a new one if it was not met before."""
        known = self._at_hand.get(name)
        if known is not None:
            return known
        if self._aside is None:
            return Talk()
        body = self._aside.execute("SELECT body FROM talk WHERE name = ?", (name,)).get
        return Talk() if body is None else msgspec.msgpack.decode(body, type=Talk)

    def put(self, name: str, talk: Talk) -> None:
        """Go on from here."""
        before = self._at_hand.pop(name, None)
        self._size += talk.size - (0 if before is None else before.size)
        self._at_hand[name] = talk
        if self._size > _AT_HAND:
            self._lay_aside()

    def _lay_aside(self) -> None:
        """Keep the half that was last gone on with."""
        if self._aside is None:
            self._aside = apsw.Connection("")  # a private file of SQLite's, gone when it is closed
            self._aside.execute("CREATE TABLE talk (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID")
        with self._aside:
            while self._size > _AT_HAND // 2 and len(self._at_hand) > 1:
                name, talk = self._at_hand.popitem(last=False)
                self._size -= talk.size
                self._aside.execute("INSERT OR REPLACE INTO talk VALUES (?, ?)", (name, msgspec.msgpack.encode(talk)))

    def close(self) -> None:
        """Let the file go."""
        if self._aside is not None:
            self._aside.close()
