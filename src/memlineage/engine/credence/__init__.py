"""How far something is believed, what is held back on entry, and what is held against a source afterwards."""
