"""LlamaIndex agents and workflows: captured, filtered and gated (extra `llama-index`)."""

from memlineage.errors import need_extra

need_extra("llama-index", "llama_index")

from memlineage.capture.llama_index_lineage import with_lineage  # noqa: E402

__all__ = ["with_lineage"]
