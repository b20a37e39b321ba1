# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Apply the online calibration in the depth node, and publish how each sigma was made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from std_msgs.msg import Header

from uncertainty_depth.calibration.correction_in_force import CorrectionInForce
from uncertainty_depth.config import DepthNodeConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.messages.decoding import stamp_ns
from uncertainty_depth.records import DepthPrediction, SampleRange
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S
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

if TYPE_CHECKING:
    from uncertainty_depth.inference.predictor import Predictor


class Predictions:
    """Corrects the sigma of a camera's predictions, and publishes how each was made."""

    def __init__(self, node: Node) -> None:
        self._node = node
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
        predictor: Predictor,
        samples: SampleRange,
        config: DepthNodeConfig,
    ) -> tuple[DepthPrediction, PredictionInfo]:
        """Return the maps to be published, and how they were made.

        Sigma is corrected by what is in force, or widened without it.

        Args:
            prediction: sigma as the model gives it.
            stamp: of the camera image, nanoseconds.
            predictor: the model.
            samples: those that were used.
            config: the parameters in use.
        """
        self._correction.config = config
        unfamiliarity = prediction.unfamiliarity
        in_force = self._correction.at(stamp, predictor.sigma_name)
        widened_by = self._correction.widening(unfamiliarity if config.widen_unfamiliar else None)
        sigma_m = in_force.correction(prediction.sigma_m) * np.float32(widened_by)
        info = PredictionInfo(
            predictor.sigma_name, samples, predictor.passes, in_force, unfamiliarity, widened_by
        )
        if self._correction.warning:
            self._node.get_logger().warning(
                self._correction.warning, throttle_duration_sec=LOG_EVERY_S
            )
        return replace(prediction, sigma_m=sigma_m), info

    def publish(self, info: PredictionInfo, header: Header) -> None:
        """Publish how the maps of this image were made, before the maps, for the evaluator."""
        self._last = info
        self._info.publish(status_message(header, PREDICTION, "", info_values(info)))

    def problems(self) -> list[str]:
        """Return what the diagnostics warn of."""
        return [self._correction.warning] if self._correction.warning else []

    def facts(self) -> dict[str, object]:
        """Return facts for the diagnostics: samples used, and the calibration in force."""
        last = self._last
        if last is None:
            return {}
        correction = last.in_force.correction
        unfamiliarity = last.unfamiliarity
        extra = {} if unfamiliarity is None else {"unfamiliarity": f"{unfamiliarity:.2f}"}
        return {
            **extra,
            "samples_used": f"{last.samples.count} of {last.passes}",
            "calibration": last.in_force.source,
            "calibration_reason": last.in_force.reason,
            "calibration_min_factor": f"{correction.min_factor:.3f}",
            "calibration_max_factor": f"{correction.max_factor:.3f}",
            "widened_by": f"{last.widened_by:.3f}",
        }

    def _on_estimate(self, message: DiagnosticArray) -> None:
        try:
            values = status_values(message.status, ESTIMATE)
            self._correction.receive(read_estimate(stamp_ns(message.header), values))
        except MessageError as error:
            self._node.get_logger().warning(
                f"{CALIBRATION_TOPIC} is ignored: {error}", throttle_duration_sec=LOG_EVERY_S
            )
