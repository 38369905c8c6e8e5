"""LlamaIndex agents: capture, context filter and action gate (extra `llama-index`)."""

from memlineage.errors import need_extra

need_extra("llama-index", "llama_index")

__all__: list[str] = []
