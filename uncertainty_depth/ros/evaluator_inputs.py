# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluator node's subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.records import Skipped
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.live_evaluation import LiveEvaluation, Scored
from uncertainty_depth.ros.qos import SubscriptionQos, sensor_qos
from uncertainty_depth.ros.watched_input import WatchedInput

Step = Callable[[], "list[Scored | Skipped]"]
"""Takes one message in, on the thread that owns the evaluation."""
GROUND_TRUTH: dict[bool, tuple[type, str]] = {
    False: (PointCloud2, "lidar/points"),
    True: (Image, "ground_truth/image"),
}
"""Message type and topic, by `use_ground_truth_image`."""


class EvaluatorInputs:
    """Subscribes to predictions, their cameras and ground truth, and queues what comes."""

    def __init__(
        self,
        node: Node,
        health: Health,
        qos: SubscriptionQos,
        config: EvaluatorNodeConfig,
        live: LiveEvaluation,
        queue: Callable[[Step], None],
    ) -> None:
        """Subscribe.

        Args:
            node: whose subscriptions they are.
            health: counts received messages.
            qos: the node's `qos_overrides`.
            config: parameters at the start.
            live: what the messages are for.
            queue: takes a step, and returns at once.
        """
        self._node = node
        self._health = health
        self._live = live
        self._queue = queue
        self._qos = qos
        self._subscriptions: list[WatchedInput] = []
        self._ground_truth_info: Subscription | None = None
        try:
            self._subscribe_all(config)
        except Exception:
            self.close()
            raise

    def _subscribe_all(self, config: EvaluatorNodeConfig) -> None:
        live = self._live
        self._ground_truth_info = self._subscribe_ground_truth_info()
        qos = sensor_qos(config.queue_size, True)
        self._subscribe(Image, "depth/image_rect", live.add_depth, qos)
        self._subscribe(Image, "uncertainty/image_rect", live.add_sigma, qos)
        self._subscribe(CameraInfo, "depth/camera_info", live.add_camera_info, qos, once=True)
        ground_truth_topics = [topic for _, topic in GROUND_TRUTH.values()]
        self._qos.declare(
            ground_truth_topics, sensor_qos(config.queue_size, config.reliable_input)
        )
        self._subscribe_ground_truth(config)

    @property
    def ground_truth(self) -> WatchedInput:
        """The input of clouds or ground truth images."""
        return self._subscriptions[-1]

    @contextmanager
    def replacement(self, config: EvaluatorNodeConfig) -> Iterator[None]:
        """Subscribe to ground truth by other parameters; back to the former where that fails."""
        previous = self.ground_truth
        self._subscribe_ground_truth(config)
        try:
            yield
        except Exception:
            self._subscriptions.pop().close()
            raise
        self._subscriptions.remove(previous)
        previous.close()

    def close(self) -> None:
        """End all subscriptions."""
        for watched in self._subscriptions:
            watched.close()
        self._subscriptions.clear()
        if self._ground_truth_info is not None:
            self._node.destroy_subscription(self._ground_truth_info)
            self._ground_truth_info = None

    def watched(self) -> tuple[WatchedInput, ...]:
        """Return the inputs without which nothing is scored."""
        return tuple(self._subscriptions)

    def _subscribe_ground_truth_info(self) -> Subscription:
        topic = "ground_truth/camera_info"
        qos = self._qos.overridden(topic, sensor_qos(1, False))
        return self._node.create_subscription(
            CameraInfo, topic, self._live.add_ground_truth_info, qos
        )

    def _subscribe_ground_truth(self, config: EvaluatorNodeConfig) -> None:
        message_type, topic = GROUND_TRUTH[config.use_ground_truth_image]
        qos = sensor_qos(config.queue_size, config.reliable_input)
        self._subscribe(message_type, topic, self._live.add_ground_truth, qos)

    def _subscribe(
        self,
        message_type: type,
        topic: str,
        add: Callable[[Any], list[Scored | Skipped]],
        qos: QoSProfile,
        once: bool = False,
    ) -> None:
        def receive(message: object) -> None:
            self._health.count("received")
            self._health.count(f"received.{topic}")
            self._queue(partial(add, message))

        watched = WatchedInput(
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
        self._subscriptions.append(watched)
