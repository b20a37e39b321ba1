# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Choose as many samples or members as fit into a frame's time, learned from earlier frames.

A frame's time is modelled as `load (overhead + samples)`. The overhead, in samples, depends on
network and computer. It is learned from neighbouring frames with different numbers of samples. The
load, in milliseconds per sample, changes with other running work: it is a high quantile of recent
frames, without the slowest.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise

from uncertainty_depth.core.records import SampleRange

MIN_SAMPLES = 2
"""Fewer have no spread."""
LEARNING_FRAMES = 8
"""First frames, which use 2 and 4 samples in turn."""
LEARNING_SAMPLES = (2, 4)
RECENT_FRAMES = 20
RECENT_PAIRS = 31
QUANTILE = 0.9
MAX_OVERHEAD = 64.0


class SampleBudget:
    """Chooses each frame's samples; used from one thread."""

    def __init__(self) -> None:
        self._frames: deque[tuple[int, float]] = deque(maxlen=RECENT_FRAMES)
        self._overheads: deque[float] = deque(maxlen=RECENT_PAIRS)
        self._next = 0
        self._learned = 0

    def choose(self, budget_ms: float, passes: int) -> SampleRange:
        """Return the next frame's samples, in turn; a budget of 0 milliseconds uses all `passes`.

        If all fit, their order is always the same: the maps equal a run's without a budget.
        """
        count = self._count(budget_ms, passes) if budget_ms and passes > MIN_SAMPLES else passes
        if count == passes:
            return SampleRange(0, passes)
        first = self._next % passes
        self._next = (first + count) % passes
        return SampleRange(first, count)

    def _count(self, budget_ms: float, passes: int) -> int:
        if self._learned < LEARNING_FRAMES:
            return min(LEARNING_SAMPLES[self._learned % 2], passes)
        overhead = self.overhead
        fitting = math.floor(budget_ms / self.sample_ms - overhead)
        return min(max(fitting, MIN_SAMPLES), passes)

    def add(self, samples: int, milliseconds: float) -> None:
        """Learn from a frame: how many samples it used, and its duration, above 0 milliseconds."""
        self._learned += 1
        self._frames.append((samples, milliseconds))
        newest = list(self._frames)[-2:]
        for before, after in pairwise(newest):
            if before[0] != after[0]:
                self._overheads.append(_overhead(before, after))

    @property
    def overhead(self) -> float:
        """The part of a frame's time that does not depend on the samples, in samples."""
        ascending = sorted(self._overheads)
        return ascending[len(ascending) // 2] if ascending else 0.0

    @property
    def sample_ms(self) -> float:
        """Time of one more sample under the present load, milliseconds; NaN before a frame."""
        if not self._frames:
            return math.nan
        overhead = self.overhead
        ascending = sorted(time_ms / (overhead + count) for count, time_ms in self._frames)
        number = min(math.ceil(QUANTILE * len(ascending)), max(len(ascending) - 1, 1))
        return ascending[number - 1]


def _overhead(before: tuple[int, float], after: tuple[int, float]) -> float:
    """Return the overhead, in samples, that explains two frames of the same load."""
    (few, few_ms), (many, many_ms) = sorted((before, after))
    if few_ms >= many_ms:
        return MAX_OVERHEAD
    overhead = (many * few_ms - few * many_ms) / (many_ms - few_ms)
    return min(max(overhead, 0.0), MAX_OVERHEAD)
