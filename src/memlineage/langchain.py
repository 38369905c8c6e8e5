"""LangChain agents: capture, context filter and action gate in one middleware (extra `langchain`)."""

from memlineage.errors import need_extra

need_extra("langchain", "langchain", "langgraph")

__all__: list[str] = []
