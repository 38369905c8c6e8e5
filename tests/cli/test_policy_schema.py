"""policy schema."""

import json
from typing import Any

from memlineage.policy.language.schema import policy_schema


def test_the_schema_is_printed_as_json_and_nothing_else(desk: Any) -> None:
    for words in (("policy", "schema"), ("policy", "schema", "--json")):
        result = desk.type(*words)
        assert (result.exit_code, result.stderr, json.loads(result.stdout)) == (0, "", policy_schema())
