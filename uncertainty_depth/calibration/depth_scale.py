# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Follow the scale of the depth: one number per frame that LiDAR sees and an image does not.

On real images a third to a half of the variance of log(true / predicted depth) is common to all
pixels of a frame. No sigma of a pixel can say it and no averaging removes it, but the frames
before had nearly the same. Two halves, for two processes:

`ScaleEstimator` (evaluator)
    turns published depth and known depth of each frame into a `ScaleEstimate`;
`FollowedScale` (depth node)
    gives the factor for the next frame, from the newest estimate, within limits.

The estimate is of the model's own scale: the evaluator divides out the factor that was in force,
so there is no loop that could oscillate.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.options import option
from uncertainty_depth.records import DepthPrediction, Frame

GAIN = 0.7
"""Weight of the newest frame. The scale of a drive loses half its correlation within some ten
frames, so a longer memory follows worse than it averages."""
MIN_PIXELS = 20
"""Pixels with known depth below which a frame says nothing about its scale."""
DELAY_FRAMES = 2
"""Frames after which a recording's estimate is in use: image to depth, to score, to depth node."""
SPREAD_FRAMES = 30
"""Frames that `scale_sigma` is the root mean square of."""
CLOCK_JUMP_NS = 1_000_000_000
"""A stamp this much older than the newest one starts the estimate anew."""


@dataclass(frozen=True)
class DepthScaleConfig:
    """How the depth node follows the scale that an evaluator estimates."""

    use_depth_scale: bool = option(
        False,
        "multiply depth and sigma by the scale that an evaluator with LiDAR estimates; offline: "
        "by what it would have estimated from the frames before",
        expert=True,
    )
    depth_scale_timeout: float = option(
        2.0,
        "age of the newest estimate, by the stamps, from which on depth is the model's own, "
        "seconds",
        minimum=0.05,
        maximum=60.0,
        expert=True,
    )
    depth_scale_max_factor: float = option(
        2.0,
        "maximum factor between published depth and the model's own, either way",
        minimum=1.0,
        maximum=10.0,
        expert=True,
    )


@dataclass(frozen=True)
class ScaleEstimate:
    """What an evaluator publishes after a frame.

    Attributes:
        stamp_ns: time of the frame, nanoseconds.
        log_scale: natural logarithm of true depth over the model's own.
        scale_sigma: root mean square of what the published depth of the last frames still lacked,
            as a natural logarithm: 0.1 is a common error of 10 % of the depth.
    """

    stamp_ns: int
    log_scale: float
    scale_sigma: float


@dataclass(frozen=True)
class ScaleInForce:
    """The scale of one frame.

    Attributes:
        factor: of depth and sigma.
        scale_sigma: of the estimate; None if none is followed.
        is_limited: the estimate is beyond `depth_scale_max_factor`: worth a warning.
        reason: the sentence that says why.
    """

    factor: float
    scale_sigma: float | None
    is_limited: bool
    reason: str

    def applied(self, prediction: DepthPrediction) -> DepthPrediction:
        """Return the prediction with its depth and sigma scaled."""
        if self.factor == 1:
            return prediction
        factor = np.float32(self.factor)
        return replace(
            prediction, depth_m=factor * prediction.depth_m, sigma_m=factor * prediction.sigma_m
        )


def frame_log_scale(
    depth_m: NDArray[np.floating], ground_truth_m: NDArray[np.floating]
) -> float | None:
    """Return the median of ln(true / predicted depth); None for fewer than `MIN_PIXELS` pixels.

    Args:
        depth_m: (H, W), metres, NaN where there is no value.
        ground_truth_m: (H, W), metres, NaN where unknown.
    """
    valid = np.isfinite(ground_truth_m) & np.isfinite(depth_m)
    if np.count_nonzero(valid) < MIN_PIXELS:
        return None
    ratio: NDArray[np.floating] = ground_truth_m[valid] / depth_m[valid]
    return math.log(float(np.median(ratio)))


