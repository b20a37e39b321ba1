# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A camera of the depth node: images and camera infos in; maps, counts and diagnostics out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.node_config import DepthNodeConfig
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.messages.decoding import frame_name, stamp_ns
from uncertainty_depth.frames.messages.images import decode_image
from uncertainty_depth.frames.messages.transports import claimed_size
from uncertainty_depth.ros.camera_infos import UNCALIBRATED, CameraInfos
from uncertainty_depth.ros.diagnostics import (
    CALLBACK_FAILED,
    DiagnosticsPublisher,
    Health,
    fail,
)
from uncertainty_depth.ros.extrinsics import close as close_extrinsics
from uncertainty_depth.ros.inputs import Inputs, WatchedInput
from uncertainty_depth.ros.lidar_input import LidarInput
from uncertainty_depth.ros.messages import check_age
from uncertainty_depth.ros.node import ACTIVE, ManagedNode, sub_node
from uncertainty_depth.ros.predictions import Predictions
from uncertainty_depth.ros.worker import Worker

ImageMessage: TypeAlias = Image | CompressedImage


class Arrival(NamedTuple):
    """An image that waits for its turn."""

    camera: DepthCamera
    message: ImageMessage


class DepthCamera:
    """One of the node's cameras: images in; maps, counts and diagnostics out.

    Callbacks only queue; `prepare` is called on the worker's thread.

    Attributes:
        name: the namespace of its topics; empty: the node's own.
        health: counts the outcomes of its images.
        info: its camera info.
        predictions: publishes depth and sigma.
        standing: see `ManagedNode.standing`.
    """

    def __init__(
        self,
        node: ManagedNode[DepthNodeConfig],
        name: str,
        index: int,
        model_facts: Callable[[], dict[str, object]],
    ) -> None:
        self.name = name
        self.health = Health() if name else node.health
        self._index = index
        self._node = node
        self._model_facts = model_facts
        self._scope = sub_node(node, name)
        self.info = CameraInfos(self._scope, self.health, "camera_info")
        self.predictions = Predictions(self._scope, self.health)
        self._inputs = Inputs(self._scope, self.health)
        self._images: WatchedInput | None = None
        self._lidar: LidarInput | None = None
        parts = (node.get_namespace().strip("/"), name, node.get_name())
        self.standing = node.standing
        self._diagnostics = DiagnosticsPublisher(self._scope, self, "/".join(filter(None, parts)))

    def subscribe(self, worker: Worker[Arrival], lidar_range: tuple[float, ...] | None) -> None:
        """Subscribe to images and their camera info, and to the LiDAR if the model takes it.

        Args:
            worker: queues the images.
            lidar_range: min and max depth of a model that takes the LiDAR, metres; None for none.
        """
        health = self.health
        config = self._node.config
        self.info.configure(config.distorted_images)
        if lidar_range is not None:
            self._lidar = LidarInput(self._scope, health, self._inputs, config, lidar_range)
        purpose = "rectified images, points and the camera infos of the maps"
        self._inputs.subscribe(
            CameraInfo, "camera_info", self.info.add, once=True, purpose=purpose
        )

        def receive(message: ImageMessage) -> None:
            health.enter(message)
            worker.put(Arrival(self, message), self._index)

        message_type = CompressedImage if config.compressed_input else Image
        topic = "image/compressed" if config.compressed_input else "image"
        self._images = self._inputs.subscribe(message_type, topic, receive)

    def unsubscribe(self) -> None:
        """End all subscriptions."""
        self._inputs.close()
        self._images = None
        lidar, self._lidar = self._lidar, None
        if lidar is not None:
            close_extrinsics(lidar.extrinsics)

    def fail(self, message: ImageMessage, error: Exception) -> None:
        """Count and log an image that failed."""
        fail(self._scope, self.health, message, error)

    def prepare(self, message: ImageMessage) -> Frame | None:
        """Return an image decoded and rectified; None if it cannot be used, which is counted."""
        if not self.health.is_inside(message):  # the node was deactivated meanwhile
            return None
        config = self._node.config
        lidar = self._lidar
        header = message.header
        try:
            check_age(self._node, header, config.max_frame_age)
            image, camera = self._view(message, config.max_pixels)
            sparse_m = None if lidar is None else lidar.sparse_depth(header, camera, config)
        except Exception as error:
            self.fail(message, error)
            return None
        time_ns = stamp_ns(header)
        return Frame(time_ns, frame_name(time_ns), camera, image, sparse_m)

    def _view(
        self, message: ImageMessage, max_pixels: int
    ) -> tuple[NDArray[np.uint8], Camera | None]:
        """Return an image's pixels as `distorted_images` asks, and their camera.

        If no camera info is published, the image is returned unchanged, without a camera: it is
        assumed to be rectified. The camera of an uncalibrated camera info has focal length 0.

        Raises:
            MessageError: as `decode_image`; or its camera info has not come, is invalid, or does
                not fit the image, which is then not decoded.
        """
        width, height = claimed_size(message, max_pixels)
        try:
            rectifier = self.info.at(stamp_ns(message.header))
        except MessageError as error:
            if error.reason != UNCALIBRATED:
                raise
            return decode_image(message, max_pixels), Camera(width, height, np.zeros((3, 3)))
        if rectifier is None:
            return decode_image(message, max_pixels), None
        self.info.log_size(height, width, rectifier)
        rectifier.camera(width, height)
        return rectifier.image(decode_image(message, max_pixels))

    def awaited(self) -> tuple[str, ...]:
        """Return the counters that should keep growing."""
        return ("received",) if self._node.state == ACTIVE else ()

    def problems(self) -> list[str]:
        """Return sentences on what is wrong with inputs and correction."""
        return [*self._inputs.problems, *self.predictions.problems()]

    def facts(self) -> dict[str, object]:
        """Return facts about the camera and its model for the diagnostics."""
        facts: dict[str, object] = {
            "state": self._node.state,
            "camera_info": self.info.description(),
        }
        if self._images is not None:
            facts["image_publishers"] = self._scope.count_publishers(self._images.name)
            facts["image_stamp_age_s"] = f"{self._images.last_age_s:.3f}"
        failed = self._node.health.counts().get(CALLBACK_FAILED)
        if failed is not None:
            facts[CALLBACK_FAILED] = failed
        return facts | self._model_facts() | self.predictions.facts()
