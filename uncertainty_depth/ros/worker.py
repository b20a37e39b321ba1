# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A bounded queue and the one thread that processes it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
logger = logging.getLogger(__name__)


class Worker(Generic[Item]):
    """Calls `process` with each queued item, oldest first, on its own thread.

    A full queue drops its oldest item. `dropped(item, reason)` is called for every item that is
    not processed: "queue_full", "shutdown", or "failed" where `process` raised.
    """

    def __init__(
        self,
        process: Callable[[Item], None],
        dropped: Callable[[Item, str], None],
        capacity: int = 1,
    ) -> None:
        self._process = process
        self._dropped = dropped
        self.capacity = capacity
        self._items: deque[Item] = deque()
        self._jobs: deque[tuple[int, Future, Callable[[], Any]]] = deque()
        self._next_index = 0
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def put(self, item: Item) -> None:
        """Queue an item and return at once; after `stop` it is dropped."""
        with self._changed:
            if self._stopping:
                overflow = [item]
                reason = "shutdown"
            else:
                overflow = self._append(item)
                reason = "queue_full"
            self._changed.notify()
        for oldest in overflow:
            self._dropped(oldest, reason)

    def _append(self, item: Item) -> list[Item]:
        """Queue an item and return the items that it displaces."""
        self._items.append(item)
        surplus = max(0, len(self._items) - self.capacity)
        self._next_index += surplus
        return [self._items.popleft() for _ in range(surplus)]

    def call(self, job: Callable[[], Any]) -> Future:
        """Run `job` on the worker's thread after all items queued so far.

        Jobs are never dropped, except after `stop`, which cancels their futures.
        """
        future: Future = Future()
        with self._changed:
            if self._stopping:
                future.cancel()
            else:
                self._jobs.append((self._next_index + len(self._items), future, job))
                self._changed.notify()
        return future

    def post(self, job: Callable[[], Any]) -> None:
        """Run `job` as `call` does, and log its exception."""
        self.call(job).add_done_callback(_log_failure)

    def stop(self, timeout_s: float | None = None) -> bool:
        """Finish the current item and the jobs in the queue, drop all other items, end the thread.

        Returns:
            Whether the thread ended within `timeout_s`; None waits for it.
        """
        with self._changed:
            self._stopping = True
            queue = list(self._items)
            self._items.clear()
            self._changed.notify()
        for item in queue:
            self._dropped(item, "shutdown")
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def waiting(self) -> int:
        """Return the number of items in the queue."""
        with self._changed:
            return len(self._items)

    def _run(self) -> None:
        while (task := self._next()) is not None:
            task()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._jobs or self._stopping)
            if self._jobs and (self._jobs[0][0] <= self._next_index or not self._items):
                _, future, job = self._jobs.popleft()
                return partial(_settle, future, job)
            if self._items:
                item = self._items.popleft()
                self._next_index += 1
                return partial(self._work, item)
            return None

    def _work(self, item: Item) -> None:
        try:
            self._process(item)
        except Exception:
            logger.exception("a frame failed")
            self._dropped(item, "failed")


def _settle(future: Future, job: Callable[[], Any]) -> None:
    try:
        future.set_result(job())
    except Exception as error:
        future.set_exception(error)


def _log_failure(future: Future) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        logger.error("a job failed", exc_info=error)
