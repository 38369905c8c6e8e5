"""Command: policy schema."""

from __future__ import annotations

import json

import typer

from memlineage.cli.answers import DONE
from memlineage.cli.command import command
from memlineage.cli.options import Printing

__all__ = ["register"]


def schema(printing: Printing) -> int:
    """Print the JSON Schema of policy documents, for editors; with and without `--json` alike."""
    from memlineage.policy.language.schema import policy_schema

    typer.echo(json.dumps(policy_schema(), indent=2))
    return DONE


def register(policy: typer.Typer, *, panel: str) -> None:
    """Add this command."""
    command(policy, "schema", panel=panel)(schema)
