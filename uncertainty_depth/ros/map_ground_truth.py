# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Ground truth in the pixels of the maps that are scored, and a check of its geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.completion.held_out import held_out
from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.config.prediction import HeldOutConfig
from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.frames.ground_truth import merged_scan
from uncertainty_depth.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.geometry.check import GeometryCheck
from uncertainty_depth.messages.clouds import lidar_points
from uncertainty_depth.messages.depth_images import ground_truth_from_depth_image
from uncertainty_depth.messages.stamps import stamp_ns
from uncertainty_depth.records import Scan
from uncertainty_depth.ros.extrinsics import Extrinsics
from uncertainty_depth.ros.map_camera import MapCamera


class MapGroundTruth:
    """Projects LiDAR clouds into the maps, or takes ground truth images.

    Attributes:
        config: options of the projection.
        extrinsics: where the LiDAR sits.
        camera: of the maps.
        held_out: what the model with sparse input was not given; None for one of the image alone.
        check: has seen every ground truth since `reset`. Without a camera image it compares no
            edges; a wrong unit and a cloud out of view are reported.
    """

    def __init__(self, config: EvaluatorNodeConfig, extrinsics: Extrinsics) -> None:
        self.config = config
        self.extrinsics = extrinsics
        self.camera = MapCamera()
        self.check = GeometryCheck()
        self.held_out: HeldOutConfig | None = None

    def reset(self) -> None:
        """Reset the geometry check."""
        self.check = GeometryCheck()

    def in_maps(
        self, messages: tuple[Any, ...], depth: Any, shape: tuple[int, int], name: str
    ) -> NDArray[np.float32]:
        """Return the ground truth of a frame, (H, W) metres, NaN where unknown.

        Args:
            messages: one cloud of each LiDAR, None where it has none in time, but not of all; or
                the ground truth image.
            depth: the depth image message that it scores.
            shape: (H, W) of the maps.
            name: of the frame.

        Raises:
            MessageError: it cannot be used for this frame.
        """
        if not self.config.use_ground_truth_image:
            return self._from_clouds(messages, depth, shape, name)
        (message,) = messages
        ground_truth_m = self.camera.as_maps(ground_truth_from_depth_image(message, shape))
        self.check.update(None, ground_truth_m)
        return self._without_input(ground_truth_m, depth, name)

    def camera_of(self, shape: tuple[int, int], stamp: int) -> Camera | None:
        """Return the camera of maps of this shape; None without one, as with a depth image."""
        if self.camera.info is None:
            return None
        height, width = shape
        try:
            return self.camera.camera(width, height, stamp)
        except MessageError:
            return None

    def _from_clouds(
        self, clouds: tuple[Any, ...], depth: Any, shape: tuple[int, int], name: str
    ) -> NDArray[np.float32]:
        if self.camera.info is None:
            raise MessageError("no_camera_info", f"no CameraInfo received before frame {name}")
        present = {lidar: cloud for lidar, cloud in enumerate(clouds) if cloud is not None}
        points = [lidar_points(cloud) for cloud in present.values()]
        if not any(map(len, points)):
            raise MessageError(
                "cloud_without_points", f"the cloud of frame {name} has no finite point"
            )
        height, width = shape
        camera = self.camera.camera(width, height, stamp_ns(depth.header))
        poses = [
            self.extrinsics.lookup(depth.header, cloud.header, lidar)
            for lidar, cloud in present.items()
        ]
        scan = merged_scan([Scan(*pair) for pair in zip(points, poses, strict=True)])
        ground_truth_m = ground_truth_from_cloud(
            scan.points, scan.lidar_to_camera, camera, self.config
        )
        self.check.update(None, ground_truth_m, camera, scan)
        if np.isnan(ground_truth_m).all():
            raise MessageError(
                "no_lidar_point_in_view", f"no LiDAR point projects into frame {name}"
            )
        return self._without_input(ground_truth_m, depth, name, scan, camera)

    def _without_input(
        self,
        ground_truth_m: NDArray[np.float32],
        depth: Any,
        name: str,
        scan: Scan | None = None,
        camera: Camera | None = None,
    ) -> NDArray[np.float32]:
        """Return the ground truth without the pixels that were the model's sparse input."""
        rule = self.held_out
        if rule is None:
            return ground_truth_m
        if rule.held_out_fraction == 0:
            raise MessageError(
                "would_score_its_input",
                f"frame {name}: the model was given all of the LiDAR, and would be scored on its "
                "input; start depth_node with held_out_fraction above 0",
            )
        try:
            mask = held_out(ground_truth_m, stamp_ns(depth.header), rule, scan, camera)
        except ConfigError as error:
            raise MessageError("would_score_its_input", f"frame {name}: {error}") from error
        if not mask.any():
            raise MessageError(
                "no_depth_held_out",
                f"frame {name}: no pixel of the ground truth was held out from the model's input",
            )
        return np.where(mask, ground_truth_m, np.float32(np.nan))
