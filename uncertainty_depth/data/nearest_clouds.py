# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Pair camera images with the nearest cloud of each of several LiDARs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from uncertainty_depth.data.pairing import Outcome, Pairer


class NearestClouds:
    """Pairs references with the nearest cloud of each stream, as `Pairer` does with one stream.

    A reference is decided once every stream has decided it. The outcome's `cloud` is a tuple of
    the clouds that are near enough, in the order of the streams; None where there is none.

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

    @property
    def counts(self) -> dict[str, int]:
        """Counts of all streams: see `Pairer`; those of clouds are sums over the streams."""
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
        clouds = tuple(item.cloud for item in outcomes if item.cloud is not None)
        self._paired["paired" if clouds else "unmatched"] += 1
        if clouds:
            self.incomplete.update(name for name, item in by_stream.items() if item.cloud is None)
        return outcomes[0]._replace(
            cloud=clouds or None, apart_ns=min(apart_ns, key=abs, default=None)
        )
