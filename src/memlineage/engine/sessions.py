"""Sessions of clients: each with what its model was shown, as many as there is room for.

A session that is forgotten is not washed clean. What it was shown passes to its owner, and whatever session of that
owner is seen for the first time afterwards, or again, begins with all of it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from memlineage.engine.acting import Exposure

__all__ = ["Sessions"]

T = TypeVar("T")


class Sessions(Generic[T]):
    """What is kept for each session. Thread-safe."""

    def __init__(self, exposure_of: Callable[[T], Exposure], *, most: int = 4096) -> None:
        """`exposure_of` gives what was shown in a session; `most` are kept, those used last."""
        self._exposure_of = exposure_of
        self._most = most
        self._known: OrderedDict[tuple[Hashable, Hashable], T] = OrderedDict()
        self._left: dict[Hashable, Exposure] = {}
        self._lock = threading.Lock()

    def of(self, owner: Hashable, session: Hashable, make: Callable[[], T]) -> T:
        """What is kept for a session of that owner; made if it is not known."""
        with self._lock:
            known = self._known.pop((owner, session), None)
            if known is None:
                known = make()
                if owner in self._left:
                    self._exposure_of(known).show(self._left[owner].seen())
            self._known[owner, session] = known
            while len(self._known) > self._most:
                (gone, _), forgotten = self._known.popitem(last=False)
                self._left.setdefault(gone, Exposure()).show(self._exposure_of(forgotten).seen())
        return known
