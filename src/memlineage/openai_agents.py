"""OpenAI Agents SDK: capture, context filter and action gate (extra `openai-agents`)."""

from memlineage.errors import need_extra

need_extra("openai-agents", "agents")

from memlineage.capture.openai_agents_lineage import Lineage  # noqa: E402

__all__ = ["Lineage"]
