# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""An image's ground truth: LiDAR clouds or a registered depth image, live and in a bag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.core.geometry.rectification import Rectifier
from uncertainty_depth.core.records import Scan
from uncertainty_depth.frames.cameras import Cameras
from uncertainty_depth.frames.messages.clouds import lidar_points
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.messages.images import ground_truth_from_depth_image
from uncertainty_depth.frames.transforms import Extrinsics, Viewpoint


class LidarGroundTruth:
    """Point clouds, projected with each LiDAR's pose."""

    noun = "cloud"
    unmatched_reason = "no_lidar_within_max_time_difference"
    cameras: Cameras | None = None

    def __init__(self, extrinsics: Extrinsics) -> None:
        self._extrinsics = extrinsics

    def read(
        self,
        messages: tuple[Any, ...],
        viewpoint: Viewpoint,
        camera: Camera | None,
        shape: tuple[int, int],
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return (H, W) float32 ground truth, metres, NaN for unknown, and the projected scan.

        Each LiDAR has a cloud in `messages`, or None, but not all. Raises `MessageError`, whose
        sentence names no time, if they give no ground truth.
        """
        if camera is None:
            raise MessageError("no_camera_info", "a cloud cannot be projected without camera info")
        present = {lidar: item for lidar, item in enumerate(messages) if item is not None}
        clouds = [lidar_points(message) for message in present.values()]
        if not any(map(len, clouds)):
            size = sum(message.height * message.width for message in present.values())
            raise MessageError(
                "cloud_without_points",
                f"none of the cloud's {size} points is finite and not (0, 0, 0): is the sensor "
                "covered?",
            )
        poses = [
            self._extrinsics.lookup(viewpoint, message.header, lidar)
            for lidar, message in present.items()
        ]
        scan = merged_scan([Scan(*pair) for pair in zip(clouds, poses, strict=True)])
        depth_m = ground_truth_from_cloud(scan.points, scan.lidar_to_camera, camera)
        return depth_m, scan

    def is_awaited(self, messages: tuple[Any, ...], viewpoint: Viewpoint) -> bool:
        """Return whether transforms at a cloud's stamp, or the image's, may still come."""
        clouds = [message.header for message in messages if message is not None]
        return any(self._extrinsics.is_awaited(viewpoint, header) for header in clouds)

    def notes(self) -> Iterator[str]:
        """Return sentences about what was assumed: nothing."""
        return iter(())


class DepthImageGroundTruth:
    """The camera's depth image, pixel by pixel, once it is rectified as the camera's image is.

    It is rectified with the camera image that it is registered to. Maps are rectified already, or
    kept raw; their depth image is rectified if they are, by its own camera info.
    """

    noun = "depth image"
    unmatched_reason = "no_ground_truth_image_within_max_time_difference"

    def __init__(self, image_cameras: Cameras, cameras: Cameras | None = None) -> None:
        """Take the camera infos of what is scored, and for maps those of the depth images."""
        self.cameras = cameras
        self._image_cameras = image_cameras
        self._without_info: dict[str, None] = {}

    def read(
        self,
        messages: tuple[Any, ...],
        viewpoint: Viewpoint,
        camera: Camera | None,
        shape: tuple[int, int],
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return as `LidarGroundTruth`, from the one depth image; there is no scan."""
        (message,) = messages
        rectifier = self._rectifier(viewpoint.stamp_ns, stamp_ns(message.header))
        depth_m = ground_truth_from_depth_image(message, shape)
        if rectifier is not None:
            depth_m = rectifier.depth(depth_m)
        return depth_m, None

    def is_awaited(self, messages: tuple[Any, ...], viewpoint: Viewpoint) -> bool:
        """Return whether the depth image's camera info may still come."""
        (message,) = messages
        return self.cameras is not None and self.cameras.is_awaited(stamp_ns(message.header))

    def notes(self) -> Iterator[str]:
        """Yield sentences about what was assumed."""
        if self.cameras is not None:
            yield from self.cameras.notes
        for topic in self._without_info:
            yield (
                f"there is no usable camera info on {topic}: the depth images are taken as "
                "registered to the maps, pixel by pixel; otherwise the scores are wrong"
            )

    def _rectifier(self, image_ns: int, depth_ns: int) -> Rectifier | None:
        """Return what rectifies a depth image; None if its pixels are those of the image."""
        if self.cameras is None:
            return self._image_cameras.at(image_ns)
        of_maps = None
        try:
            of_maps = self._image_cameras.at(image_ns)
        except MessageError:  # an unusable one tells as little as none
            if self._image_cameras.is_missing:
                raise
        if of_maps is not None and not of_maps.is_rectified:
            return None
        own = self.cameras.at(depth_ns)
        for cameras, rectifier in ((self._image_cameras, of_maps), (self.cameras, own)):
            if rectifier is None and cameras.topic:
                self._without_info[cameras.topic] = None
        return None if of_maps is None else own


GroundTruth = LidarGroundTruth | DepthImageGroundTruth
"""Converts one topic's messages to ground truth."""


def merged_scan(scans: Sequence[Scan]) -> Scan:
    """Return all scans' points in the first LiDAR's frame, with its pose; at least one scan.

    After projection each pixel has the nearest point, and the occlusion filter sees them all: one
    LiDAR's points behind an edge are hidden by another's points on it.
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
