# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The newest item of one or several sources, and the one thread that works on them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")
logger = logging.getLogger(__name__)


class Worker(Generic[Item]):
    """Calls `process` on its own thread with the newest item of each source that has one.

    `dropped(item, reason)` is called for every other: "queue_full", "shutdown", or "failed" if
    `process` raised.
    """

    def __init__(
        self, process: Callable[..., None], dropped: Callable[[Item, str], object]
    ) -> None:
        self._process = process
        self._dropped = dropped
        self._newest: dict[int, Item] = {}
        self._is_busy = False
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def put(self, item: Item, source: int = 0) -> None:
        """Queue an item in place of its source's last one; after `stop` it is dropped."""
        with self._changed:
            is_stopping = self._stopping
            older = None if is_stopping else self._newest.pop(source, None)
            if not is_stopping:
                self._newest[source] = item
                self._changed.notify_all()
        if is_stopping:
            self._dropped(item, "shutdown")
        elif older is not None:
            self._dropped(older, "queue_full")

    def wait(self, timeout_s: float) -> bool:
        """Return whether nothing waits and nothing is in hand, at the latest after a time."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._newest or self._is_busy), timeout_s)

    def stop(self, timeout_s: float | None = None) -> bool:
        """Finish the items in hand, drop all others, and end the thread.

        Returns:
            Whether the thread ended within `timeout_s`; None waits for it.
        """
        with self._changed:
            self._stopping = True
            waiting = list(self._newest.values())
            self._newest.clear()
            self._changed.notify_all()
        for item in waiting:
            self._dropped(item, "shutdown")
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while items := self._take():
            try:
                self._process(*items)
            except Exception:
                logger.exception("a frame failed")
                for item in items:
                    self._dropped(item, "failed")

    def _take(self) -> list[Item]:
        """Wait for items, and return them; none once the worker has been stopped."""
        with self._changed:
            self._is_busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._newest or self._stopping)
            items = list(self._newest.values())
            self._newest.clear()
            self._is_busy = bool(items)
            return items
