# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How large the model's own sigma and depth must be, estimated frame by frame from ground truth.

The factor on sigma covers a fraction of the errors. It has two parts:

window
    The factor that covers the fraction over the last frames, which all weigh the same, however
    many pixels they have, since the error of a frame's scale is common to its pixels: the
    lambda of n-MeRCI (Moukari et al. 2019) over the half width of a Gaussian interval.
trim
    Rolling risk control (Feldman et al., "Achieving Risk Control in Online Learning Settings",
    TMLR 2023) on the factor's logarithm: after each frame it rises by
    `gain (fraction not covered - fraction allowed)`. As in adaptive conformal inference (Gibbs
    and Candes, NeurIPS 2021) the sum of the steps is bounded, so whatever the errors do, the mean
    coverage of T frames is within C / T of the requested fraction.

A frame's loss is the loss of the factor estimated before it. The factor in force when the frame
was published does not matter, so there is no loop through the robot that could oscillate.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.config.nodes import OnlineEstimateConfig
from uncertainty_depth.metrics.arrays import neighbour_correlation
from uncertainty_depth.metrics.calibration import GAUSSIAN
from uncertainty_depth.metrics.merci import error_ratio, order_number

GAIN = 0.1
"""Octaves by which the trim rises after a frame of which nothing is covered."""
LIMIT = 64.0
"""Largest factor that is estimated, either way."""
MIN_FRAMES = 20
"""Scored frames before the first estimate."""
LOOK_BACK_S = 120.0
"""Time that the estimate looks back at most; a change of the errors shortens it."""
RECENT_FRAMES = 100
"""Frames that the coverage now is the mean of."""
CLOCK_JUMP_NS = 1_000_000_000
"""A stamp this much older than the newest one starts the estimate anew."""


class OnlineEstimate:
    """Estimates the factor on a model's own sigma from frames with ground truth."""

    def __init__(self, config: OnlineEstimateConfig | None = None, gain: float = GAIN) -> None:
        self.config = config or OnlineEstimateConfig()
        self.half_width = float(GAUSSIAN.half_widths(self.config.coverage))
        self._gain = gain
        self.reset()

    def reset(self) -> None:
        """Forget all frames."""
        self.factor: float | None = None
        self.stamp_ns: int | None = None
        self.trim = 0.0
        self._window = FrameWindow(LOOK_BACK_S)
        self._covered: deque[float] = deque(maxlen=RECENT_FRAMES)

    def add(
        self, stamp_ns: int, error: NDArray[np.floating], own_sigma: NDArray[np.floating]
    ) -> float:
        """Add a frame; return the fraction of its errors not covered by the previous estimate.

        `error` and the model's own sigma are (N,) metres, N at least 1.
        """
        if self.stamp_ns is not None and stamp_ns < self.stamp_ns - CLOCK_JUMP_NS:
            self.reset()
        step = math.ceil(len(error) / MAX_PIXELS)
        errors: Floats = np.asarray(error[::step], dtype=np.float64)
        sigma: Floats = np.asarray(own_sigma[::step], dtype=np.float64)
        before = self.factor or 1.0
        uncovered = float((errors > self.half_width * before * sigma).mean())
        self._covered.append(1 - uncovered)
        if self.factor is not None:
            rise = self._gain * (uncovered - (1 - self.config.coverage))
            is_at_limit = before >= LIMIT if rise > 0 else before <= 1 / LIMIT
            if not is_at_limit:
                self.trim += rise
        half_width = self.half_width * sigma
        self._window.add(stamp_ns, errors, half_width, self.config.coverage)
        self.stamp_ns = stamp_ns
        if self.factor is not None or self.frames >= MIN_FRAMES:
            octaves = self._window.quantile(self.config.coverage) + self.trim
            self.factor = min(max(2.0**octaves, 1 / LIMIT), LIMIT)
        return uncovered

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


# The window: the last frames' ratios of error to sigma, each frame with the same weight.

MAX_FRAMES = 4000
MAX_PIXELS = 4096
"""Pixels of a frame that are looked at, evenly spaced."""
EDGES: Floats = np.arange(-80, 81) / 10.0
"""Edges of the bins in log2(error / half width)."""
BINS = len(EDGES) - 1
MIN_RECENT = 5
"""Frames after a change that can show it, at least."""
MIN_BEFORE = 20
"""Frames before a change, at least."""
CHANGE_THRESHOLD = 5.0
"""Standard errors between two parts of the window that make a change."""


class FrameRatios(NamedTuple):
    """A frame's time, shares by bin of `EDGES`, and log2 of the factor that it alone needs."""

    stamp_ns: int
    shares: Floats
    octaves: float


