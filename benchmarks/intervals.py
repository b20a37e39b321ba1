# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Print how often the 95 % intervals of slowly changing runs hold the truth, and their width.

python -m benchmarks.intervals --runs 300

A run is a first-order autoregression of each frame's mean error, coverage, AUSE and log sigma. A
correlation of .9 is that of a room or a light that lasts a second at 10 Hz. With `--noise .5` half
of the variance is each frame's own, which hides the slow half. NLL has no limits, so it has an
interval only where ten blocks seem to exist: the last column counts those runs alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics.bootstrap import Resampled
from uncertainty_depth.metrics.calibration import GAUSSIAN
from uncertainty_depth.metrics.metric import ANY, Metric
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import BY_NAME
from uncertainty_depth.metrics.state import Sums, empty_block

PIXELS = 1000
METRICS: dict[str, Metric | Callable[[Sums], Floats]] = {
    "MAE": BY_NAME["depth.mae"],
    "coverage": BY_NAME["uncertainty.coverage_95"],
    "AUSE": BY_NAME["uncertainty.ause.rmse"],
    "log sigma": lambda sums: sums["log_sigma"] / sums["pixels"],
    "NLL": BY_NAME["uncertainty.nll"],
}
FRAMES = (20, 40, 120, 600)


def run(random: np.random.Generator, correlation: float, noise: float, frames: int) -> Floats:
    """Return (5, frames) values of the metrics; a half of AUSE follows the error."""
    steps = random.standard_normal((3, frames))
    steps[:, 1:] *= np.sqrt(1 - correlation**2)
    for frame in range(1, frames):
        steps[:, frame] += correlation * steps[:, frame - 1]
    own = random.standard_normal((3, frames))
    return of_latent(np.sqrt(1 - noise) * steps + np.sqrt(noise) * own)


def of_latent(latent: Floats) -> Floats:
    """Return the metrics of normally distributed conditions: (3, N) to (5, N)."""
    error, sigma, order = latent
    covered = np.round(PIXELS / (1 + np.exp(-2.5 - 0.8 * (sigma - error) / np.sqrt(2))))
    ause = np.exp(0.5 * (error + order) / np.sqrt(2))
    log_sigma = 0.4 * sigma
    nll = GAUSSIAN.nll(log_sigma, np.exp(0.8 * (error - sigma)))
    return np.stack([np.exp(0.4 * error), covered / PIXELS, ause, log_sigma, nll])


def metrics_of(values: Floats) -> OnlineMetrics:
    """Return the metrics of a run whose frames have these values."""
    metrics = OnlineMetrics()
    for error, covered, ause, log_sigma, nll in values.T:
        block = empty_block()
        block["frames"] = 1
        block["pixels"] = PIXELS
        block["error"] = PIXELS * error
        block["log_sigma"] = PIXELS * log_sigma
        block["covered"] = PIXELS * covered
        block["ause"] = ause
        squares = (nll - GAUSSIAN.normaliser - log_sigma) / GAUSSIAN.weight
        block["squared_ratio"] = PIXELS * squares
        metrics.blocks.add(block)
    return metrics


def main() -> None:
    """Print a row for each correlation and number of frames."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--correlation", type=float, nargs="+", default=[0.0, 0.5, 0.9])
    options = parser.parse_args()
    truth = of_latent(np.random.default_rng(1).standard_normal((3, 1_000_000))).mean(axis=1)
    print(f"| correlation | frames | blocks | {' | '.join(METRICS)} |")
    for correlation, frames in product(options.correlation, FRAMES):
        random = np.random.default_rng(2)
        blocks = []
        held = np.zeros((options.runs, len(METRICS)))
        widths = np.zeros_like(held)
        for index in range(options.runs):
            sample = Resampled(metrics_of(run(random, correlation, options.noise, frames)))
            blocks.append(sample.drawn_blocks)
            for place, metric in enumerate(METRICS.values()):
                limits = ANY if place == len(METRICS) - 1 else None
                interval = sample.interval(sample.rows(metric), limits=limits)
                is_known = np.isfinite(interval.low)
                is_held = interval.low <= truth[place] <= interval.high
                held[index, place] = is_held if is_known else np.nan
                widths[index, place] = (interval.high - interval.low) / 2
        known = np.isfinite(held).sum(axis=0)
        cells = [
            f"{np.nansum(each) / max(number, 1):.1%} of {number}, ±{np.nanmedian(width):.3f}"
            if number
            else "none"
            for each, width, number in zip(held.T, widths.T, known, strict=True)
        ]
        row = f"| {correlation} | {frames} | {np.median(blocks):.0f} |"
        print(row, " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
