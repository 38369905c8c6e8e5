"""From text to rules: documents in JSON or YAML, read strictly, with every fault at its line and column."""
