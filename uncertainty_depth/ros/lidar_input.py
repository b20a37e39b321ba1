# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Project the LiDAR's cloud that is nearest in time into the image as sparse depth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header

from uncertainty_depth.core.config.nodes import MeasuringNodeConfig
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.transforms import POSE_NUMBERS
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.ground_truth import LidarGroundTruth
from uncertainty_depth.frames.measured import NewestMessages
from uncertainty_depth.frames.messages.decoding import SECOND_NS, check_stamp, stamp_ns
from uncertainty_depth.frames.transforms import Extrinsics, Viewpoint
from uncertainty_depth.ros.diagnostics import Health, image_alone
from uncertainty_depth.ros.extrinsics import close as close_extrinsics
from uncertainty_depth.ros.extrinsics import live_extrinsics
from uncertainty_depth.ros.inputs import Inputs
from uncertainty_depth.ros.node import GuardedNode
from uncertainty_depth.sigma.sparse_depth import check_sparse_depth
from uncertainty_depth.stream.held_out import held_out

TOPIC = "lidar/points"
TF_TIMEOUT_S = 0.2
MAX_CLOUD_AGE_S = 0.15
"""Between the nearest cloud and an image: one and a half turns of a LiDAR at 10 Hz."""


class LidarInput:
    """Keeps the newest clouds, and projects the nearest into an image; a `MeasurementSource`.

    Raises:
        ConfigError: the parameter lidar_to_camera is not a transform, or is empty without tf2.
    """

    def __init__(
        self,
        node: GuardedNode,
        health: Health,
        inputs: Inputs,
        config: MeasuringNodeConfig,
        depth_range: tuple[float, ...],
    ) -> None:
        """Subscribe.

        Depth far beyond `depth_range`, what predicts' min and max depth in metres, has other
        units: then only the image is used.
        """
        self._node = node
        self._depth_range = depth_range
        self._health = health
        self._clouds = NewestMessages()
        poses = max(1, len(config.lidar_to_camera) // POSE_NUMBERS)  # the first LiDAR is read
        self._extrinsics: Extrinsics = live_extrinsics(node, config, poses, TF_TIMEOUT_S)
        self._projection = LidarGroundTruth(self._extrinsics, config)
        self._held_out = HeldOutConfig(config.held_out_fraction)
        self._watched = inputs.subscribe(
            PointCloud2,
            TOPIC,
            self._on_cloud,
            purpose="measurements by lidar, or the sparse depth that the model takes; without it "
            "depth is from the image alone",
        )

    def _on_cloud(self, message: PointCloud2) -> None:
        self._clouds.add(message)
        self._health.count(f"received.{TOPIC}")

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with the LiDAR's depth as `sparse_m`, see `MeasurementSource`.

        If there is none, count it under "image_alone.REASON".
        """
        try:
            return replace(frame, sparse_m=self._projected(header, frame.camera))
        except MessageError as error:
            image_alone(self._node, self._health, error)
            return frame

    def close(self) -> None:
        """End the subscriptions to tf, if there are any."""
        close_extrinsics(self._extrinsics)

    def _projected(self, header: Header, camera: Camera | None) -> NDArray[np.float32]:
        """Return the LiDAR's depth in an image, (H, W) metres, NaN for unknown."""
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
        return depth_m
