# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What torch's threads cost while other programs want the processors too.

A pool of threads that waits for its slowest member by spinning takes the processor from the very
program that it waits for. Each setting runs the same frames in a process of its own, as the
variables are read when torch is imported; the processes take turns, first while the machine is
otherwise left alone, then beside as many endless loops as it has processors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from benchmarks.rounds import Spread, load, markdown

SETTINGS: dict[str, dict[str, str]] = {
    "as torch is": {},
    "passive": {"OMP_WAIT_POLICY": "passive"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
VARIABLES = ("OMP_WAIT_POLICY", "OMP_NUM_THREADS")
FRAMES = 4
WORKER = """
import sys, time
import numpy as np
from uncertainty_depth import Predictor
predictor = Predictor(sys.argv[1], device="cpu", engine="torch", precision="fp32")
image = np.zeros((240, 320, 3), np.uint8)
predictor.predict(image)
for line in sys.stdin:
    wall, processor = time.perf_counter(), time.process_time()
    for stamp in range(int(line)):
        predictor.predict(image, stamp)
    print(time.perf_counter() - wall, time.process_time() - processor, flush=True)
"""
LOOP = "while True: pass"


class Row(NamedTuple):
    """One setting: seconds a frame, and its ratios to torch's own."""

    machine: str
    setting: str
    wall_s: Spread
    processor_s: Spread
    of_wall: Spread
    of_processor: Spread


def run(rounds: int = 5, model: str = "demo") -> list[Row]:
    """Return a row for each setting, on the machine as it is and beside endless loops."""
    rows = []
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(_worker(values, model)) for name, values in SETTINGS.items()
        }
        rows += _rows("as it is", workers, rounds)
        for _ in range(os.cpu_count() or 1):
            stack.enter_context(_process([sys.executable, "-c", LOOP]))
        rows += _rows("beside endless loops", workers, rounds)
    return rows


def _rows(
    machine: str, workers: Mapping[str, subprocess.Popen[str]], rounds: int
) -> Iterator[Row]:
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            assert worker.stdin is not None
            assert worker.stdout is not None
            print(FRAMES, file=worker.stdin, flush=True)
            wall, processor = map(float, worker.stdout.readline().split())
            seconds[name].append((wall / FRAMES, processor / FRAMES))
    own = seconds["as torch is"]
    for name, times in seconds.items():
        pairs = list(zip(times, own, strict=True))
        yield Row(
            machine,
            name,
            Spread.of([wall for wall, _ in times]),
            Spread.of([processor for _, processor in times]),
            Spread.of([mine[0] / torchs[0] for mine, torchs in pairs]),
            Spread.of([mine[1] / torchs[1] for mine, torchs in pairs]),
        )


@contextmanager
def _worker(values: Mapping[str, str], model: str) -> Iterator[subprocess.Popen[str]]:
    plain = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    with _process([sys.executable, "-c", WORKER, model], {**plain, **values}) as worker:
        yield worker


@contextmanager
def _process(
    command: list[str], environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    head = ("machine", "threads", "s per frame", "CPU s", "of torch's own", "CPU of torch's own")
    print(markdown(head, run(), text_columns=2) + f"\n\n{load()}")
