"""OpenAI Agents SDK: capture, context filter and action gate (extra `openai-agents`)."""

from memlineage.errors import need_extra

need_extra("openai-agents", "agents")

__all__: list[str] = []
