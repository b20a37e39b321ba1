# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What measures depth beside a prediction, for a node: each adds to a frame before it is used."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sensor_msgs.msg import Image, PointCloud2
from std_msgs.msg import Header

from uncertainty_depth.core.config.nodes import MeasuringNodeConfig
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.config.source import ODOMETRY_FRAME, OdometryConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.geometry.transforms import POSE_NUMBERS
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.ground_truth import LidarGroundTruth
from uncertainty_depth.frames.measured import (
    DepthOfTopic,
    MeasuredDepth,
    MeasuredTopic,
    NewestMessages,
    PointsOfTopic,
)
from uncertainty_depth.frames.messages.compressed import claimed_size
from uncertainty_depth.frames.messages.decoding import SECOND_NS, check_stamp, stamp_ns
from uncertainty_depth.frames.messages.images import decode_image
from uncertainty_depth.frames.transforms import Extrinsics, Viewpoint
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S, Health, image_alone
from uncertainty_depth.ros.extrinsics import close as close_extrinsics
from uncertainty_depth.ros.extrinsics import live_extrinsics, live_odometry
from uncertainty_depth.ros.inputs import Inputs
from uncertainty_depth.ros.live_camera import LiveCamera
from uncertainty_depth.ros.node import GuardedNode
from uncertainty_depth.sigma.sparse_depth import (
    DEPTH,
    POINTS,
    MeasurementSources,
    check_sparse_depth,
    parse_measurements,
)
from uncertainty_depth.stream.held_out import held_out
from uncertainty_depth.stream.motion import Motion

LIDAR = "lidar/points"
TF_TIMEOUT_S = 0.2
MAX_CLOUD_AGE_S = 0.15
"""Between the nearest cloud and an image: one and a half turns of a LiDAR at 10 Hz."""
OWN_MESSAGE_TIMEOUT_S = 0.1
MAX_MISSED = 3
MESSAGES = {POINTS: PointCloud2, DEPTH: Image}
IMAGE = "image"


class MeasurementSource(ABC):
    """Measures pixels of the images; its messages arrive on the executor's thread."""

    def __init__(self, node: GuardedNode, health: Health) -> None:
        """Take what logs, and what counts, that nothing is measured."""
        self._node = node
        self._health = health

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with what is measured in it; called on the worker's thread.

        If there is nothing, count it under "image_alone.REASON", and return the frame as it is.
        """
        try:
            return self._measured_in(frame, header)
        except MessageError as error:
            image_alone(self._node, self._health, error)
            return frame

    @abstractmethod
    def _measured_in(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with what is measured; raise `MessageError` for nothing."""

    def close(self) -> None:  # noqa: B027  most have nothing else
        """End what `Inputs.close` does not."""


def measurement_sources(
    node: GuardedNode,
    health: Health,
    inputs: Inputs,
    config: MeasuringNodeConfig,
    measuring: MeasurementSources,
    depth_range: tuple[float, ...],
    camera: LiveCamera,
) -> Iterator[MeasurementSource]:
    """Subscribe to what measures, and yield the sources in the order they are asked."""
    if measuring.sparse is not None:
        yield LidarInput(node, health, inputs, config, depth_range)
    for kind in measuring.topics:
        yield TopicInput(node, health, inputs, config, kind, depth_range, camera)
    if measuring.motion:
        yield MotionInput(node, health, config)


def parse_live(measurements: str) -> MeasurementSources:
    """Return what corrects the depth on a robot, or raise `ConfigError`."""
    measuring = parse_measurements(measurements)
    if measuring.sparse is not None and measuring.sparse.pixels:
        raise ConfigError(
            f"measurements is {measurements!r}; expected lidar, motion, points or depth: random "
            "pixels of the ground truth are for `uncertainty-depth evaluate`"
        )
    return measuring


