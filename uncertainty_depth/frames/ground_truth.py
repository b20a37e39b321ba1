# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""An image's ground truth: LiDAR clouds or a registered depth image, live and in a bag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config import ProjectionConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.core.geometry.rectification import Rectifier
from uncertainty_depth.core.records import Scan
from uncertainty_depth.frames.messages.clouds import lidar_points
from uncertainty_depth.frames.messages.depth_images import ground_truth_from_depth_image
from uncertainty_depth.frames.transforms import Extrinsics, Viewpoint


class LidarGroundTruth:
    """Point clouds, projected with the pose of each LiDAR.

    Attributes:
        noun: name of a message in sentences.
        unmatched_reason: the reason that an image without a message is counted under.
    """

    noun = "cloud"
    unmatched_reason = "no_lidar_within_max_time_difference"

    def __init__(self, extrinsics: Extrinsics, config: ProjectionConfig) -> None:
        self._extrinsics = extrinsics
        self._config = config

    def read(
        self,
        messages: tuple[Any, ...],
        viewpoint: Viewpoint,
        camera: Camera | None,
        shape: tuple[int, int],
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return (H, W) float32 ground truth, metres, NaN for unknown, and the projected scan.

        Args:
            messages: one cloud per LiDAR, None for a LiDAR without one in time, but not for all.
            viewpoint: of the camera image.
            camera: the camera at the image's size.
            shape: height and width of the camera image, pixels.

        Raises:
            MessageError: the messages give no ground truth; the sentence names no time.
        """
        if camera is None:
            raise MessageError("no_camera_info", "a cloud cannot be projected without camera info")
        present = {lidar: item for lidar, item in enumerate(messages) if item is not None}
        clouds = [lidar_points(message) for message in present.values()]
        if not any(map(len, clouds)):
            raise MessageError("cloud_without_points", "the cloud has no finite point")
        poses = [
            self._extrinsics.lookup(viewpoint, message.header, lidar)
            for lidar, message in present.items()
        ]
        scan = merged_scan([Scan(*pair) for pair in zip(clouds, poses, strict=True)])
        depth_m = ground_truth_from_cloud(scan.points, scan.lidar_to_camera, camera, self._config)
        return depth_m, scan

    def is_awaited(self, messages: tuple[Any, ...], viewpoint: Viewpoint) -> bool:
        """Return whether transforms at a cloud's stamp, or the image's, may still come."""
        clouds = [message.header for message in messages if message is not None]
        return any(self._extrinsics.is_awaited(viewpoint, header) for header in clouds)


class DepthImageGroundTruth:
    """A depth image that is registered to the camera image, and is rectified with it.

    Attributes:
        noun, unmatched_reason: see `LidarGroundTruth`.
    """

    noun = "depth image"
    unmatched_reason = "no_ground_truth_image_within_max_time_difference"

    def __init__(self, rectifier_at: Callable[[int], Rectifier | None]) -> None:
        """Take a function from the camera image's stamp to the depth image's rectifier."""
        self._rectifier_at = rectifier_at

    def read(
        self,
        messages: tuple[Any, ...],
        viewpoint: Viewpoint,
        camera: Camera | None,
        shape: tuple[int, int],
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return as `LidarGroundTruth`, from the one depth image; there is no scan."""
        (message,) = messages
        depth_m = ground_truth_from_depth_image(message, shape)
        rectifier = self._rectifier_at(viewpoint.stamp_ns)
        if rectifier is not None:
            depth_m = rectifier.depth(depth_m)
        return depth_m, None

    def is_awaited(self, messages: tuple[Any, ...], viewpoint: Viewpoint) -> bool:
        """Return False: no transform is needed."""
        return False


GroundTruth = LidarGroundTruth | DepthImageGroundTruth
"""Converts one topic's messages to ground truth."""


def merged_scan(scans: Sequence[Scan]) -> Scan:
    """Return the points of all scans in the frame of the first LiDAR, with its pose.

    After projection each pixel has the nearest of all points, and the occlusion filter sees them
    all: one LiDAR's points behind an edge are hidden by another's points on it.

    Args:
        scans: at least one, each with the pose of its LiDAR at the same camera.
    """
    first = scans[0]
    if len(scans) == 1:
        return first
    camera_to_first = np.linalg.inv(first.lidar_to_camera)
    points = [first.points[:, :3]]
    for scan in scans[1:]:
        to_first = camera_to_first @ scan.lidar_to_camera
        points.append(scan.points[:, :3] @ to_first[:3, :3].T + to_first[:3, 3])
    return Scan(np.concatenate(points), first.lidar_to_camera)
