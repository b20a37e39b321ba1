# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Publishers of the evaluator node: metrics, and images drawn only for subscribers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import Image
from std_msgs.msg import Float64

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.evaluation.images import DEPTH_COLORS, SIGMA_COLORS, colorize, thicken
from uncertainty_depth.evaluation.plots import sparsification_figure
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.ros.live_evaluation import Scored
from uncertainty_depth.ros.messages import image_message
from uncertainty_depth.ros.qos import OUTPUT_QOS, OVERRIDABLE

PUBLISHED_GROUPS = ("depth", "uncertainty")


class ScoreOutputs:
    """One Float64 publisher per metric, for the last frame and for all frames; three images.

    Metrics of the last frame are under ~/metrics/frame, of all frames under ~/metrics.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        names = topic_values(flatten(Evaluation().summary()))
        self._frame_metrics: dict[str, Publisher] = {}
        self._pooled_metrics: dict[str, Publisher] = {}
        for name in names:
            self._frame_metrics[name] = node.create_publisher(
                Float64, f"~/metrics/frame/{name}", OUTPUT_QOS
            )
            self._pooled_metrics[name] = node.create_publisher(
                Float64, f"~/metrics/{name}", OUTPUT_QOS
            )
        self._sparsification = self._image_publisher("sparsification")
        self._error = self._image_publisher("error")
        self._ground_truth = self._image_publisher("ground_truth")

    def _image_publisher(self, name: str) -> Publisher:
        return self._node.create_publisher(
            Image, f"~/{name}/image", OUTPUT_QOS, qos_overriding_options=OVERRIDABLE
        )

    def publish_frame(self, scored: Scored, config: EvaluatorNodeConfig) -> None:
        """Publish the metrics of a frame, and its images to their subscribers."""
        _publish(self._frame_metrics, topic_values(scored.metrics))
        if self._error.get_subscription_count():
            error_m = thicken(np.abs(scored.prediction.depth_m - scored.ground_truth_m))
            image = colorize(error_m, config.color_max_error, SIGMA_COLORS)
            self._error.publish(image_message(image, scored.header))
        if self._ground_truth.get_subscription_count():
            depth_m = thicken(scored.ground_truth_m)
            image = colorize(depth_m, config.color_max_depth, DEPTH_COLORS)
            self._ground_truth.publish(image_message(image, scored.header))

    @property
    def pooled_wanted(self) -> bool:
        """Whether metrics of all frames or their plot have a subscriber."""
        publishers = (self._sparsification, *self._pooled_metrics.values())
        return any(publisher.get_subscription_count() for publisher in publishers)

    def publish_pooled(self, metrics: OnlineMetrics) -> None:
        """Publish the metrics of all frames, and the sparsification plot to its subscribers."""
        _publish(self._pooled_metrics, topic_values(flatten(metrics.compute())))
        if self._sparsification.get_subscription_count():
            image = figure_pixels(sparsification_figure(metrics.curves()))
            message = image_message(image, Image().header)
            message.header.stamp = self._node.get_clock().now().to_msg()
            self._sparsification.publish(message)


def topic_values(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return metrics by topic name; baselines are left out.

    "depth.rmse" becomes rmse, "uncertainty.ause.rmse" ause/rmse.
    """
    values = {}
    for name, value in metrics.items():
        group, *parts = name.split(".")
        if group in PUBLISHED_GROUPS:
            values["/".join(parts)] = float(value)
    return values


def figure_pixels(figure: Figure) -> NDArray[np.uint8]:
    """Return a figure as (H, W, 3) uint8 RGB."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])


def _publish(publishers: Mapping[str, Publisher], values: Mapping[str, float]) -> None:
    for name, value in values.items():
        if name in publishers:
            publishers[name].publish(Float64(data=value))
