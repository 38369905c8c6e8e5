"""What a scene is told with: a memory seen through one scope, and names for units instead of random ids."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import memlineage as ml
from memlineage.demo.clock import Clock
from memlineage.demo.scene import Node, Scene, Table, Tree
from memlineage.errors import InvalidInputError

__all__ = ["Stage", "chain_tree", "check_new", "compared", "impact_tree", "inspections"]

_COUNTED = (ml.Status.ACTIVE, ml.Status.PENDING)


class Stage:
    """The parts that every story has, and what its units are called.

    Attributes:
        memory: the open memory.
        scope: the scope of the host program, for looking at what is there.
        clock: the story's own.
    """

    def __init__(self, memory: ml.Memory, scope: ml.Scope, clock: Clock, label: Callable[[ml.Unit], str]) -> None:
        """`label` gives a unit the handle that it goes by; of several alike, the later ones are numbered."""
        self.memory = memory
        self.scope = scope
        self.clock = clock
        self._label = label
        self._names: dict[str, str] = {}

    @property
    def time(self) -> str:
        """The story's time of day."""
        return f"{self.clock():%H:%M}"

    def current(self, name: str) -> ml.Unit:
        """The current version of what is called so, as it stands; looking at it here refreshes nothing."""
        unit_id = self.names()[name]
        return [unit for unit in self.everything() if unit.id == unit_id][-1]

    def name(self, unit: ml.Unit | ml.Ref) -> str:
        """Its handle, e.g. `plan@2`."""
        if unit.id not in self._names:
            self._meet()
        return f"{self._names[unit.id]}@{unit.version}"

    def answer(self, decision: ml.Decision) -> str:
        """What the gate says, in words: without the name of the rule, and with handles in the place of refs."""
        if decision.allowed:
            return "Yes."
        grounds_failed = decision.rule == "justification"  # else the last reasons are about single arguments
        reason = decision.reasons[0 if grounds_failed else -1].partition(": ")[2]
        for unit in self.everything():
            reason = reason.replace(str(unit.ref), self.name(unit))
        return f"No: {reason}."

    def names(self) -> Mapping[str, str]:
        """Handle -> id, in the order of writing."""
        self._meet()
        return {name: unit_id for unit_id, name in self._names.items()}

    def everything(self) -> list[ml.Unit]:
        """Every version of every unit, oldest first."""
        every = self.scope.list(status=[status.value for status in ml.Status])
        return sorted(every, key=lambda unit: unit.lineage.seq)

    def statuses(self) -> dict[ml.Ref, ml.Status]:
        """How every version stands now."""
        return {unit.ref: unit.status for unit in self.everything()}

    def dead_texts(self) -> set[str]:
        """What nothing active says any more."""
        every = self.everything()
        return {unit.content for unit in every} - {unit.content for unit in every if unit.active}

    def changes(self, title: str, before: Mapping[ml.Ref, ml.Status], *, only_active: bool = False) -> Table:
        """What changed since: new versions, and those whose status differs; what was history before is left out."""
        rows = []
        every = self.everything()
        current = {unit.id: unit.ref for unit in every}.values()
        for unit in every:
            was = before.get(unit.ref)
            told = unit.active if only_active else unit.ref in current or was in _COUNTED
            if was is not unit.status and told:
                rows.append((self.name(unit), unit.content, "new" if was is None else was.value, unit.status.value))
        return Table(title=title, columns=("unit", "says", "before", "now"), rows=tuple(rows))

    def node(self, unit: ml.Unit, below: Iterable[Node] = ()) -> Node:
        """A unit as a tree shows it."""
        return Node(name=self.name(unit), status=unit.status.value, says=unit.content, below=tuple(below))

    def _meet(self) -> None:
        """Name whatever is new: by its label, numbered where there are several."""
        for unit in self.everything():
            if unit.id not in self._names:
                label = self._label(unit)
                count = sum(known.split(" ")[0] == label for known in self._names.values())
                self._names[unit.id] = label if not count else f"{label} {count + 1}"


def chain_tree(stage: Stage, title: str, units: Iterable[ml.Unit], end: Node | None = None) -> Tree:
    """One causal chain, the first above."""
    nodes = [stage.node(unit) for unit in units]
    if end is not None:
        nodes.append(end)
    root = nodes.pop()
    for node in reversed(nodes):
        root = Node(name=node.name, status=node.status, says=node.says, below=(root,))
    return Tree(title=title, root=root)


def impact_tree(stage: Stage, title: str, impact: ml.Impact) -> Tree:
    """What rests on a unit, each under the last step of its shortest path; replaced versions left out."""
    shown = [item for item in impact if item.unit.status is not ml.Status.SUPERSEDED]

    def below(parent: ml.Ref) -> tuple[Node, ...]:
        return tuple(
            stage.node(item.unit, below(item.unit.ref)) for item in shown if _shown_parent(item, shown) == parent
        )

    def _shown_parent(item: ml.Affected, shown: list[ml.Affected]) -> ml.Ref:
        visible = {impact.root.ref, *(other.unit.ref for other in shown)}
        return next(ref for ref in reversed(item.path[:-1]) if ref in visible)

    return Tree(title=title, root=stage.node(impact.root, below(impact.root.ref)))


def compared(told: Sequence[Scene]) -> tuple[Table, list[int], int]:
    """Every scene that has a verdict, a row each; the numbers of those in which the flat memory did harm; how many."""
    scenes = [(scene, scene.verdict) for scene in told if scene.verdict is not None]
    rows = tuple((f"{s.number}", s.title, f"{'✗' if v.harmed else '·'} {v.flat}", v.here) for s, v in scenes)
    table = Table(title="", columns=("", "what happens", "a flat memory", "here"), rows=rows)
    return table, [scene.number for scene, verdict in scenes if verdict.harmed], len(scenes)


def inspections(stage: Stage, kept: str, user: str, asked: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """What to type to look into the file that was kept: per command, the units that it is asked about."""
    names = stage.names()
    where = f"--db {shlex.quote(kept)} --user {user}"
    return tuple(
        f"memlineage {command} {names[name]} {where}    # {name}" for command, units in asked.items() for name in units
    )


def check_new(db: str) -> None:
    """Refuse a file that exists."""
    if db != ":memory:" and Path(db).exists():
        raise InvalidInputError(f"{db} exists; the story begins with an empty memory: name a new file")
