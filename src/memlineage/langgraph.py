"""LangGraph: a store that knows where each item came from (extra `langgraph`)."""

from memlineage.errors import need_extra

need_extra("langgraph", "langgraph")

from memlineage.capture.langgraph_store import LineageStore  # noqa: E402

__all__ = ["LineageStore"]
