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
from memlineage.capture.extraction import extract, extracting
from memlineage.capture.extraction_model import ModelExtractor
from memlineage.capture.extraction_rules import RuleExtractor
from memlineage.capture.memory_tools import MemoryTools
from memlineage.capture.premises import Premises, labels_for, parse_premises, prompt_fragment
from memlineage.capture.recorder import Recorded, Recorder, current_scope
from memlineage.capture.statements import Extractor, Statement

__all__ = [
    "Attributor", "Embedding", "Extractor", "LeaveOneOut", "MemoryTools", "ModelExtractor", "Premises", "Recorded",
    "Recorder", "RuleExtractor", "Scorer", "SelfReported", "Shown", "Statement", "current_scope", "extract",
    "extracting", "labels_for", "lexical", "parse_premises", "prompt_fragment", "uniform",
]  # fmt: skip
