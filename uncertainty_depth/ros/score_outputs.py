"""What the evaluator node publishes: figures, and pictures made only while someone subscribes to them."""

from __future__ import annotations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rclpy.node import Node
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


class ScoreOutputs:
    """One Float64 publisher per figure, of the last frame under ~/metrics/frame and of all frames under ~/metrics; and three pictures."""

    def __init__(self, node: Node, evaluation: Evaluation) -> None:
        self._node = node
        names = topic_values(flatten(evaluation.summary()))
        self._frame = {
            name: node.create_publisher(Float64, f"~/metrics/frame/{name}", OUTPUT_QOS)
            for name in names
        }
        self._all = {
            name: node.create_publisher(Float64, f"~/metrics/{name}", OUTPUT_QOS) for name in names
        }
        self._sparsification, self._error, self._ground_truth = (
            node.create_publisher(
                Image, f"~/{name}/image", OUTPUT_QOS, qos_overriding_options=OVERRIDABLE
            )
            for name in ("sparsification", "error", "ground_truth")
        )

    def publish_frame(self, scored: Scored, config: EvaluatorNodeConfig) -> None:
        """Publish what a scored frame brought."""
        _publish(self._frame, topic_values(scored.figures))
        error = np.abs(scored.prediction.depth_m - scored.ground_truth_m)
        if self._error.get_subscription_count():
            self._error.publish(
                image_message(
                    colorize(thicken(error), config.color_max_error, SIGMA_COLORS), scored.header
                )
            )
        if self._ground_truth.get_subscription_count():
            picture = colorize(
                thicken(scored.ground_truth_m), config.color_max_depth, DEPTH_COLORS
            )
            self._ground_truth.publish(image_message(picture, scored.header))

    @property
    def pooled_wanted(self) -> bool:
        """Whether anybody looks at what is made of all frames."""
        publishers = (self._sparsification, *self._all.values())
        return any(publisher.get_subscription_count() for publisher in publishers)

    def publish_pooled(self, metrics: OnlineMetrics) -> None:
        """Publish the metrics of all frames so far, and the sparsification plot where it is looked at."""
        _publish(self._all, topic_values(flatten(metrics.compute())))
        if self._sparsification.get_subscription_count():
            image = drawn(sparsification_figure(metrics.curves()))
            message = image_message(image, Image().header)
            message.header.stamp = self._node.get_clock().now().to_msg()
            self._sparsification.publish(message)


def topic_values(figures: dict[str, float]) -> dict[str, float]:
    """Figures by the names they have as topics: "depth.rmse" is rmse, "uncertainty.ause.rmse" is ause/rmse; baselines are left out."""
    chosen = ((name.split("."), value) for name, value in figures.items())
    return {
        "/".join(parts[1:]): float(value)
        for parts, value in chosen
        if parts[0] in ("depth", "uncertainty")
    }


def drawn(figure: Figure) -> NDArray[np.uint8]:
    """A figure as (H, W, 3) uint8 RGB."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])


def _publish(publishers: dict, values: dict[str, float]) -> None:
    for name, value in values.items():
        if name in publishers:
            publishers[name].publish(Float64(data=value))
