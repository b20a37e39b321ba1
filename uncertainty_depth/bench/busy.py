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

from uncertainty_depth.bench.metrics import draw
from uncertainty_depth.bench.rounds import Spread, load, markdown
from uncertainty_depth.metrics import OnlineMetrics

PIXELS = 20_000
REPETITIONS = 100
ENDLESS = "while True: pass"


class Times(NamedTuple):
    """Milliseconds for a frame, wall and CPU time."""

    load: str
    wall_ms: Spread
    cpu_ms: Spread


def run(repetitions: int = REPETITIONS) -> list[Times]:
    """Time `OnlineMetrics.update` of 20,000 pixels alone, then beside one process per core."""
    metrics = OnlineMetrics()
    frames = [draw(PIXELS, seed) for seed in range(10)]
    for frame in frames:
        metrics.update(*frame)
    rows = []
    for state in ("as it is", "every core busy"):
        with ExitStack() as stack:
            if state == "every core busy":
                stack.enter_context(busy_cores())
            wall_ms = []
            cpu_ms = []
            for number in range(repetitions):
                wall = time.perf_counter()
                cpu = time.process_time()
                metrics.update(*frames[number % len(frames)])
                cpu_ms.append(1e3 * (time.process_time() - cpu))
                wall_ms.append(1e3 * (time.perf_counter() - wall))
        rows.append(Times(state, Spread.of(wall_ms), Spread.of(cpu_ms)))
    return rows


def table(rows: list[Times]) -> str:
    """Return the rows as a Markdown table, and the ratio of the medians of the wall times."""
    alone, busy = rows
    ratio = busy.wall_ms.median / alone.wall_ms.median
    times = markdown(("20,000 pixels", "wall ms", "CPU ms"), rows)
    return f"{times}\n\nbusy / as it is: {ratio:.2f}; {load()}"


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
