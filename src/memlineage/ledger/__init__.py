"""The tamper-evident record (RFC 6962): hashes, tree, proofs and signed checkpoints."""
