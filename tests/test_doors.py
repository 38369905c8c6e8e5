"""What a user imports for a framework: a module per extra, which says what to install where it is missing."""

import importlib
import subprocess
import sys

import pytest

import memlineage as ml

DOORS = {
    "langchain": ("langchain", ["langchain", "langgraph"]),
    "langgraph": ("langgraph", ["langgraph"]),
    "llama_index": ("llama-index", ["llama_index"]),
    "mcp": ("mcp", ["mcp"]),
    "openai_agents": ("openai-agents", ["agents"]),
    "opentelemetry": ("opentelemetry", ["opentelemetry"]),
    "pydantic_ai": ("pydantic-ai", ["pydantic_ai"]),
}

MISSING = """
import sys
sys.modules[{missing!r}] = None
import memlineage as ml
try:
    import memlineage.{door}
except ml.MissingExtraError as error:
    print(type(error).__mro__[1].__name__, isinstance(error, ImportError), error)
"""


@pytest.mark.parametrize(
    ("door", "extra", "missing"),
    [(door, extra, module) for door, (extra, modules) in DOORS.items() for module in modules],
)
def test_a_door_without_its_framework_names_the_extra(door: str, extra: str, missing: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", MISSING.format(door=door, missing=missing)], capture_output=True, text=True, check=True
    )
    wanted = f"CapabilityError True {missing} is not installed: pip install 'memlineage[{extra}]'"
    assert run.stdout.strip() == wanted


@pytest.mark.parametrize("door", sorted(DOORS))
def test_a_door_opens_onto_what_it_names(door: str) -> None:
    module = importlib.import_module(f"memlineage.{door}")
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_a_missing_extra_is_among_the_errors_of_the_package() -> None:
    assert issubclass(ml.MissingExtraError, ml.CapabilityError)
