# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Calls timed by turns, and how times and ratios spread over the rounds.

All calls of a comparison take turns, so that other load on the machine hits all of them alike, and
a ratio is formed of two times of one round.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import trange

Calls = Mapping[str, Callable[[], object]]
Seconds = Mapping[str, NDArray[np.float64]]


class Spread(NamedTuple):
    """Minimum, median and maximum over the rounds."""

    minimum: float
    median: float
    maximum: float

    @classmethod
    def of(cls, values: Sequence[float] | NDArray[np.float64]) -> Spread:
        """Return the spread of one value or more."""
        return cls(float(np.min(values)), float(np.median(values)), float(np.max(values)))

    def __str__(self) -> str:
        """Return "median (minimum to maximum)"."""
        return f"{self.median:.2f} ({self.minimum:.2f} to {self.maximum:.2f})"


def alternate(
    calls: Calls,
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    warm_up: int = 1,
    description: str = "rounds",
) -> dict[str, NDArray[np.float64]]:
    """Return the seconds of each call in each round.

    Args:
        calls: what is timed, by name.
        rounds: number of rounds.
        clock: `time.perf_counter` for wall time, `time.process_time` for CPU time.
        warm_up: rounds before them that are not counted: they compile and fill caches.
        description: of the progress bar.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in trange(warm_up + rounds, desc=description, unit="round"):
        for name, call in calls.items():
            start = clock()
            call()
            if number >= warm_up:
                seconds[name].append(clock() - start)
    return {name: np.array(durations) for name, durations in seconds.items()}


def markdown(head: Sequence[str], rows: Sequence[Sequence[object]], text_columns: int = 1) -> str:
    """Return a Markdown table; columns after the first `text_columns` are aligned right."""
    rule = ["---"] * text_columns + ["---:"] * (len(head) - text_columns)
    lines = [" | ".join(map(str, cells)) for cells in (head, rule, *rows)]
    return "\n".join(f"| {line} |" for line in lines)


def load() -> str:
    """Return the machine's load average of the last minute, in words."""
    return f"load average {os.getloadavg()[0]:.1f}"
