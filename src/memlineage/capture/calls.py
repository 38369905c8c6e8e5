"""One tool call of an agent: authorized if policy has anything to say of it, run by the framework, recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from memlineage.capture.messages import Call, Message, clean
from memlineage.capture.recorder import current_call
from memlineage.engine.capturing import CapturedCall, begin, concerned, limit_of, permitted, voice
from memlineage.engine.frames import Frame, apart
from memlineage.engine.running import Begun
from memlineage.errors import InvalidInputError, PolicyViolationError
from memlineage.lineage.escape import shorten
from memlineage.model.content import MAX_NAME
from memlineage.model.unit import Unit
from memlineage.policy import Decision, Effect

if TYPE_CHECKING:
    from memlineage.capture.conversation import Conversation
    from memlineage.engine.scope import Scope

__all__ = ["ToolCall"]

_MATCHED_TEXT: Final = 8
"""Characters from which a text handed to a tool is recognised when somebody else says it."""


class ToolCall:
    """One call of a tool, from being asked for to being answered.

    `permit`, then `inside` around the run, then `returned` or `failed`. A framework that tries again calls `inside` and
    `failed(…, final=False)` as often as it tries.

    Attributes:
        conversation: in which it was asked for.
        call: what was asked for.
        step: the step that asked; None where nothing was recorded before it.
        agent: whose call it is.
        unit: what was recorded of it, once it was.
    """

    def __init__(self, conversation: Conversation, call: Call, step: Unit | None, *, agent: str | None = None) -> None:
        self.conversation = conversation
        self.call = call
        self.step = step
        self.agent = agent or conversation.agent
        self.unit: Unit | None = None
        self._tool = permitted(conversation.scope, conversation.principal("tool", call.name))
        self._begun: Begun | None = None
        self._captured: CapturedCall | None = None
        self._failure: BaseException | str | None = None
        self._started_ns = time.time_ns()
        self._given = frozenset(_texts(call.arguments))

    @property
    def frame(self) -> Frame:
        """What runs inside belongs to it."""
        return self._capture().frame

    def was_given(self, text: str) -> bool:
        """Whether it was called with this text."""
        return len(text) >= _MATCHED_TEXT and text in self._given

    # Before ----------------------------------------------------------------------------------------------------

    def permit(self) -> str | None:
        """None if it may run; else what to tell the model instead of running it. The refusal is recorded."""
        if not self._gated():
            return None
        try:
            if not isinstance(self.call.arguments, Mapping):
                raise InvalidInputError(f"the arguments of {self.call.name} are no JSON object")
            grounds = [] if self.step is None else [self.step.ref]
            with apart():
                self._begun = begin(
                    self._voice(), self.call.name, self.call.arguments, grounds, call=self.call.id
                )  # fmt: skip
        except PolicyViolationError as refused:
            decision = refused.decision
            assert isinstance(decision, Decision)
            return self._refused(decision)
        except InvalidInputError as bad:
            return self.failed(bad)
        return None

    @property
    def authorized(self) -> bool:
        """Whether it was permitted, as it was asked for, and runs."""
        return self._begun is not None

    def _gated(self) -> bool:
        gate = self.conversation.recorder.gate
        if gate == "policy":
            return concerned(self.conversation.scope, self.call.name)
        return gate == "all" if isinstance(gate, str) else self.call.name in gate

    def _refused(self, decision: Decision) -> str:
        """What the model is told has the values; what is recorded has not, lest a refusal supports what it refused."""
        missing = [support.argument for support in decision.support if not support.supported]
        about = f" for {', '.join(missing)}" if missing else ""
        asks = decision.effect is Effect.ASK
        verdict = "awaits approval" if asks else "was refused"
        self._record(
            f"{self.call.name} [{self.call.id}] {verdict} by {decision.rule}{about}", "refusal",
            metadata={"decision": decision.id, "effect": decision.effect.value, "arguments": missing},
        )  # fmt: skip
        reasons = "; ".join(shorten(reason, 300) for reason in decision.reasons) or "policy does not allow it"
        cure = (
            "A person has to approve exactly this call first."
            if asks
            else "Use values that the user or a trusted source stated, or ask the user."
        )
        return f"{self.call.name} {verdict} and did not run: {reasons}. {cure}"

    # While it runs ---------------------------------------------------------------------------------------------

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Around the run: what is read, written or concluded inside goes into what the tool answers."""
        captured = self._capture()
        recorder, before = self.conversation.recorder, current_call.get()
        recorder.opened(self)
        current_call.set(self)
        try:
            with captured:
                yield
        finally:
            current_call.set(before)
            recorder.closed(self)

    # After -----------------------------------------------------------------------------------------------------

    def returned(self, text: str, *values: Any) -> str | None:
        """It answered. None, or what to tell the model instead, where policy does not let the answer be kept.

        Args:
            text: the answer as the model will see it.
            values: the same as the program sees it; recognised when it is handed on to a tracked function.
        """
        begun, self._begun = self._begun, None
        if begun is not None:
            with apart():
                self._answered(begun.ended("done", text), text)
            return None
        try:
            self._record(text, "observation", *values)
        except PolicyViolationError as refused:
            return f"What {self.call.name} answered cannot be used: {refused}"
        return None

    def failed(self, error: BaseException | str, *, final: bool = True) -> str:
        """It failed, and this is what to tell the model, unless the framework tries again or says it its own way.

        The same error is recorded once. The model has seen it when a message under this call's id is shown to it,
        however that is worded.
        """
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        failure = None if isinstance(error, str) else type(error).__name__
        begun = self._begun
        if begun is not None and final:
            self._begun = None
            with apart():
                self._answered(begun.ended("failed"), text, failure=failure)
        elif error is not self._failure:
            self._record(f"{self.call.name} failed: {text}", "error", shown=False, failure=failure)
        self._failure = error
        return f"{self.call.name} failed: {text}"

    def abandoned(self) -> None:
        """Nobody waits for it any more: it was cancelled, or the run was interrupted."""
        begun, self._begun = self._begun, None
        if begun is not None:
            with apart():
                self._answered(begun.ended("failed"), f"{self.call.name} was abandoned")

    def overheard(self, message: Message) -> Unit:
        """Its answer, of which only the message is known."""
        self._record(message.text, "error" if message.error else "observation")
        assert self.unit is not None
        return self.unit

    # Records ---------------------------------------------------------------------------------------------------

    def _voice(self, *, shown: bool = True) -> Scope:
        conversation = self.conversation
        agent = conversation.principal("agent", self.agent)
        return voice(conversation.scope, agent, conversation.exposure if shown else None, tool=self._tool)

    def _capture(self) -> CapturedCall:
        if self._captured is None:
            self._captured = CapturedCall(self._voice(), self.call.name, {}, self.step)
        return self._captured

    def _record(
        self, text: str, kind: str, *values: Any, shown: bool = True, failure: str | None = None, **options: Any
    ) -> None:
        conversation = self.conversation
        text = clean(text, limit_of(conversation.scope), f"{self.call.name} returned nothing")
        scope = self._voice(shown=shown)
        options |= {
            "creator": self._tool, "kind": kind, "creator_id": clean(self.call.id, MAX_NAME, "unnamed"),
            "arguments": None if self.step is None else [self.step],
            "idempotency_key": conversation.key_of(kind, self.call.id, text, self._tool),
        }  # fmt: skip
        with apart():
            unit = self._capture().answered(scope, text, options, values)
        self._answered(unit, text, failure=failure)

    def _answered(self, unit: Unit, text: str, *, failure: str | None = None) -> None:
        self.unit = unit
        message = Message(role="tool", text=text, call_id=self.call.id, name=self.call.name)
        self.conversation.answered(message, unit, started_ns=self._started_ns, failure=failure)


def _texts(value: Any) -> Iterator[str]:
    """Every text in the arguments of a call."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
