"""Finding memories by meaning and by wording: text, embedders, ranking and vector indexes."""
