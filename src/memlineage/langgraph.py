"""LangGraph: a store that knows where each item came from, and memory as tools of agents (extra `langgraph`)."""

from memlineage.errors import need_extra

need_extra("langgraph", "langgraph")

from memlineage.capture.langgraph_store import LineageStore  # noqa: E402
from memlineage.capture.langgraph_tools import memory_tools  # noqa: E402

__all__ = ["LineageStore", "memory_tools"]
