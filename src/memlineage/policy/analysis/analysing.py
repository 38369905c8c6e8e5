"""The analysis of a whole set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from memlineage.policy.analysis.against import idle_allows, loosening, opposites
from memlineage.policy.analysis.alone import constant, ended, unsatisfiable
from memlineage.policy.analysis.finding import Analysis, Finding
from memlineage.policy.analysis.gaps import gaps, uncovered
from memlineage.policy.analysis.idle import duplicates, idle
from memlineage.policy.analysis.refreshing import refresh_loops
from memlineage.policy.analysis.stored import co_firing, of_units
from memlineage.policy.analysis.study import Study
from memlineage.policy.policyset import PolicySet
from memlineage.policy.rule import Rule

__all__ = ["analyse"]

_MOST_UNITS: Final = 20_000


def analyse(
    policies: PolicySet,
    *,
    units: Iterable[Mapping[str, Any]] | None = None,
    now_us: int,
    everything: bool = False,
    given: Iterable[Rule] = (),
) -> Analysis:
    """What is wrong with a set of rules from an instant on, each finding with a witness that was judged.

    Reported are rules that can never hold, duplicates, rules that change no decision, opposite effects at equal
    priority, and, where units are given (fields by the names of policy documents), pairs of which one acts in vain on
    some of them. `everything` asks for all of `CODES`. Rules of the set that are `given`, as those that ship, are what
    others are held against: nothing is found about them, nor that they stand against an allow, as they are there to do.
    The work is bounded; what was not decided is counted, and is never a finding.
    """
    study = Study(policies, now_us, given)
    seen = list(islice(units, _MOST_UNITS)) if units is not None else []
    seen = seen[: of_units(study, seen)]
    found = [*unsatisfiable(study), *idle(study)]
    idle_ones = {finding.rule.order for finding in found}
    found += duplicates(study, idle_ones)
    found += opposites(study, idle_ones)
    found += co_firing(study, seen)
    if everything:
        found += _everything(study, seen)
    found = [finding for finding in found if finding.rule.order not in study.given]
    order = {rule.order: number for number, rule in enumerate(policies.rules)}
    found.sort(key=lambda finding: (-finding.level.rank, order[finding.rule.order], finding.code))
    return Analysis(
        findings=tuple(found),
        rules=len(policies.rules) - len(study.given),
        units=len(seen),
        undecided=dict(sorted((study.undecided + study.unchecked).items())),
        revision=policies.revision,
    )


def _everything(study: Study, seen: list[Mapping[str, Any]]) -> Iterator[Finding]:
    yield from ended(study)
    yield from constant(study)
    yield from refresh_loops(study)
    yield from idle_allows(study)
    yield from loosening(study)
    yield from gaps(study, seen)
    yield from uncovered(study, seen)
