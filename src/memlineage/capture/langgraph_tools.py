"""The memory tools as LangChain tools, for whatever runs in LangChain or LangGraph."""

from __future__ import annotations

from langchain_core.tools import BaseTool, StructuredTool

from memlineage.capture.langgraph_voices import Given, Voices
from memlineage.capture.memory_tools import MemoryTools

__all__ = ["memory_tools"]


def memory_tools(source: Given, *, tokens: int = 2000) -> list[BaseTool]:
    """Tools by which an agent remembers, recalls, explains, corrects and forgets.

        create_agent(model, [*memory_tools(memory.scope(user="alice")), ...])

    They act for the agent that runs, never for the user, and answer refusals in words.

    Args:
        source: a scope or a `Recorder`; or a function that gives one of these for a run, from LangGraph's runtime.
        tokens: most that one answer of `recall` takes, estimated.

    Raises:
        InvalidInputError: the source is none of these.
    """
    functions = MemoryTools(Voices(source, None).agent, tokens=tokens).functions()
    return [StructuredTool.from_function(function, parse_docstring=True) for function in functions]
