# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The correction of sigma that covers a fraction of the errors, estimated frame by frame.

Two parts, both of the model's own sigma:

window
    The factor that covers the fraction over the last frames, which all weigh the same: the
    lambda of n-MeRCI (Moukari et al. 2019) over the half width of a Gaussian interval. Bands of
    sigma with enough frames get their own factor, shrunk towards the overall one.
trim
    Rolling risk control (Feldman et al., "Achieving Risk Control in Online Learning Settings",
    TMLR 2023) on the logarithm of the factor: after each frame it rises by
    `gain (fraction not covered - fraction allowed)`. As in adaptive conformal inference (Gibbs
    and Candes, NeurIPS 2021) the sum of the steps is bounded, so whatever the errors do, the mean
    coverage of T frames is within C / T of the requested fraction.

A frame's loss is the loss of the correction estimated before it. The correction in force when the
frame was published does not matter, so there is no loop through the robot that could oscillate.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration.correction import (
    IDENTITY,
    KNOTS,
    Correction,
    Floats,
    increasing,
)
from uncertainty_depth.calibration.frame_window import (
    EDGES,
    FrameWindow,
    every_nth,
    frame_ratios,
)
from uncertainty_depth.config.nodes import OnlineEstimateConfig
from uncertainty_depth.metrics.calibration import GAUSSIAN

GAIN = 0.1
"""Octaves by which the trim rises after a frame of which nothing is covered."""
LIMIT = 64.0
"""Largest factor that is estimated, either way."""
MIN_BAND_FRAMES = 50
PRIOR_BAND_FRAMES = 100
"""Frames of a band at which half of its own factor counts, and half of that of all bands."""
MIN_RELIEF = 0.05
"""Octaves between bands below which all have the same factor."""
RECENT_FRAMES = 100
"""Frames that the coverage now is the mean of."""
CLOCK_JUMP_NS = 1_000_000_000
"""A stamp this much older than the newest one starts the estimate anew."""


class OnlineEstimate:
    """Estimates the correction of a model's own sigma from frames with ground truth.

    Attributes:
        config: options.
        half_width: of the Gaussian interval of the fraction to be covered, in sigmas.
        correction: the estimate; none before `calibration_min_frames` frames.
        stamp_ns: time of the newest frame, nanoseconds; None before the first.
        trim: octaves.
    """

    def __init__(self, config: OnlineEstimateConfig | None = None, gain: float = GAIN) -> None:
        self.config = config or OnlineEstimateConfig()
        self.half_width = float(GAUSSIAN.half_widths(self.config.coverage))
        self._gain = gain
        self.reset()

    def reset(self) -> None:
        """Forget all frames."""
        self.correction: Correction | None = None
        self.stamp_ns: int | None = None
        self.trim = 0.0
        self._window = FrameWindow(self.config.calibration_window)
        self._covered: deque[float] = deque(maxlen=RECENT_FRAMES)

    def add(
        self, stamp_ns: int, error: NDArray[np.floating], own_sigma: NDArray[np.floating]
    ) -> float:
        """Add a frame; return the fraction of its errors not covered by the previous estimate.

        Args:
            stamp_ns: its time, nanoseconds.
            error: (N,) absolute errors, metres; N at least 1.
            own_sigma: (N,) the model's own sigma of these pixels, metres.
        """
        if self.stamp_ns is not None and stamp_ns < self.stamp_ns - CLOCK_JUMP_NS:
            self.reset()
        error = every_nth(np.asarray(error, dtype=np.float64))
        sigma = every_nth(np.asarray(own_sigma, dtype=np.float64))
        before = self.correction or IDENTITY
        uncovered = float((error > self.half_width * before(sigma)).mean())
        self._covered.append(1 - uncovered)
        if self.correction is not None:
            self._move_trim(uncovered, before)
        half_width = self.half_width * sigma
        self._window.add(frame_ratios(stamp_ns, error, half_width, sigma, self.config.coverage))
        self.stamp_ns = stamp_ns
        if self.correction is not None or self.frames >= self.config.calibration_min_frames:
            octaves = covering_octaves(self._window, self.config.coverage) + self.trim
            self.correction = increasing(octaves).limited(1 / LIMIT, LIMIT)
        return uncovered

    def _move_trim(self, uncovered: float, before: Correction) -> None:
        step = self._gain * (uncovered - (1 - self.config.coverage))
        is_at_limit = before.min_factor >= LIMIT if step > 0 else before.max_factor <= 1 / LIMIT
        if not is_at_limit:
            self.trim += step

    @property
    def frames(self) -> int:
        """Number of frames that the estimate rests on."""
        return len(self._window)

    @property
    def changes(self) -> int:
        """Number of times that the errors changed and older frames were forgotten."""
        return self._window.changes

    @property
    def recent_coverage(self) -> float:
        """Mean fraction of recent frames' errors covered by the estimate before each frame."""
        return float(np.mean(self._covered)) if self._covered else math.nan

    @property
    def relative_error(self) -> float:
        """Relative standard error of the factor, over frames; NaN for fewer than two."""
        return float(np.expm1(self._window.standard_error() * math.log(2)))


def covering_octaves(window: FrameWindow, coverage: float) -> Floats:
    """Return log2 of the factor at each of `KNOTS` that covers a fraction of the window's errors.

    Args:
        window: at least one frame.
        coverage: fraction to be covered.
    """
    masses = np.maximum(window.masses, 0.0) / len(window)  # subtraction leaves -1e-17
    cumulative = np.concatenate((np.zeros((len(KNOTS), 1)), np.cumsum(masses, axis=1)), axis=1)
    relief = band_relief(cumulative, window.band_frames, coverage)
    shifted = [
        np.interp(EDGES + shift, EDGES, band)
        for shift, band in zip(relief, cumulative, strict=True)
    ]
    return relief + quantile_octaves(np.sum(shifted, axis=0), coverage)


def band_relief(cumulative: Floats, band_frames: NDArray[np.int64], coverage: float) -> Floats:
    """Return by how many octaves each band's factor exceeds the overall factor.

    Args:
        cumulative: (bands, edges) mass of each band below each of `EDGES`.
        band_frames: (bands,) number of frames that each has.
        coverage: fraction to be covered.
    """
    bands = np.flatnonzero(band_frames >= MIN_BAND_FRAMES)
    if len(bands) < 2:
        return np.zeros(len(KNOTS))
    of_all = quantile_octaves(cumulative.sum(axis=0), coverage)
    own = np.array([quantile_octaves(cumulative[band], coverage) for band in bands])
    weight = band_frames[bands] / (band_frames[bands] + PRIOR_BAND_FRAMES)
    relief = np.interp(KNOTS, KNOTS[bands], weight * (own - of_all))
    if np.ptp(relief) < MIN_RELIEF:
        return np.zeros(len(KNOTS))
    return np.array(increasing(relief).octaves)


def quantile_octaves(cumulative: Floats, coverage: float) -> float:
    """Return the value below which a fraction of the mass lies; linear within a bin.

    Args:
        cumulative: (edges,) mass below each of `EDGES`.
        coverage: the fraction.
    """
    target = coverage * cumulative[-1]
    upper = max(int(np.searchsorted(cumulative, target)), 1)
    before, after = cumulative[upper - 1 : upper + 1]
    part = (target - before) / (after - before) if after > before else 1.0
    return float(EDGES[upper - 1] + part * (EDGES[upper] - EDGES[upper - 1]))
