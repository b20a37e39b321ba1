# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Show the outputs of both nodes live in the viewer rerun."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import rclpy
from numpy.typing import NDArray
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Float64

from uncertainty_depth.errors import MessageError
from uncertainty_depth.frames.pairing import ExactPairs
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.messages.camera_info import camera_from_info
from uncertainty_depth.messages.depth_images import decode_depth
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.messages.stamps import frame_name, stamp_ns
from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.ros.qos import sensor_qos
from uncertainty_depth.viewing import layout
from uncertainty_depth.viewing.recorder import NOMINAL, SCORES, Recorder

QUEUE_SIZE = 10
MAX_IMAGES = 30
EVALUATOR = "evaluator_node"
LOG_EVERY_S = 5.0


class LiveView(Node):
    """Logs each pair of depth and sigma with its image; the evaluator's errors and scores too."""

    def __init__(self, recorder: Recorder, image_topic: str = "image", **options: Any) -> None:
        """Subscribe to the outputs of the depth node and of the evaluator."""
        super().__init__("live_view", **options)
        self._recorder = recorder
        self._pairs = ExactPairs(QUEUE_SIZE)
        self._images: dict[int, NDArray[np.uint8]] = {}
        self._camera: Camera | None = None
        self.frames = 0
        qos = sensor_qos(QUEUE_SIZE, reliable=True)
        self.create_subscription(Image, image_topic, self._on_image, qos)
        self.create_subscription(CameraInfo, "depth/camera_info", self._on_info, qos)
        for side, topic in enumerate(("depth/image_rect", "uncertainty/image_rect")):
            self.create_subscription(Image, topic, partial(self._on_map, side), qos)
        self.create_subscription(Image, f"{EVALUATOR}/error/image", self._on_error, qos)
        for name in (*NOMINAL, *SCORES):
            topic = f"{EVALUATOR}/metrics/frame/{name.replace('.', '/')}"
            self.create_subscription(Float64, topic, partial(self._on_score, name), qos)

    def _on_image(self, message: Image) -> None:
        try:
            self._images[stamp_ns(message.header)] = decode_image(message)
        except MessageError as error:
            self._warn(error)
        while len(self._images) > MAX_IMAGES:
            self._images.pop(next(iter(self._images)))

    def _on_info(self, message: CameraInfo) -> None:
        try:
            self._camera = camera_from_info(message)
        except MessageError as error:
            self._warn(error)

    def _on_map(self, side: int, message: Image) -> None:
        try:
            values = decode_depth(message)
        except MessageError as error:
            self._warn(error)
            return
        stamp = stamp_ns(message.header)
        pair, _ = self._pairs.add(side, stamp, values)
        if pair is not None:
            self._show(stamp, *pair)

    def _show(
        self, stamp: int, depth_m: NDArray[np.float32], sigma_m: NDArray[np.float32]
    ) -> None:
        image = self._images.get(stamp)
        if image is not None and image.shape[:2] != depth_m.shape:
            image = None
        camera = self._camera
        if camera is not None and (camera.height, camera.width) != depth_m.shape:
            camera = None
        prediction = DepthPrediction(depth_m, sigma_m)
        frame = Frame(stamp, frame_name(stamp), camera, image, prediction=prediction)
        self._recorder.add(frame)
        self.frames += 1

    def _on_error(self, message: Image) -> None:
        self._recorder.add_image(layout.ERROR, decode_image(message))

    def _on_score(self, name: str, message: Float64) -> None:
        self._recorder.add_scores({name: message.data})

    def _warn(self, error: MessageError) -> None:
        self.get_logger().warning(str(error), throttle_duration_sec=LOG_EVERY_S)


def view_live(recorder: Recorder, image_topic: str) -> int:
    """Show what is published until Ctrl-C; return the number of frames shown."""
    rclpy.init()
    node = LiveView(recorder, image_topic)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    return node.frames
