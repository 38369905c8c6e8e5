"""Recall decides about tokens, vectors, scores and ranking. It reads no database: the store above asks it."""
