# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Correct sigma and depth by the latest estimate, within limits; and the loop, without ROS."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.nodes import (
    DepthScaleConfig,
    OnlineCorrectionConfig,
    OnlineEstimateConfig,
    SigmaCorrectionConfig,
)
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.sigma.online.estimates import (
    CLOCK_JUMP_NS,
    DepthScale,
    OnlineEstimate,
    ScaleEstimate,
)

TIMEOUT_S = 10.0
"""Age of the newest estimate from which on sigma returns to the model's own."""
MAX_FACTOR = 8.0
"""Largest factor from the model's own sigma to the published one, before the depth's scale."""
MAX_RATE = 1.5
"""Largest factor by which the correction grows within a second."""
MAX_STEP_S = 1.0
"""Time between two frames that counts towards the rate's limit, at most."""
SHRINKING = 0.2
"""Rate of shrinking as a fraction of that of growing: a sigma that is too small does the harm."""
WARNING_S = 10.0
"""Time at a limit after which that is a warning."""
FOLLOWED = "followed"
"""Marks the description of a model whose depth follows the estimated scale, as `depth_scale`."""
MAX_DEPTH_SCALE = 2.0
"""Largest factor between published depth and the model's own, either way."""
SCALE_TIMEOUT_S = 2.0
"""Age of the newest scale from which on depth is the model's own: it changes within frames."""


@dataclass(frozen=True)
class ReceivedEstimate:
    """What an evaluator sends after a scored frame.

    Attributes:
        stamp_ns: time of the newest frame it rests on, nanoseconds.
        sigma: which sigma of the model it corrects, see `Predictor.sigma_name`.
        correction: factor on the model's own sigma; None before there are enough frames.
        scale: of the model's own depth; None if the frame says nothing about it.
    """

    stamp_ns: int
    sigma: str
    correction: float | None = None
    scale: DepthScale | None = None


