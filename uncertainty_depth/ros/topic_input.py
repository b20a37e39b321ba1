# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Take what another topic measures, points or a depth image, for a node."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from sensor_msgs.msg import Image, PointCloud2
from std_msgs.msg import Header

from uncertainty_depth.core.config.nodes import MeasuringNodeConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.measured import (
    DepthOfTopic,
    MeasuredDepth,
    MeasuredTopic,
    PointsOfTopic,
)
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.transforms import Extrinsics, Viewpoint
from uncertainty_depth.ros.diagnostics import Health, image_alone
from uncertainty_depth.ros.extrinsics import close as close_extrinsics
from uncertainty_depth.ros.extrinsics import live_extrinsics
from uncertainty_depth.ros.inputs import Inputs
from uncertainty_depth.ros.live_camera import LiveCamera
from uncertainty_depth.ros.node import GuardedNode
from uncertainty_depth.sigma.sparse_depth import DEPTH, POINTS

TF_TIMEOUT_S = 0.2
OWN_MESSAGE_TIMEOUT_S = 0.1
MAX_MISSED = 3
MESSAGES = {POINTS: PointCloud2, DEPTH: Image}


class TopicInput:
    """Keeps the newest messages of `measured/points` or `measured/depth`; a `MeasurementSource`.

    What measures may come after its image, so an image waits until a message of its stamp or a
    later one has come, at most `OWN_MESSAGE_TIMEOUT_S`; then it is counted under
    "without_own_measurement" and has the nearest before. After `MAX_MISSED` of these in a row none
    waits until a message has an image's stamp.

    Raises:
        ConfigError: points are to be placed by tf, and tf2 is not installed.
    """

    def __init__(
        self,
        node: GuardedNode,
        health: Health,
        inputs: Inputs,
        config: MeasuringNodeConfig,
        kind: str,
        depth_range: tuple[float, ...],
        camera: LiveCamera,
    ) -> None:
        """Subscribe to points or depth.

        Depth far beyond `depth_range`, what predicts' min and max depth in metres, has other
        units. The camera has what rectifies the images, and so their depth images.
        """
        self._node = node
        self._health = health
        self._extrinsics: Extrinsics | None = None
        reader: MeasuredDepth
        if kind == POINTS:
            by_tf = replace(config, lidar_to_camera=())
            extrinsics = live_extrinsics(node, by_tf, timeout_s=TF_TIMEOUT_S)
            reader = PointsOfTopic(extrinsics, config)
            self._extrinsics = extrinsics
        else:
            reader = DepthOfTopic(camera.rectifier_of, node.get_logger().warning)
        topic = f"measured/{kind}"
        self._watched = inputs.subscribe(
            MESSAGES[kind], topic, self._add, purpose=f"measurements by {kind}"
        )
        self._measured = MeasuredTopic(self._watched.name, reader, depth_range)
        self._received = f"received.{topic}"
        self._changed = threading.Condition()
        self._image_ns: int | None = None
        self._missed = 0

    def _add(self, message: Any) -> None:
        with self._changed:
            self._measured.add(message)
            if stamp_ns(message.header) == self._image_ns:
                self._missed = 0
            self._changed.notify_all()
        self._health.count(self._received)

    def _wait_for_own(self, time_ns: int) -> None:
        with self._changed:
            self._image_ns = time_ns
            if self._missed < MAX_MISSED and not self._changed.wait_for(
                lambda: self._measured.has_reached(time_ns), OWN_MESSAGE_TIMEOUT_S
            ):
                self._missed += 1
                self._health.count("without_own_measurement")

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with what the topic measures, see `MeasurementSource`.

        If there is nothing, count it under "image_alone.REASON".
        """
        viewpoint = Viewpoint(header.frame_id, stamp_ns(header))
        self._wait_for_own(viewpoint.stamp_ns)
        try:
            measured = self._measured.measured(viewpoint, frame.camera, frame.shape)
        except MessageError as error:
            image_alone(self._node, self._health, error)
            return frame
        return replace(frame, measurements=measured.beside(frame.measurements))

    def close(self) -> None:
        """End the subscriptions to tf, if there are any."""
        close_extrinsics(self._extrinsics)
