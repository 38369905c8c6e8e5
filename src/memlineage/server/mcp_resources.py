"""What MCP clients can read by address: units, their history, and the rules that are in force.

An address is matched whole against two patterns; whatever else it contains is refused, never resolved.
"""

from __future__ import annotations

import re
from typing import Any, Final

import mcp_types as types
import msgspec
import orjson

from memlineage.engine.scope import Scope
from memlineage.errors import UnknownUnitError
from memlineage.lineage.escape import shorten
from memlineage.policy import PolicySet
from memlineage.server.mcp_answers import versions

__all__ = ["POLICIES", "TEMPLATES", "read"]

_UNIT: Final = re.compile(r"memlineage://unit/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:@[1-9][0-9]{0,8})?)")
_HISTORY: Final = re.compile(r"memlineage://unit/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/history")
_RULES: Final = 1000
_JSON: Final = "application/json"

POLICIES: Final = types.Resource(
    uri="memlineage://policies", name="policies", mime_type=_JSON,
    description="The rules that decide what is written, shown and done here.",
)  # fmt: skip
TEMPLATES: Final = (
    types.ResourceTemplate(
        uri_template="memlineage://unit/{id}", name="unit", mime_type=_JSON,
        description="One memory by its id, or id@version, with its status and where it came from.",
    ),
    types.ResourceTemplate(
        uri_template="memlineage://unit/{id}/history", name="history", mime_type=_JSON,
        description="All versions of a memory, oldest first.",
    ),
)  # fmt: skip


def read(scope: Scope, policies: PolicySet, uri: str) -> types.ReadResourceResult:
    """What stands at an address; it counts as shown.

    Raises:
        UnknownUnitError: there is nothing at that address in this scope.
    """
    if uri == POLICIES.uri:
        return _as_json(uri, _rules(policies))
    if (match := _UNIT.fullmatch(uri)) is not None:
        return _as_json(uri, versions([scope.get(match[1])]).data)
    if (match := _HISTORY.fullmatch(uri)) is not None:
        return _as_json(uri, versions(scope.history(match[1])).data)
    raise UnknownUnitError(
        f"{shorten(uri, 120)} is no address here; there are memlineage://policies, memlineage://unit/{{id}} and "
        "memlineage://unit/{id}/history"
    )


def _rules(policies: PolicySet) -> dict[str, Any]:
    rules = [
        {
            "name": rule.name, "on": [verb.value for verb in rule.on], "action": rule.action.value,
            "mode": rule.mode.value, "severity": rule.severity.value, "reason": rule.reason,
        }
        for rule in policies.rules[:_RULES]
    ]  # fmt: skip
    return {"revision": policies.revision, "rules": rules, "left_out": max(0, len(policies.rules) - _RULES)}


def _as_json(uri: str, value: Any) -> types.ReadResourceResult:
    text = orjson.dumps(msgspec.to_builtins(value), option=orjson.OPT_INDENT_2).decode()
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text, mime_type=_JSON)])
