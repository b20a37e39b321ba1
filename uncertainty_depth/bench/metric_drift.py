# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A billion pixels at constant memory: rounding errors and memory of one accumulator."""

from __future__ import annotations

import resource
import time
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from uncertainty_depth.bench.metrics import FRAME, draw
from uncertainty_depth.metrics import OnlineMetrics


class Drift(NamedTuple):
    """Rounding error and memory growth after many pixels."""

    pixels: int
    seconds: float
    relative: dict[str, float]
    state_bytes: int
    grown_mb: float


def feed(pixels: int) -> Drift:
    """Feed pixels to one accumulator, frame by frame, and compare its sums with 80-bit ones."""
    metrics = OnlineMetrics()
    exact = np.zeros(3, dtype=np.longdouble)
    seconds = 0.0
    early = 0.0
    frames = -(-pixels // FRAME)
    for seed in tqdm(range(frames), desc="pixels", unit="frame"):
        frame = draw(min(FRAME, pixels - seed * FRAME), seed)
        start = time.process_time()
        metrics.update(*frame)
        seconds += time.process_time() - start
        truth = frame[2].astype(np.float64)
        error = np.abs(frame[0].astype(np.float64) - truth)
        exact += [
            values.sum(dtype=np.longdouble) for values in (error, error / truth, error * error)
        ]
        if seed == frames // 33:
            early = _peak_mb()
    grown = _peak_mb() - early
    errors = metrics.compute()["depth"]
    means = exact / metrics.pixels
    pairs = {
        "mae": (errors["mae"], means[0]),
        "abs_rel": (errors["abs_rel"], means[1]),
        "rmse": (errors["rmse"], np.sqrt(means[2])),
    }
    drift = {
        name: float(abs(np.longdouble(value) / reference - 1))
        for name, (value, reference) in pairs.items()
    }
    return Drift(metrics.pixels, seconds, drift, metrics.nbytes, grown)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
