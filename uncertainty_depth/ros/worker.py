# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The newest item, and the one thread that works on it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")
logger = logging.getLogger(__name__)


class Worker(Generic[Item]):
    """Calls `process` on its own thread, from the first item on, with the newest one.

    `dropped(item, reason)` is called for every other: "queue_full", "shutdown", or "failed" if
    `process` raised.
    """

    def __init__(
        self,
        process: Callable[[Item], None],
        dropped: Callable[[Item, str], object],
        name: str = "worker",
    ) -> None:
        self._process = process
        self._dropped = dropped
        self._waiting: Item | None = None
        self._is_busy = False
        self._stopping = False
        self._changed = threading.Condition()
        # A node that fails before its first item leaves no thread.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def put(self, item: Item) -> None:
        """Queue an item in place of the one that waits; after `stop` it is dropped."""
        with self._changed:
            is_stopping = self._stopping
            dropped = item if is_stopping else self._waiting
            if not is_stopping:
                self._waiting = item
                self._changed.notify_all()
                if self._thread.ident is None:
                    self._thread.start()
        if dropped is not None:
            self._dropped(dropped, "shutdown" if is_stopping else "queue_full")

    def wait(self, timeout_s: float | None = None) -> bool:
        """Return whether nothing waits and nothing is in hand, at the latest after a time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._waiting is None and not self._is_busy, timeout_s
            )

    def stop(self, timeout_s: float | None = None) -> bool:
        """Finish the item in hand, drop the one that waits, and end the thread.

        Returns whether it ended within `timeout_s`; None waits for it.
        """
        with self._changed:
            self._stopping = True
            waiting, self._waiting = self._waiting, None
            self._changed.notify_all()
        if waiting is not None:
            self._dropped(waiting, "shutdown")
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (item := self._take()) is not None:
            try:
                self._process(item)
            except Exception:
                logger.exception("a frame failed")
                self._dropped(item, "failed")

    def _take(self) -> Item | None:
        """Wait for an item, and return it; None once the worker was stopped."""
        with self._changed:
            self._is_busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting is not None or self._stopping)
            item, self._waiting = self._waiting, None
            self._is_busy = item is not None
            return item
