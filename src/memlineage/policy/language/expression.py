"""Reading of `when:`, the short spelling of a condition: from an expression to the nodes of the tree it stands for.

    when: "age(lineage.timestamp) > 5 * minutes and creator.startswith('tool:')"

Python's `ast` parses it, and nothing is ever evaluated. What comes out is what an author could have written under
`condition:`, each node at its place inside the expression, and `ConditionReader` reads that: names, kinds and values
are checked in one place, whichever form was written. `wording.expression` is the inverse.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from memlineage.policy.kinds import CONTEXT, LINEAGE, ORIGINS, RANKS, SAME, UNIT, Kind, Origin, spec_of
from memlineage.policy.language.faults import Faults, hint, quoted
from memlineage.policy.language.nodes import MAX_DEPTH, Node
from memlineage.policy.language.tokens import Refused, Words, words_of
from memlineage.policy.patterns import REGEX

__all__ = ["FUNCTIONS", "SECONDS", "read_expression"]

SECONDS: Final = {
    **dict.fromkeys(("second", "seconds"), 1),
    **dict.fromkeys(("minute", "minutes"), 60),
    **dict.fromkeys(("hour", "hours"), 3_600),
    **dict.fromkeys(("day", "days"), 86_400),
    **dict.fromkeys(("week", "weeks"), 604_800),
}
"""Names of durations, in seconds."""
FUNCTIONS: Final = ("age", "all", "any", "contains", "endswith", "exists", "is_in", "matches", "not_in", "startswith")
"""Names of functions. Those of two arguments are methods of the first too."""
_METHODS: Final = frozenset({"contains", "endswith", "is_in", "matches", "not_in", "startswith"})
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_COMPARED: Final[dict[type[ast.cmpop], str]] = {
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_COUNTED: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
}
_LEVELS: Final = frozenset(name for names in RANKS.values() for name in names.__members__)
_KNOWN: Final = (*UNIT, *(f"context.{name}" for name in CONTEXT), *(f"lineage.{name}" for name in LINEAGE))
_LARGEST: Final = 1e30
_MEANT: Final = {
    "now": "write the age of a time, e.g. age(lineage.timestamp) > 1 * hour",
    "content": "rules do not read what a unit says, only how long it is: 'content_length'",
}
"""What to write for names that are looked for and are none."""
_SIDE_BY_SIDE: Final = re.compile(r"([0-9.]+) +([a-z]+)")


def read_expression(node: Node, lists: Mapping[str, tuple[Any, ...]], faults: Faults) -> Node | None:
    """The tree that an expression stands for, or None after a fault."""
    if not isinstance(node.value, str):
        faults.add(node, "wrong_type", f"expected an expression as text, found {node.word}")
        return None
    before = len(faults.found)
    try:
        words = words_of(node.value)
        tree = _Tree(node, words, lists, faults)
        made = tree.condition(_parsed(words), 0)
    except Refused as refused:
        faults.add(_at(node, refused.offset), refused.code, refused.message)
        return None
    return made if len(faults.found) == before else None


def _at(node: Node, offset: int, value: Any = None) -> Node:
    """A node at a place inside an expression: counted where the text is known, else named in the path."""
    if node.places is not None:
        return Node(value, *node.places.at(offset), node.path)
    if node.line:
        return Node(value, node.line, node.column, node.path)
    return Node(value, 0, 0, f"{node.path}, column {offset + 1}")


def _parsed(words: Words) -> ast.expr:
    if not words.masked:
        raise Refused(0, "empty", "the expression is empty; write a condition or leave 'when' out")
    try:
        return ast.parse(words.masked, mode="eval").body
    except SyntaxError as error:
        # The parser says 0 where the text ends too early.
        offset = min((error.offset or len(words.masked) + 1) - 1, len(words.masked))
        cure = _counted(words.masked, offset) or "check operators, commas and brackets"
        message = f"not an expression ({error.msg}); {cure}"
        raise Refused(words.start + offset, "bad_expression", message) from None
    except (MemoryError, RecursionError):
        raise Refused(0, "too_large", "the expression is too large to read here; use 'condition'") from None


def _counted(text: str, offset: int) -> str:
    """What to write for a number beside a duration, where that stands at `offset`; else nothing."""
    pairs = (found for found in _SIDE_BY_SIDE.finditer(text) if found.start(2) == offset)
    return next((f"write {found[1]} * {found[2]}" for found in pairs if found[2] in SECONDS), "")


class _Tree:
    """One expression on its way to nodes."""

    def __init__(self, node: Node, words: Words, lists: Mapping[str, tuple[Any, ...]], faults: Faults) -> None:
        self.node = node
        self.words = words
        self.lists = lists
        self.faults = faults

    def condition(self, part: ast.expr, depth: int) -> Node:
        """The node of a condition."""
        if depth > MAX_DEPTH:
            raise self._refused(part, "too_deep", f"nested deeper than {MAX_DEPTH} levels; flatten the expression")
        if isinstance(part, ast.BoolOp):
            word = "all" if isinstance(part.op, ast.And) else "any"
            return self._connected(part, word, part.values, depth)
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            return self._at(part, {"not": self.condition(part.operand, depth + 1)})
        if isinstance(part, ast.Compare):
            return self._compared(part)
        if isinstance(part, ast.Call):
            return self._called(part, depth)
        if isinstance(part, ast.Name | ast.Attribute | ast.Subscript):
            return self._boolean(part)
        raise self._refused(part, "bad_expression", "expected a condition, e.g. confidence < 0.5, or pinned")

    def _at(self, part: ast.expr, value: Any) -> Node:
        return _at(self.node, self.words.start + part.col_offset, value)

    def _refused(self, part: ast.expr, code: str, message: str) -> Refused:
        return Refused(self.words.start + part.col_offset, code, message)

    def _connected(self, part: ast.expr, word: str, values: list[ast.expr], depth: int) -> Node:
        parts = tuple(self.condition(value, depth + 1) for value in values)
        return self._at(part, {word: self._at(part, parts)})

    def _compared(self, part: ast.Compare) -> Node:
        sides = [part.left, *part.comparators]
        found = tuple(self._pair(left, op, right) for left, op, right in zip(sides, part.ops, sides[1:], strict=False))
        return found[0] if len(found) == 1 else self._at(part, {"all": self._at(part, found)})

    def _pair(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Node:
        if isinstance(op, ast.Is | ast.IsNot):
            if not _is_none(right):
                raise self._refused(right, "bad_expression", "'is' compares with None only; write '=='")
            exists = self._comparison(left, "exists", left)
            return exists if isinstance(op, ast.IsNot) else self._at(left, {"not": exists})
        if isinstance(op, ast.In | ast.NotIn):
            if self._is_list(right):
                return self._comparison(left, "in" if isinstance(op, ast.In) else "not_in", left, right)
            contains = self._comparison(left, "contains", right, left)
            return contains if isinstance(op, ast.In) else self._at(left, {"not": contains})
        return self._comparison(left, _COMPARED[type(op)], left, right)

    def _comparison(self, first: ast.expr, operator: str, left: ast.expr, right: ast.expr | None = None) -> Node:
        """One comparison; `first` is where it begins."""
        sides = [left] if right is None else [left, right]
        operands = [self._operand(side, 0) for side in sides]
        for side, other in zip(sides, reversed(operands), strict=True):
            kind = _kind(other)
            for level in _levels(side):
                if kind is not None and kind not in RANKS:
                    message = f"{level.id} is a level and compares with one only; put a text in quotes"
                    self._add(level, "type_mismatch", message)
        return self._at(first, (operands[0], self._at(first, operator), *operands[1:]))

    def _boolean(self, part: ast.expr) -> Node:
        """A field alone, as a condition."""
        found = self._operand(part, 0)
        if not isinstance(found.value, dict):
            raise self._refused(part, "constant", "nothing here depends on the unit or the request; name a field")
        kind = _kind(found)
        if kind not in (Kind.BOOLEAN, Kind.ANY, None):
            raise self._refused(part, "type_mismatch", f"a {kind} is no condition; compare it with something")
        return self._at(part, (found, self._at(part, "=="), self._at(part, True)))

    def _called(self, part: ast.Call, depth: int) -> Node:
        name, arguments = self._call(part)
        if name in ("all", "any"):
            return self._connected(part, name, arguments, depth)
        if name == "exists":
            return self._comparison(part, "exists", *arguments)
        if name == "age":
            raise self._refused(part, "bad_expression", "an age is no condition; compare it, e.g. with 5 * minutes")
        left, right = arguments
        if name in ("startswith", "endswith"):
            patterns = self._at(right, self._affixes(right, name))
            return self._at(part, (self._operand(left, 0), self._at(part, "matches"), patterns))
        if name != "contains" and isinstance(right, ast.Name):
            self._is_list(right)
        return self._comparison(part, "in" if name == "is_in" else name, left, right)

    def _call(self, part: ast.Call) -> tuple[str, list[ast.expr]]:
        """The function called and its arguments, of which the first may stand before the dot."""
        function, arguments = part.func, list(part.args)
        name = function.id if isinstance(function, ast.Name) else "?"
        if isinstance(function, ast.Attribute):
            name, arguments = function.attr, [function.value, *arguments]
        known = _METHODS if isinstance(function, ast.Attribute) else FUNCTIONS
        if name not in known:
            raise self._refused(part, "unknown_function", f"unknown function {quoted(name)}; {hint(name, known)}")
        wanted = {"age": 1, "exists": 1, "all": None, "any": None}.get(name, 2)
        if part.keywords or (len(arguments) != wanted if wanted else not arguments):
            count = f"{wanted} argument{'s' if wanted == 2 else ''}" if wanted else "at least one condition"
            raise self._refused(part, "bad_expression", f"{name} takes {count}")
        return name, arguments

    def _affixes(self, part: ast.expr, name: str) -> tuple[Node, ...]:
        """The patterns of `startswith` and `endswith`."""
        found = []
        for item in part.elts if isinstance(part, ast.List | ast.Tuple) else [part]:
            text = self._text(item)
            if text is None or "*" in text or (name == "startswith" and text.startswith(REGEX)):
                message = f"{name} needs a plain text in quotes; for patterns write matches(field, 'tool:*')"
                raise self._refused(item, "bad_pattern", message)
            found.append(self._at(item, f"{text}*" if name == "startswith" else f"*{text}"))
        return tuple(found)

    def _text(self, part: ast.expr) -> str | None:
        return self.words.texts.get(self.words.start + part.col_offset) if isinstance(part, ast.Constant) else None

    def _operand(self, part: ast.expr, depth: int) -> Node:
        """The node of a value."""
        if isinstance(part, ast.List | ast.Tuple) and not depth:
            return self._at(part, tuple(self._operand(item, 1) for item in part.elts))
        if isinstance(part, ast.Call):
            name, arguments = self._call(part)
            if name != "age":
                raise self._refused(part, "bad_expression", f"{name} is a condition, not a value")
            path = self._path(arguments[0])
            name = ".".join(path[1:] if path[0] == "unit" else path)
            return self._at(part, {"time_since": self._at(arguments[0], name)})
        if isinstance(part, ast.Attribute | ast.Subscript | ast.Name):
            return self._named(part)
        text = self._text(part)
        if text is not None:
            return self._at(part, text)
        if isinstance(part, ast.Constant) and (part.value is None or isinstance(part.value, bool)):
            return self._constant(part, part.value)
        return self._at(part, self._number(part, 0))

    def _constant(self, part: ast.expr, value: bool | None) -> Node:
        if value is None:
            raise self._refused(part, "bad_literal", "nothing compares with None; write 'is None' or 'is not None'")
        return self._at(part, value)

    def _named(self, part: ast.expr) -> Node:
        """The node of a name, by its prefix."""
        path = self._path(part)
        head, rest = path[0], ".".join(path[1:])
        if len(path) == 1 and head in _WORDS:
            return self._constant(part, _WORDS[head])
        if len(path) == 1 and (head in SECONDS or head in _LEVELS):
            return self._at(part, SECONDS.get(head, head))
        if head == "lists" or (len(path) == 1 and head in self.lists and head not in UNIT):
            return self._at(part, {"list": self._at(part, rest if head == "lists" else head)})
        if head in ("unit", "new", "old", "context") and not rest:
            raise self._refused(part, "bad_expression", f"{head!r} is no value; name a field of it: {head}.…")
        if head in ("new", "old", "context") or (head == "lineage" and rest in LINEAGE):
            return self._at(part, {head: self._at(part, rest)})
        name = rest if head == "unit" else ".".join(path)
        if name != "lineage.age" and spec_of(Origin.UNIT, SAME.get(name, name)) is None:
            self._add(part, "unknown_field", f"unknown field {quoted(name)}; {self._meant(name)}")
        return self._at(part, {"field": self._at(part, name)})

    def _meant(self, name: str) -> str:
        """What to write instead of an unknown name: a plain word that is like no known one may be a text."""
        if spec_of(Origin.CONTEXT, name):
            return f"did you mean 'context.{name}'?"
        if name in _MEANT:
            return _MEANT[name]
        longer = [known for known in _KNOWN if known.endswith(f".{name}")]
        near = f"did you mean {longer[0]!r}?" if longer else hint(name, (*_KNOWN, *self.lists))
        text = name.isidentifier() and not near.startswith("did you mean")
        return f"a text stands in quotes: {quoted(name)}; else {near}" if text else near

    def _path(self, part: ast.expr) -> list[str]:
        """The steps of a dotted name; a step that is not a plain word stands in brackets: metadata['a b']."""
        steps: list[str] = []
        while not isinstance(part, ast.Name):
            if isinstance(part, ast.Attribute):
                steps.append(part.attr)
            else:
                step = self._text(part.slice) if isinstance(part, ast.Subscript) else None
                if step is None:
                    message = "expected a name; a step that is not a plain word stands in quotes: metadata['a b']"
                    raise self._refused(part, "bad_expression", message)
                steps.append(step)
            part = part.value  # type: ignore[attr-defined]
        return [part.id, *reversed(steps)]

    def _is_list(self, part: ast.expr) -> bool:
        """Whether a list stands there, written out or named. A name that means two things is refused."""
        if isinstance(part, ast.Name) and part.id in self.lists and part.id in UNIT:
            message = f"{part.id!r} is a field and a list; write lists.{part.id} or unit.{part.id}"
            raise self._refused(part, "bad_expression", message)
        if isinstance(part, ast.List | ast.Tuple):
            return True
        named = self._path(part) if isinstance(part, ast.Name | ast.Attribute | ast.Subscript) else [""]
        return named[0] == "lists" or (len(named) == 1 and named[0] in self.lists)

    def _number(self, part: ast.expr, depth: int) -> int | float:
        """A number, counted out."""
        if depth > MAX_DEPTH:
            raise self._refused(part, "too_deep", f"nested deeper than {MAX_DEPTH} levels; count it out")
        value: int | float
        if isinstance(part, ast.Constant) and isinstance(part.value, int | float) and not isinstance(part.value, bool):
            value = part.value
        elif isinstance(part, ast.Name) and part.id in SECONDS:
            value = SECONDS[part.id]
        elif isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub | ast.UAdd):
            inner = self._number(part.operand, depth + 1)
            value = -inner if isinstance(part.op, ast.USub) else inner
        elif isinstance(part, ast.BinOp) and type(part.op) in _COUNTED:
            left, right = self._number(part.left, depth + 1), self._number(part.right, depth + 1)
            if isinstance(part.op, ast.Div) and not right:
                raise self._refused(part, "bad_number", "this divides by zero")
            value = _COUNTED[type(part.op)](left, right)
        else:
            message = "only numbers and durations are counted with, e.g. 5 * minutes; compare fields as they are"
            raise self._refused(part, "bad_expression", message)
        if not abs(value) <= _LARGEST:
            raise self._refused(part, "bad_number", f"a number beyond {_LARGEST:g}; write a smaller one")
        return value

    def _add(self, part: ast.expr, code: str, message: str) -> None:
        """A fault beside which the rest of the expression can be read."""
        self.faults.add(self._at(part, None), code, message)


def _is_none(part: ast.expr) -> bool:
    return (isinstance(part, ast.Constant) and part.value is None) or (isinstance(part, ast.Name) and part.id == "null")


def _levels(part: ast.expr) -> list[ast.Name]:
    """The levels written there, alone or in a list."""
    items = part.elts if isinstance(part, ast.List | ast.Tuple) else [part]
    return [item for item in items if isinstance(item, ast.Name) and item.id in _LEVELS]


def _kind(node: Node) -> Kind | None:
    """The kind of an operand, where it is known here."""
    if not isinstance(node.value, dict):
        return None
    ((word, inner),) = node.value.items()
    if word == "time_since":
        return Kind.SECONDS
    if word not in ORIGINS:
        return None
    name = str(inner.value)
    origin = ORIGINS[word]
    spec = spec_of(origin, name if origin in (Origin.CONTEXT, Origin.LINEAGE) else SAME.get(name, name))
    return None if spec is None else spec.kind
