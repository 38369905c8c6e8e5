"""Watching policy files: what has changed, and stayed as it is for one interval, is taken into force."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Self

from memlineage.engine.reloading import PolicyStatus, Reloading
from memlineage.engine.sources import Stamp
from memlineage.errors import InvalidInputError, PolicyDocumentError, StoreError

__all__ = ["OnReload", "Watch"]

OnReload = Callable[[PolicyStatus], object]
"""Told how things stand after each reload, whether it went well or not."""


class Watch:
    """A thread that looks at the policy files of a memory and reloads what has changed.

    It ends with `stop`, at the end of a `with` block, or with the memory. A process that is forked meanwhile has no
    such thread.
    """

    def __init__(self, reloading: Reloading, interval: float, on_reload: OnReload | None = None) -> None:
        if not reloading.sources.paths:
            raise InvalidInputError(
                "this memory was opened without policy files, so there are none to watch: policies=['folder/']"
            )
        self._reloading = weakref.ref(reloading)
        self._interval = interval
        self._on_reload = on_reload
        self._over = threading.Event()
        self._last: Stamp = {}
        self._done: dict[str, bytes] | None = None
        self._revision = reloading.status().revision
        self._thread = threading.Thread(target=self._run, name="memlineage-watch", daemon=True)
        self._telling: threading.Thread | None = None

    def start(self) -> Self:
        """Begin to look."""
        reloading = self._reloading()
        if reloading is not None:
            reloading.watches.add(self)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Look no more; returns when a reload that is under way is over. Stopping twice is harmless."""
        self._over.set()
        reloading = self._reloading()
        if reloading is not None:
            reloading.watches.discard(self)
        own = threading.current_thread() in (self._thread, self._telling)
        if not own and self._thread.is_alive():
            self._thread.join()

    @property
    def running(self) -> bool:
        """Whether it still looks."""
        return self._thread.is_alive() and not self._over.is_set()

    def _run(self) -> None:
        while not self._over.wait(self._interval):
            reloading = self._reloading()
            if reloading is None:
                return
            self.look(reloading)
            del reloading  # or it would be kept from going while this waits

    def look(self, reloading: Reloading) -> None:
        """Look once. What differs from what was read last, and not from the last look, is reloaded: what is still
        being written differs from look to look. The first look reads in any case: who knows what has changed since
        the memory was opened.
        """
        seen = reloading.sources.stamp()
        settled, self._last = seen == self._last, seen
        says = {path: digest for path, (_, _, digest) in seen.items()}  # a file that was only touched says the same
        if not settled or says == self._done:
            return
        first = self._done is None
        try:
            if not reloading.reload_if_still(seen):
                return
            self._done = says
        except PolicyDocumentError:
            self._done = says  # the last good generation stays in force until the files change again
        except StoreError:
            first = False  # tried again at the next look
        status = reloading.status()
        if not first or status.revision != self._revision or not status.ok:
            self._revision = status.revision
            self._tell(status)

    def _tell(self, status: PolicyStatus) -> None:
        """In a thread of its own: an error of whoever is told is reported like any of a thread, and ends nothing."""
        if self._on_reload is not None and not self._over.is_set():
            self._telling = threading.Thread(target=self._on_reload, args=(status,), name="memlineage-watch-told")
            self._telling.start()
            self._telling.join()
            self._telling = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Watch every {self._interval:g} s{'' if self.running else ', stopped'}>"
