"""pydantic-ai agents: capture, context filter and action gate in one capability (extra `pydantic-ai`)."""

from memlineage.errors import need_extra

need_extra("pydantic-ai", "pydantic_ai")

__all__: list[str] = []
