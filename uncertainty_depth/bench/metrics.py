# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Speed of the metrics against their peers, and a billion pixels at constant memory.

Each row times one of our functions and a peer on the same pixels by turns, on one core, and keeps
the shortest CPU time of each. Peers are test extras; rows of those that are not installed are left
out. The peers take all pixels at once; the accumulator takes them as they come, in frames of at
most 320x240.

`python -m uncertainty_depth.bench.metrics [--pixels N ...] [--billion [N]]`
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from uncertainty_depth.bench.metric_peers import TOGETHER, Case, Pixels, cases
from uncertainty_depth.metrics import OnlineMetrics

SIZES = (20_000, 1_000_000, 10_000_000)
FRAME = 320 * 240


class Row(NamedTuple):
    """One of our functions and its peer: CPU milliseconds, and how many times faster ours is."""

    pixels: int
    what: str
    ours_ms: float
    peer: str
    peer_ms: float

    @property
    def ratio(self) -> float:
        """Peer's time over ours."""
        return self.peer_ms / self.ours_ms


def draw(number: int, seed: int) -> Pixels:
    """Return depth, sigma and ground truth as a network in float32 gives them."""
    rng = np.random.default_rng(seed)
    first, second, third = rng.standard_normal((3, number), dtype=np.float32)
    ground_truth = np.clip(8 * np.exp(0.7 * first), 0.5, 79)
    scale = 0.08 * ground_truth * np.exp(0.4 * second)
    depth = np.maximum(ground_truth + scale * third, 0.05)
    return depth, 0.8 * scale * np.exp(0.3 * np.roll(first, 1)), ground_truth


def run(sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """Time everything at each number of pixels; minutes at 1e7."""
    torch.set_num_threads(1)
    rows = []
    for pixels in tqdm(sizes, desc="metrics", unit="size"):
        singles = [_row(pixels, case) for case in cases(draw(pixels, seed=0))]
        together = sum(row.peer_ms for row in singles if row.peer in TOGETHER)
        rows += [
            *singles,
            Row(
                pixels,
                "all online metrics",
                _online(pixels),
                "the peers marked * together",
                together,
            ),
        ]
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| pixels | ours | ms | peer | ms | ratio |",
        "| ---: | --- | ---: | --- | ---: | ---: |",
    ]
    for row in rows:
        ours = f"{row.what} | {row.ours_ms:.4g}"
        peer = f"{row.peer} | {row.peer_ms:.4g}"
        lines.append(f"| {row.pixels:,} | {ours} | {peer} | {row.ratio:.3g} |")
    return "\n".join(lines)


def _row(pixels: int, case: Case) -> Row:
    repetitions = max(1, min(30, 3_000_000 // pixels))
    ours_ms = []
    theirs_ms = []
    for _ in range(repetitions):
        ours_ms.append(_milliseconds(case.ours))
        theirs_ms.append(_milliseconds(case.theirs))
    return Row(pixels, case.what, min(ours_ms), case.peer, min(theirs_ms))


def _online(pixels: int) -> float:
    """Accumulate all pixels frame by frame, the per-image metrics included."""
    whole = draw(pixels, seed=0)
    frames = []
    for start in range(0, pixels, FRAME):
        frames.append([values[start : start + FRAME] for values in whole])
    metrics = OnlineMetrics()

    def update_all() -> None:
        for frame in frames:
            metrics.update(*frame)

    rounds = max(2, min(300, 6_000_000 // pixels))
    return min(_milliseconds(update_all) for _ in range(rounds))


def _milliseconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


def main() -> None:
    """Print the table, or the drift."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--pixels", type=int, nargs="+", default=SIZES, help="numbers of pixels to time at"
    )
    parser.add_argument(
        "--billion",
        type=int,
        nargs="?",
        const=1_000_000_000,
        help="feed so many pixels to one accumulator, and print the drift",
    )
    arguments = parser.parse_args()
    if not arguments.billion:
        print(table(run(tuple(arguments.pixels))))
        return
    from uncertainty_depth.bench.metric_drift import feed

    drift = feed(arguments.billion)
    print(
        f"{drift.pixels:,} pixels in {drift.seconds:.0f} CPU s of updates, "
        f"state {drift.state_bytes:,} bytes"
    )
    print(f"memory grown by {drift.grown_mb:.1f} MB since 3 % of them")
    print(
        "relative drift from 80-bit sums: "
        + ", ".join(f"{name} {value:.1e}" for name, value in drift.relative.items())
    )


if __name__ == "__main__":
    main()
