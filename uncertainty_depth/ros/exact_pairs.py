"""Two streams of messages joined by equal stamps."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple


class Unmatched(NamedTuple):
    """A message whose partner did not come while it was kept."""

    stamp_ns: int
    side: int


class ExactPairs:
    """Holds each message of side 0 or 1 until its partner of the same stamp comes; at most `queue_size` of them wait."""

    def __init__(self, queue_size: int) -> None:
        self.queue_size = queue_size
        self._waiting: OrderedDict[tuple[int, int], Any] = OrderedDict()

    def add(
        self, side: int, stamp_ns: int, item: Any
    ) -> tuple[tuple[Any, Any] | None, list[Unmatched]]:
        """Take in a message; returns the pair it completes, if any, and the messages given up for it."""
        partner = self._waiting.pop((stamp_ns, 1 - side), None)
        if partner is not None:
            return ((item, partner) if side == 0 else (partner, item)), []
        lost = (
            [Unmatched(stamp_ns, side)]
            if self._waiting.pop((stamp_ns, side), None) is not None
            else []
        )
        self._waiting[stamp_ns, side] = item
        while len(self._waiting) > self.queue_size:
            lost.append(Unmatched(*self._waiting.popitem(last=False)[0]))
        return None, lost

    def __len__(self) -> int:
        """How many messages wait for their partner."""
        return len(self._waiting)

    def flush(self) -> list[Unmatched]:
        """Give up everything that waits."""
        lost = [Unmatched(*key) for key in self._waiting]
        self._waiting.clear()
        return lost