class FrameWindow:
    """Sums over the frames of the last `duration_s` seconds, or since the errors last changed.

    The window is cut if its newest frames need another factor than the frames before (adaptive
    windowing, after Bifet and Gavalda, "Learning from Time-Changing Data with Adaptive Windowing",
    SDM 2007): while nothing changes, it is long and the estimate is steady.
    """

    def __init__(self, duration_s: float) -> None:
        self._duration_ns = round(duration_s * 1e9)
        self._frames: deque[FrameRatios] = deque()
        self.changes = 0
        self._shares: Floats = np.zeros(BINS)

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self._frames)

    def add(self, stamp_ns: int, error: Floats, half_width: Floats, coverage: float) -> None:
        """Add a frame's (N,) errors, and the half widths that should cover `coverage` of them.

        Frames that are too old or from before a change are forgotten.
        """
        with np.errstate(divide="ignore"):
            octaves = np.log2(error_ratio(error, half_width))
        clipped = np.clip(octaves, EDGES[0], EDGES[-1])
        place = order_number(coverage, len(error)) - 1
        shares = np.histogram(clipped, EDGES)[0] / len(error)
        needed = float(np.partition(clipped, place)[place])
        self._frames.append(FrameRatios(stamp_ns, shares, needed))
        self._shares += shares
        oldest_ns = stamp_ns - self._duration_ns
        while len(self) > MAX_FRAMES or self._frames[0].stamp_ns < oldest_ns:
            self._forget_oldest()
        recent = frames_since_change(self._octaves())
        if recent < len(self):
            self.changes += 1
        while len(self) > recent:
            self._forget_oldest()

    def quantile(self, coverage: float) -> float:
        """Return log2 of the factor that covers a fraction of the errors; linear within a bin."""
        cumulative = np.cumsum(self._shares)
        below = np.concatenate(([0.0], cumulative))
        return float(np.interp(coverage * below[-1], below, EDGES))

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
        left = self._shares - self._frames.popleft().shares
        self._shares = np.maximum(left, 0.0)  # subtraction leaves -1e-17


def inflation(residuals: Floats) -> float:
    """Return by how much correlation in time inflates a mean's variance."""
    correlation = neighbour_correlation(residuals)
    return (1 + correlation) / (1 - correlation)


def frames_since_change(octaves: Floats) -> int:
    """Return how many of the newest frames share the newest's level; all without a change.

    Compare the newest 5, 10, 20, ... frames with the frames before them. If they differ, try every
    number of frames near the best of these. `octaves`, the oldest first, are log2 of each frame's
    factor.
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
    """Return how far the newest frames' mean is from the others', in standard errors."""
    before = octaves[:-recent]
    after = octaves[-recent:]
    change = after.mean() - before.mean()
    residuals = np.concatenate((before - before.mean(), after - after.mean()))
    variance = float((residuals**2).sum()) / (len(octaves) - 2) * inflation(residuals)
    error = math.sqrt(variance * (1 / len(before) + 1 / recent))
    if not error:
        return math.inf if change else 0.0
    return abs(float(change)) / error


# The depth's scale: one factor per frame, which LiDAR sees and an image does not. On real images a
# third to a half of the variance of log(true / predicted depth) is common to all pixels of a
# frame. No sigma of a pixel can say it and no averaging removes it, but the frames before had
# nearly the same.

SCALE_GAIN = 0.7
"""Weight of the newest frame. The scale of a drive loses half its correlation within some ten
frames, so a longer memory follows worse than it averages."""
MIN_PIXELS = 20
"""Pixels with known depth below which a frame says nothing about its scale."""
SCALE_FRAMES = 30
"""Frames that `scale_sigma` is the root mean square of."""


@dataclass(frozen=True)
class DepthScale:
    """What is known about the depth's scale.

    Attributes:
        factor: true depth over the model's own.
        scale_sigma: root mean square of ln(true / published depth) over the last frames: 0.1 is an
            error of 10 % of the depth, common to all pixels of a frame.
    """

    factor: float
    scale_sigma: float


def frame_log_scale(
    depth_m: NDArray[np.floating], ground_truth_m: NDArray[np.floating]
) -> float | None:
    """Return ln of the median of true / predicted depth; None below `MIN_PIXELS` pixels."""
    valid = (ground_truth_m > 0) & (depth_m > 0)
    if np.count_nonzero(valid) < MIN_PIXELS:
        return None
    with np.errstate(over="ignore"):
        ratio = float(np.median(ground_truth_m[valid] / depth_m[valid]))
    return math.log(min(max(ratio, 1 / LIMIT), LIMIT))


class ScaleEstimate:
    """Estimates the scale of a model's own depth: an exponential average over frames.

    The factor that was in force is divided out, as of sigma.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all frames."""
        self._log_scale: float | None = None
        self._missing: deque[float] = deque(maxlen=SCALE_FRAMES)

    def add(
        self,
        depth_m: NDArray[np.floating],
        ground_truth_m: NDArray[np.floating],
        factor: float = 1.0,
    ) -> DepthScale | None:
        """Add a frame's (N,) published depth and truth, metres; return the estimate.

        It is None if too few pixels are known. `factor` was in force when the depth was published.
        """
        missing = frame_log_scale(depth_m, ground_truth_m)
        if missing is None:
            return None
        self._missing.append(missing)
        own = min(max(missing + math.log(factor), -math.log(LIMIT)), math.log(LIMIT))
        before = own if self._log_scale is None else self._log_scale
        self._log_scale = before + SCALE_GAIN * (own - before)
        scale_sigma = math.sqrt(float(np.mean(np.square(self._missing))))
        return DepthScale(math.exp(self._log_scale), scale_sigma)
