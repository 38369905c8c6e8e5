"""Capture: runs of agents become lineage, whatever framework runs them; and what their words are made into.

The doors of the frameworks (`memlineage.langchain`, `memlineage.mcp`, …) record into a `Recorder`, or into a scope.
"""

from memlineage.capture.attribution import (
    Attributor,
    Embedding,
    LeaveOneOut,
    Scorer,
    SelfReported,
    Shown,
    lexical,
    uniform,
)
from memlineage.capture.premises import Premises, labels_for, parse_premises, prompt_fragment
from memlineage.capture.recorder import Recorded, Recorder, current_scope

__all__ = [
    "Attributor", "Embedding", "LeaveOneOut", "Premises", "Recorded", "Recorder", "Scorer", "SelfReported", "Shown",
    "current_scope", "labels_for", "lexical", "parse_premises", "prompt_fragment", "uniform",
]  # fmt: skip
