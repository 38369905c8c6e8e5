"""Facts out of dialogue (row E5): what a message states becomes units with a subject and a key, which hang on it.

A statement about a property replaces the earlier ones about the same property, since units that declare a subject and a
key compete for being current. A statement that takes a property back retracts what was stated of it before. Extracting
from the same message again adds nothing.

What an extractor finds in the speaker's own words (`verbatim`) is his word. What a model made of them is the model's
(`reasoning`), and neither stands above the message.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any, Final

from memlineage.capture.recorder import Heard
from memlineage.capture.statements import Extractor, Statement
from memlineage.engine.capturing import permitted
from memlineage.engine.scope import Scope
from memlineage.engine.strangers import ask
from memlineage.errors import InvalidInputError, PolicyViolationError
from memlineage.model.unit import Unit

__all__ = ["extract", "extracting"]

_LOG: Final = logging.getLogger(__name__)
_KINDS: Final = ("fact", "preference", "constraint", "goal")
_MARK: Final = "statement"
_EARLIER: Final = 500
"""Statements of before that an extractor is told of, the newest."""
_SECONDS: Final = 60.0


def extract(scope: Scope, message: Unit, extractor: Extractor, *, seconds: float = _SECONDS) -> list[Unit]:
    """The facts that a message states, stored in that scope.

    Args:
        scope: whose memory.
        message: what was said.
        extractor: rules (`RuleExtractor()`), a model of yours (`ModelExtractor(ask)`), or any function like these.
        seconds: how long it may take.

    Returns:
        A unit for each statement that was kept, in the order of the text; of what is taken back, none.

    Raises:
        InvalidInputError: the extractor failed, took too long, or gave something else; nothing was written.
    """
    speaker = message.creator.partition(":")[2] or message.creator
    earlier = [] if message.creator.startswith("external:") else _earlier(scope, message)
    answer = ask(
        lambda: list(extractor(message.content, speaker=speaker, earlier=[one for _, one in earlier])), seconds=seconds
    )
    if answer.error is not None:
        raise InvalidInputError(f"the extractor failed on {message.ref}: {answer.error}")
    statements: list[Any] = answer.value
    odd = next((one for one in statements if not isinstance(one, Statement)), None)
    if odd is not None:
        raise InvalidInputError(f"the extractor gave {odd!r:.80}; it has to give Statements")
    creator = permitted(scope, message.creator) if getattr(extractor, "verbatim", False) else "reasoning"
    kept = []
    for place, statement in enumerate(statements):
        if statement.retracts:
            _take_back(scope, message, statement)
        else:
            kept.append(_keep(scope, message, statement, creator, place))
    return kept


def extracting(extractor: Extractor, *, seconds: float = _SECONDS) -> Heard:
    """What `Recorder(on_heard=…)` takes: extract from everything that a user says. A failure is logged, and the message
    stays as it was recorded.
    """

    def heard(scope: Scope, message: Unit) -> None:
        try:
            extract(scope, message, extractor, seconds=seconds)
        except (InvalidInputError, PolicyViolationError):
            _LOG.exception("nothing could be extracted from %s", message.ref)

    return heard


def _earlier(scope: Scope, message: Unit) -> list[tuple[Unit, Statement]]:
    """What is current of what was stated before, oldest first."""
    units = scope.list(filter={"kind": {"in": list(_KINDS)}})
    stated = [(unit, _statement(unit)) for unit in units if unit.ref != message.ref]
    return [(unit, one) for unit, one in stated if one is not None][-_EARLIER:]


def _statement(unit: Unit) -> Statement | None:
    mark = unit.metadata.get(_MARK)
    if not isinstance(mark, dict):
        return None
    value = mark.get("value")
    kind: Any = unit.kind
    return Statement(
        content=unit.content, subject=unit.subject, key=unit.key, kind=kind,
        value=value if isinstance(value, str) else None,
    )  # fmt: skip


def _keep(scope: Scope, message: Unit, statement: Statement, creator: str, place: int) -> Unit:
    named = "\x1f".join((str(message.ref), str(place), statement.content, creator))
    return scope.store(
        statement.content, creator=creator, kind=statement.kind, subject=statement.subject, key=statement.key,
        confidence=statement.confidence, valid_to=statement.valid_to,
        depends_on=[message], metadata={_MARK: {"value": statement.value}},
        idempotency_key="extract:" + hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:40],
    )  # fmt: skip


def _take_back(scope: Scope, message: Unit, statement: Statement) -> None:
    """Retract all that was stated of a property before this message."""
    if statement.subject is None or statement.key is None:
        return
    about = {"subject": statement.subject, "key": statement.key}
    stated = [unit for status in ("active", "superseded") for unit in scope.list(filter=about, status=status)]
    for unit in stated:  # all of them are known before the first goes: the one before it would take its place
        if unit.lineage.recorded_at <= message.lineage.recorded_at and _MARK in unit.metadata:
            scope.retract(unit, reason=f"taken back in {message.ref}")
