# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Apply an evaluator's correction in a node, and publish how each prediction was made."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from std_msgs.msg import Header

from uncertainty_depth.calibration.correction_in_force import CorrectionInForce
from uncertainty_depth.config.nodes import SigmaCorrectionConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.messages.decoding import stamp_ns
from uncertainty_depth.records import DepthPrediction, SampleRange
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S, Health
from uncertainty_depth.ros.messages import CALIBRATION_TOPIC, INFO_TOPIC, status_message
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS
from uncertainty_depth.ros.sigma_messages import (
    ESTIMATE,
    PREDICTION,
    PredictionInfo,
    info_values,
    read_estimate,
    status_values,
)

ALL_SAMPLES = SampleRange(0, 1)
"""Of predictions that are not made of samples."""


class Predictions:
    """Corrects a camera's predictions, and publishes how each was made."""

    def __init__(self, node: Node, health: Health) -> None:
        self._node = node
        self._health = health
        self._correction = CorrectionInForce()
        self._last: PredictionInfo | None = None
        self._info = node.create_publisher(DiagnosticArray, INFO_TOPIC, OUTPUT_QOS)
        node.create_subscription(
            DiagnosticArray, CALIBRATION_TOPIC, self._on_estimate, LATCHED_QOS
        )

    def correct(
        self,
        prediction: DepthPrediction,
        stamp: int,
        sigma: str,
        config: SigmaCorrectionConfig,
        samples: SampleRange = ALL_SAMPLES,
        passes: int = 1,
        widen: bool = False,
    ) -> tuple[DepthPrediction, PredictionInfo]:
        """Return the maps to be published, and how they were made.

        Sigma is corrected by what is in force, or widened without it; depth is scaled.

        Args:
            prediction: the model's own.
            stamp: of the camera image, nanoseconds.
            sigma: identifier of the model's own sigma, which an estimate must be of.
            config: the parameters in use.
            samples: those that were used.
            passes: as many there are.
            widen: widen sigma if the image is unfamiliar.
        """
        self._correction.config = config
        unfamiliarity = prediction.unfamiliarity
        in_force = self._correction.at(stamp, sigma, unfamiliarity if widen else None)
        info = PredictionInfo(sigma, samples, passes, in_force, unfamiliarity)
        if self._correction.warning:
            self._node.get_logger().warning(
                self._correction.warning, throttle_duration_sec=LOG_EVERY_S
            )
        return in_force.applied(prediction), info

    def publish(self, info: PredictionInfo, header: Header) -> None:
        """Publish how the maps of this image were made, before the maps, for the evaluator."""
        self._last = info
        self._info.publish(status_message(header, PREDICTION, "", info_values(info)))

    def problems(self) -> list[str]:
        """Return what the diagnostics warn of."""
        return [self._correction.warning] if self._correction.warning else []

    def facts(self) -> dict[str, object]:
        """Return facts for the diagnostics: samples used, and the correction in force."""
        last = self._last
        if last is None:
            return {}
        in_force = last.in_force
        unfamiliarity = last.unfamiliarity
        extra = {} if unfamiliarity is None else {"unfamiliarity": f"{unfamiliarity:.2f}"}
        if in_force.scale_sigma is not None:
            extra["scale_sigma"] = f"{in_force.scale_sigma:.3f}"
        return {
            **extra,
            "samples_used": f"{last.samples.count} of {last.passes}",
            "calibration": in_force.source,
            "calibration_reason": in_force.reason,
            "calibration_min_factor": f"{in_force.correction.min_factor:.3f}",
            "calibration_max_factor": f"{in_force.correction.max_factor:.3f}",
            "widened_by": f"{in_force.widened_by:.3f}",
            "depth_scale": f"{in_force.depth_scale:.3f}",
            "depth_scale_reason": in_force.depth_scale_reason,
        }

    def _on_estimate(self, message: DiagnosticArray) -> None:
        try:
            values = status_values(message.status, ESTIMATE)
            self._correction.receive(read_estimate(stamp_ns(message.header), values))
            self._health.count(f"received.{CALIBRATION_TOPIC}")
        except MessageError as error:
            self._health.count(f"refused.{CALIBRATION_TOPIC}")
            self._node.get_logger().warning(
                f"{CALIBRATION_TOPIC} is ignored: {error}", throttle_duration_sec=LOG_EVERY_S
            )
