"""One immutable generation of policy: what all documents say together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Self

import msgspec

from memlineage.model.counts import count_of
from memlineage.model.principal import Integrity
from memlineage.policy.kinds import INTEGRITY_NAMES
from memlineage.policy.language.document import Document
from memlineage.policy.language.faults import Fault, refuse
from memlineage.policy.language.rules import fields_of
from memlineage.policy.rule import CAUSING, Mode, Rule, SensitiveAction, Verb

__all__ = ["PolicySet"]

_STRICTEST_FIRST: Final = ("never", "always", "unsupported")


class PolicySet(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What is in force. Reloading makes another one; nobody changes this one.

    Attributes:
        rules: of all layers, sorted: priority, layer, name.
        principals: registered levels; the lowest where documents differ.
        verifiers: patterns of registered verifiers.
        sensitive: what the gate checks, by tool; the strictest of all documents.
        quorum: independent supports that raise integrity, the most that a document asks for; None for off.
        revision: SHA-256 of the content; neither order nor layout of the documents matters.
    """

    rules: tuple[Rule, ...]
    principals: Mapping[str, Integrity]
    verifiers: tuple[str, ...]
    sensitive: Mapping[str, SensitiveAction]
    quorum: int | None
    revision: str

    @classmethod
    def of(cls, *documents: Document) -> Self:
        """The set that these documents make. Raises `PolicyDocumentError` if they contradict each other."""
        rules = tuple(sorted((rule for document in documents for rule in document.rules), key=lambda rule: rule.order))
        quorum = max((document.quorum for document in documents if document.quorum), default=None)
        refuse([*_doubles(rules), *(_moved_by_quorum(rules) if quorum else ())])
        levels: dict[str, Integrity] = {}
        for principal, level in (item for document in documents for item in document.principals.items()):
            levels[principal] = min(level, levels.get(principal, level))
        verifiers = tuple(sorted({verifier for document in documents for verifier in document.verifiers}))
        sensitive = _merged(action for document in documents for action in document.sensitive)
        return cls(
            rules=rules,
            principals=MappingProxyType(levels),
            verifiers=verifiers,
            sensitive=MappingProxyType(sensitive),
            quorum=quorum,
            revision=_revision(rules, levels, verifiers, sensitive, quorum),
        )

    def chosen(self, picks: Callable[[Rule], bool]) -> tuple[Rule, ...]:
        """The rules that a function picks, in order. It is asked once of each rule and must look at nothing else."""
        known = self._chosen.get(picks)
        if known is None:
            known = self._chosen[picks] = tuple(rule for rule in self.rules if picks(rule))
        return known

    @cached_property
    def by_request(self) -> Mapping[str, tuple[Rule, ...]]:
        """The rules that name each request, in order."""
        return {verb: tuple(rule for rule in self.rules if verb in rule.on) for verb in Verb}

    @cached_property
    def _chosen(self) -> dict[Callable[[Rule], bool], tuple[Rule, ...]]:
        return {}

    def kept(self) -> bytes:
        """The set as bytes, so that whoever opens a store without documents goes by the ones it was filled under.

        Places in documents are left out, as they are from the revision: the documents need not be there any more.
        """
        return self._written(_placeless(self.rules))

    def is_kept_as(self, data: bytes) -> bool:
        """Whether these bytes, which it was read from, are what `kept` gave, now or when it still kept places, and the
        content is the one that the revision names: what is kept may have been changed.
        """
        content = (dict(self.principals), self.verifiers, dict(self.sensitive), self.quorum)
        genuine = self.revision == _revision(self.rules, *content)
        return genuine and data in (self.kept(), self._written(self.rules))

    def _written(self, rules: tuple[Rule, ...]) -> bytes:
        return msgspec.json.encode(
            _Kept(
                rules=rules, principals=dict(self.principals), verifiers=self.verifiers,
                sensitive=dict(self.sensitive), quorum=self.quorum, revision=self.revision,
            )
        )  # fmt: skip

    @classmethod
    def from_kept(cls, data: bytes) -> Self:
        """What `kept` gave. Raises `msgspec.DecodeError` for anything else."""
        found = msgspec.json.decode(data, type=_Kept)
        return cls(
            rules=found.rules, principals=MappingProxyType(found.principals), verifiers=found.verifiers,
            sensitive=MappingProxyType(found.sensitive), quorum=found.quorum, revision=found.revision,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<PolicySet {self.revision[:12]} of {count_of(len(self.rules), 'rule')}>"


def _placeless(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(msgspec.structs.replace(rule, place=None) for rule in rules)


def _revision(
    rules: Iterable[Rule],
    principals: Mapping[str, Integrity],
    verifiers: tuple[str, ...],
    sensitive: Mapping[str, SensitiveAction],
    quorum: int | None,
) -> str:
    content = {
        "principals": principals,
        "quorum": quorum,
        "rules": _placeless(rules),
        "sensitive": sensitive,
        "verifiers": verifiers,
    }
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    rules: tuple[Rule, ...]
    principals: dict[str, Integrity]
    verifiers: tuple[str, ...]
    sensitive: dict[str, SensitiveAction]
    quorum: int | None
    revision: str


def _fault(rule: Rule, code: str, message: str) -> Fault:
    place = rule.place
    if place is None:
        return Fault(source="<python>", line=0, column=0, path=rule.name, code=code, message=message)
    return Fault(source=place.source, line=place.line, column=place.column, path=place.path, code=code, message=message)


def _doubles(rules: tuple[Rule, ...]) -> Iterable[Fault]:
    seen: dict[tuple[Any, ...], Rule] = {}
    late: dict[str, Rule] = {}
    for rule in rules:
        other, why = seen.setdefault((rule.layer, rule.name), rule), ""
        if other is rule and rule.mode is Mode.ASYNC:
            other, why = late.setdefault(rule.name, rule), " in async mode, and what such rules find is kept by name"
        if other is not rule:
            where = other.place.source if other.place else "another document"
            message = f"rule {rule.name!r} of layer {rule.layer} also stands in {where}{why}; rename one of them"
            yield _fault(rule, "duplicate_name", message)


def _moved_by_quorum(rules: tuple[Rule, ...]) -> Iterable[Fault]:
    """With a quorum, integrity changes as the graph does (semantics.md, section 11)."""
    for rule in rules:
        read = {field.path for field in fields_of(rule.condition)} & INTEGRITY_NAMES
        if rule.action in CAUSING and read:
            message = f"with a quorum, a rule that reads {', '.join(sorted(read))} only withholds, flags or denies"
            yield _fault(rule, "quorum_sets_cause", message)


def _merged(actions: Iterable[SensitiveAction]) -> dict[str, SensitiveAction]:
    merged: dict[str, SensitiveAction] = {}
    for action in actions:
        known = merged.get(action.tool)
        merged[action.tool] = action if known is None else _stricter(known, action)
    return merged


def _stricter(one: SensitiveAction, two: SensitiveAction) -> SensitiveAction:
    constants: dict[str, tuple[Any, ...]] = {}
    for argument in set(one.arguments) | set(two.arguments):
        # A document that says nothing about an argument allows no constant for it and forbids none.
        said = [action.constants.get(argument, ()) for action in (one, two) if argument in action.arguments]
        common = tuple(value for value in said[0] if all(value in values for values in said[1:]))
        if common:
            constants[argument] = tuple(sorted(common, key=repr))
    return SensitiveAction(
        tool=one.tool,
        arguments=tuple(sorted({*one.arguments, *two.arguments})),
        integrity=max(Integrity[one.integrity], Integrity[two.integrity]).name,
        approval=min(one.approval, two.approval, key=_STRICTEST_FIRST.index),
        constants=constants,
    )
