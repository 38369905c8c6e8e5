"""The JSON Schema of policy documents, made from the tables that the reader goes by.

A schema knows keys, words, names, shapes and bounds. It takes every document that the reader takes; what needs two
places of a document, or a look inside a text, it leaves to the reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memlineage.model.principal import Integrity
from memlineage.policy.decision import Budget, Effect, ObligationKind
from memlineage.policy.kinds import CONTEXT, LINEAGE, ORIGINS, RANKS, SAME, UNIT, Kind, Origin, Spec
from memlineage.policy.language.cases import CASE_KEYS, FREE, REQUEST_KEYS
from memlineage.policy.language.cases import NEEDED_KEYS as CASE_NEEDS
from memlineage.policy.language.conditions import NAME_KEYS, OPERATORS, TYPES
from memlineage.policy.language.document import DOCUMENT_KEYS, FORMAT
from memlineage.policy.language.rules import (
    COMMON_KEYS,
    MAX_COST,
    MAX_PRIORITY,
    MAX_WEIGHT,
    NEEDED_KEYS,
    PLAIN_KEYS,
    WITHHOLDING,
)
from memlineage.policy.language.shape import DURATION, MAX_LIST, MAX_SECONDS, MAX_TEXT
from memlineage.policy.language.shortforms import (
    APPROVALS,
    BARE_FORMS,
    FORM_KEYS,
    PENDING,
    QUORUM,
    SHORT_FORMS,
    WITH_ON,
)
from memlineage.policy.language.shortforms import NEEDED_KEYS as FORM_NEEDS
from memlineage.policy.language.tokens import MAX_EXPRESSION
from memlineage.policy.rule import Consequence, Mode, Severity, Target, Verb

__all__ = ["policy_schema"]

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string", "pattern": r"\S", "maxLength": MAX_TEXT}
_SCALAR: Final[Schema] = {"type": ["string", "number", "boolean"], "maxLength": MAX_TEXT}
_INSTANT: Final[Schema] = {
    "type": "string",
    "pattern": "^[0-9]{4}-?([0-9]{2}-?[0-9]{2}|W[0-9]{2}(-?[0-9])?).[0-9]{2}.*([Zz]|[+-][0-9:.]+)$",
    "description": "ISO 8601 with a UTC offset, e.g. 2030-01-31T00:00:00Z",
}
_AGE: Final = "lineage.age"


def policy_schema() -> Schema:
    """The schema, draft 2020-12, as plain values that JSON can hold."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:memlineage:policy:{FORMAT}",
        "title": "MemLineage policy document",
        "description": "One document, or one rule alone. The reader checks more: memlineage policy check.",
        "anyOf": [_ref("document"), _ref("rule")],
        "$defs": {
            "document": _document(),
            "rule": {"oneOf": [_plain_rule(), *map(_form, SHORT_FORMS)]},
            "target": {
                **_mapping(Target.__struct_fields__, dict.fromkeys(Target.__struct_fields__, _ref("texts"))),
                "minProperties": 1,
            },
            "condition": _condition(),
            "operand": _operand(),
            "values": _values(),
            "scalar": _SCALAR,
            "text": _TEXT,
            "texts": {"anyOf": [_ref("text"), _list(_ref("text"), 1)]},
            "instant": _INSTANT,
            "level": _words(Integrity.__members__),
            "unit_name": _unit_names(),
            "context_name": _free_names(CONTEXT, FREE[Origin.CONTEXT]),
            "lineage_name": _words(LINEAGE),
            "time_name": _time_names(),
            "unit": _fields(UNIT, Origin.UNIT, SAME),
            "case": _case(),
        },
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _mapping(keys: Iterable[str], values: Mapping[str, Schema], needed: Iterable[str] = ()) -> Schema:
    """A mapping with these keys and no others; a key without a schema of its value is an error of this module."""
    schema: Schema = {"type": "object", "properties": {key: values[key] for key in keys}, "additionalProperties": False}
    return {**schema, "required": list(needed)} if needed else schema


def _words(words: Iterable[str]) -> Schema:
    return {"enum": sorted(str(word) for word in words)}


def _number(least: float, most: float, kind: str = "number") -> Schema:
    return {"type": kind, "minimum": least, "maximum": most}


def _list(items: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "maxItems": MAX_LIST, **({"minItems": least} if least else {})}


def _duration() -> Schema:
    written: Schema = {"type": "string", "pattern": f"^{DURATION.pattern}$"}
    return {"anyOf": [_number(0, MAX_SECONDS), written], "description": "seconds, or e.g. 30m, 1h, 2d"}


