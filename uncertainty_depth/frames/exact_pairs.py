# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Pair the messages of two topics by equal stamps."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple


class Unmatched(NamedTuple):
    """A message given up before its partner came; `side` is 0 or 1."""

    stamp_ns: int
    side: int


class ExactPairs:
    """Keeps each message of side 0 or 1 until its partner with the same stamp comes.

    Attributes:
        queue_size: maximum number of messages that wait; may be set at any time.
    """

    def __init__(self, queue_size: int) -> None:
        self.queue_size = queue_size
        self._waiting: OrderedDict[tuple[int, int], Any] = OrderedDict()

    def add(
        self, side: int, stamp_ns: int, item: Any
    ) -> tuple[tuple[Any, Any] | None, list[Unmatched]]:
        """Take a message; return the pair it completes, if any, and the messages given up."""
        partner = self._waiting.pop((stamp_ns, 1 - side), None)
        if partner is not None:
            pair = (item, partner) if side == 0 else (partner, item)
            return pair, []
        unmatched = []
        if self._waiting.pop((stamp_ns, side), None) is not None:
            unmatched.append(Unmatched(stamp_ns, side))
        self._waiting[stamp_ns, side] = item
        while len(self._waiting) > self.queue_size:
            key, _ = self._waiting.popitem(last=False)
            unmatched.append(Unmatched(*key))
        return None, unmatched

    def __len__(self) -> int:
        """Return the number of messages that wait for their partner."""
        return len(self._waiting)

    def flush(self) -> list[Unmatched]:
        """Give up all messages that wait, and return them."""
        unmatched = [Unmatched(*key) for key in self._waiting]
        self._waiting.clear()
        return unmatched
