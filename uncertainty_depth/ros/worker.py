"""A bounded queue and the one thread that works it off."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
logger = logging.getLogger(__name__)


class Worker(Generic[Item]):
    """Hands items, oldest first, to `process` on a thread of its own; a full queue drops its oldest item.

    `dropped(item, reason)` is told of every item that is not processed: "queue_full", "shutdown", or "failed" when `process` raised.
    """

    def __init__(
        self,
        process: Callable[[Item], None],
        dropped: Callable[[Item, str], None],
        capacity: int = 1,
    ) -> None:
        self._process, self._dropped, self.capacity = process, dropped, capacity
        self._items: deque[Item] = deque()
        self._jobs: deque[tuple[int, Future, Callable[[], Any]]] = deque()
        self._taken = 0
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def put(self, item: Item) -> None:
        """Queue an item and return at once; after `stop` it is dropped."""
        with self._changed:
            overflow = [(item, "shutdown")] if self._stopping else self._append(item)
            self._changed.notify()
        for lost, reason in overflow:
            self._dropped(lost, reason)

    def _append(self, item: Item) -> list[tuple[Item, str]]:
        self._items.append(item)
        surplus = max(0, len(self._items) - self.capacity)
        self._taken += surplus
        return [(self._items.popleft(), "queue_full") for _ in range(surplus)]

    def call(self, job: Callable[[], Any]) -> Future:
        """Run `job` on the worker's thread once everything queued so far is done; jobs are never dropped, except after `stop`."""
        future: Future = Future()
        with self._changed:
            if self._stopping:
                future.cancel()
            else:
                self._jobs.append((self._taken + len(self._items), future, job))
                self._changed.notify()
        return future

    def post(self, job: Callable[[], Any]) -> None:
        """As `call`, for a job whose result nobody waits for: its exception is logged."""
        self.call(job).add_done_callback(_log_failure)

    def stop(self, timeout_s: float | None = None) -> bool:
        """Finish the item in hand and the jobs already called for, drop what waits, end the thread.

        Returns whether it ended within `timeout_s`; None waits for it.
        """
        with self._changed:
            self._stopping = True
            waiting = list(self._items)
            self._items.clear()
            self._changed.notify()
        for item in waiting:
            self._dropped(item, "shutdown")
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def waiting(self) -> int:
        """How many items wait."""
        with self._changed:
            return len(self._items)

    def _run(self) -> None:
        while (task := self._next()) is not None:
            task()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._jobs or self._stopping)
            if self._jobs and (self._jobs[0][0] <= self._taken or not self._items):
                _, future, job = self._jobs.popleft()
                return lambda: _settle(future, job)
            if self._items:
                item = self._items.popleft()
                self._taken += 1
                return lambda: self._work(item)
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