class LidarInput(MeasurementSource):
    """Keeps the newest clouds, and projects the nearest into an image."""

    def __init__(
        self,
        node: GuardedNode,
        health: Health,
        inputs: Inputs,
        config: MeasuringNodeConfig,
        depth_range: tuple[float, ...],
    ) -> None:
        """Subscribe; depth far beyond `depth_range`, metres, has other units, and is not used."""
        super().__init__(node, health)
        self._depth_range = depth_range
        self._clouds = NewestMessages()
        poses = max(1, len(config.lidar_to_camera) // POSE_NUMBERS)  # the first LiDAR is read
        self._extrinsics: Extrinsics = live_extrinsics(node, config, poses, TF_TIMEOUT_S)
        self._projection = LidarGroundTruth(self._extrinsics)
        self._held_out = HeldOutConfig(config.held_out_fraction)
        self._watched = inputs.subscribe(
            PointCloud2,
            LIDAR,
            self._on_cloud,
            purpose="measurements by lidar, or the sparse depth that the model takes; without it "
            "depth is from the image alone",
        )

    def _on_cloud(self, message: PointCloud2) -> None:
        self._clouds.add(message)
        self._health.count(f"received.{LIDAR}")

    def close(self) -> None:
        """End the subscriptions to tf, if there are any."""
        close_extrinsics(self._extrinsics)

    def _measured_in(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with the LiDAR's depth as `sparse_m`."""
        camera = frame.camera
        cloud = self._clouds.nearest(stamp_ns(header))
        if cloud is None:
            raise MessageError("no_cloud", f"no cloud received on {self._watched.name}")
        check_stamp(header, "an image")
        check_stamp(cloud.header, f"the nearest cloud on {self._watched.name}")
        age_s = abs(stamp_ns(header) - stamp_ns(cloud.header)) / SECOND_NS
        if age_s > MAX_CLOUD_AGE_S:
            raise MessageError(
                "cloud_too_old",
                f"the nearest cloud is {age_s:.3f} s from the image; expected at most "
                f"{MAX_CLOUD_AGE_S} s",
            )
        if camera is None or camera.intrinsics[0, 0] == 0:
            raise MessageError("no_camera_info", "a cloud cannot be projected without camera info")
        viewpoint = Viewpoint(header.frame_id, stamp_ns(header))
        shape = (camera.height, camera.width)
        depth_m, _ = self._projection.read((cloud,), viewpoint, camera, shape)
        if np.isnan(depth_m).all():
            raise MessageError("no_lidar_point_in_view", "no point of the cloud is in the image")
        check_sparse_depth(depth_m, shape, self._depth_range)
        if self._held_out.held_out_fraction > 0:
            depth_m[held_out(depth_m, stamp_ns(header), self._held_out)] = np.nan
        return replace(frame, sparse_m=depth_m)


class TopicInput(MeasurementSource):
    """Keeps the newest messages of `measured/points` or `measured/depth`.

    What measures may come after its image, so an image waits until a message of its stamp or a
    later one has come, at most `OWN_MESSAGE_TIMEOUT_S`; then it is counted under
    "without_own_measurement" and has the nearest before. After `MAX_MISSED` of these in a row none
    waits until a message has an image's stamp.
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
        """Subscribe to points or depth; the camera has what rectifies depth images as its own."""
        super().__init__(node, health)
        self._extrinsics: Extrinsics | None = None
        reader: MeasuredDepth
        if kind == POINTS:
            by_tf = replace(config, lidar_to_camera=())
            extrinsics = live_extrinsics(node, by_tf, timeout_s=TF_TIMEOUT_S)
            reader = PointsOfTopic(extrinsics, config.fixed_frame)
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

    def _measured_in(self, frame: Frame, header: Header) -> Frame:
        viewpoint = Viewpoint(header.frame_id, stamp_ns(header))
        self._wait_for_own(viewpoint.stamp_ns)
        measured = self._measured.measured(viewpoint, frame.camera, frame.shape)
        return replace(frame, measurements=measured.beside(frame.measurements))

    def close(self) -> None:
        """End the subscriptions to tf, if there are any."""
        close_extrinsics(self._extrinsics)


class ImageInput(MeasurementSource):
    """Gives each depth the image of its stamp, for motion."""

    def __init__(self, node: GuardedNode, health: Health, inputs: Inputs) -> None:
        """Subscribe; what has no image is counted in `health`."""
        super().__init__(node, health)
        self._images = NewestMessages()
        purpose = "measurements by motion"
        self._watched = inputs.subscribe(Image, IMAGE, self._on_image, purpose=purpose)

    def _on_image(self, message: Image) -> None:
        self._images.add(message)
        self._health.count(f"received.{IMAGE}")

    def _measured_in(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with its image."""
        check_stamp(header, "a depth image")
        message = self._images.nearest(stamp_ns(header))
        if message is None or stamp_ns(message.header) != stamp_ns(header):
            raise MessageError(
                "no_image",
                f"no image on {self._watched.name} has the stamp of the depth; expected the "
                "rectified images that the depth is made of",
            )
        if (size := claimed_size(message)) != frame.shape[::-1]:
            raise MessageError(
                "image_wrong_size",
                f"the image on {self._watched.name} has {size} pixels and its depth "
                f"{frame.shape[::-1]}; expected the rectified image, resized as the depth is",
            )
        return replace(frame, image=decode_image(message))


class MotionInput(MeasurementSource):
    """Tracks corners through the images, with tf's poses."""

    def __init__(self, node: GuardedNode, health: Health, config: OdometryConfig) -> None:
        """Subscribe to tf."""
        super().__init__(node, health)
        frame = config.odometry_frame or ODOMETRY_FRAME
        self._odometry = live_odometry(node, frame, TF_TIMEOUT_S)
        self._motion = Motion()

    def _measured_in(self, frame: Frame, header: Header) -> Frame:
        """A camera that stands still is no fault, and is only counted."""
        if frame.image is None:  # which whatever brings a depth its image has counted
            return frame
        rejected = self._motion.tracker.rejected
        try:
            pose = self._odometry.pose(Viewpoint(header.frame_id, stamp_ns(header)))
        except MessageError:
            self._motion.measure(frame)  # its corners are lost: tracking starts anew
            raise
        frame = replace(frame, pose=pose)
        measured = self._motion.measure(frame)
        if measured is None:
            raise MessageError(
                "no_camera_info",
                "motion measures in rectified images of a calibrated camera alone",
            )
        if self._motion.tracker.rejected > rejected:
            quality = self._motion.tracker.quality
            raise MessageError(
                "motion_rejected",
                f"{100 * quality.failed:.0f}% of {quality.tracked} corners contradict the "
                f"odometry, by {quality.epipolar_px:.1f} pixels in the median; expected tf at "
                "the images' stamps, the camera's true place on the robot, and a world that "
                "stands still",
            )
        for warning in self._motion.warnings():
            self._node.get_logger().warning(warning, throttle_duration_sec=LOG_EVERY_S)
        if not len(measured):
            self._health.count("image_alone.no_parallax")
            return frame
        return replace(frame, measurements=measured.beside(frame.measurements))

    def close(self) -> None:
        """End the subscriptions to tf."""
        self._odometry.close()
