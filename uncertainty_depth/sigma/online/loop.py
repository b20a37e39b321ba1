# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The online correction's loop: the evaluator's end, and both ends without ROS."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.nodes import OnlineCorrectionConfig, OnlineEstimateConfig
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.sigma.online.correction_filter import (
    SCALE_TIMEOUT_S,
    AppliedCorrection,
    CorrectionFilter,
    DepthScales,
    ReceivedEstimate,
)
from uncertainty_depth.sigma.online.estimates import CLOCK_JUMP_NS, OnlineEstimate, ScaleEstimate

Pixels: TypeAlias = tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]
"""Depth, sigma and true depth of a frame's scored pixels, each (N,), metres."""
DELAY_FRAMES = 2
"""Frames from one to the first that its estimate corrects: image to depth, to score, to node."""


class CorrectionEstimator:
    """The evaluator's end: estimates what the model's own sigma and depth must be multiplied by.

    The correction that was applied is undone first: both estimates are made on the model's own
    depth and sigma, whose errors are divided by the depth's scale. `of_sigma` estimates sigma's.
    """

    def __init__(self, config: OnlineEstimateConfig | None = None) -> None:
        self.of_sigma = OnlineEstimate(config)
        self._of_depth = ScaleEstimate()
        self._sigma = ""

    def add(
        self, stamp_ns: int, pixels: Pixels, in_force: AppliedCorrection, sigma: str
    ) -> ReceivedEstimate:
        """Add a frame's pixels, as published; return the estimates.

        `in_force` corrected them; another sigma of the model than before starts anew.
        """
        newest_ns = self.of_sigma.stamp_ns
        elapsed_ns = 0 if newest_ns is None else stamp_ns - newest_ns
        if sigma != self._sigma or elapsed_ns < -CLOCK_JUMP_NS:
            self.of_sigma.reset()
            self._of_depth.reset()
            self._sigma = sigma
        elif elapsed_ns > SCALE_TIMEOUT_S * 1e9:  # the scale is another one by now
            self._of_depth.reset()
        depth_m, sigma_m, truth_m = pixels
        error_m = np.abs(depth_m - truth_m) / np.float32(in_force.depth_scale)
        self.of_sigma.add(stamp_ns, error_m, in_force.own_sigma(sigma_m))
        scale = self._of_depth.add(depth_m, truth_m, in_force.depth_scale)
        return ReceivedEstimate(stamp_ns, sigma, self.of_sigma.factor, scale)


class OnlineCorrected:
    """A mapping from frames, in the order of time, to what both nodes would have published.

    No frame is corrected by its own ground truth, but by the ground truth of frames before. A
    frame without ground truth is corrected too, and teaches nothing.
    """

    def __init__(
        self,
        predict: Callable[[Frame], DepthPrediction],
        config: OnlineCorrectionConfig,
        limits: EvaluationConfig | None = None,
        delay: int = DELAY_FRAMES,
    ) -> None:
        """Start; a frame's truth, within `limits`, corrects the `delay`-th after it first."""
        self.estimator = CorrectionEstimator()
        self.in_force = CorrectionFilter(config)
        self.scales = DepthScales()
        self._predict = predict
        self._limits = limits or EvaluationConfig()
        self._delay = delay
        self._waiting: deque[tuple[int, Pixels | None, AppliedCorrection]] = deque()

    def __call__(self, frame: Frame) -> DepthPrediction:
        """Return the prediction of the next frame as published."""
        own = self._predict(frame)
        if len(self._waiting) >= self._delay:
            stamp_ns, scored, was_in_force = self._waiting.popleft()
            if scored is not None:
                self.in_force.receive(self.estimator.add(stamp_ns, scored, was_in_force, ""))
        in_force = self.in_force.at(frame.stamp_ns, "")
        self.scales.add(in_force)
        published = in_force.applied(own)
        pixels = None
        if frame.ground_truth_m is not None:
            maps = (published.depth_m, published.sigma_m, frame.ground_truth_m)
            valid = valid_pixels(*maps, self._limits.min_depth, self._limits.max_depth)
            pixels = valid if len(valid[0]) else None
        self._waiting.append((frame.stamp_ns, pixels, in_force))
        return published