class ScaleEstimator:
    """Estimates the scale of a model's own depth, frame by frame."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all frames."""
        self._level: float | None = None
        self._stamp_ns: int | None = None
        self._missing: deque[float] = deque(maxlen=SPREAD_FRAMES)

    def add(
        self,
        stamp_ns: int,
        depth_m: NDArray[np.floating],
        ground_truth_m: NDArray[np.floating],
        factor: float = 1.0,
    ) -> ScaleEstimate | None:
        """Add a frame; return the estimate, None if the frame has too few known pixels.

        Args:
            stamp_ns: its time, nanoseconds.
            depth_m: (H, W) depth as published, metres.
            ground_truth_m: (H, W), metres, NaN where unknown.
            factor: that was in force when the depth was published.
        """
        if self._stamp_ns is not None and stamp_ns < self._stamp_ns - CLOCK_JUMP_NS:
            self.reset()
        missing = frame_log_scale(depth_m, ground_truth_m)
        if missing is None:
            return None
        self._stamp_ns = stamp_ns
        self._missing.append(missing)
        own = missing + math.log(factor)
        self._level = own if self._level is None else self._level + GAIN * (own - self._level)
        spread = math.sqrt(float(np.mean(np.square(self._missing))))
        return ScaleEstimate(stamp_ns, self._level, spread)


class FollowedScale:
    """Follows the newest estimate as far as the options allow. Any thread may use it.

    The factor moves at once: the scale changes within a few frames, unlike the size of sigma.

    Attributes:
        config: options; may be replaced at any time.
    """

    def __init__(self, config: DepthScaleConfig | None = None) -> None:
        self.config = config or DepthScaleConfig()
        self._estimate: ScaleEstimate | None = None
        self._lock = Lock()

    def receive(self, estimate: ScaleEstimate) -> None:
        """Store the newest estimate."""
        with self._lock:
            self._estimate = estimate

    def at(self, stamp_ns: int) -> ScaleInForce:
        """Return the scale for a frame of this time, nanoseconds."""
        with self._lock:
            estimate = self._estimate
        config = self.config
        if not config.use_depth_scale:
            return ScaleInForce(1.0, None, False, "use_depth_scale is false")
        if estimate is None:
            sentence = "no estimate has come; is an evaluator with LiDAR running?"
            return ScaleInForce(1.0, None, False, sentence)
        age_s = (stamp_ns - estimate.stamp_ns) / 1e9
        if abs(age_s) > config.depth_scale_timeout:
            sentence = (
                f"the newest estimate is {age_s:.1f} s old; depth_scale_timeout is "
                f"{config.depth_scale_timeout:g} s"
            )
            return ScaleInForce(1.0, None, False, sentence)
        limit = math.log(config.depth_scale_max_factor)
        log_scale = min(max(estimate.log_scale, -limit), limit)
        is_limited = abs(estimate.log_scale) > limit
        sentence = (
            f"the estimate, {math.exp(estimate.log_scale):.2f}, is beyond "
            f"depth_scale_max_factor {config.depth_scale_max_factor:g}"
            if is_limited
            else "at the estimate"
        )
        return ScaleInForce(math.exp(log_scale), estimate.scale_sigma, is_limited, sentence)


class AsPublished:
    """A mapping from frames to the depth that nodes which follow the scale would have published.

    Frames come in the order of time. One without ground truth is scaled too, and says nothing
    about the scale. No frame is scaled by its own ground truth.

    Args:
        predict: returns a frame's own prediction.
        config: what the depth node would have been set to.
        delay: number of frames between an image and the use of the estimate that it changes, at
            least 1.
    """

    def __init__(
        self,
        predict: Callable[[Frame], DepthPrediction],
        config: DepthScaleConfig,
        delay: int = DELAY_FRAMES,
    ) -> None:
        self._predict = predict
        self._delay = delay
        self._estimator = ScaleEstimator()
        self._followed = FollowedScale(config)
        self._waiting: deque[tuple[Frame, DepthPrediction, float]] = deque()

    def __call__(self, frame: Frame) -> DepthPrediction:
        """Return the prediction of the next frame as published."""
        own = self._predict(frame)
        if len(self._waiting) >= self._delay:
            self._learn(*self._waiting.popleft())
        in_force = self._followed.at(frame.stamp_ns)
        published = in_force.applied(own)
        self._waiting.append((frame, published, in_force.factor))
        return published

    def _learn(self, frame: Frame, published: DepthPrediction, factor: float) -> None:
        if frame.ground_truth_m is None:
            return
        estimate = self._estimator.add(
            frame.stamp_ns, published.depth_m, frame.ground_truth_m, factor
        )
        if estimate is not None:
            self._followed.receive(estimate)
