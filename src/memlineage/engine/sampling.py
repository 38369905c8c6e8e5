"""Selective tracking: cheap calls in between may be left unwritten, and no path and no taint is lost by it (row A4).

A call that is left out is passed through: what it would have hung on goes to whoever called it and stands behind the
values that it returned, as where a call fails (`memlineage.engine.frames`). So everything that would have descended
from its unit descends from what that would have descended from. That comes to the same only if the unit would have
added nothing of its own. Whatever the share, a call is written where it does:

- *A source*: nothing known went into it, or who speaks in it is registered below TRUSTED, and so would have lowered all
  that follows. A tool that only computes is registered as TRUSTED; `reasoning` is by default. Levels are compared with
  the highest, not with the parents': these may be endorsed later. A model's own side is always written, for what it was
  shown goes into what it writes.
- *A key memory*: what binds later answers or was done; what is pinned, named by subject or key, has an end, an owner, a
  confidence, or parents that its author declares.
- *One that may be refused*: a rule of yours, or an entry check, is about such units; its words were said before in
  these walls, and may have been found wrong; its parents are not active.
- *Other walls*: where somebody who would see it does not see all that went into it.
- *Many parents*: a unit keeps these together.

What was not written cannot be found wrong by itself later, nor be distrusted with all that its creator said: only what
went into it can.

Which calls are written is decided by a hash of the function's name and the number of the call in this memory: the same
in each run, however often the function is decorated anew, and no pattern of calls is in step with it.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import msgspec

from memlineage.engine.inputs import RESERVED_KINDS
from memlineage.engine.snapshot import Snapshot
from memlineage.errors import InvalidInputError
from memlineage.model.content import form_key
from memlineage.model.ids import Ref
from memlineage.model.principal import Integrity
from memlineage.model.scope import Visibility, Wall
from memlineage.model.state import Status
from memlineage.policy import defaults
from memlineage.policy.glob import glob_match
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import CAUSING, Rule, Verb
from memlineage.recall.constraints import CONSTRAINT_KINDS
from memlineage.store.database import fetch
from memlineage.store.sql import QUERIES

if TYPE_CHECKING:
    from memlineage.engine.core import Core
    from memlineage.engine.scope import Scope

__all__ = ["Sample", "adds_nothing", "check_share", "is_key_memory"]

_KEY_KINDS: Final = CONSTRAINT_KINDS | RESERVED_KINDS
_KEY_OPTIONS: Final = (
    "subject", "key", "depends_on", "exposed", "arguments", "confidence", "owner", "pinned", "expires_at", "valid_to",
    "idempotency_key",
)  # fmt: skip
_MOST_PARENTS: Final = 32
_WHOLE: Final = 1 << 64
_LOCK: Final = threading.Lock()
_CALLS: Final[WeakKeyDictionary[Core, dict[str, itertools.count[int]]]] = WeakKeyDictionary()
"""By memory, the numbers of the calls of each function that is sampled."""


def check_share(share: Any) -> float:
    """A share of calls in [0, 1]."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidInputError(
            f"sample={share!r:.80} is not a share in [0, 1]: 1 writes every call, 0.1 about one in ten of those that"
            " may be left out"
        )
    return float(share)


class Sample:
    """Which calls of one function are written anyway. Safe to share between threads."""

    def __init__(self, core: Core, share: float, name: str) -> None:
        self._share = share
        self._name = name
        with _LOCK:
            self._calls = _CALLS.setdefault(core, {}).setdefault(name, itertools.count())

    def drawn(self) -> bool:
        """Whether the next call is one of them."""
        drawn = hashlib.blake2b(f"{self._name} {next(self._calls)}".encode("utf-8", "replace"), digest_size=8)
        return int.from_bytes(drawn.digest()) < self._share * _WHOLE


def is_key_memory(options: Mapping[str, Any]) -> bool:
    """Whether units with these options matter by themselves."""
    return options.get("kind") in _KEY_KINDS or any(options.get(name) not in (None, False) for name in _KEY_OPTIONS)


def adds_nothing(scope: Scope, options: Mapping[str, Any], text: str, parents: Mapping[Ref, Wall]) -> bool:
    """Whether a unit of this text, which would hang on these, would add nothing to what they are."""
    acting, core = scope._acting, scope._parts.core
    if not acting.is_host or acting.exposure is not None or not 0 < len(parents) <= _MOST_PARENTS:
        return False
    wall = acting.scope.wall(Visibility(options.get("visibility") or Visibility.USER))
    if core.entry_checks or not all(_reaches(parent, wall) for parent in parents.values()):
        return False
    creator = acting.speaker(options.get("creator"))
    with core.read() as snapshot:
        level = min(snapshot.names.level_of(creator), snapshot.names.level_of(acting.actor))
        return (
            level is Integrity.TRUSTED
            and not _ruled(snapshot.generation.policies, creator, options)
            and not _said_before(snapshot, text, wall)
            and _all_active(snapshot, parents)
        )


def _reaches(parent: Wall, wall: Wall) -> bool:
    """Whether whoever sees what stands in one wall also sees what stands in the other, which went into it."""
    same_owner = parent.group[:3] == wall.group[:3]
    return parent.group == wall.group or (same_owner and parent.visibility is Visibility.USER)


def _ruled(policies: PolicySet, creator: str, options: Mapping[str, Any]) -> bool:
    """Whether a rule that does not ship may be about such a unit."""
    kind, tags = options.get("kind") or "fact", set(options.get("tags") or ())
    for rule in policies.chosen(_about_units):
        target = rule.target
        if (
            (not target.kinds or kind in target.kinds)
            and (not target.tags or tags & set(target.tags))
            and (not target.creators or any(glob_match(pattern, creator) for pattern in target.creators))
            and not target.subject
            and not target.key
        ):
            return True
    return False


def _about_units(rule: Rule) -> bool:
    named = {Verb.WRITE, Verb.READ, Verb.EXPIRE} & set(rule.on)
    return bool(named or rule.action in CAUSING) and msgspec.structs.replace(rule, place=None) not in _shipped()


@cache
def _shipped() -> tuple[Rule, ...]:
    return tuple(msgspec.structs.replace(rule, place=None) for rule in defaults().rules)


def _said_before(snapshot: Snapshot, text: str, wall: Wall) -> bool:
    ns = snapshot.names.find_namespace(wall)
    return any(here == ns for _, here in fetch(snapshot.connection, QUERIES["said_once"], (form_key(text),)))


def _all_active(snapshot: Snapshot, parents: Mapping[Ref, Wall]) -> bool:
    numbers = [snapshot.resolve_anywhere(ref) for ref in parents]
    return all(unit.status is Status.ACTIVE for unit in snapshot.units(numbers).values())
