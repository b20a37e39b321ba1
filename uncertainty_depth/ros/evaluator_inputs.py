# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluator node's subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import String

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.records import Skipped
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.live_evaluation import LiveEvaluation, Scored
from uncertainty_depth.ros.qos import LATCHED_QOS, SubscriptionQos, sensor_qos
from uncertainty_depth.ros.watched_input import WatchedInput

Step = Callable[[], "list[Scored | Skipped]"]
"""Takes one message in, on the thread that owns the evaluation."""
GROUND_TRUTH: dict[bool, tuple[type, str]] = {
    False: (PointCloud2, "lidar/points"),
    True: (Image, "ground_truth/image"),
}
"""Message type and topic, by `use_ground_truth_image`."""


class EvaluatorInputs:
    """Subscribes to predictions, their cameras and ground truth, and queues what comes.

    Attributes:
        ground_truth: the input of clouds or ground truth images.
    """

    def __init__(
        self,
        node: Node,
        health: Health,
        config: EvaluatorNodeConfig,
        live: LiveEvaluation,
        queue: Callable[[Step], None],
    ) -> None:
        """Subscribe.

        Args:
            node: whose subscriptions they are.
            health: counts received messages.
            config: parameters at the start.
            live: what the messages are for.
            queue: takes a step, and returns at once.
        """
        self._node = node
        self._health = health
        self._live = live
        self._queue = queue
        self._qos = SubscriptionQos(node)
        self._subscribe_ground_truth_info()
        qos = sensor_qos(config.queue_size, True)
        self._predictions = (
            self._subscribe(Image, "depth/image_rect", live.add_depth, qos),
            self._subscribe(Image, "uncertainty/image_rect", live.add_sigma, qos),
            self._subscribe(CameraInfo, "depth/camera_info", live.add_camera_info, qos, once=True),
        )
        ground_truth_topics = [topic for _, topic in GROUND_TRUTH.values()]
        self._qos.declare(
            ground_truth_topics, sensor_qos(config.queue_size, config.reliable_input)
        )
        self.ground_truth = self._subscribe_ground_truth(config)

    def subscribe_model(self, receive: Callable[[String], None]) -> None:
        """Subscribe to the description of the model that predicts."""
        self._node.create_subscription(String, "depth/model", receive, LATCHED_QOS)

    def replace_ground_truth(self, config: EvaluatorNodeConfig) -> None:
        """Subscribe to ground truth anew, by other parameters."""
        self.ground_truth.close()
        self.ground_truth = self._subscribe_ground_truth(config)

    def watched(self) -> tuple[WatchedInput, ...]:
        """Return the inputs without which nothing is scored."""
        return (*self._predictions, self.ground_truth)

    def _subscribe_ground_truth_info(self) -> None:
        topic = "ground_truth/camera_info"
        qos = self._qos.overridden(topic, sensor_qos(1, False))
        self._node.create_subscription(CameraInfo, topic, self._live.add_ground_truth_info, qos)

    def _subscribe_ground_truth(self, config: EvaluatorNodeConfig) -> WatchedInput:
        message_type, topic = GROUND_TRUTH[config.use_ground_truth_image]
        qos = sensor_qos(config.queue_size, config.reliable_input)
        return self._subscribe(message_type, topic, self._live.add_ground_truth, qos)

    def _subscribe(
        self,
        message_type: type,
        topic: str,
        add: Callable[[Any], list[Scored | Skipped]],
        qos: QoSProfile,
        once: bool = False,
    ) -> WatchedInput:
        def receive(message: object) -> None:
            self._health.count("received")
            self._health.count(f"received.{topic}")
            self._queue(partial(add, message))

        return WatchedInput(
            self._node,
            self._health,
            self._qos,
            message_type,
            topic,
            receive,
            qos,
            once=once,
            purpose="scores",
        )
