"""MemLineage: memory for LLM agents that knows where every memory came from, and enforces it."""
