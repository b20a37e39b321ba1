# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Pair messages by time: images with the nearest cloud of each LiDAR, maps by equal stamps."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Unmatched(NamedTuple):
    """A message given up before its partner came; `side` is 0 or 1."""

    stamp_ns: int
    side: int
    item: Any


class ExactPairs:
    """Keeps each message of side 0 or 1 until its partner with the same stamp comes."""

    def __init__(self, queue_size: int) -> None:
        """Start empty; at most `queue_size` messages wait."""
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
        while len(self._waiting) > self._queue_size:
            key, oldest = self._waiting.popitem(last=False)
            unmatched.append(Unmatched(*key, oldest))
        return None, unmatched

    def __len__(self) -> int:
        """Return the number of messages that wait for their partner."""
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


class Pairer:
    """Pairs references (camera images or predictions) with the cloud of the nearest stamp.

    A reference is decided once a cloud at or after it has come, so the outcome does not depend on
    how the streams interleave, as long as each is in order. If a stream's time jumps back (a
    looping bag), waiting references are decided with what is there, and pairing starts anew.

    Attributes:
        counts: references `paired` and `unmatched` (every reference is one of them once flushed),
            those `pushed_out` of a full queue before a later cloud came, `clouds_unmatched`, and
            the backward jumps in time of each stream.
    """

    def __init__(self, max_time_difference_s: float, queue_size: int) -> None:
        self._tolerance_ns = round(max_time_difference_s * 1e9)
        self._queue_size = queue_size
        self._references: deque[tuple[int, Any]] = deque()
        self._clouds: deque[_Cloud] = deque()  # in order of arrival
        self._newest_reference: int | None = None
        self._newest_cloud: int | None = None
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
            self._newest_cloud = None
        self._newest_reference = max(stamp_ns, self._newest_reference or stamp_ns)
        self._references.append((stamp_ns, item))
        outcomes += self._decide_complete()
        overflow = max(0, len(self._references) - self._queue_size)
        self.counts["pushed_out"] += overflow
        return outcomes + self._decide(overflow)

    def add_cloud(self, stamp_ns: int, item: Any) -> list[Outcome]:
        """Add a cloud; return the references decided by it."""
        outcomes = []
        if self._jumped(self._newest_cloud, stamp_ns):
            self.counts["cloud_time_jumps"] += 1
            outcomes = self._decide(len(self._references))
            self._newest_cloud = None
        self._newest_cloud = max(stamp_ns, self._newest_cloud or stamp_ns)
        self._clouds.append(_Cloud(stamp_ns, item))
        while len(self._clouds) > self._queue_size:
            self._forget_cloud()
        return outcomes + self._decide_complete()

    def flush(self) -> list[Outcome]:
        """Decide all waiting references and forget the clouds: the end of the streams."""
        outcomes = self._decide(len(self._references))
        while self._clouds:
            self._forget_cloud()
        self._newest_reference = None
        self._newest_cloud = None
        return outcomes

    def __len__(self) -> int:
        """Return the number of references that wait."""
        return len(self._references)

    def _jumped(self, newest_ns: int | None, stamp_ns: int) -> bool:
        """Return whether time went back by more than the jitter of one stream."""
        return newest_ns is not None and stamp_ns < newest_ns - self._tolerance_ns

    def _decide_complete(self) -> list[Outcome]:
        count = 0
        for stamp_ns, _ in self._references:
            if self._newest_cloud is None or stamp_ns > self._newest_cloud:
                break
            count += 1
        return self._decide(count)

    def _decide(self, count: int) -> list[Outcome]:
        return [self._outcome(*self._references.popleft()) for _ in range(count)]

    def _outcome(self, stamp_ns: int, item: Any) -> Outcome:
        # The earlier of two stamps equally near; of equal stamps the cloud that came last.
        nearest = min(
            reversed(self._clouds),
            key=lambda cloud: (abs(cloud.stamp_ns - stamp_ns), cloud.stamp_ns),
            default=None,
        )
        apart_ns = None if nearest is None else nearest.stamp_ns - stamp_ns
        if apart_ns is None or abs(apart_ns) > self._tolerance_ns:
            nearest = None
        elif nearest is not None:
            nearest.is_paired = True
        self.counts["unmatched" if nearest is None else "paired"] += 1
        while self._clouds and self._clouds[0].stamp_ns < stamp_ns - self._tolerance_ns:
            self._forget_cloud()  # too old for every later reference
        return Outcome(stamp_ns, item, nearest and nearest.item, apart_ns)

    def _forget_cloud(self) -> None:
        self.counts["clouds_unmatched"] += not self._clouds.popleft().is_paired


class NearestClouds:
    """Pairs references with the nearest cloud of each stream, as `Pairer` does with one stream.

    A reference is decided once every stream has decided it. The outcome's `cloud` is a tuple of
    one cloud per stream, in their order, with None for a stream that has none near enough; it is
    None if no stream has one.

    Attributes:
        incomplete: by stream, references that are paired without a cloud of it.
    """

    def __init__(
        self, streams: Iterable[str], max_time_difference_s: float, queue_size: int
    ) -> None:
        self._pairers = {name: Pairer(max_time_difference_s, queue_size) for name in streams}
        self._decided: dict[str, deque[Outcome]] = {name: deque() for name in self._pairers}
        self._paired = Counter({"paired": 0, "unmatched": 0})
        self.incomplete: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return the number of references that some stream has not decided."""
        name, pairer = next(iter(self._pairers.items()))
        return len(pairer) + len(self._decided[name])

    @property
    def counts(self) -> dict[str, int]:
        """Counts over all streams, see `Pairer`; cloud counts are sums over the streams."""
        counts: Counter[str] = Counter()
        for pairer in self._pairers.values():
            counts.update(pairer.counts)
        jumps = max(pairer.counts["reference_time_jumps"] for pairer in self._pairers.values())
        return {**counts, "reference_time_jumps": jumps, **self._paired}

    def add_reference(self, stamp_ns: int, item: Any) -> list[Outcome]:
        """Add a reference; return the references decided by it, perhaps itself."""
        for name, pairer in self._pairers.items():
            self._decided[name].extend(pairer.add_reference(stamp_ns, item))
        return self._complete()

    def add_cloud(self, stream: str, stamp_ns: int, item: Any) -> list[Outcome]:
        """Add a cloud of a stream; return the references decided by it."""
        self._decided[stream].extend(self._pairers[stream].add_cloud(stamp_ns, item))
        return self._complete()

    def flush(self) -> list[Outcome]:
        """Decide all waiting references and forget the clouds: the end of the streams."""
        for name, pairer in self._pairers.items():
            self._decided[name].extend(pairer.flush())
        return self._complete()

    def _complete(self) -> list[Outcome]:
        """Return the references that all streams have decided: each does so in their order."""
        count = min(len(decided) for decided in self._decided.values())
        return [self._outcome() for _ in range(count)]

    def _outcome(self) -> Outcome:
        by_stream = {name: decided.popleft() for name, decided in self._decided.items()}
        outcomes = list(by_stream.values())
        apart_ns = [item.apart_ns for item in outcomes if item.apart_ns is not None]
        clouds = tuple(item.cloud for item in outcomes)
        lacking = [name for name, item in by_stream.items() if item.cloud is None]
        is_paired = len(lacking) < len(clouds)
        self._paired["paired" if is_paired else "unmatched"] += 1
        if is_paired:
            self.incomplete.update(lacking)
        return outcomes[0]._replace(
            cloud=clouds if is_paired else None, apart_ns=min(apart_ns, key=abs, default=None)
        )