def _document() -> Schema:
    level = _ref("level")
    values: dict[str, Schema] = {
        "memlineage": {"const": FORMAT},
        "layer": {"type": "string", "pattern": r"^(global|(domain|session):[\s\S]+)$", "maxLength": MAX_TEXT},
        "description": _ref("text"),
        "principals": {"type": "object", "additionalProperties": level, "propertyNames": {"pattern": "^[^*]+$"}},
        "verifiers": _ref("texts"),
        "lists": {"type": "object", "additionalProperties": _list(_ref("scalar"), 1)},
        "rules": _list(_ref("rule")),
        "tests": _list(_ref("case")),
        "coverage": _number(0, 1),
    }
    of_the_store = {"principals": False, "verifiers": False}
    return {
        **_mapping(DOCUMENT_KEYS, values),
        "minProperties": 1,
        "if": {"properties": {"layer": {"not": {"const": "global"}}}, "required": ["layer"]},
        "then": {"properties": of_the_store},
    }


def _common() -> dict[str, Schema]:
    """Values of the keys that stand in every rule."""
    return {
        "name": _ref("text"),
        "on": {"anyOf": [_words([*Verb, "all"]), _list(_words(Verb), 1)]},
        "target": _ref("target"),
        "priority": _number(-MAX_PRIORITY, MAX_PRIORITY, "integer"),
        "mode": _words(Mode),
        "severity": _words(Severity),
        "weight": _number(0, MAX_WEIGHT),
        "cost": _number(0, MAX_COST),
        "reason": _ref("text"),
        "until": _ref("instant"),
        "because": _ref("text"),
        "overridable": {"type": "boolean"},
    }


_HARD_AND_OPEN: Final[Schema] = {
    "properties": {"severity": {"const": "hard"}, "overridable": {"const": True}},
    "required": ["severity", "overridable"],
}


def _plain_rule() -> Schema:
    values = {
        **_common(),
        "condition": _ref("condition"),
        "when": {"type": "string", "pattern": r"\S", "maxLength": MAX_EXPRESSION},
        "action": {"anyOf": [_words(Consequence), {"type": "string", "pattern": f"^{WITHHOLDING}"}]},
        "level": _ref("level"),
    }
    return {
        **_mapping(PLAIN_KEYS, values, NEEDED_KEYS),
        "dependentRequired": {"until": ["because"]},
        "dependentSchemas": {"level": {"properties": {"action": {"const": Consequence.DOWNGRADE.value}}}},
        "not": {"anyOf": [{"required": ["condition", "when"]}, _HARD_AND_OPEN]},
    }


def _form(form: str) -> Schema:
    common = {key: value for key, value in _common().items() if key != "on" or form in WITH_ON}
    return {
        **_mapping([*(key for key in COMMON_KEYS if key in common), form], {**common, form: _form_value(form)}, [form]),
        "dependentRequired": {"until": ["because"]},
        "not": _HARD_AND_OPEN,
    }


def _form_value(form: str) -> Schema:
    texts = _ref("texts")
    supports = _number(*QUORUM, "integer")
    values: dict[str, dict[str, Schema]] = {
        "source": {"allow": texts, "deny": texts, "min_confidence": _number(0, 1)},
        "freshness": {
            **dict.fromkeys(("tags", "kinds", "creators"), texts),
            "max_age": _duration(),
            "refresh": {"type": "boolean"},
            "cost": _number(0, MAX_COST),
        },
        "dependency_consistency": {"pending": _words(PENDING)},
        "write_protection": {"declared_by": texts},
        "user_isolation": {},
        "sensitive_action": {
            "tool": {**_TEXT, "pattern": r"^[^*]*[^*\s][^*]*$"},
            "arguments": {"anyOf": [_argument(), _list(_argument(), 1)]},
            "integrity": _ref("level"),
            "approval": {"anyOf": [_words(APPROVALS), {"type": "boolean"}]},
            "constants": {"type": "object", "additionalProperties": _ref("values")},
        },
        "quorum": {"n": supports},
    }
    made = _mapping(FORM_KEYS[form], values[form], FORM_NEEDS.get(form, ()))
    if form == "source":
        return {**made, "minProperties": 1}
    alone = {"quorum": supports, **{bare: {"const": True} for bare in BARE_FORMS}}.get(form)
    return made if alone is None else {"anyOf": [alone, made]}


def _argument() -> Schema:
    return {**_TEXT, "pattern": r"^[^.\[\]]*[^.\[\]\s][^.\[\]]*$"}


def _condition() -> Schema:
    exists, others = {"const": "exists"}, _words(OPERATORS - {"exists"})
    side, inner = _ref("operand"), _ref("condition")
    keys = ("operator", "left_operand", "right_operand")
    parts = _list(inner, 1)
    return {
        "oneOf": [
            {"type": "array", "prefixItems": [side, exists], "minItems": 2, "maxItems": 2},
            {"type": "array", "prefixItems": [side, others, side], "minItems": 3, "maxItems": 3},
            _mapping(keys[:2], {"operator": exists, "left_operand": side}, keys[:2]),
            _mapping(keys, {"operator": others, "left_operand": side, "right_operand": side}, keys),
            _mapping(["all"], {"all": parts}, ["all"]),
            _mapping(["any"], {"any": parts}, ["any"]),
            _mapping(["not"], {"not": inner}, ["not"]),
        ]
    }


