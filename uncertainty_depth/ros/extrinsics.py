# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Poses from tf2, of a LiDAR and of the camera: the live counterpart of a bag's transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.clock import ClockType, JumpThreshold
from rclpy.duration import Duration
from rclpy.time import Time

from uncertainty_depth.core.config.source import ProjectionConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.geometry.transforms import transform_from
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.transforms import (
    JUMP_NS,
    Extrinsics,
    FixedExtrinsics,
    Viewpoint,
    missing_reason,
)


class Transforms:
    """What /tf and /tf_static say, up to now."""

    def __init__(self, node: Any, without: str) -> None:
        """Subscribe; lookups that wait need another thread than these.

        Raises `ConfigError`, with the sentence `without`: tf2 is not installed.
        """
        try:
            import tf2_ros
        except ImportError as error:
            raise ConfigError(without) from error
        self.buffer = buffer_for_loops()
        self.errors = tf2_ros.TransformException
        self._listener = tf2_ros.TransformListener(self.buffer, node)
        back = JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-JUMP_NS), on_clock_change=True
        )
        self._on_jump = node.get_clock().create_jump_callback(
            back, post_callback=lambda _: self.buffer.clear()
        )

    def close(self) -> None:
        """End what the node and its clock would keep otherwise."""
        self._listener.unregister()
        self._on_jump.unregister()


class TfOdometry:
    """Where the camera is in a frame that stands still; see `frames.transforms.Odometry`."""

    def __init__(self, transforms: Transforms, frame: str, timeout_s: float) -> None:
        """Take what tf says; the frame is odom or map."""
        self._transforms = transforms
        self._frame = frame
        self._timeout_s = timeout_s

    def pose(self, camera: Viewpoint) -> NDArray[np.float64]:
        """Return the (4, 4) pose, camera optical frame to the odometry's, at the image's stamp.

        Raises `MessageError`: "no_odometry", tf has none in time.
        """
        time = Time(nanoseconds=camera.stamp_ns, clock_type=ClockType.ROS_TIME)
        timeout = Duration(seconds=self._timeout_s)
        lookup = self._transforms.buffer.lookup_transform
        try:
            stamped = lookup(self._frame, camera.frame, time, timeout)
        except self._transforms.errors as error:
            raise MessageError(
                "no_odometry",
                f"tf has no pose of {camera.frame!r} in {self._frame!r} within {self._timeout_s} "
                f"s: {error}",
            ) from error
        return _matrix(stamped)


class TfExtrinsics:
    """A LiDAR's poses in the camera."""

    def __init__(self, transforms: Transforms, fixed_frame: str, timeout_s: float) -> None:
        """Take what tf says; without a fixed frame the camera is assumed to stand still."""
        self._transforms = transforms
        self._fixed_frame = fixed_frame
        self._timeout_s = timeout_s

    def lookup(self, camera: Viewpoint, cloud: Any, lidar: int = 0) -> NDArray[np.float64]:
        """Return the (4, 4) transform, see `Extrinsics`. The cloud names its LiDAR's frame."""
        try:
            stamped = self._stamped(camera, cloud, self._timeout_s)
        except self._transforms.errors as error:
            through = f" through {self._fixed_frame!r}" if self._fixed_frame else ""
            raise MessageError(
                missing_reason(self._fixed_frame),
                f"no transform from {cloud.frame_id!r} to {camera.frame!r}{through}: {error}",
            ) from error
        return _matrix(stamped)

    def is_awaited(self, camera: Viewpoint, cloud: Any) -> bool:
        """Return whether the transform is not known yet."""
        try:
            self._stamped(camera, cloud, 0.0)
        except self._transforms.errors:
            return True
        return False

    def _stamped(self, camera: Viewpoint, cloud: Any, timeout_s: float) -> Any:
        """Return the `geometry_msgs/TransformStamped`."""
        buffer = self._transforms.buffer
        timeout = Duration(seconds=timeout_s)
        cloud_time = Time.from_msg(cloud.stamp)
        if not self._fixed_frame:
            return buffer.lookup_transform(
                camera.frame, cloud.frame_id, cloud_time, timeout=timeout
            )
        return buffer.lookup_transform_full(
            camera.frame,
            Time(nanoseconds=camera.stamp_ns, clock_type=cloud_time.clock_type),
            cloud.frame_id,
            cloud_time,
            self._fixed_frame,
            timeout=timeout,
        )


def _matrix(stamped: Any) -> NDArray[np.float64]:
    """Return a `geometry_msgs/TransformStamped` as a (4, 4) matrix."""
    position = stamped.transform.translation
    rotation = stamped.transform.rotation
    return transform_from(
        position.x, position.y, position.z, rotation.x, rotation.y, rotation.z, rotation.w
    )


def buffer_for_loops() -> Any:
    """Return a tf2 buffer that forgets what was before a time jump, as the reader of bags does.

    tf2's own forgets when /clock jumps back. Messages of /tf that arrive after that, but are of
    before, would stay, and tf2 would then ignore everything that is 10 s older. Made with its
    node, it would also offer a service that a security policy has to allow.
    """
    import tf2_ros

    class Buffer(tf2_ros.Buffer):
        def __init__(self) -> None:
            super().__init__()
            self._newest_ns: dict[str, int] = {}

        def set_transform(self, transform: Any, authority: str) -> None:
            time_ns = stamp_ns(transform.header)
            newest_ns = self._newest_ns.get(transform.child_frame_id, time_ns)
            if time_ns < newest_ns - JUMP_NS:
                self.clear()
                newest_ns = time_ns
            self._newest_ns[transform.child_frame_id] = max(time_ns, newest_ns)
            super().set_transform(transform, authority)

        def clear(self) -> None:
            self._newest_ns.clear()
            super().clear()

    return Buffer()


def live_extrinsics(
    transforms: Callable[[str], Transforms],
    config: ProjectionConfig,
    lidars: int = 1,
    timeout_s: float = 0.0,
) -> Extrinsics:
    """Return extrinsics from the parameter if it is set, else from tf2; raise `ConfigError`.

    `transforms` returns what tf says, or raises a `ConfigError` with its argument.
    """
    if config.lidar_to_camera:
        return FixedExtrinsics(config, lidars)
    tf = transforms(
        "lidar_to_camera is empty and tf2_ros is not installed; expected x y z qx qy qz qw, or a "
        "ROS distribution"
    )
    return TfExtrinsics(tf, config.fixed_frame, timeout_s)
