"""What the rules make of a whole store at once: own states, keys, standings and integrity, as arrays.

Written from semantics.md (sections 2, 3 and 10) a second time, over arrays, for two uses: a check wants every value
held against its rule, fast, and a check that called the code it checks would find its slips right. Standings,
integrity and keys are *local*: what the rule gives for the stored values that a version looks at. They are right
everywhere if and only if all of them are equal to what is stored, since lineage has no cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memlineage.model.state import (
    DIFFERS,
    LOST,
    OWN_SUPERSEDED,
    QUARANTINED,
    STANDING_MASK,
    STANDING_SHIFT,
    CauseKind,
    Standing,
)
from memlineage.store.checking.frame import Bytes, Flags, Frame, Ints, numbers
from memlineage.store.database import Connection

__all__ = ["Derived", "local_values"]

_NONE = 255  # no cause


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Derived:
    """What must be stored of every version.

    Attributes:
        code: its state byte.
        integrity: its level, quorum apart.
        winner: the version that took its key; 0 if none did.
        current: per unit, the version that a bare id means.
    """

    code: Bytes
    integrity: Bytes
    winner: Ints
    current: Ints


def local_values(connection: Connection, frame: Frame) -> Derived:
    """Each value by its rule, from stored values and authoritative rows."""
    worst, quarantined = _causes(connection, frame)
    newest = _newest(frame, quarantined)
    replaced = frame.version < newest[frame.unit]
    own = np.where(replaced & ((worst == _NONE) | (worst == CauseKind.ARCHIVED)), OWN_SUPERSEDED, worst)
    own = np.where(own == _NONE, 0, own).astype(np.uint8)
    current = _current(frame, newest, quarantined)
    winner = _winners(connection, frame, own, current)
    differs = _differs(connection, winner)
    standing = _standings(frame, own, _stand_ins(connection, frame, own, quarantined), differs)
    code = own | standing << STANDING_SHIFT | quarantined * np.uint8(QUARANTINED)
    code |= (winner > 0) * np.uint8(LOST) | differs * np.uint8(DIFFERS)
    return Derived(
        code=code.astype(np.uint8), integrity=_integrities(connection, frame), winner=winner, current=current
    )


# Own states and currency -------------------------------------------------------------------------------------------


def _causes(connection: Connection, frame: Frame) -> tuple[Bytes, Flags]:
    """The worst cause in force against each version, and whether a quarantine is."""
    rows = numbers(connection, "SELECT n, kind FROM cause WHERE lifted IS NULL ORDER BY n", 2)
    rows = rows[(rows[:, 0] > 0) & (rows[:, 0] <= frame.count)]
    worst = np.full(frame.count + 1, _NONE, np.uint8)
    np.minimum.at(worst, rows[:, 0], rows[:, 1].astype(np.uint8))
    quarantined = np.zeros(frame.count + 1, np.bool_)
    quarantined[rows[rows[:, 1] == CauseKind.QUARANTINED, 0]] = True
    return worst, quarantined


def _newest(frame: Frame, quarantined: Flags) -> Ints:
    """Per unit, the number of its highest version that is not quarantined; 0 if all are."""
    newest = np.zeros(int(frame.unit.max(initial=0)) + 1, np.int32)
    free = ~quarantined
    np.maximum.at(newest, frame.unit[free], frame.version[free])
    return newest


def _current(frame: Frame, newest: Ints, quarantined: Flags) -> Ints:
    """Per unit, its newest version that is not quarantined; its newest, if all are."""
    highest = np.zeros_like(newest)
    np.maximum.at(highest, frame.unit, frame.version)
    wanted = np.where(newest > 0, newest, highest)
    current = np.zeros_like(newest)
    held = np.flatnonzero(frame.version == wanted[frame.unit])
    current[frame.unit[held]] = held
    current[0] = 0
    return current


def _stand_ins(connection: Connection, frame: Frame, own: Bytes, quarantined: Flags) -> Ints:
    """For each version, the one whose condition counts: it, or through recorded equivalences a newer one."""
    equal = np.zeros(frame.count + 1, np.int32)
    classes = numbers(connection, "SELECT n, c FROM alike ORDER BY n", 2)
    newest = np.zeros(frame.count + 1, np.int32)
    free = classes[~quarantined[classes[:, 0]]]
    np.maximum.at(newest, free[:, 1], free[:, 0].astype(np.int32))
    equal[classes[:, 0]] = newest[classes[:, 1]]
    pairs = numbers(connection, "SELECT older, newer FROM verdict ORDER BY older, newer", 2)
    free = pairs[~quarantined[pairs[:, 1]]]
    np.maximum.at(equal, free[:, 0], free[:, 1].astype(np.int32))
    stands = np.arange(frame.count + 1, dtype=np.int32)
    moved = (equal > stands) & ((own == 0) | (own > CauseKind.RETRACTED))
    stands[moved] = equal[moved]
    while not np.array_equal(following := stands[stands], stands):
        stands = following
    return stands


# Keys --------------------------------------------------------------------------------------------------------------


def _winners(connection: Connection, frame: Frame, own: Bytes, current: Ints) -> Ints:
    """Who took the key of each version that lost it (section 10)."""
    winner = np.zeros(frame.count + 1, np.int32)
    standing = (frame.code & STANDING_MASK) >> STANDING_SHIFT
    out = (own > 0) & (own <= CauseKind.RETRACTED)
    contend = (frame.group > 0) & (current[frame.unit] == np.arange(frame.count + 1))
    rivals = np.flatnonzero(contend & ~out & (standing != Standing.CONTAMINATED))
    if not len(rivals):
        return winner
    when = numbers(connection, "SELECT n, ts_us, seq FROM version WHERE g <> 0 ORDER BY n", 3)
    when = when[np.searchsorted(when[:, 0], rivals)]
    level = frame.integrity[rivals]
    rank = np.where(level > 0, frame.rank[frame.creator[rivals]], 0)
    group = frame.group[rivals]
    order = np.lexsort((when[:, 2], when[:, 1], rank, level, group))
    last = np.append(group[order][1:] != group[order][:-1], True)
    best = np.zeros(int(group.max()) + 1, np.int32)
    best[group[order][last]] = rivals[order][last]
    lost = rivals[best[group] != rivals]
    winner[lost] = best[frame.group[lost]]
    return winner


def _differs(connection: Connection, winner: Ints) -> Flags:
    """Whether the one that took the key says something else."""
    differs = np.zeros(len(winner), np.bool_)
    form = "SELECT form FROM version WHERE n = ?"
    for n in np.flatnonzero(winner).tolist():
        mine = connection.execute(form, (n,)).get
        differs[n] = mine != connection.execute(form, (int(winner[n]),)).get
    return differs


# Standing ----------------------------------------------------------------------------------------------------------


def _standings(frame: Frame, own: Bytes, stands: Ints, differs: Flags) -> Bytes:
    """The standing that its justifications give each version, by what is stored of its parents."""
    standing = np.zeros(frame.count + 1, np.uint8)
    if not len(frame.child):
        return standing
    condition = np.where(frame.strong, _conditions(frame, own, stands, differs), 0).astype(np.uint8)
    child, starts = frame.child, _starts(frame.child, frame.justification)
    of_each = np.maximum.reduceat(condition, starts)
    owner, first = child[starts], _starts(child[starts])
    standing[owner[first]] = np.minimum.reduceat(of_each, first)
    # The permanent justification of what was written from nothing has no edges, so no rows.
    standing[owner[first[frame.justification[starts[first]] != 0]]] = 0
    return standing


def _conditions(frame: Frame, own: Bytes, stands: Ints, differs: Flags) -> Bytes:
    """How badly the parent's state reaches the child, edge by edge."""
    counted, child = stands[frame.parent], frame.child
    state, standing = own[counted], (frame.code[counted] & STANDING_MASK) >> STANDING_SHIFT
    same_unit = (frame.unit[counted] == frame.unit[child]) & (frame.version[counted] < frame.version[child])
    same_group = (frame.group[child] > 0) & (frame.group[counted] == frame.group[child])
    replaced = ((state == OWN_SUPERSEDED) | differs[counted]) & ~(same_unit | same_group)
    doubtful = (state == CauseKind.EXPIRED) | (state == CauseKind.RETRACTED) | replaced
    fallen = (state > 0) & (state <= CauseKind.QUARANTINED)
    return np.where(fallen, np.uint8(Standing.CONTAMINATED), np.maximum(doubtful.astype(np.uint8), standing))


def _starts(*keys: Ints) -> NDArray[np.intp]:
    """Where a run of equal keys begins, in arrays that are sorted by them."""
    changes = np.zeros(len(keys[0]), np.bool_)
    changes[:1] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changes)


# Integrity ---------------------------------------------------------------------------------------------------------


def _integrities(connection: Connection, frame: Frame) -> Bytes:
    """Section 3, from the stored integrity of what each version was written from; a quorum is counted elsewhere."""
    model = frame.model[frame.creator]
    found = np.minimum(frame.level[frame.creator], frame.level[frame.actor])
    written = frame.justification == 0
    informs = written & ~frame.revises
    taints = written & (~frame.revises | model[frame.child])
    np.minimum.at(found, frame.child[taints], frame.integrity[frame.parent[taints]])
    informed = np.zeros(frame.count + 1, np.bool_)
    informed[frame.child[informs]] = True
    found[model & ~informed] = 0
    rows = numbers(
        connection, "SELECT n, level FROM endorsement WHERE action IS NULL AND expires_us IS NULL ORDER BY n", 2
    )
    np.maximum.at(found, rows[:, 0], rows[:, 1].astype(np.uint8))
    found[0] = 0
    return found
