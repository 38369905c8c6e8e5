"""OpenTelemetry: what is recorded as spans, and other people's spans recorded (extra `opentelemetry`)."""

from memlineage.errors import need_extra

need_extra("opentelemetry", "opentelemetry")

from memlineage.capture.opentelemetry_in import LineageSpanProcessor  # noqa: E402
from memlineage.capture.opentelemetry_out import export_spans  # noqa: E402

__all__ = ["LineageSpanProcessor", "export_spans"]
