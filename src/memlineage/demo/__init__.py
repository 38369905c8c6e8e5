"""Scenarios that run from end to end, offline and deterministically."""
