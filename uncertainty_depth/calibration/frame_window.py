# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The last frames' ratios of error to sigma, each frame with the same weight.

A frame's scale error is common to all its pixels, so frames are the independent observations, not
pixels: every frame counts 1, however many pixels it has.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration.correction import KNOTS, Floats
from uncertainty_depth.metrics.merci import error_ratio, order_number

MAX_FRAMES = 4000
MAX_PIXELS = 4096
"""Pixels of a frame that are looked at, evenly spaced."""
MIN_BAND_FRACTION = 0.02
"""Of a frame's pixels, that it needs in a band of sigma to count as one of its frames."""
EDGES: Floats = np.arange(-80, 81) / 10.0
"""Of the bins of log2(error / half width)."""
BINS = len(EDGES) - 1
MIN_RECENT = 5
"""Frames after a change that can show it, at least."""
MIN_BEFORE = 20
"""Frames before a change, at least."""
CHANGE_THRESHOLD = 5.0
"""Standard errors between two parts of the window that make a change."""
MAX_AUTOCORRELATION = 0.95


class FrameRatios(NamedTuple):
    """A frame's distribution of error / half width, as sparse counts.

    Attributes:
        stamp_ns: its time, nanoseconds.
        cells: indices into (bands, bins), flat, each once.
        weights: fraction of the frame's pixels in each of them.
        bands: (K,) whether the band of each of `KNOTS` has enough of its pixels.
        octaves: log2 of the factor that would cover exactly the requested fraction of this frame.
    """

    stamp_ns: int
    cells: NDArray[np.int64]
    weights: Floats
    bands: NDArray[np.bool_]
    octaves: float


def every_nth(values: Floats) -> Floats:
    """Return at most `MAX_PIXELS` of the values, evenly spaced."""
    step = math.ceil(len(values) / MAX_PIXELS)
    return values[::step]


def frame_ratios(
    stamp_ns: int, error: Floats, half_width: Floats, sigma: Floats, coverage: float
) -> FrameRatios:
    """Return the ratios of a frame of at least one pixel.

    Args:
        stamp_ns: its time, nanoseconds.
        error: (N,) absolute errors, metres.
        half_width: (N,) of the interval that should cover `coverage` of them, metres.
        sigma: (N,) the sigma that decides the band, metres.
        coverage: fraction to be covered.
    """
    with np.errstate(divide="ignore"):
        octaves = np.log2(error_ratio(error, half_width))
        levels = np.log2(sigma)
    clipped = np.clip(octaves, EDGES[0], EDGES[-1])
    ratio_bin = np.minimum(((clipped - EDGES[0]) / (EDGES[1] - EDGES[0])).astype(int), BINS - 1)
    band = np.rint(np.clip(levels, KNOTS[0], KNOTS[-1]) - KNOTS[0]).astype(int)
    counts = np.bincount(band * BINS + ratio_bin, minlength=len(KNOTS) * BINS)
    cells = np.flatnonzero(counts)
    covering = np.partition(clipped, order_number(coverage, len(error)) - 1)
    return FrameRatios(
        stamp_ns,
        cells,
        counts[cells] / len(error),
        np.bincount(band, minlength=len(KNOTS)) >= MIN_BAND_FRACTION * len(error),
        float(covering[order_number(coverage, len(error)) - 1]),
    )


class FrameWindow:
    """Sums over the frames of the last `duration_s` seconds, or since the errors last changed.

    The window is cut if its newest frames need another factor than the frames before (adaptive
    windowing, after Bifet and Gavalda, "Learning from Time-Changing Data with Adaptive Windowing",
    SDM 2007): while nothing changes, it is long and the estimate is steady.

    Attributes:
        masses: (bands, bins) sums of the frames' weights.
        band_frames: (bands,) number of frames with enough pixels in each band.
        changes: how often the window was cut.
    """

    def __init__(self, duration_s: float) -> None:
        self._duration_ns = round(duration_s * 1e9)
        self._frames: deque[FrameRatios] = deque()
        self.changes = 0
        self.masses: Floats = np.zeros((len(KNOTS), BINS))
        self.band_frames: NDArray[np.int64] = np.zeros(len(KNOTS), dtype=np.int64)

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._frames)

    def add(self, frame: FrameRatios) -> None:
        """Add the newest frame, and forget frames that are too old or from before a change."""
        self._frames.append(frame)
        self._sum(frame, 1)
        oldest_ns = frame.stamp_ns - self._duration_ns
        while len(self) > MAX_FRAMES or self._frames[0].stamp_ns < oldest_ns:
            self._forget_oldest()
        recent = frames_since_change(self._octaves())
        if recent < len(self):
            self.changes += 1
        while len(self) > recent:
            self._forget_oldest()

    def standard_error(self) -> float:
        """Return the standard error of log2 of the factor, by frames; NaN for fewer than two."""
        octaves = self._octaves()
        if len(octaves) < 2:
            return math.nan
        residuals = octaves - octaves.mean()
        return math.sqrt(residuals.var(ddof=1) * inflation(residuals) / len(octaves))

    def _octaves(self) -> Floats:
        return np.array([frame.octaves for frame in self._frames])

    def _forget_oldest(self) -> None:
        self._sum(self._frames.popleft(), -1)

    def _sum(self, frame: FrameRatios, sign: int) -> None:
        self.masses.reshape(-1)[frame.cells] += sign * frame.weights
        self.band_frames += sign * frame.bands


def inflation(residuals: Floats) -> float:
    """Return by how much correlation in time inflates the variance of a mean: (1 + r) / (1 - r).

    r is the correlation of neighbours in an autoregressive process of order 1, at least 0, after
    the correction of its bias in short series (Kendall, "Note on bias in the estimation of
    autocorrelation", Biometrika 1954).
    """
    power = float((residuals**2).sum())
    if not power:
        return 1.0
    correlation = float((residuals[1:] * residuals[:-1]).sum()) / power
    correlation += (1 + 3 * correlation) / len(residuals)
    correlation = min(max(correlation, 0.0), MAX_AUTOCORRELATION)
    return (1 + correlation) / (1 - correlation)


def frames_since_change(octaves: Floats) -> int:
    """Return how many of the newest frames share the newest's level; all without a change.

    Compare the newest 5, 10, 20, ... frames with the frames before them. If they differ, try every
    number of frames near the best of these.

    Args:
        octaves: (N,) log2 of the factor that each frame needs, the oldest first.
    """
    max_recent = len(octaves) - MIN_BEFORE
    distances = {}
    recent = MIN_RECENT
    while recent <= max_recent:
        distances[recent] = standardised_distance(octaves, recent)
        recent *= 2
    if not distances or max(distances.values()) < CHANGE_THRESHOLD:
        return len(octaves)
    best = max(distances, key=lambda recent: distances[recent])
    near = range(max(best // 2, 2), min(2 * best, max_recent) + 1)
    return max(near, key=lambda recent: standardised_distance(octaves, recent))


def standardised_distance(octaves: Floats, recent: int) -> float:
    """Return the distance between the newest frames' mean and the others', in standard errors.

    Args:
        octaves: (N,) correlated in time.
        recent: number of the newest.
    """
    before = octaves[:-recent]
    after = octaves[-recent:]
    change = after.mean() - before.mean()
    residuals = np.concatenate((before - before.mean(), after - after.mean()))
    variance = float((residuals**2).sum()) / (len(octaves) - 2) * inflation(residuals)
    error = math.sqrt(variance * (1 / len(before) + 1 / recent))
    if not error:
        return math.inf if change else 0.0
    return abs(float(change)) / error
