"""LangGraph: a store that knows where each item came from (extra `langgraph`)."""

from memlineage.errors import need_extra

need_extra("langgraph", "langgraph")

__all__: list[str] = []
