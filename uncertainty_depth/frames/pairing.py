# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Pair messages by time: images with each LiDAR's nearest cloud, maps by equal stamps."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_WAITING_BYTES = 256 * 2**20
"""Data of the messages that wait in one queue: 30 maps of 2 megapixels, or 10 images of 8."""


def size_of(item: Any) -> int:
    """Return the bytes of a message's data, or of several messages' together."""
    if isinstance(item, tuple):
        return sum(map(size_of, item))
    return len(getattr(item, "data", ()))


def surplus(items: Sequence[Any], queue_size: int) -> int:
    """Return how many of the oldest items must leave, so that `queue_size` and the bytes hold."""
    kept = 0
    size = 0
    for item in reversed(items):
        size += size_of(item)
        if kept == queue_size or size > MAX_WAITING_BYTES:
            break
        kept += 1
    return len(items) - kept


class Unmatched(NamedTuple):
    """A message given up before its partner came; `side` is 0 or 1."""

    stamp_ns: int
    side: int
    item: Any


class ExactPairs:
    """Keeps each message of side 0 or 1 until its partner with the same stamp comes."""

    def __init__(self, queue_size: int) -> None:
        """Start empty; at most `queue_size` messages wait, of `MAX_WAITING_BYTES` together."""
        self._queue_size = queue_size
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
        earlier = self._waiting.pop((stamp_ns, side), None)
        if earlier is not None:
            unmatched.append(Unmatched(stamp_ns, side, earlier))
        self._waiting[stamp_ns, side] = item
        for _ in range(surplus([*self._waiting.values()], self._queue_size)):
            key, oldest = self._waiting.popitem(last=False)
            unmatched.append(Unmatched(*key, oldest))
        return None, unmatched

    def __len__(self) -> int:  # of messages that wait
        return len(self._waiting)

    def flush(self) -> list[Unmatched]:
        """Give up all messages that wait, and return them."""
        unmatched = [Unmatched(*key, item) for key, item in self._waiting.items()]
        self._waiting.clear()
        return unmatched


class Outcome(NamedTuple):
    """The decision on one reference: `cloud` is None if none is near enough.

    `apart_ns` is the time from the reference to the nearest cloud, near enough or not; None if
    there was no cloud.
    """

    stamp_ns: int
    reference: Any
    cloud: Any | None
    apart_ns: int | None = None


@dataclass
class _Cloud:
    stamp_ns: int
    item: Any
    is_paired: bool = False


