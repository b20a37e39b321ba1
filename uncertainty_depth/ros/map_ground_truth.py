# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ground truth in the pixels of the maps that are scored, and a check of its geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.geometry.check import GeometryCheck
from uncertainty_depth.messages.clouds import cloud_points
from uncertainty_depth.messages.depth_images import ground_truth_from_depth_image
from uncertainty_depth.records import Scan
from uncertainty_depth.ros.extrinsics import Extrinsics
from uncertainty_depth.ros.map_camera import MapCamera


class MapGroundTruth:
    """Projects LiDAR clouds into the maps, or takes ground truth images.

    Attributes:
        config: options of the projection.
        extrinsics: where the LiDAR sits.
        camera: of the maps.
        check: has seen every ground truth since `reset`. Without a camera image it compares no
            edges; a wrong unit and a cloud that is out of view are told.
    """

    def __init__(self, config: EvaluatorNodeConfig, extrinsics: Extrinsics) -> None:
        self.config = config
        self.extrinsics = extrinsics
        self.camera = MapCamera()
        self.check = GeometryCheck()

    def reset(self) -> None:
        """Forget what the check has seen."""
        self.check = GeometryCheck()

    def in_maps(
        self, message: Any, depth: Any, shape: tuple[int, int], name: str
    ) -> NDArray[np.float32]:
        """Return the ground truth of a frame, (H, W) metres, NaN where unknown.

        Args:
            message: the cloud or ground truth image.
            depth: the depth image message that it scores.
            shape: (H, W) of the maps.
            name: of the frame.

        Raises:
            MessageError: it cannot be used for this frame.
        """
        if not self.config.use_ground_truth_image:
            return self._from_cloud(message, depth, shape, name)
        ground_truth_m = self.camera.as_maps(ground_truth_from_depth_image(message, shape))
        self.check.update(None, ground_truth_m)
        return ground_truth_m

    def known_camera(self, shape: tuple[int, int]) -> Camera | None:
        """Return the camera of maps of this shape; None without one, as with a depth image."""
        if self.camera.info is None:
            return None
        height, width = shape
        try:
            return self.camera.camera(width, height)
        except MessageError:
            return None

    def _from_cloud(
        self, cloud: Any, depth: Any, shape: tuple[int, int], name: str
    ) -> NDArray[np.float32]:
        if self.camera.info is None:
            raise MessageError("no_camera_info", f"no CameraInfo received before frame {name}")
        points = cloud_points(cloud)
        if not len(points):
            raise MessageError(
                "cloud_without_points", f"the cloud of frame {name} has no finite point"
            )
        height, width = shape
        camera = self.camera.camera(width, height)
        lidar_to_camera = self.extrinsics.lookup(
            depth.header.frame_id, cloud.header.frame_id, cloud.header.stamp
        )
        ground_truth_m = ground_truth_from_cloud(points, lidar_to_camera, camera, self.config)
        self.check.update(None, ground_truth_m, camera, Scan(points, lidar_to_camera))
        if np.isnan(ground_truth_m).all():
            raise MessageError("no_lidar_point_in_view", f"no LiDAR point falls into frame {name}")
        return ground_truth_m
