"""What a bag knows of the depth in a camera image: a LiDAR cloud seen by the camera, or a registered depth image."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.data.transforms import TransformTree
from uncertainty_depth.errors import MessageError, SourceError
from uncertainty_depth.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.geometry.rectification import Rectifier
from uncertainty_depth.geometry.transforms import transform_from_option
from uncertainty_depth.messages.clouds import cloud_points
from uncertainty_depth.messages.depth_images import ground_truth_from_depth_image
from uncertainty_depth.records import Scan


class GroundTruth(Protocol):
    """How the messages of one topic become ground truth.

    Attributes:
        noun: what such a message is called in sentences.
        unmatched_reason: what an image without such a message is counted under.
    """

    noun: str
    unmatched_reason: str

    def read(
        self, message: Any, camera_frame: str, camera: Camera | None, shape: tuple[int, int]
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """(H, W) float32 ground truth of an image of `shape`, metres, NaN where nothing is known.

        A LiDAR's comes with the scan that it was projected from.

        Args:
            message: the cloud or depth image of the camera image.
            camera_frame: optical frame of the camera image.
            camera: the camera at the image's size.
            shape: height and width of the camera image, pixels.

        Raises:
            MessageError: where the message gives none; the sentence names no time.
        """


class LidarGroundTruth:
    """A point cloud, projected with the transforms of the bag or the one that the options give."""

    noun = "cloud"
    unmatched_reason = "no_lidar_within_max_time_difference"

    def __init__(self, config: SourceConfig, transforms: TransformTree) -> None:
        self._config = config
        self._transforms = transforms
        self._extrinsics: dict[tuple[str, str], NDArray[np.float64]] = {}

    def read(
        self, message: Any, camera_frame: str, camera: Camera | None, shape: tuple[int, int]
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """As `GroundTruth`. Raises also for a cloud without points."""
        points = cloud_points(message)
        if not len(points):
            raise MessageError("cloud_without_points", "the cloud has no finite point")
        lidar_to_camera = self.lidar_to_camera(camera_frame, message.header.frame_id)
        depth_m = ground_truth_from_cloud(points, lidar_to_camera, camera, self._config)
        return depth_m, Scan(points, lidar_to_camera)

    def lidar_to_camera(self, camera_frame: str, lidar_frame: str) -> NDArray[np.float64]:
        """(4, 4) transform from the LiDAR to the camera. Raises `MessageError` no_extrinsics."""
        frames = (camera_frame, lidar_frame)
        if frames not in self._extrinsics:
            given = self._config.lidar_to_camera
            try:
                self._extrinsics[frames] = (
                    transform_from_option(given) if given else self._transforms.lookup(*frames)
                )
            except SourceError as error:
                raise MessageError("no_extrinsics", str(error)) from error
        return self._extrinsics[frames]


class DepthImageGroundTruth:
    """A depth image that is registered to the camera image, and is rectified with it."""

    noun = "depth image"
    unmatched_reason = "no_ground_truth_image_within_max_time_difference"

    def __init__(self, rectifier: Rectifier | None) -> None:
        """`rectifier`: of the camera images; None where they are taken as they are."""
        self._rectifier = rectifier

    def read(
        self, message: Any, camera_frame: str, camera: Camera | None, shape: tuple[int, int]
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """As `GroundTruth`."""
        depth_m = ground_truth_from_depth_image(message, shape)
        return (depth_m if self._rectifier is None else self._rectifier.depth(depth_m)), None
