# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The transform from LiDAR to camera, from a parameter or from tf2."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import ProjectionConfig
from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.geometry.transforms import (
    refuse_pose_and_fixed_frame,
    transform_from,
    transforms_from_option,
)

TF_TIMEOUT_S = 0.2


class Extrinsics(Protocol):
    """Looks up the transform from a LiDAR frame to a camera optical frame."""

    def lookup(self, image: Any, cloud: Any, lidar: int = 0) -> NDArray[np.float64]:
        """Return the (4, 4) transform from the LiDAR, at the cloud's stamp, to the camera.

        Args:
            image: header of the image.
            cloud: header of the cloud.
            lidar: which of several LiDARs it is of, from 0.

        Raises:
            MessageError: the transform is not known yet.
        """
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class FixedExtrinsics:
    """A constant transform of each LiDAR, whatever the names of the frames."""

    def __init__(self, lidar_to_camera: tuple[float, ...], lidars: int = 1) -> None:
        """Check the transforms: x y z qx qy qz qw, metres, of each LiDAR.

        Raises:
            ConfigError: these are not seven finite numbers with a quaternion of each.
        """
        if not isinstance(lidar_to_camera, tuple):
            raise ConfigError(
                f"lidar_to_camera is {lidar_to_camera!r}; expected 7 numbers: x y z qx qy qz qw"
            )
        self._transforms = transforms_from_option(lidar_to_camera, lidars)

    def lookup(self, image: Any, cloud: Any, lidar: int = 0) -> NDArray[np.float64]:
        """Return the transform."""
        return self._transforms[lidar]

    def close(self) -> None:
        """Do nothing: there is no subscription."""


class TfExtrinsics:
    """Transforms from /tf and /tf_static."""

    def __init__(self, node: Any, fixed_frame: str) -> None:
        """Subscribe to /tf and /tf_static; `lookup` is called from another thread.

        Args:
            node: subscribes.
            fixed_frame: through which the LiDAR at the cloud's stamp is taken to the camera at
                the image's; empty: the camera is where it was at the cloud's stamp.
        """
        import tf2_ros

        self._fixed_frame = fixed_frame

        self._errors = tf2_ros.TransformException
        # with its node the buffer is cleared when /clock jumps back; else old transforms stay
        self._buffer = tf2_ros.Buffer(node=node)
        self._listener = tf2_ros.TransformListener(self._buffer, node)

    def lookup(self, image: Any, cloud: Any, lidar: int = 0) -> NDArray[np.float64]:
        """Return the transform; wait up to `TF_TIMEOUT_S` for it. The cloud names its LiDAR."""
        try:
            stamped = self._stamped(image, cloud)
        except self._errors as error:
            reason = "no_ego_motion" if self._fixed_frame else "no_extrinsics"
            through = f" through {self._fixed_frame!r}" if self._fixed_frame else ""
            raise MessageError(
                reason,
                f"no transform from {cloud.frame_id!r} to {image.frame_id!r}{through}: {error}",
            ) from error
        position = stamped.transform.translation
        rotation = stamped.transform.rotation
        return transform_from(
            position.x, position.y, position.z, rotation.x, rotation.y, rotation.z, rotation.w
        )

    def _stamped(self, image: Any, cloud: Any) -> Any:
        """Return the `geometry_msgs/TransformStamped`."""
        from rclpy.duration import Duration
        from rclpy.time import Time

        timeout = Duration(seconds=TF_TIMEOUT_S)
        cloud_time = Time.from_msg(cloud.stamp)
        if not self._fixed_frame:
            return self._buffer.lookup_transform(
                image.frame_id, cloud.frame_id, cloud_time, timeout=timeout
            )
        return self._buffer.lookup_transform_full(
            image.frame_id,
            Time.from_msg(image.stamp),
            cloud.frame_id,
            cloud_time,
            self._fixed_frame,
            timeout=timeout,
        )

    def close(self) -> None:
        """End the subscriptions, which the node would keep otherwise."""
        self._listener.unregister()


class NoExtrinsics:
    """Stands in for extrinsics where ground truth is an image."""

    def lookup(self, image: Any, cloud: Any, lidar: int = 0) -> NDArray[np.float64]:
        """Raise `MessageError`: there is no LiDAR."""
        raise MessageError("no_extrinsics", "ground truth comes as images: there is no LiDAR")

    def close(self) -> None:
        """Do nothing: there is no subscription."""


def create_extrinsics(
    node: Any, config: ProjectionConfig, use_ground_truth_image: bool, lidars: int = 1
) -> Extrinsics:
    """Return extrinsics from the parameter if it is set, else from tf2.

    Raises:
        ConfigError: the parameter is not a transform of each LiDAR, is set beside `fixed_frame`,
            or is empty and tf2_ros is not installed.
    """
    refuse_pose_and_fixed_frame(config)
    if config.lidar_to_camera != ():
        return FixedExtrinsics(config.lidar_to_camera, lidars)
    if use_ground_truth_image:
        return NoExtrinsics()
    try:
        return TfExtrinsics(node, config.fixed_frame)
    except ImportError as error:
        raise ConfigError(
            "lidar_to_camera is empty and tf2_ros is not installed; expected x y z qx qy qz qw, "
            "or a ROS distribution"
        ) from error
