"""pydantic-ai agents: captured, filtered and gated (extra `pydantic-ai`)."""

from memlineage.errors import need_extra

need_extra("pydantic-ai", "pydantic_ai")

from memlineage.capture.pydantic_ai_lineage import Lineage  # noqa: E402

__all__ = ["Lineage"]
