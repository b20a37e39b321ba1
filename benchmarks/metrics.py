# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Speed of the metrics against their peers.

Each row times one of our functions and a peer on the same pixels by turns, on one core, in CPU
time. Peers are test extras; rows of those that are not installed are left out. The peers take all
pixels at once; the accumulator takes them as they come, in frames of at most 320x240.

`python -m benchmarks.metrics [--pixels N ...]`
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.metric_peers import TOGETHER, Case, Pixels, cases
from benchmarks.rounds import Spread, alternate, load, markdown
from uncertainty_depth.metrics import OnlineMetrics

SIZES = (20_000, 1_000_000, 10_000_000)
FRAME = 320 * 240


class Row(NamedTuple):
    """One of our functions and its peer: CPU milliseconds, and the peer's over ours."""

    pixels: int
    label: str
    ours_ms: Spread
    peer: str
    peer_ms: Spread
    ratio: Spread


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
        singles = list(cases(draw(pixels, seed=0)))
        peers = [case.theirs for case in singles if case.peer in TOGETHER]
        together = Case(
            "all online metrics",
            _online(pixels),
            "the peers marked * together",
            lambda peers=peers: [peer() for peer in peers],  # type: ignore[misc]
        )
        rows += [_row(pixels, case) for case in (*singles, together)]
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    head = ("ours", "peer", "pixels", "ours, CPU ms", "peer, CPU ms", "peer / ours")
    cells = [
        (row.label, row.peer, f"{row.pixels:,}", row.ours_ms, row.peer_ms, row.ratio)
        for row in rows
    ]
    return f"{markdown(head, cells, text_columns=2)}\n\n{load()}"


def _row(pixels: int, case: Case) -> Row:
    rounds = max(2, min(30, 3_000_000 // pixels))
    calls = {"ours": case.ours, "theirs": case.theirs}
    description = f"{case.label}, {pixels:,} pixels"
    seconds = alternate(calls, rounds, time.process_time, description=description)
    ours = seconds["ours"]
    theirs = seconds["theirs"]
    ratio = Spread.of(theirs / ours)
    return Row(
        pixels, case.label, Spread.of(1e3 * ours), case.peer, Spread.of(1e3 * theirs), ratio
    )


def _online(pixels: int) -> Callable[[], None]:
    """Return a call that accumulates all pixels frame by frame, per-image metrics included."""
    arrays = draw(pixels, seed=0)
    frames = []
    for start in range(0, pixels, FRAME):
        frames.append([values[start : start + FRAME] for values in arrays])
    metrics = OnlineMetrics()

    def update_all() -> None:
        for frame in frames:
            metrics.update(*frame)

    return update_all


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--pixels", type=int, nargs="+", default=SIZES, help="numbers of pixels to time at"
    )
    print(table(run(tuple(parser.parse_args().pixels))))


if __name__ == "__main__":
    main()
