# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Print how often the 95 % intervals of slowly changing runs hold the truth, and their width.

python -m benchmarks.intervals --runs 300

A run is a first-order autoregression of each frame's mean error, coverage, AUSE and log sigma. A
correlation of .9 is that of a room or a light that lasts a second at 10 Hz. With `--noise .5` half
of the variance is each frame's own, which hides the slow half.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics.bootstrap import Resampled
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_NAME, Metric
from uncertainty_depth.metrics.state import Sums, empty_block

PIXELS = 1000
METRICS: dict[str, Metric | Callable[[Sums], Floats]] = {
    "MAE": BY_NAME["depth.mae"],
    "coverage": BY_NAME["uncertainty.coverage_95"],
    "AUSE": BY_NAME["uncertainty.ause.rmse"],
    "log sigma": lambda sums: sums["log_sigma"] / sums["pixels"],
}
FRAMES = (20, 40, 120, 600)


def run(random: np.random.Generator, correlation: float, noise: float, frames: int) -> Floats:
    """Return (4, frames) values of the metrics; a half of AUSE follows the error."""
    steps = random.standard_normal((3, frames))
    steps[:, 1:] *= np.sqrt(1 - correlation**2)
    for frame in range(1, frames):
        steps[:, frame] += correlation * steps[:, frame - 1]
    own = random.standard_normal((3, frames))
    return of_latent(np.sqrt(1 - noise) * steps + np.sqrt(noise) * own)


def of_latent(latent: Floats) -> Floats:
    """Return the metrics of normally distributed conditions: (3, N) to (4, N)."""
    error, sigma, order = latent
    covered = np.round(PIXELS / (1 + np.exp(-2.5 - 0.8 * (sigma - error) / np.sqrt(2))))
    ause = np.exp(0.5 * (error + order) / np.sqrt(2))
    return np.stack([np.exp(0.4 * error), covered / PIXELS, ause, 0.4 * sigma])


def metrics_of(values: Floats) -> OnlineMetrics:
    """Return the metrics of a run whose frames have these values."""
    metrics = OnlineMetrics()
    for error, covered, ause, log_sigma in values.T:
        block = empty_block()
        block["frames"] = 1
        block["pixels"] = PIXELS
        block["error"] = PIXELS * error
        block["log_sigma"] = PIXELS * log_sigma
        block["covered"] = PIXELS * covered
        block["ause"] = ause
        metrics.blocks.add(block)
    return metrics


def main() -> None:
    """Print a row for each correlation and number of frames."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--noise", type=float, default=0.0)
    options = parser.parse_args()
    truth = of_latent(np.random.default_rng(1).standard_normal((3, 1_000_000))).mean(axis=1)
    print(f"| correlation | frames | blocks | {' | '.join(METRICS)} |")
    for correlation, frames in product((0.0, 0.5, 0.9), FRAMES):
        random = np.random.default_rng(2)
        blocks = []
        held = np.zeros((options.runs, len(METRICS)))
        widths = np.zeros_like(held)
        for index in range(options.runs):
            sample = Resampled(metrics_of(run(random, correlation, options.noise, frames)))
            blocks.append(sample.drawn_blocks)
            for place, metric in enumerate(METRICS.values()):
                interval = sample.interval(sample.rows(metric))
                held[index, place] = interval.low <= truth[place] <= interval.high
                widths[index, place] = (interval.high - interval.low) / 2
        cells = [
            f"{share:.1%}, ±{width:.3f}"
            for share, width in zip(held.mean(axis=0), np.median(widths, axis=0), strict=True)
        ]
        row = f"| {correlation} | {frames} | {np.median(blocks):.0f} |"
        print(row, " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
