"""LangChain and LangGraph agents: captured, filtered and gated (extra `langchain`)."""

from memlineage.errors import need_extra

need_extra("langchain", "langchain", "langgraph")

from memlineage.capture.langchain_callback import Capturing, LineageCallback, capture  # noqa: E402
from memlineage.capture.langchain_middleware import LineageMiddleware  # noqa: E402
from memlineage.capture.langgraph_tools import memory_tools  # noqa: E402

__all__ = ["Capturing", "LineageCallback", "LineageMiddleware", "capture", "memory_tools"]
