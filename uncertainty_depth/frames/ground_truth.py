# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ground truth of a camera image in a bag: a LiDAR cloud or a registered depth image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.errors import MessageError, SourceError
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.geometry.rectification import Rectifier
from uncertainty_depth.geometry.transforms import (
    refuse_pose_and_fixed_frame,
    transforms_from_option,
)
from uncertainty_depth.messages.clouds import lidar_points
from uncertainty_depth.messages.depth_images import ground_truth_from_depth_image
from uncertainty_depth.messages.stamps import stamp_ns
from uncertainty_depth.records import Scan


class Viewpoint(NamedTuple):
    """Where and when a camera image was taken.

    Attributes:
        frame: optical frame of the camera.
        stamp_ns: nanoseconds.
    """

    frame: str
    stamp_ns: int


class GroundTruth(Protocol):
    """How the messages of one topic become ground truth.

    Attributes:
        noun: what such a message is called in sentences.
        unmatched_reason: what an image without such a message is counted under.
    """

    noun: str
    unmatched_reason: str

    def read(
        self,
        messages: tuple[Any, ...],
        viewpoint: Viewpoint,
        camera: Camera | None,
        shape: tuple[int, int],
        transforms: TransformTree,
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return the (H, W) float32 ground truth, metres, NaN where unknown.

        A LiDAR's comes with the scan that it was projected from.

        Args:
            messages: one cloud of each LiDAR, None where it has none in time, but not of all;
                or the depth image.
            viewpoint: of the camera image.
            camera: the camera at the image's size.
            shape: height and width of the camera image, pixels.
            transforms: between frames, at the times of the messages and of the image.

        Raises:
            MessageError: the messages give none; the sentence names no time.
        """

    def is_awaited(
        self, messages: tuple[Any, ...], viewpoint: Viewpoint, transforms: TransformTree
    ) -> bool:
        """Return whether transforms that the messages need may still come."""


class LidarGroundTruth:
    """Point clouds, projected with the transforms of the bag or the one of the options."""

    noun = "cloud"
    unmatched_reason = "no_lidar_within_max_time_difference"

    def __init__(self, config: SourceConfig, lidars: int = 1) -> None:
        """Raises `ConfigError` for wrong transforms, or transforms beside `fixed_frame`."""
        self._config = config
        option = config.lidar_to_camera
        refuse_pose_and_fixed_frame(config)
        self.fixed_poses = transforms_from_option(option, lidars) if option else None

    def read(
        self,
        messages: tuple[Any, ...],
        viewpoint: Viewpoint,
        camera: Camera | None,
        shape: tuple[int, int],
        transforms: TransformTree,
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return as `GroundTruth`; raises also for a cloud without points."""
        if camera is None:  # `Topics` has a camera info wherever it has a LiDAR
            raise MessageError("no_camera_info", "a cloud cannot be projected without camera info")
        present = {lidar: item for lidar, item in enumerate(messages) if item is not None}
        clouds = [lidar_points(message) for message in present.values()]
        if not any(map(len, clouds)):
            raise MessageError("cloud_without_points", "the cloud has no finite point")
        poses = [
            self.lidar_to_camera(message, viewpoint, transforms, lidar)
            for lidar, message in present.items()
        ]
        scan = merged_scan([Scan(*pair) for pair in zip(clouds, poses, strict=True)])
        depth_m = ground_truth_from_cloud(scan.points, scan.lidar_to_camera, camera, self._config)
        return depth_m, scan

    def lidar_to_camera(
        self, message: Any, viewpoint: Viewpoint, transforms: TransformTree, lidar: int = 0
    ) -> NDArray[np.float64]:
        """Return the (4, 4) transform from a LiDAR, at the cloud's stamp, to the camera.

        With `fixed_frame` the camera is where it was at the image's stamp, else at the cloud's.
        `lidar` counts from 0.

        Raises:
            MessageError: the transform is not known.
        """
        if self.fixed_poses is not None:
            return self.fixed_poses[lidar]
        lidar_frame = message.header.frame_id
        cloud_ns = stamp_ns(message.header)
        fixed_frame = self._config.fixed_frame
        camera_frame, image_ns = viewpoint
        try:
            if not fixed_frame:
                return transforms.lookup(camera_frame, lidar_frame, cloud_ns)
            return transforms.lookup_through(
                fixed_frame, camera_frame, image_ns, lidar_frame, cloud_ns
            )
        except SourceError as error:
            reason = "no_ego_motion" if fixed_frame else "no_extrinsics"
            raise MessageError(reason, str(error)) from error

    def is_awaited(
        self, messages: tuple[Any, ...], viewpoint: Viewpoint, transforms: TransformTree
    ) -> bool:
        """Return whether transforms at a cloud's stamp, or the image's, may still come."""
        clouds = [message for message in messages if message is not None]
        return any(self._awaits(message, viewpoint, transforms) for message in clouds)

    def _awaits(self, message: Any, viewpoint: Viewpoint, transforms: TransformTree) -> bool:
        lidar_frame = message.header.frame_id
        cloud_ns = stamp_ns(message.header)
        fixed_frame = self._config.fixed_frame
        camera_frame, image_ns = viewpoint
        if not fixed_frame:
            return transforms.is_awaited(camera_frame, lidar_frame, cloud_ns)
        return transforms.is_awaited(fixed_frame, lidar_frame, cloud_ns) or transforms.is_awaited(
            camera_frame, fixed_frame, image_ns
        )


class DepthImageGroundTruth:
    """A depth image that is registered to the camera image, and is rectified with it."""

    noun = "depth image"
    unmatched_reason = "no_ground_truth_image_within_max_time_difference"

    def __init__(self, rectifier: Rectifier | None) -> None:
        """Keep the rectifier of the camera images; None where they are used as recorded."""
        self._rectifier = rectifier

    def read(
        self,
        messages: tuple[Any, ...],
        viewpoint: Viewpoint,
        camera: Camera | None,
        shape: tuple[int, int],
        transforms: TransformTree,
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return as `GroundTruth`."""
        (message,) = messages
        depth_m = ground_truth_from_depth_image(message, shape)
        if self._rectifier is not None:
            depth_m = self._rectifier.depth(depth_m)
        return depth_m, None

    def is_awaited(
        self, messages: tuple[Any, ...], viewpoint: Viewpoint, transforms: TransformTree
    ) -> bool:
        """Return False: no transform is needed."""
        return False


def merged_scan(scans: Sequence[Scan]) -> Scan:
    """Return the points of all scans in the frame of the first LiDAR, with its pose.

    Projected, each pixel has the nearest point of all, and the occlusion filter sees them all:
    what one LiDAR sees past an edge is hidden by what another sees of it.

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
