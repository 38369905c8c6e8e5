"""Calling a stranger's function: what it raises is its own failure, and it cannot keep anybody waiting for good."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextvars import copy_context
from typing import Any, Final

import msgspec

from memlineage.lineage.escape import error_in_words

__all__ = ["Answered", "ask"]

_LENGTH: Final = 300


class Answered(msgspec.Struct, frozen=True):
    """What a function returned, or in words how it failed; `late` if it did not return in time."""

    value: Any = None
    error: str | None = None
    late: bool = False


def ask(function: Callable[..., Any], *arguments: Any, seconds: float) -> Answered:
    """Call it on a thread of its own, and wait so long for what it returns."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="memlineage-ask")
    try:
        call: Future[Any] = pool.submit(copy_context().run, function, *arguments)
        failed = call.exception(timeout=seconds)
    except FutureTimeoutError:
        return Answered(error=f"no answer within {seconds:g} s", late=True)
    finally:
        pool.shutdown(wait=False)
    if failed is None:
        return Answered(value=call.result())
    return Answered(error=error_in_words(failed, _LENGTH))
