"""The verbs of `Scope` and `Memory` by topic: one class each, a line or two a verb, and no state of its own.

`Scope` and `Memory` are made of these; the asynchronous counterparts are derived (tests/engine/test_async_twins.py).
"""
