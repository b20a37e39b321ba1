# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Estimate the online correction in the evaluator node from scored frames."""

from __future__ import annotations

from dataclasses import replace

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from std_msgs.msg import Header

from uncertainty_depth.core.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.ros.live_scores import LiveFrame
from uncertainty_depth.ros.messages import CALIBRATION_TOPIC, status_message
from uncertainty_depth.ros.qos import LATCHED_QOS
from uncertainty_depth.ros.sigma_messages import ESTIMATE, estimate_values
from uncertainty_depth.sigma.online.correction_filter import OFF, ReceivedEstimate
from uncertainty_depth.sigma.online.depth_scale import DepthScale
from uncertainty_depth.sigma.online.loop import CorrectionEstimator

FOREIGN = "unknown"
"""Sigma's name if no prediction_info is published: it is assumed to be uncorrected."""


class LiveCalibration:
    """Estimates how large sigma and depth must be, and publishes it latched after every frame.

    The correction that was applied, which a depth node publishes for each stamp, is undone first:
    estimates are made on the model's own depth and sigma. If one publishes it, frames without it
    are left out.
    """

    def __init__(self, node: Node, config: EvaluatorNodeConfig) -> None:
        self._publisher = node.create_publisher(DiagnosticArray, CALIBRATION_TOPIC, LATCHED_QOS)
        self.start(config)

    def start(self, config: EvaluatorNodeConfig) -> None:
        """Forget all frames, and take a run's options."""
        self._config = config
        self._estimator = CorrectionEstimator(config)
        self._scale: DepthScale | None = None
        self._without_info = 0

    def add(self, frame: LiveFrame, is_described: bool) -> None:
        """Add a scored frame, and publish the estimate; runs on the evaluation's thread.

        A frame that `is_described`, but without a description, is left out.
        """
        info = frame.info
        prediction = frame.need_prediction()
        maps = (prediction.depth_m, prediction.sigma_m, frame.need_ground_truth())
        pixels = valid_pixels(*maps, self._config.min_depth, self._config.max_depth)
        if info is None and is_described:
            self._without_info += 1
            return
        in_force, name = (OFF, FOREIGN) if info is None else (info.in_force, info.sigma)
        sent = self._estimator.add(stamp_ns(frame.header), pixels, in_force, name)
        if prediction.aligned_by != 1:  # the scale is that of the ground truth already
            sent = replace(sent, scale=None)
        self._scale = sent.scale
        self._publish(frame.header, sent)

    def _publish(self, header: Header, sent: ReceivedEstimate) -> None:
        estimate = self._estimator.of_sigma
        sentences = []
        if sent.correction is not None:
            sentences.append(
                f"sigma times {sent.correction:.2f} covers {estimate.config.coverage:.0%} of the "
                f"errors of the last {estimate.frames} frames"
            )
        if sent.scale is not None:
            sentences.append(f"true depth is {sent.scale.factor:.2f} times the model's own")
        values = estimate_values(estimate, sent)
        self._publisher.publish(status_message(header, ESTIMATE, "; ".join(sentences), values))

    def diagnostic_values(self) -> dict[str, object]:
        """Return facts for the diagnostics."""
        estimate = self._estimator.of_sigma
        values: dict[str, object] = {
            "calibration.frames": estimate.frames,
            "calibration.recent_coverage": f"{estimate.recent_coverage:.3f}",
        }
        if estimate.factor is not None:
            values["calibration.factor"] = f"{estimate.factor:.3f}"
        if self._scale is not None:
            values["calibration.depth_scale"] = f"{self._scale.factor:.3f}"
            values["calibration.scale_sigma"] = f"{self._scale.scale_sigma:.3f}"
        if self._without_info:
            values["calibration.without_prediction_info"] = self._without_info
        return values
