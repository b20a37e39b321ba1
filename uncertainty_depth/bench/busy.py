# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What scoring a frame takes on a machine as it is, and while every core of it is busy.

A robot's processor is always busy. The wall time counts: it holds what a frame waits for a core,
and for threads that other programs keep from running.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import numpy as np

from uncertainty_depth.bench.metrics import draw
from uncertainty_depth.metrics import OnlineMetrics

PIXELS = 20_000
REPETITIONS = 100
ENDLESS = "while True: pass"


class Times(NamedTuple):
    """Milliseconds for a frame: minimum, median and maximum over the repetitions."""

    load: str
    minimum: float
    median: float
    maximum: float


def run(repetitions: int = REPETITIONS) -> list[Times]:
    """Time `OnlineMetrics.update` of 20,000 pixels alone, then beside one process per core."""
    metrics = OnlineMetrics()
    frames = [draw(PIXELS, seed) for seed in range(10)]
    for frame in frames:
        metrics.update(*frame)
    rows = []
    for load in ("as it is", "every core busy"):
        with ExitStack() as stack:
            if load == "every core busy":
                stack.enter_context(busy_cores())
            wall_ms = []
            cpu_ms = []
            for number in range(repetitions):
                wall = time.perf_counter()
                cpu = time.process_time()
                metrics.update(*frames[number % len(frames)])
                cpu_ms.append(1e3 * (time.process_time() - cpu))
                wall_ms.append(1e3 * (time.perf_counter() - wall))
        rows += [_times(f"{load}, wall", wall_ms), _times(f"{load}, CPU", cpu_ms)]
    return rows


def table(rows: list[Times]) -> str:
    """Return the rows as a Markdown table, and the ratio of the medians of the wall times."""
    lines = ["| 20,000 pixels | min ms | median ms | max ms |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {row.load} | {row[1]:.1f} | {row[2]:.1f} | {row[3]:.1f} |" for row in rows]
    ratio = rows[2].median / rows[0].median
    load = os.getloadavg()[0]
    return "\n".join([*lines, "", f"busy / as it is: {ratio:.2f}; load average {load:.1f}"])


@contextmanager
def busy_cores() -> Iterator[None]:
    """Run one process per core that computes without end."""
    cores = range(os.cpu_count() or 1)
    processes = [subprocess.Popen([sys.executable, "-c", ENDLESS]) for _ in cores]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _times(load: str, milliseconds: list[float]) -> Times:
    return Times(load, min(milliseconds), float(np.median(milliseconds)), max(milliseconds))
