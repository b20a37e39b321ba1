# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node's end of budget and online calibration: how each prediction is made."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from numpy.typing import NDArray
from rclpy.node import Node
from std_msgs.msg import Float64, Header

from uncertainty_depth.calibration.correction_in_force import CorrectionInForce
from uncertainty_depth.config import DepthNodeConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.messages.online_calibration import (
    ESTIMATE,
    PREDICTION,
    PredictionInfo,
    info_values,
    read_estimate,
    status_values,
)
from uncertainty_depth.messages.stamps import stamp_ns
from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS, OVERRIDABLE

if TYPE_CHECKING:
    from uncertainty_depth.geometry.camera import Camera
    from uncertainty_depth.inference.predictor import Predictor
    from uncertainty_depth.inference.sample_budget import SampleBudget

CALIBRATION_TOPIC = "uncertainty/calibration"
INFO_TOPIC = "depth/prediction_info"
LOG_EVERY_S = 5.0


class Predictions:
    """Predicts with the samples that fit, corrects sigma, and tells how each was made."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._correction = CorrectionInForce()
        self._predictor: weakref.ref[Predictor] | None = None  # its memory is to be freed
        self._budget: SampleBudget | None = None
        self._last: PredictionInfo | None = None
        self._info = node.create_publisher(
            DiagnosticArray, INFO_TOPIC, OUTPUT_QOS, qos_overriding_options=OVERRIDABLE
        )
        self._samples_used = node.create_publisher(Float64, "~/samples_used", OUTPUT_QOS)
        node.create_subscription(
            DiagnosticArray, CALIBRATION_TOPIC, self._on_estimate, LATCHED_QOS
        )

    def predict(
        self,
        predictor: Predictor,
        image: NDArray[np.uint8],
        header: Header,
        camera: Camera | None,
        config: DepthNodeConfig,
        sparse_m: NDArray[np.float32] | None = None,
    ) -> tuple[DepthPrediction, PredictionInfo]:
        """Return the maps to be published, and how they were made.

        Args:
            predictor: the model.
            image: (H, W, 3) uint8 RGB.
            header: of the camera image.
            camera: of the image; None where unknown.
            config: the parameters in use.
            sparse_m: (H, W) known depth for a model that takes it, metres; None: there is none.
        """
        stamp = stamp_ns(header)
        samples = self._budget_of(predictor).choose(config.frame_budget_ms, predictor.passes)
        prediction = predictor.predict(image, stamp, camera, samples=samples, sparse_m=sparse_m)
        self._correction.config = config
        in_force = self._correction.at(stamp, predictor.sigma_name)
        corrected = replace(prediction, sigma_m=in_force.correction(prediction.sigma_m))
        info = PredictionInfo(predictor.sigma_name, samples, predictor.passes, in_force)
        return corrected, info

    def publish(self, info: PredictionInfo, header: Header) -> None:
        """Tell how the maps of this image were made: before them, for the evaluator."""
        self._last = info
        self._info.publish(status_message(header, PREDICTION, "", info_values(info)))
        self._samples_used.publish(Float64(data=float(info.samples.count)))

    def finished(self, info: PredictionInfo, milliseconds: float) -> None:
        """Take in how long a frame took, from its turn to the publication of its maps."""
        if self._budget is not None:
            self._budget.add(info.samples.count, milliseconds)

    def facts(self) -> dict[str, object]:
        """Return what the diagnostics tell: samples used, and which calibration is in force."""
        last = self._last
        if last is None:
            return {}
        correction = last.in_force.correction
        return {
            "samples_used": f"{last.samples.count} of {last.passes}",
            "calibration": last.in_force.source,
            "calibration_reason": last.in_force.reason,
            "calibration_min_factor": f"{correction.min_factor:.3f}",
            "calibration_max_factor": f"{correction.max_factor:.3f}",
        }

    def _budget_of(self, predictor: Predictor) -> SampleBudget:
        """Return what was learned of this model's cost."""
        from uncertainty_depth.inference.sample_budget import SampleBudget

        if self._budget is None or self._predictor is None or self._predictor() is not predictor:
            self._predictor = weakref.ref(predictor)
            self._budget = SampleBudget()
        return self._budget

    def _on_estimate(self, message: DiagnosticArray) -> None:
        try:
            values = status_values(message.status, ESTIMATE)
            self._correction.receive(read_estimate(stamp_ns(message.header), values))
        except MessageError as error:
            self._node.get_logger().warning(
                f"{CALIBRATION_TOPIC} is ignored: {error}", throttle_duration_sec=LOG_EVERY_S
            )


def status_message(
    header: Header, name: str, sentence: str, values: Mapping[str, str]
) -> DiagnosticArray:
    """Return a DiagnosticArray with one status."""
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    status = DiagnosticStatus(level=DiagnosticStatus.OK, name=name, message=sentence, values=pairs)
    return DiagnosticArray(header=header, status=[status])
