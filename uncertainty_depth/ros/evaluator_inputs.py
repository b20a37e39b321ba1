# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluator node's subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.records import Skipped
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.ground_truth_topics import ground_truth_topics
from uncertainty_depth.ros.guarded import GuardedNode
from uncertainty_depth.ros.live_evaluation import LiveEvaluation
from uncertainty_depth.ros.pair_scorer import Scored
from uncertainty_depth.ros.qos import SUBSCRIPTION, overridden, sensor_qos
from uncertainty_depth.ros.watched_input import WatchedInput

Step = Callable[[], "list[Scored | Skipped]"]
"""Takes one message in, on the thread that owns the evaluation."""


class EvaluatorInputs:
    """Subscribes to predictions, their cameras and ground truth, and queues the messages."""

    def __init__(
        self,
        node: GuardedNode,
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
        self._maps: list[WatchedInput] = []
        self.ground_truths: list[WatchedInput] = []
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
        self._maps.append(self._subscribe(Image, "depth/image_rect", live.add_depth, qos))
        self._maps.append(self._subscribe(Image, "uncertainty/image_rect", live.add_sigma, qos))
        self._maps.append(
            self._subscribe(CameraInfo, "depth/camera_info", live.add_camera_info, qos, once=True)
        )
        self._subscribe_ground_truths(config, self.ground_truths)

    @contextmanager
    def replacement(self, config: EvaluatorNodeConfig) -> Iterator[None]:
        """Subscribe to ground truth by other parameters; back to the former where that fails."""
        replacements: list[WatchedInput] = []
        try:
            self._subscribe_ground_truths(config, replacements)
            yield
        except Exception:
            _close(replacements)
            raise
        previous = self.ground_truths
        self.ground_truths = replacements
        _close(previous)

    def close(self) -> None:
        """End all subscriptions."""
        _close(self._maps)
        _close(self.ground_truths)
        if self._ground_truth_info is not None:
            self._node.destroy_subscription(self._ground_truth_info)
            self._ground_truth_info = None

    def watched(self) -> tuple[WatchedInput, ...]:
        """Return the inputs without which nothing is scored."""
        return (*self._maps, *self.ground_truths)

    def _subscribe_ground_truth_info(self) -> Subscription:
        topic = "ground_truth/camera_info"
        qos = overridden(self._node, topic, SUBSCRIPTION, sensor_qos(1, reliable=False))
        return self._node.create_subscription(
            CameraInfo, topic, self._live.add_ground_truth_info, qos
        )

    def _subscribe_ground_truths(
        self, config: EvaluatorNodeConfig, subscriptions: list[WatchedInput]
    ) -> None:
        """Subscribe to the clouds of every LiDAR, or to ground truth images."""
        message_type = Image if config.use_ground_truth_image else PointCloud2
        qos = sensor_qos(config.queue_size, config.reliable_input)
        for lidar, topic in enumerate(ground_truth_topics(config)):
            add = partial(self._live.add_ground_truth, lidar=lidar)
            subscriptions.append(self._subscribe(message_type, topic, add, qos))

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
            message_type,
            topic,
            receive,
            qos,
            once=once,
            purpose="scores",
        )


def _close(subscriptions: list[WatchedInput]) -> None:
    for watched in subscriptions:
        watched.close()
    subscriptions.clear()
