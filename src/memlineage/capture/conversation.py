"""One conversation: who said what in it, what was shown to whom, and which step asked for which tool."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from memlineage.capture.calls import ToolCall
from memlineage.capture.messages import Call, Message, Reply, clean, kept_calls, spelled_calls
from memlineage.capture.recorder import Recorded, Recorder, current_call
from memlineage.engine.capturing import Exposure, judged, limit_of, permitted, recorded, voice
from memlineage.engine.frames import Frame, apart, around, implied_parents
from memlineage.engine.scope import Scope
from memlineage.model.content import MAX_NAME
from memlineage.model.ids import Ref
from memlineage.model.unit import Unit

if TYPE_CHECKING:
    from memlineage.capture.attribution import Attributor

__all__ = ["Conversation", "Turn", "branched", "caught_up"]


class Conversation:
    """What adapters write into; see `memlineage.capture.recorder`. Safe to share between threads and tasks.

    Attributes:
        recorder: whose it is.
        thread: the framework's id of it, if it has one.
        agent: who answers in it, unless a step says otherwise.
        within: the tool call in which it runs: then nobody in it is the user.
        exposure: what its models were shown.
        last: the newest step.
    """

    def __init__(self, recorder: Recorder, thread: str | None, agent: str, within: ToolCall | None) -> None:
        self.recorder = recorder
        self.thread = thread
        self.agent = agent
        self.within = within
        self.exposure = Exposure()
        self.last: Unit | None = None
        self.lock = threading.RLock()
        self._nested = current_call.get() is not None or within is not None
        self._known: dict[str, Ref] = {}
        self._steps: dict[str, Unit] = {}
        self._chained: Ref | None = None
        self._since: dict[Ref, Unit] = {}
        self._unseen: dict[Ref, None] = {}
        self._frames: WeakSet[Frame] = WeakSet()  # it may outlive what ran it

    # Who speaks ------------------------------------------------------------------------------------------------

    @property
    def scope(self) -> Scope:
        """Where it is recorded."""
        return self.recorder.scope

    def principal(self, kind: str, name: str) -> str:
        """A principal by the name that a framework gives it."""
        return f"{kind}:{clean(name, MAX_NAME, 'unnamed')}"

    def voice(self, agent: str | None = None, *, tool: str | None = None) -> Scope:
        """The scope in which its agent speaks: what is read in it counts as shown to the model."""
        return voice(self.scope, self.principal("agent", agent or self.agent), self.exposure, tool=tool)

    # What came in ----------------------------------------------------------------------------------------------

    def heard(self, messages: Sequence[Message], *, root: bool = True) -> None:
        """A run starts with these messages. What comes after the last answer in them is new; what comes before is
        history, and recognised where it was recorded.

        `root` is whether they come from outside: not where the run is part of another, which cannot be seen from here.
        """
        with self.lock:
            self._join_frame()
            answers = [place for place, message in enumerate(messages) if message.role == "assistant"]
            new_from = answers[-1] + 1 if answers else 0
            for place, message in enumerate(messages):
                if message.role == "user" and self._find(message, history=place < new_from) is None:
                    self._hear(message, root)

    def _join_frame(self) -> None:
        """What tracks the run hangs on how it ends; what is around it is part of what the model goes by."""
        core = self.scope._parts.core
        frame = self.within.frame if self.within is not None else around(core)
        if frame is not None:
            self._frames.add(frame)
            frame.unfinished[self] = None
        if self.within is None:
            goals = implied_parents(core, self.scope._acting.scope)
            self.exposure.show(ref for ref in goals if not self.exposure.ever(ref))

    def settle(self) -> None:
        """Whoever tracks the run hangs on its last step, and on what came after that (`frames.Unfinished`)."""
        with self.lock:
            tip = [*self._since.values(), *([] if self.last is None else [self.last])]
        for frame in self._frames:
            frame.take(tip)

    def _hear(self, message: Message, root: bool) -> Unit:
        """A message from outside; from the agent that called, where this runs for one."""
        started = time.time_ns()
        caller = self.within or self.recorder.asking(message.text)
        if caller is not None:
            unit = self._told_by(caller, message)
        elif self._nested:  # for an agent of another memory: what it goes by cannot be seen from here
            unit = self._write(message.text, voice(self.scope, "agent:elsewhere", None), id=message.id)
        elif not root:
            unit = self._write(message.text, self.scope, creator="external:user", id=message.id)
        else:
            user = self.scope._acting.scope.user
            claimed = "external:user" if user is None else permitted(self.scope, f"user:{user}")
            unit = self._write(message.text, self.scope, creator=claimed, id=message.id)
        self._unseen[unit.ref] = None
        self._remember(message, unit.ref)
        self._tell("heard", unit, started)
        if unit.creator.startswith("user:") and self.recorder.on_heard is not None:
            self.recorder.on_heard(self.scope, unit)
        return unit

    def _told_by(self, caller: ToolCall, message: Message) -> Unit:
        step = caller.step
        speaker = voice(self.scope, caller.conversation.principal("agent", caller.agent), None)
        parents: dict[str, Any] = {} if step is None else {"depends_on": [step]}
        return self._write(message.text, speaker, id=message.id, **parents)

    # What a model is shown ---------------------------------------------------------------------------------------

    def shown(
        self,
        messages: Sequence[Message],
        *,
        agent: str | None = None,
        model: str | None = None,
        instructions: str | None = None,
    ) -> Turn:
        """A model is about to be called with these messages. What of them was never recorded is now: nobody in the
        middle of a run is the user.
        """
        with self.lock:
            refs = self.see(messages)
            redacted = self._redacted(refs) if self.recorder.redact else {}
        return Turn(self, agent or self.agent, model, instructions, redacted)

    def see(self, messages: Sequence[Message]) -> dict[int, Ref]:
        """These are in front of a model, by place: what was recorded of them, and what is new is recorded now."""
        with self.lock:
            refs = {}
            for place, message in enumerate(messages):
                if message.role == "system":
                    continue
                ref = self._find(message, history=True) or self._overheard(message).ref
                self._unseen.pop(ref, None)
                if not self.exposure.ever(ref):
                    self.exposure.show([ref])
                refs[place] = ref
        return refs

    def _overheard(self, message: Message) -> Unit:
        """A message that nobody told of: one of a run in another process, a tool's that was not captured, or words that
        something put between.
        """
        started = time.time_ns()
        if message.role == "tool":
            name = message.name or "unnamed"
            call = ToolCall(self, Call(id=message.call_id or "", name=name), self._step_of(message.call_id))
            unit = call.overheard(message)
        elif message.role == "assistant":
            agent = message.name or self.agent
            unit = self._write(
                _step_text(message.text, message.calls), self.voice(agent), id=message.id,
                instead=f"{agent} said nothing",
                metadata={"calls": kept_calls(message.calls)} if message.calls else None,
            )  # fmt: skip
            self.exposure.wrote(unit.ref, self.exposure.seen())
            self._stepped(unit, message.calls)
        else:  # a template, perhaps, that has in it what came in
            self.exposure.show(self._unseen)
            self._unseen.clear()
            unit = self._write(message.text, self.voice(), id=message.id)
        self._remember(message, unit.ref)
        self._tell("heard", unit, started)
        return unit

    def _stepped(self, unit: Unit, calls: Sequence[Call]) -> None:
        """This is the newest step: what comes goes on from it, and these calls are its."""
        self.last = unit
        self._chained = unit.ref if unit.ref in self.exposure.seen() else None
        self._since.clear()
        self._steps.update((call.id, unit) for call in calls)

    def _redacted(self, refs: Mapping[int, Ref]) -> dict[int, str]:
        found = judged(self.scope, list(dict.fromkeys(refs.values())), critical=self.recorder.critical)
        redacted = {}
        for place, ref in refs.items():
            unit, decision = found.get(ref, (None, None))
            if unit is None or decision is None:
                redacted[place] = "[withheld: it cannot be seen from here any more]"
            elif not decision.allowed:
                redacted[place] = f"[withheld by {decision.rule}: it is {unit.status.value}; do not rely on it]"
        return redacted

    # What a model says -------------------------------------------------------------------------------------------

    def say(self, turn: Turn, reply: Reply) -> Unit:
        """The step that a model made of what it was shown."""
        with self.lock:
            text = _step_text(reply.text, reply.calls)
            speaker = self.voice(turn.agent)
            metadata: dict[str, Any] = {"calls": kept_calls(reply.calls)} if reply.calls else {}
            if turn.model is not None:
                metadata["model"] = clean(turn.model, MAX_NAME, "unnamed")
            unit = self._write(
                text, speaker, id=reply.id, instead=f"{turn.agent} said nothing", metadata=metadata or None,
                context=turn.instructions and {"instructions": clean(turn.instructions, limit_of(speaker), "…")},
                depends_on=self._premises(speaker, text),
            )  # fmt: skip
            self._stepped(unit, reply.calls)
            self._remember(Message(role="assistant", text=reply.text, id=reply.id, calls=reply.calls), unit.ref)
        self._tell("chat", unit, turn.started_ns, model=turn.model, agent=turn.agent)
        return unit

    def _premises(self, speaker: Scope, text: str) -> dict[Ref, float] | None:
        """What is new since the step before, weighed. That step itself stays a matter of exposure."""
        new = [ref for ref in self.exposure.seen() if ref != self._chained]
        attribute = self.recorder.attribution
        if attribute is None or not new:
            return dict.fromkeys(new, 1.0) or None
        return _weighed(attribute, speaker, text, new) or None

    # Tools -----------------------------------------------------------------------------------------------------

    def called(self, call: Call, *, agent: str | None = None) -> ToolCall:
        """A tool is about to be run: for the step that asked under this id, or else for the newest."""
        return ToolCall(self, call, self._step_of(call.id), agent=agent)

    def _step_of(self, call_id: str | None) -> Unit | None:
        """The step that asked for a call."""
        with self.lock:
            return self._steps.get(call_id or "", self.last)

    def knows(self, call_id: str) -> bool:
        """Whether a step of it asked for this call."""
        with self.lock:
            return call_id in self._steps

    def answered(self, message: Message, unit: Unit, *, started_ns: int, failure: str | None = None) -> None:
        """A tool answered, and its answer was recorded."""
        with self.lock:
            self._since[unit.ref] = unit
            self._remember(message, unit.ref)
        operation = "refused" if unit.kind == "refusal" else "execute_tool"
        self._tell(operation, unit, started_ns, name=message.name, call_id=message.call_id, failure=failure)

    # Records ---------------------------------------------------------------------------------------------------

    def key_of(self, role: str, id: str | None, text: str, creator: str) -> str | None:
        """The idempotency key of a message, by which another process finds it again; None where it has no name."""
        if self.thread is None or not id:
            return None
        named = "\x1f".join((self.thread, role, id, creator, text))
        return "capture:" + hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:40]

    def _write(
        self, text: str, scope: Scope, *, id: str | None, creator: str | None = None, instead: str = "…", **options: Any
    ) -> Unit:
        text = clean(text, limit_of(scope), instead)
        named = None if id is None else clean(id, MAX_NAME, "unnamed")
        key = self.key_of("message", id, text, creator or scope.actor)
        options |= {"creator": creator, "creator_id": named, "kind": "message", "idempotency_key": key}
        with apart():
            return recorded(scope, text, options)

    def _remember(self, message: Message, ref: Ref) -> None:
        for key in _keys(message):
            self._known[key] = ref

    def _find(self, message: Message, *, history: bool) -> Ref | None:
        """Where a message was recorded: by its id, or as the same words, where these can be meant."""
        keys = _keys(message) if history or message.id is None else _keys(message)[:1]
        if message.id is None and not history:
            return None
        return next((self._known[key] for key in keys if key in self._known), None)

    def _tell(self, operation: str, unit: Unit, started_ns: int, *, agent: str | None = None, **about: Any) -> None:
        if self.recorder.watched:
            recorded = Recorded(
                unit=unit, operation=operation, agent=agent or self.agent, thread=self.thread, started_ns=started_ns,
                ended_ns=time.time_ns(), **about,
            )  # fmt: skip
            self.recorder.tell(recorded)


def branched(
    conversation: Conversation, within: ToolCall | None, after: Message | None = None
) -> Conversation | None:  # fmt: skip
    """One that goes on from where that one is now, and leaves it as it is: histories may be gone on from twice.

    `within` is the tool call in which it goes on. None where `after` was never said in it: ids are not always unique.
    """
    with conversation.lock:
        if after is not None and conversation._find(after, history=True) is None:
            return None
        made = Conversation(conversation.recorder, conversation.thread, conversation.agent, within)
        made.exposure = conversation.exposure.copy()
        made.last, made._chained = conversation.last, conversation._chained
        made._known, made._steps = dict(conversation._known), dict(conversation._steps)
        made._since, made._unseen = dict(conversation._since), dict(conversation._unseen)
    return made


def caught_up(conversation: Conversation) -> None:
    """Whoever speaks next in it was shown all that was heard and answered so far: for hooks that see no prompt."""
    with conversation.lock:
        refs = [*conversation._unseen, *conversation._since]
        conversation._unseen.clear()
        conversation.exposure.show(ref for ref in refs if not conversation.exposure.ever(ref))


class Turn:
    """One call of a model.

    Attributes:
        agent: who answers.
        model: which model, if the framework says.
        instructions: its system prompt; kept once as the context of the step (row A3).
        redacted: by place in the prompt, what stands there instead of a message that may not be relied on any more.
    """

    def __init__(
        self,
        conversation: Conversation,
        agent: str,
        model: str | None,
        instructions: str | None,
        redacted: Mapping[int, str],
    ) -> None:
        self.agent = agent
        self.model = model
        self.instructions = instructions
        self.redacted = redacted
        self.started_ns = time.time_ns()
        self._conversation = conversation

    def saw(self, messages: Sequence[Message]) -> None:
        """The messages that reached the model after all, where something between may have added to them."""
        withheld = set(self.redacted.values())
        self._conversation.see([message for message in messages if message.text not in withheld])

    def said(self, reply: Reply) -> Unit:
        """What it answered, as a step that hangs on what was new to it."""
        return self._conversation.say(self, reply)


def _weighed(attribute: Attributor, scope: Scope, text: str, refs: Sequence[Ref]) -> dict[Ref, float]:
    from memlineage.capture.attribution import Shown, checked

    found = judged(scope, refs)
    shown = [Shown(ref=ref, content=found[ref][0].content) for ref in refs if ref in found]
    weights = checked(attribute, text, shown)
    return {ref: weights[ref] for ref in refs if ref in weights}


def _step_text(text: str, calls: Sequence[Call]) -> str:
    return "\n".join(part for part in (text.strip(), spelled_calls(calls) if calls else "") if part)


def _keys(message: Message) -> list[str]:
    """Names under which a message is found again, the surest first."""
    said = hashlib.blake2b(message.text.encode("utf-8", "replace"), digest_size=12).hexdigest()
    if message.role == "tool":
        return [f"tool:{message.call_id}:{said}", f"tool:{message.call_id}"]
    asked = ",".join(call.id for call in message.calls)
    words = f"{message.role}:{said}:{asked}"
    return [words] if message.id is None else [f"id:{message.id}:{words}", words]
