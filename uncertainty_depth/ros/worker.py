# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The newest items of one or several sources, and the one thread that works on them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
logger = logging.getLogger(__name__)


class Worker(Generic[Item]):
    """Calls `process` on its own thread with the oldest item of each source that has one.

    Of each source the newest `capacity` items wait. `dropped(item, reason)` is called for every
    other: "queue_full", "shutdown", or "failed" if `process` raised.
    """

    def __init__(
        self,
        process: Callable[..., None],
        dropped: Callable[[Item, str], object],
        capacity: int = 1,
        sources: int = 1,
    ) -> None:
        self.capacity = capacity
        self._process = process
        self._dropped = dropped
        self._queues: list[deque[tuple[int, Item]]] = [deque() for _ in range(sources)]
        self._jobs: deque[tuple[int, Future, Callable[[], Any]]] = deque()
        self._numbers = count()  # items and jobs in the order in which they came
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def put(self, item: Item, source: int = 0) -> None:
        """Queue an item and return at once; after `stop` it is dropped."""
        reason = "queue_full"
        with self._changed:
            queue = self._queues[source]
            queue.append((next(self._numbers), item))
            surplus = len(queue) - self.capacity
            if self._stopping:
                surplus = len(queue)
                reason = "shutdown"
            overflow = [queue.popleft()[1] for _ in range(surplus)]
            self._changed.notify()
        for oldest in overflow:
            self._dropped(oldest, reason)

    def call(self, job: Callable[[], Any]) -> Future:
        """Run `job` on the worker's thread after all items queued so far.

        Jobs are never dropped, except after `stop`, which cancels their futures.
        """
        future: Future = Future()
        with self._changed:
            if self._stopping:
                future.cancel()
            else:
                self._jobs.append((next(self._numbers), future, job))
                self._changed.notify()
        return future

    def stop(self, timeout_s: float | None = None) -> bool:
        """Finish the items in hand and the jobs, drop all other items, and end the thread.

        Returns:
            Whether the thread ended within `timeout_s`; None waits for it.
        """
        with self._changed:
            self._stopping = True
            waiting = [item for queue in self._queues for _, item in queue]
            for queue in self._queues:
                queue.clear()
            self._changed.notify()
        for item in waiting:
            self._dropped(item, "shutdown")
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            task()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            self._changed.wait_for(lambda: any(self._queues) or self._jobs or self._stopping)
            oldest = min((queue[0][0] for queue in self._queues if queue), default=None)
            if self._jobs and (oldest is None or self._jobs[0][0] < oldest):
                _, future, job = self._jobs.popleft()
                return partial(_settle, future, job)
            if oldest is None:
                return None
            return partial(self._work, [queue.popleft()[1] for queue in self._queues if queue])

    def _work(self, items: list[Item]) -> None:
        try:
            self._process(*items)
        except Exception:
            logger.exception("a frame failed")
            for item in items:
                self._dropped(item, "failed")


def _settle(future: Future, job: Callable[[], Any]) -> None:
    try:
        future.set_result(job())
    except Exception as error:
        future.set_exception(error)
