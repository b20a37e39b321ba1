# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What measures depth beside a prediction, for a node: each adds to a frame before it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from sensor_msgs.msg import Image, PointCloud2
from std_msgs.msg import Header

from uncertainty_depth.core.config.nodes import MeasuringNodeConfig
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.config.source import ODOMETRY_FRAME, OdometryConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.geometry.transforms import POSE_NUMBERS
from uncertainty_depth.core.measurements import check_sparse_depth
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.measured import (
    DepthOfTopic,
    LidarGroundTruth,
    MeasuredTopic,
    NewestMessages,
    PointsOfTopic,
)
from uncertainty_depth.frames.messages.compressed import claimed_size
from uncertainty_depth.frames.messages.decoding import SECOND_NS, check_stamp, stamp_ns
from uncertainty_depth.frames.messages.images import decode_image
from uncertainty_depth.frames.transforms import Viewpoint
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S
from uncertainty_depth.ros.extrinsics import TfOdometry, live_extrinsics
from uncertainty_depth.ros.inputs import Inputs
from uncertainty_depth.ros.live_camera import LiveCamera, OwnMessages
from uncertainty_depth.sigma.measurement_option import (
    DEPTH,
    POINTS,
    MeasurementSources,
    parse_measurements,
)
from uncertainty_depth.stream.held_out import held_out
from uncertainty_depth.stream.motion import Motion

LIDAR = "lidar/points"
TF_TIMEOUT_S = 0.2
MAX_CLOUD_AGE_S = 0.15
"""Between the nearest cloud and an image: one and a half turns of a LiDAR at 10 Hz."""
MESSAGES = {POINTS: PointCloud2, DEPTH: Image}


Measure = Callable[[Frame, Header], Frame]
"""Returns a frame with what is measured in it; raises `MessageError` if nothing is.

It is called on the worker's thread; messages arrive on the executor's.
"""


def measurement_sources(
    inputs: Inputs,
    config: MeasuringNodeConfig,
    measuring: MeasurementSources,
    depth_range: tuple[float, ...],
    camera: LiveCamera,
    *,
    has_images: bool = True,
) -> Iterator[Measure]:
    """Subscribe to what measures, and yield the sources in the order they are asked.

    Motion takes the frames' images, which without `has_images` are subscribed to.
    """
    if measuring.motion and not has_images:
        yield ImageInput(inputs).add_to
    if measuring.lidar:
        yield LidarInput(inputs, config, depth_range).add_to
    for kind in measuring.topics:
        yield TopicInput(inputs, config, kind, depth_range, camera).add_to
    if measuring.motion:
        yield MotionInput(inputs, config).add_to


def parse_live(measurements: str) -> MeasurementSources:
    """Return what corrects the depth on a robot, or raise `ConfigError`."""
    measuring = parse_measurements(measurements)
    if measuring.random:
        raise ConfigError(
            f"measurements is {measurements!r}; expected lidar, motion, points or depth: random "
            "pixels of the ground truth are for `uncertainty-depth evaluate`"
        )
    return measuring


class LidarInput:
    """Keeps the newest clouds, and projects the nearest into an image."""

    def __init__(
        self,
        inputs: Inputs,
        config: MeasuringNodeConfig,
        depth_range: tuple[float, ...],
    ) -> None:
        """Subscribe; depth far beyond `depth_range`, metres, has other units, and is not used."""
        self._depth_range = depth_range
        self._clouds = NewestMessages()
        poses = max(1, len(config.lidar_to_camera) // POSE_NUMBERS)  # the first LiDAR is read
        extrinsics = live_extrinsics(inputs.transforms, config, poses, TF_TIMEOUT_S)
        self._projection = LidarGroundTruth(extrinsics)
        self._held_out = HeldOutConfig(config.held_out_fraction)
        self._watched = inputs.subscribe(
            PointCloud2,
            LIDAR,
            self._clouds.add,
            counted=True,
            purpose="measurements by lidar; without it depth is from the image alone",
        )

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with the LiDAR's depth as `sparse_m`, see `Measure`."""
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
        viewpoint = Viewpoint(header.frame_id, stamp_ns(header))
        shape = frame.shape
        depth_m, _ = self._projection.read((cloud,), viewpoint, frame.camera, shape)
        if np.isnan(depth_m).all():
            raise MessageError("no_lidar_point_in_view", "no point of the cloud is in the image")
        check_sparse_depth(depth_m, shape, self._depth_range)
        if self._held_out.held_out_fraction > 0:
            depth_m[held_out(depth_m, stamp_ns(header), self._held_out)] = np.nan
        return replace(frame, sparse_m=depth_m)


class TopicInput:
    """Keeps the newest messages of `measured/points` or `measured/depth`.

    What measures may come after its image, see `OwnMessages`.
    """

    def __init__(
        self,
        inputs: Inputs,
        config: MeasuringNodeConfig,
        kind: str,
        depth_range: tuple[float, ...],
        camera: LiveCamera,
    ) -> None:
        """Subscribe to points or depth; the camera has what rectifies depth images as its own."""
        reader: PointsOfTopic | DepthOfTopic
        if kind == POINTS:
            by_tf = replace(config, lidar_to_camera=())
            extrinsics = live_extrinsics(inputs.transforms, by_tf, timeout_s=TF_TIMEOUT_S)
            reader = PointsOfTopic(extrinsics, config.fixed_frame)
        else:
            reader = DepthOfTopic(camera.rectifier_of, inputs.node.get_logger().warning)
        topic = f"measured/{kind}"
        name = inputs.node.resolve_topic_name(topic)
        self._measured = MeasuredTopic(name, reader, depth_range)
        self._own = OwnMessages(inputs.node.health, "without_own_measurement")
        receive = partial(self._own.arrived, keep=self._measured.add)
        purpose = f"measurements by {kind}"
        inputs.subscribe(MESSAGES[kind], topic, receive, counted=True, purpose=purpose)

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with what the topic measures, see `Measure`."""
        viewpoint = Viewpoint(header.frame_id, stamp_ns(header))
        time_ns = viewpoint.stamp_ns
        self._own.wait(time_ns, lambda: self._measured.has_reached(time_ns))
        measured = self._measured.measured(viewpoint, frame.camera, frame.shape)
        return replace(frame, measurements=measured.beside(frame.measurements))


class ImageInput:
    """Gives each depth the image of its stamp, for motion."""

    def __init__(self, inputs: Inputs) -> None:
        """Subscribe."""
        self._images = NewestMessages()
        self._watched = inputs.subscribe(
            Image, "image", self._images.add, counted=True, purpose="measurements by motion"
        )

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with its image, see `Measure`."""
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


class MotionInput:
    """Tracks corners through the images, with tf's poses."""

    def __init__(self, inputs: Inputs, config: OdometryConfig) -> None:
        """Subscribe to tf."""
        self._node = inputs.node
        transforms = inputs.transforms(
            "measurements by motion take the camera's poses from tf, and tf2_ros is not "
            "installed; expected a ROS distribution"
        )
        frame = config.odometry_frame or ODOMETRY_FRAME
        self._odometry = TfOdometry(transforms, frame, TF_TIMEOUT_S)
        self._motion = Motion()

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with what motion measures, see `Measure`.

        A camera that stands still is no fault, and is only counted.
        """
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
            self._node.health.count("image_alone.no_parallax")
            return frame
        return replace(frame, measurements=measured.beside(frame.measurements))
