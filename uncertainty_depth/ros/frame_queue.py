# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The newest images of one camera, while the network is busy."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class InHand:
    """The frame in work, if any: it leaves the node by whoever settles it first. Thread-safe.

    A frame that outlasts the shutdown is given up there; what becomes of it later counts no more.
    """

    def __init__(self) -> None:
        self._is_held = False
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        with self._lock:
            return self._is_held

    def hold(self) -> None:
        """Begin with a frame."""
        with self._lock:
            self._is_held = True

    def settle(self) -> bool:
        """Return whether the caller is the first to say what became of the frame."""
        with self._lock:
            was_held = self._is_held
            self._is_held = False
            return was_held


class FrameQueue(Generic[Item]):
    """Keeps the newest items. Any thread may use it.

    Attributes:
        capacity: number of items kept; may be replaced at any time.
    """

    def __init__(self, dropped: Callable[[str, int], None], capacity: int = 1) -> None:
        """Start empty.

        Args:
            dropped: is called with the reason and the number of items that are not processed.
            capacity: number of items kept.
        """
        self.capacity = capacity
        self._dropped = dropped
        self._items: deque[Item] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return the number of items that wait."""
        with self._lock:
            return len(self._items)

    def put(self, item: Item) -> None:
        """Queue an item; displaced ones, oldest first, are dropped as "queue_full"."""
        with self._lock:
            self._items.append(item)
            surplus = max(0, len(self._items) - self.capacity)
            for _ in range(surplus):
                self._items.popleft()
        if surplus:
            self._dropped("queue_full", surplus)

    def take(self) -> Item | None:
        """Remove and return the oldest item; None if there is none."""
        with self._lock:
            return self._items.popleft() if self._items else None

    def clear(self, reason: str) -> None:
        """Drop all items."""
        with self._lock:
            count = len(self._items)
            self._items.clear()
        if count:
            self._dropped(reason, count)