class NearestClouds:
    """Pairs references (camera images or predictions) with each stream's cloud of nearest stamp.

    A reference is decided once every stream has a cloud at or after it, so the outcome does not
    depend on how the streams interleave, as long as each is in order. If a stream's time jumps
    back (a looping bag), waiting references are decided with what is there, and pairing starts
    anew. The outcome's `cloud` is a tuple of one cloud per stream, in their order, with None for a
    stream that has none near enough; it is None if no stream has one.

    Attributes:
        counts: references `paired` and `unmatched` (every reference is one of them once flushed),
            those `pushed_out` of a full queue before later clouds came, `clouds_unmatched`, and
            the backward jumps in time of the references and of all clouds.
        incomplete: by stream, references that are paired without a cloud of it.
    """

    def __init__(
        self, streams: Iterable[str], max_time_difference_s: float, queue_size: int
    ) -> None:
        self._tolerance_ns = round(max_time_difference_s * 1e9)
        self._queue_size = queue_size
        self._references: deque[tuple[int, Any]] = deque()
        self._clouds: dict[str, deque[_Cloud]] = {
            name: deque() for name in streams
        }  # as they came
        self._newest_reference: int | None = None
        self._newest_cloud: dict[str, int | None] = dict.fromkeys(self._clouds)
        self.incomplete: Counter[str] = Counter()
        names = (
            "paired",
            "unmatched",
            "pushed_out",
            "clouds_unmatched",
            "reference_time_jumps",
            "cloud_time_jumps",
        )
        self.counts = dict.fromkeys(names, 0)

    def add_reference(self, stamp_ns: int, item: Any) -> list[Outcome]:
        """Add a reference; return the references decided by it, perhaps itself."""
        outcomes = []
        if self._jumped(self._newest_reference, stamp_ns):
            self.counts["reference_time_jumps"] += 1
            outcomes = self._decide(len(self._references))
            # clouds before the jump say nothing about clouds after it
            self._newest_reference = None
            self._newest_cloud = dict.fromkeys(self._clouds)
        self._newest_reference = max(stamp_ns, self._newest_reference or stamp_ns)
        self._references.append((stamp_ns, item))
        outcomes += self._decide_complete()
        overflow = surplus([item for _, item in self._references], self._queue_size)
        self.counts["pushed_out"] += overflow
        return outcomes + self._decide(overflow)

    def add_cloud(self, stream: str, stamp_ns: int, item: Any) -> list[Outcome]:
        """Add a stream's cloud; return the references decided by it."""
        outcomes = []
        newest_ns = self._newest_cloud[stream]
        if self._jumped(newest_ns, stamp_ns):
            self.counts["cloud_time_jumps"] += 1
            outcomes = self._decide(len(self._references))
            newest_ns = None
        self._newest_cloud[stream] = max(stamp_ns, newest_ns or stamp_ns)
        clouds = self._clouds[stream]
        clouds.append(_Cloud(stamp_ns, item))
        while surplus([cloud.item for cloud in clouds], self._queue_size):
            decided = self._decide_for_want_of(clouds, stream)
            outcomes += decided
            if not decided:
                self._forget_first(clouds)
        return outcomes + self._decide_complete()

    def flush(self) -> list[Outcome]:
        """Decide all waiting references and forget the clouds: the streams' end."""
        outcomes = self._decide(len(self._references))
        for clouds in self._clouds.values():
            while clouds:
                self._forget_first(clouds)
        self._newest_reference = None
        self._newest_cloud = dict.fromkeys(self._clouds)
        return outcomes

    def __len__(self) -> int:  # of references that wait
        return len(self._references)

    def _jumped(self, newest_ns: int | None, stamp_ns: int) -> bool:
        """Return whether time went back by more than one stream's jitter."""
        return newest_ns is not None and stamp_ns < newest_ns - self._tolerance_ns

    def _decide_complete(self) -> list[Outcome]:
        """Return the first references that no later cloud of any stream can be nearer to."""
        count = 0
        newest_ns = list(self._newest_cloud.values())
        for stamp_ns, _ in self._references:
            if any(newest is None or stamp_ns > newest for newest in newest_ns):
                break
            count += 1
        return self._decide(count)

    def _decide_for_want_of(self, clouds: deque[_Cloud], stream: str) -> list[Outcome]:
        """Decide what waits for another stream alone: a silent LiDAR must not cost the others."""
        last_ns = min(clouds[0].stamp_ns + self._tolerance_ns, self._newest_cloud[stream] or 0)
        count = 0
        for stamp_ns, _ in self._references:
            if stamp_ns > last_ns:
                break
            count += 1
        self.counts["pushed_out"] += count
        return self._decide(count)

    def _decide(self, count: int) -> list[Outcome]:
        return [self._outcome(*self._references.popleft()) for _ in range(count)]

    def _outcome(self, stamp_ns: int, item: Any) -> Outcome:
        found: list[Any | None] = []
        apart_ns: list[int] = []
        lacking = []
        for name, clouds in self._clouds.items():
            # The earlier of two stamps equally near; of equal stamps the cloud that came last.
            nearest = min(
                reversed(clouds),
                key=lambda cloud: (abs(cloud.stamp_ns - stamp_ns), cloud.stamp_ns),
                default=None,
            )
            if nearest is not None:
                apart_ns.append(nearest.stamp_ns - stamp_ns)
            if nearest is None or abs(nearest.stamp_ns - stamp_ns) > self._tolerance_ns:
                found.append(None)
                lacking.append(name)
            else:
                nearest.is_paired = True
                found.append(nearest.item)
            while clouds and clouds[0].stamp_ns < stamp_ns - self._tolerance_ns:
                self._forget_first(clouds)  # too old for every later reference
        is_paired = len(lacking) < len(found)
        self.counts["paired" if is_paired else "unmatched"] += 1
        if is_paired:
            self.incomplete.update(lacking)
        return Outcome(
            stamp_ns,
            item,
            tuple(found) if is_paired else None,
            min(apart_ns, key=abs, default=None),
        )

    def _forget_first(self, clouds: deque[_Cloud]) -> None:
        self.counts["clouds_unmatched"] += not clouds.popleft().is_paired