def _values() -> Schema:
    """A value, a list of values, or a named list."""
    literal: Schema = {"anyOf": [_ref("scalar"), _list(_ref("scalar"), 1)]}
    return {
        "anyOf": [
            *literal["anyOf"],
            *(
                _mapping([word], {word: value}, [word])
                for word, value in (("literal", literal), ("list", _ref("text")))
            ),
            _mapping(["type", "value"], {"type": {"const": "literal"}, "value": literal}, ["type", "value"]),
            *_long("list", _ref("text")),
        ]
    }


def _operand() -> Schema:
    """A value, or a name to look up."""
    named = {word: _names(word) for word in sorted(TYPES - {"literal", "list"})}
    short = [_mapping([word], {word: name}, [word]) for word, name in named.items()]
    long = [made for word, name in named.items() for made in _long(word, name)]
    return {"anyOf": [_ref("values"), *short, *long]}


def _long(word: str, name: Schema) -> list[Schema]:
    """`{type: field, memory_field: kind}`, under each key that the name may have."""
    return [_mapping(["type", key], {"type": {"const": word}, key: name}, ["type", key]) for key in NAME_KEYS]


def _names(word: str) -> Schema:
    """The names that may be looked up."""
    if word == "time_since":
        return _ref("time_name")
    origin = ORIGINS[word]
    return _ref({Origin.CONTEXT: "context_name", Origin.LINEAGE: "lineage_name"}.get(origin, "unit_name"))


def _unit_names() -> Schema:
    return _free_names([*UNIT, *SAME, _AGE], FREE[Origin.UNIT])


def _time_names() -> Schema:
    times = [*(name for name, spec in UNIT.items() if spec.kind is Kind.TIME), _AGE]
    return _free_names(
        [prefix + name for prefix in ("", "new.", "old.") for name in times], rf"((new|old)\.)?{FREE[Origin.UNIT]}"
    )


def _free_names(known: Iterable[str], free: str) -> Schema:
    """Known names, and any after a prefix."""
    return {"anyOf": [_words(known), {"type": "string", "pattern": rf"^{free}\.[\s\S]"}]}


def _case() -> Schema:
    kinds = _words(ObligationKind)
    budget = {"max_cost": _number(0, MAX_COST), "min_score": _number(0, 1)}
    request: dict[str, Schema] = {
        "action": _words(Verb),
        **{key: {"anyOf": [_ref("text"), {"type": "null"}]} for key in ("domain", "session", "approval")},
        "now": _ref("instant"),
    }
    context = {name: spec for name, spec in CONTEXT.items() if name not in REQUEST_KEYS}
    asked = _fields(context, Origin.CONTEXT)
    asked["properties"] |= {key: request[key] for key in REQUEST_KEYS}
    values: dict[str, Schema] = {
        "name": _ref("text"),
        "unit": _ref("unit"),
        "old": _ref("unit"),
        "request": {**asked, "required": ["action"]},
        "lineage": _fields(LINEAGE, Origin.LINEAGE),
        "budget": _mapping(Budget.__struct_fields__, budget),
        "effect": _words(Effect),
        **dict.fromkeys(("rules", "not_rules"), _list(_ref("text"))),
        "determining": _ref("text"),
        "score": _number(0, 1),
        "cost": _number(0, MAX_COST),
        "obligations": _list(kinds),
    }
    return _mapping(CASE_KEYS, values, CASE_NEEDS)


def _fields(table: Mapping[str, Spec], origin: Origin, same: Mapping[str, str] | None = None) -> Schema:
    """Values of fields, by their full names; those of a unit may be nested under `lineage`."""
    known = {name: _of_kind(spec) for name, spec in table.items()}
    known |= {name: known[other] for name, other in (same or {}).items()}
    schema = _mapping(known, known)
    if origin is Origin.UNIT:
        nested = {name.partition(".")[2]: value for name, value in known.items() if name.startswith("lineage.")}
        schema["properties"]["lineage"] = _mapping(nested, nested)
    if origin in FREE:
        schema["properties"][FREE[origin]] = {"type": "object"}
        schema["patternProperties"] = {rf"^{FREE[origin]}\.[\s\S]": {}}
    return schema


def _of_kind(spec: Spec) -> Schema:
    """A value of a field; null is the same as leaving it out."""
    if spec.choices is not None:
        return {"enum": [*sorted(str(word) for word in spec.choices), None]}
    if spec.kind in RANKS:
        words = "|".join("".join(f"[{c.upper()}{c.lower()}]" for c in name) for name in RANKS[spec.kind].__members__)
        return {"anyOf": [{"type": "string", "pattern": f"^({words})$"}, {"type": ["integer", "null"]}]}
    if spec.kind is Kind.TIME:
        return {"anyOf": [_ref("instant"), {"type": ["number", "null"]}]}
    if spec.kind is Kind.TEXTS:
        return {"type": ["array", "null"], "items": {"type": "string"}}
    word = {Kind.NUMBER: "number", Kind.TEXT: "string", Kind.BOOLEAN: "boolean"}[spec.kind]
    return {"type": [word, "null"]}
