# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Publishers of the evaluator node: scores, and images drawn only for subscribers."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import Image
from std_msgs.msg import Float64, Header

from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS, colorize, thicken
from uncertainty_depth.report.plots import small_sparsification_figure
from uncertainty_depth.ros.live_scores import Scored
from uncertainty_depth.ros.messages import image_message
from uncertainty_depth.ros.qos import OUTPUT_QOS

FRAME = "frame"
ALL_FRAMES = "all frames"
PLOTTED = {
    "depth.abs_rel": "abs_rel",
    "uncertainty.ause.rmse": "ause_rmse",
    "uncertainty.coverage_95": "coverage_95",
    "uncertainty.coverage_95_laplace": "coverage_95_laplace",
}
"""Metrics of each frame that have a number's topic: rqt_plot reads no array of keys and values."""
MAX_DEPTH_M = 10.0
MAX_ERROR_M = 2.0
"""Upper ends of the colour scales."""


class EvaluatorOutputs:
    """All metrics as stamped DiagnosticArrays on ~/metrics, a few as Float64, and three images.

    An array has one status: "NODE: frame" with one frame's metrics, under its depth image's
    header, or "NODE: all frames" with all frames' metrics, under the last one's header. Values
    have all their digits. DiagnosticArray is in every distribution, is stamped, and holds any
    number of names. statistics_msgs/MetricsMessage holds one metric, and no NaN.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._arrays = node.create_publisher(DiagnosticArray, "~/metrics", OUTPUT_QOS)
        self._plotted = {
            key: node.create_publisher(Float64, f"~/metrics/{name}", OUTPUT_QOS)
            for key, name in PLOTTED.items()
        }
        self._last_header = Header()
        self._sparsification = self._image_publisher("sparsification")
        self._error = self._image_publisher("error")
        self._ground_truth = self._image_publisher("ground_truth")

    def _image_publisher(self, name: str) -> Publisher:
        return self._node.create_publisher(Image, f"~/{name}/image", OUTPUT_QOS)

    def publish_frame(self, scored: Scored) -> None:
        """Publish the metrics of a frame, and its images to their subscribers."""
        frame = scored.frame
        truth_m = frame.need_ground_truth()
        self._last_header = frame.header
        for key, publisher in self._plotted.items():
            publisher.publish(Float64(data=float(scored.metrics.get(key, math.nan))))
        self._publish_metrics(FRAME, scored.metrics)
        if self._error.get_subscription_count():
            error_m = thicken(np.abs(frame.need_prediction().depth_m - truth_m))
            image = colorize(error_m, MAX_ERROR_M, SIGMA_COLORS)
            self._error.publish(image_message(image, frame.header))
        if self._ground_truth.get_subscription_count():
            image = colorize(thicken(truth_m), MAX_DEPTH_M, DEPTH_COLORS)
            self._ground_truth.publish(image_message(image, frame.header))

    @property
    def has_pooled_subscribers(self) -> bool:
        """Whether metrics of all frames or their plot have a subscriber."""
        publishers = (self._sparsification, self._arrays)
        return any(publisher.get_subscription_count() for publisher in publishers)

    def publish_pooled(self, metrics: OnlineMetrics) -> None:
        """Publish the metrics of all frames, and the sparsification plot to its subscribers."""
        self._publish_metrics(ALL_FRAMES, flatten(metrics.compute()))
        if self._sparsification.get_subscription_count():
            image = figure_pixels(small_sparsification_figure(metrics.curves()))
            self._sparsification.publish(image_message(image, self._last_header))

    def _publish_metrics(self, group: str, metrics: Mapping[str, float]) -> None:
        if self._arrays.get_subscription_count():
            values = [
                KeyValue(key=key, value=repr(float(value))) for key, value in metrics.items()
            ]
            name = self._node.get_fully_qualified_name().lstrip("/")
            status = DiagnosticStatus(name=f"{name}: {group}", message=group, values=values)
            self._arrays.publish(DiagnosticArray(header=self._last_header, status=[status]))


def figure_pixels(figure: Figure) -> NDArray[np.uint8]:
    """Return a figure as (H, W, 3) uint8 RGB."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])
