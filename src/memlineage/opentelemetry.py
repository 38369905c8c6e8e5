"""OpenTelemetry: what was captured as spans, and spans of others as lineage (extra `opentelemetry`)."""

from memlineage.errors import need_extra

need_extra("opentelemetry", "opentelemetry")

__all__: list[str] = []
