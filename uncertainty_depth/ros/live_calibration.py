# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Estimate the online calibration in the evaluator node from scored frames."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from rclpy.node import Node
from std_msgs.msg import Header

from uncertainty_depth.calibration.correction import Correction
from uncertainty_depth.calibration.online import RECENT_FRAMES, OnlineEstimate
from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.messages.decoding import stamp_ns
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.ros.live_scores import Scored
from uncertainty_depth.ros.messages import CALIBRATION_TOPIC, status_message
from uncertainty_depth.ros.qos import LATCHED_QOS
from uncertainty_depth.ros.sigma_messages import (
    ESTIMATE,
    PredictionInfo,
    estimate_values,
)

FOREIGN = "unknown"
"""Name of a sigma that nobody describes: it is taken to be as its model gave it."""


class LiveCalibration:
    """Estimates how large sigma must be, and publishes it latched after every scored frame.

    Sigma arrives as published. The estimate is of the model's own sigma, so the correction in
    force and the widening, published by the depth node for each stamp, are first undone. If a
    depth node publishes them, frames without them are left out.
    """

    def __init__(self, node: Node, config: EvaluatorNodeConfig) -> None:
        self._publisher = node.create_publisher(DiagnosticArray, CALIBRATION_TOPIC, LATCHED_QOS)
        self.start(config)

    def start(self, config: EvaluatorNodeConfig) -> None:
        """Forget all frames, and take the options of a run."""
        self._config = config
        self._estimate = OnlineEstimate(config)
        self._sigma = ""
        self._without_info = 0
        self._covered: deque[float] = deque(maxlen=RECENT_FRAMES)

    def add(self, scored: Scored, is_described: bool) -> None:
        """Add a scored frame, and publish the estimate; runs on the evaluation's thread.

        Args:
            scored: the frame.
            is_described: whether a node publishes how its predictions are made.
        """
        frame = scored.frame
        prediction = frame.need_prediction()
        maps = (prediction.depth_m, prediction.sigma_m, frame.need_ground_truth())
        depth, sigma, truth = valid_pixels(*maps, self._config.min_depth, self._config.max_depth)
        error = np.abs(depth - truth)
        self._covered.append(float((error <= self._estimate.half_width * sigma).mean()))
        if frame.info is None and is_described:
            self._without_info += 1
        else:
            self._estimate_from(frame.header, error, sigma, frame.info)

    def _estimate_from(
        self,
        header: Header,
        error: NDArray[np.floating],
        sigma: NDArray[np.floating],
        info: PredictionInfo | None,
    ) -> None:
        sigma_name = FOREIGN if info is None else info.sigma
        if sigma_name != self._sigma:
            self._estimate.reset()
            self._sigma = sigma_name
        own_sigma = sigma
        if info is not None:
            own_sigma = info.in_force.correction.inverse(sigma / np.float32(info.widened_by))
        self._estimate.add(stamp_ns(header), error, own_sigma)
        if self._estimate.correction is not None:
            self._publish(header, self._estimate.correction)

    def _publish(self, header: Header, correction: Correction) -> None:
        estimate = self._estimate
        sentence = (
            f"sigma times {correction.min_factor:.2f} to {correction.max_factor:.2f} covers "
            f"{estimate.config.coverage:.0%} of the errors of the last {estimate.frames} frames"
        )
        values = estimate_values(estimate, correction, self._sigma)
        self._publisher.publish(status_message(header, ESTIMATE, sentence, values))

    def facts(self) -> dict[str, object]:
        """Return facts for the diagnostics."""
        estimate = self._estimate
        covered = list(self._covered)
        published = float(np.mean(covered)) if covered else math.nan
        facts: dict[str, object] = {
            "calibration.frames": estimate.frames,
            "calibration.published_coverage": f"{published:.3f}",
            "calibration.recent_coverage": f"{estimate.recent_coverage:.3f}",
        }
        if estimate.correction is not None:
            facts["calibration.min_factor"] = f"{estimate.correction.min_factor:.3f}"
            facts["calibration.max_factor"] = f"{estimate.correction.max_factor:.3f}"
        if self._without_info:
            facts["calibration.without_prediction_info"] = self._without_info
        return facts