@dataclass(frozen=True)
class AppliedCorrection:
    """What one frame's depth and sigma are corrected by.

    Attributes:
        correction: factor on the model's own sigma.
        source: of the correction, "own" or "online".
        reason: sentence that says why.
        depth_scale: factor on the model's own depth, and on sigma with it.
        scale_sigma: of the newest `DepthScale`, followed or not; None without a fresh one.
        depth_scale_reason: sentence that says why depth has this scale.
    """

    correction: float = 1.0
    source: str = "own"
    reason: str = "use_online_calibration is false"
    depth_scale: float = 1.0
    scale_sigma: float | None = None
    depth_scale_reason: str = "use_depth_scale is false"

    @property
    def is_at_depth_limit(self) -> bool:
        """Whether the estimated scale of the depth is beyond what is followed."""
        return self.depth_scale_reason.startswith(SCALE_BEYOND)

    def applied(self, own: DepthPrediction) -> DepthPrediction:
        """Return the maps to be published, from the model's own."""
        if self._on_sigma == self.depth_scale == 1:
            return own
        depth_m = own.depth_m * np.float32(self.depth_scale)
        return replace(own, depth_m=depth_m, sigma_m=own.sigma_m * self._on_sigma)

    def own_sigma(self, sigma_m: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the model's own sigma, metres, from a published one."""
        return sigma_m / self._on_sigma

    @property
    def _on_sigma(self) -> np.float32:
        return np.float32(self.correction * self.depth_scale)


BEYOND = "the estimate is beyond "
SCALE_BEYOND = "the depth's scale is beyond its limit, a factor of "
AT_ESTIMATE = "at the estimate"
ONLINE = "online"
"""Source of a correction that follows an estimate."""
OFF = AppliedCorrection()


class DepthScales:
    """What the depth of the frames was multiplied by, for their scores' reader."""

    def __init__(self) -> None:
        self._frames = 0
        self._scaled = 0
        self._at_limit = 0
        self._range = (math.inf, 0.0)
        self._obstacle = ""

    def add(self, in_force: AppliedCorrection) -> None:
        """Add what a frame was corrected by."""
        self._frames += 1
        factor = in_force.depth_scale
        if factor != 1:
            self._scaled += 1
            self._range = (min(self._range[0], factor), max(self._range[1], factor))
        self._at_limit += in_force.is_at_depth_limit
        if in_force.depth_scale_reason not in (OFF.depth_scale_reason, AT_ESTIMATE):
            self._obstacle = in_force.depth_scale_reason

    def notes(self) -> list[str]:
        """Return the factors' range, or why there is none; nothing if none was asked for."""
        if not self._scaled:
            if not self._obstacle:
                return []
            return [
                f"use_depth_scale: the depth of none of {self._frames} frames was multiplied: "
                f"{self._obstacle}"
            ]
        low, high = self._range
        sentence = (
            f"the depth of {self._scaled} of {self._frames} frames was multiplied by {low:.2f} to "
            f"{high:.2f}, the scale by the LiDAR of frames before (use_depth_scale)"
        )
        if self._at_limit:
            sentence += f"; {self._at_limit} were at the limit, a factor of {MAX_DEPTH_SCALE:g}"
        return [sentence]


class CorrectionFilter:
    """Follows the newest estimate, as fast and as far as the options allow.

    The correction of sigma shrinks more slowly than it grows, and by default not below the model's
    own sigma: depth compared with itself, or with a sensor that shares its errors, seems to have
    no errors. Without a fresh estimate it returns to no correction, as fast as allowed.

    The scale of the depth moves at once, and without a fresh estimate depth is the model's own at
    once: what it was seconds ago says little. Any thread may use this object.

    `config` may be replaced at any time. `warning` is a sentence if an estimate has been beyond a
    limit for `WARNING_S`, or the depth's scale is; else empty.
    """

    def __init__(self, config: SigmaCorrectionConfig | None = None) -> None:
        self.config = config or OnlineCorrectionConfig()
        self.last = OFF
        self.warning = ""
        self._limited_since_ns: int | None = None
        self._of_sigma: ReceivedEstimate | None = None
        self._of_depth: ReceivedEstimate | None = None
        self._stamp_ns: int | None = None
        self._lock = Lock()

    def receive(self, estimate: ReceivedEstimate) -> None:
        """Store the newest estimate; one without a correction or scale leaves the last of it."""
        with self._lock:
            if estimate.correction is not None:
                self._of_sigma = estimate
            if estimate.scale is not None:
                self._of_depth = estimate

    def at(self, stamp_ns: int, sigma: str) -> AppliedCorrection:
        """Return the next frame's correction, for the sigma that the model publishes."""
        with self._lock:
            of_sigma, of_depth = self._of_sigma, self._of_depth
        config = self.config
        elapsed_ns = 0 if self._stamp_ns is None else stamp_ns - self._stamp_ns
        step = MAX_RATE ** min(max(elapsed_ns / 1e9, 0.0), MAX_STEP_S)
        in_force = OFF
        if config.use_online_calibration:
            of_sigma, problem = _accepted(of_sigma, stamp_ns, sigma, TIMEOUT_S)
            target = of_sigma.correction if of_sigma else None
            in_force = self._followed(target or 1.0, problem, step)
        of_depth, problem = _accepted(of_depth, stamp_ns, sigma, SCALE_TIMEOUT_S)
        scale = of_depth.scale if of_depth else None
        if scale is not None:
            in_force = replace(in_force, scale_sigma=scale.scale_sigma)
        if isinstance(config, DepthScaleConfig) and config.use_depth_scale:
            factor = 1.0 if scale is None else scale.factor
            within = min(max(factor, 1 / MAX_DEPTH_SCALE), MAX_DEPTH_SCALE)
            reason = problem or AT_ESTIMATE
            if factor != within:
                reason = f"{SCALE_BEYOND}{MAX_DEPTH_SCALE:g} either way: it is {factor:.2f}"
            in_force = replace(in_force, depth_scale=within, depth_scale_reason=reason)
        self.last = in_force
        self._watch_limits(stamp_ns)
        self._stamp_ns = stamp_ns
        return in_force

    def _followed(self, target: float, problem: str, step: float) -> AppliedCorrection:
        within = min(max(target, self.config.calibration_min_factor), MAX_FACTOR)
        last = self.last.correction
        correction = min(max(within, last / step**SHRINKING), last * step)
        if problem:
            back = "" if correction == 1 else "; returning to the model's own"
            return AppliedCorrection(correction, "own", problem + back)
        reason = AT_ESTIMATE
        if within != target:
            limit = "the largest factor," if target > within else "calibration_min_factor"
            reason = f"{BEYOND}{limit} {within:g}"
        elif correction != within:
            reason = "moving towards the estimate"
        return AppliedCorrection(correction, ONLINE, reason)

    def _watch_limits(self, stamp_ns: int) -> None:
        """Set the warning: sigma's estimate may catch up for a while, depth's is wrong at once."""
        if not self.last.reason.startswith(BEYOND):
            self._limited_since_ns = None
        elif self._limited_since_ns is None or stamp_ns < self._limited_since_ns:
            self._limited_since_ns = stamp_ns
        since_ns = stamp_ns if self._limited_since_ns is None else self._limited_since_ns
        seconds = (stamp_ns - since_ns) / 1e9
        sentences = []
        if seconds >= WARNING_S:
            sentences.append(
                f"{self.last.reason} for {seconds:.0f} s; expected a LiDAR that is independent of "
                "the depth and fits the camera, or `uncertainty-depth calibrate` anew"
            )
        if self.last.is_at_depth_limit:
            sentences.append(
                f"{self.last.depth_scale_reason}; expected a LiDAR that fits the camera, and a "
                "model of such places"
            )
        self.warning = "; ".join(sentences)


def _accepted(
    estimate: ReceivedEstimate | None, stamp_ns: int, sigma: str, timeout_s: float
) -> tuple[ReceivedEstimate | None, str]:
    """Return the estimate, or why it is rejected, e.g. older than `timeout_s`."""
    if estimate is None:
        return None, "no estimate has come; is an evaluator with LiDAR running?"
    if estimate.sigma != sigma:
        return None, f"the estimate is of the sigma of {estimate.sigma}; expected {sigma}"
    age_s = (stamp_ns - estimate.stamp_ns) / 1e9
    if abs(age_s) > timeout_s:
        return None, f"the newest estimate is {age_s:.1f} s old; the limit is {timeout_s:g} s"
    return estimate, ""


# The loop: the evaluator's end, and both ends without ROS.

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
