# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Overlap reading and scoring with a loop, each on its own thread, in the loop's order.

NumPy, OpenCV and torch let other threads run while they compute, so a loop over frames takes as
long as its slowest part. A few frames at most are in flight: memory stays bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
AHEAD = 2
"""Items that are read before they are asked for."""
BEHIND = 1
"""Steps that may wait to be done, or be at work: more make nothing faster."""
_END: Any = object()


def read_ahead(items: Iterable[Item]) -> Generator[Item, None, None]:
    """Yield the items, which another thread reads, from the first to the last.

    An exception of the reading is raised in place of its item. Leaving the loop waits for the
    item that is being read, and ends the iteration on the thread that began it.
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1, "reading") as thread:
        waiting = deque(thread.submit(next, iterator, _END) for _ in range(AHEAD))
        try:
            while (item := waiting.popleft().result()) is not _END:
                waiting.append(thread.submit(next, iterator, _END))
                yield item
        finally:
            for future in waiting:
                future.cancel()
            thread.submit(getattr(iterator, "close", _nothing)).result()


class Behind(Generic[Item]):
    """Runs steps in order on its own thread, at most `BEHIND` of them late.

    On leaving the context all steps are done; after an exception those that wait are dropped.

    Attributes:
        latest: what the last step known to be done returned; None before the first.
    """

    def __init__(self) -> None:
        self.latest: Item | None = None
        self._thread = ThreadPoolExecutor(1, "scoring")
        self._waiting: deque[Future[Item]] = deque()

    def add(self, step: Callable[[], Item]) -> None:
        """Queue a step; raise the exception of an earlier one."""
        while len(self._waiting) >= BEHIND or (self._waiting and self._waiting[0].done()):
            self.latest = self._waiting.popleft().result()
        self._waiting.append(self._thread.submit(step))

    def __enter__(self) -> Behind[Item]:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._thread:
            if error_type is not None:
                for future in self._waiting:
                    future.cancel()
                return
            while self._waiting:
                self.latest = self._waiting.popleft().result()


class AtOnce(Generic[Item]):
    """Runs steps immediately: `Behind` without a thread, as its reference."""

    latest: Item | None = None

    def add(self, step: Callable[[], Item]) -> None:
        """Do a step."""
        self.latest = step()

    def __enter__(self) -> AtOnce[Item]:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: no step is queued."""


def _nothing() -> None:
    pass
