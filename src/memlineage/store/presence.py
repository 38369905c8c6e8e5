"""Whether whoever entered a transaction is still inside it.

An interrupt may come after a transaction has begun and before the block that was to run in it: then nobody is inside,
and yet nothing ends it as long as something keeps the traceback. No `with` statement can tell; the stack can. Whoever
is inside a block is on the stack of its thread, below whoever asks.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
from types import FrameType
from typing import Final

__all__ = ["Presence"]

_MACHINERY: Final = contextlib.__file__


class Presence:
    """The function that entered a transaction, through whatever context managers; to be made by one of them."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._frame: FrameType | None = _beneath(sys._getframe(1))

    def __bool__(self) -> bool:
        """Whether that function still runs, and whoever asks was called by it."""
        if self._frame is None or self._thread != threading.get_ident():
            return False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame is not self._frame:
            frame = frame.f_back
        return frame is not None

    def end(self) -> None:
        """It has left. What its frame holds is not kept any longer than that."""
        self._frame = None


def _beneath(frame: FrameType | None) -> FrameType | None:
    """The first frame that is not one of a context manager's own."""
    while frame is not None and (
        frame.f_code.co_flags & inspect.CO_GENERATOR or frame.f_code.co_filename == _MACHINERY
    ):  # fmt: skip
        frame = frame.f_back
    return frame
