"""Where the LiDAR sits relative to the camera: from a parameter, or from tf2 where it is installed."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.geometry.transforms import transform_from, transform_from_option

TF_TIMEOUT_S = 0.2


class Extrinsics(Protocol):
    """Gives the transform from a LiDAR frame to a camera optical frame."""

    def lookup(self, camera_frame: str, lidar_frame: str, stamp: Any) -> NDArray[np.float64]:
        """(4, 4) transform at the cloud's stamp; `MessageError` "no_extrinsics" where there is none."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class FixedExtrinsics:
    """The transform that was given, whatever the frames are called."""

    def __init__(self, lidar_to_camera: tuple[float, ...]) -> None:
        """`lidar_to_camera`: x y z qx qy qz qw, metres. Raises `ConfigError` unless these are seven usable numbers."""
        if not isinstance(lidar_to_camera, tuple):
            raise ConfigError(
                f"lidar_to_camera is {lidar_to_camera!r}; expected 7 numbers: x y z qx qy qz qw"
            )
        self._transform = transform_from_option(lidar_to_camera)

    def lookup(self, camera_frame: str, lidar_frame: str, stamp: Any) -> NDArray[np.float64]:
        """The transform."""
        return self._transform

    def close(self) -> None:
        """Nothing was listened to."""


class TfExtrinsics:
    """Transforms from /tf and /tf_static."""

    def __init__(self, node: Any) -> None:
        """Start listening on `node`; called from its executor's process, looked up from another thread."""
        import tf2_ros

        self._errors = tf2_ros.TransformException
        # with its node the buffer is cleared when /clock jumps back; else old transforms stay
        self._buffer = tf2_ros.Buffer(node=node)
        self._listener = tf2_ros.TransformListener(self._buffer, node)

    def lookup(self, camera_frame: str, lidar_frame: str, stamp: Any) -> NDArray[np.float64]:
        """The transform at the cloud's stamp, waited for shortly."""
        from rclpy.duration import Duration
        from rclpy.time import Time

        try:
            found = self._buffer.lookup_transform(
                camera_frame,
                lidar_frame,
                Time.from_msg(stamp),
                timeout=Duration(seconds=TF_TIMEOUT_S),
            )
        except self._errors as error:
            raise MessageError(
                "no_extrinsics", f"no transform from {lidar_frame!r} to {camera_frame!r}: {error}"
            ) from error
        shift, turn = found.transform.translation, found.transform.rotation
        return transform_from(shift.x, shift.y, shift.z, turn.x, turn.y, turn.z, turn.w)

    def close(self) -> None:
        """End the subscriptions of /tf and /tf_static, which the node would keep for ever."""
        self._listener.unregister()


class NoExtrinsics:
    """For ground truth that comes as an image."""

    def lookup(self, camera_frame: str, lidar_frame: str, stamp: Any) -> NDArray[np.float64]:
        """There is none."""
        raise MessageError("no_extrinsics", "ground truth comes as images: there is no LiDAR")

    def close(self) -> None:
        """Nothing was listened to."""


def create_extrinsics(
    node: Any, lidar_to_camera: tuple[float, ...], use_ground_truth_image: bool
) -> Extrinsics:
    """The parameter where it is set, else tf2.

    Raises:
        ConfigError: when the parameter is not a transform, or is empty where tf2_ros is not installed.
    """
    if lidar_to_camera != ():
        return FixedExtrinsics(lidar_to_camera)
    if use_ground_truth_image:
        return NoExtrinsics()
    try:
        return TfExtrinsics(node)
    except ImportError as error:
        raise ConfigError(
            "lidar_to_camera is empty and tf2_ros is not installed; expected x y z qx qy qz qw, or a ROS distribution"
        ) from error
