"""Interfaces of others over this memory, for programs that were written for them."""
