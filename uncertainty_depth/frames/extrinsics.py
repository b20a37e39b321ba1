# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A LiDAR's pose in the camera at a stamp: from options, from a bag's tf, or live from tf2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import ProjectionConfig
from uncertainty_depth.errors import MessageError, SourceError
from uncertainty_depth.frames.recording import OpenRecording, Recording
from uncertainty_depth.frames.topics import transform_topics
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.geometry.transforms import (
    BODY_TO_OPTICAL_OPTION,
    looks_like_body_frame,
    option_from,
    refuse_pose_and_fixed_frame,
    transforms_from_option,
)
from uncertainty_depth.messages.clouds import lidar_points
from uncertainty_depth.messages.decoding import stamp_ns

MOVING = 1000  # first messages of /tf, searched for a connection


class Viewpoint(NamedTuple):
    """A camera image's frame and time.

    Attributes:
        frame: optical frame of the camera.
        stamp_ns: nanoseconds.
    """

    frame: str
    stamp_ns: int


class Extrinsics(Protocol):
    """Looks up a LiDAR's pose in a camera."""

    def lookup(self, camera: Viewpoint, cloud: Any, lidar: int = 0) -> NDArray[np.float64]:
        """Return the (4, 4) transform from a LiDAR, at the cloud's stamp, to the camera.

        Args:
            camera: of the image.
            cloud: header of the cloud.
            lidar: which of several LiDARs it is of, from 0.

        Raises:
            MessageError: the transform is not known; "no_ego_motion" with a fixed frame, else
                "no_extrinsics".
        """
        ...

    def is_awaited(self, camera: Viewpoint, cloud: Any) -> bool:
        """Return whether the transform may still come."""
        ...


class FixedExtrinsics:
    """Each LiDAR's constant pose from an option, whatever the frames' names."""

    def __init__(self, config: ProjectionConfig, lidars: int = 1) -> None:
        """Check each LiDAR's transform: x y z qx qy qz qw, metres.

        Raises:
            ConfigError: they are not seven finite numbers with a quaternion per LiDAR, or a fixed
                frame is also named.
        """
        refuse_pose_and_fixed_frame(config)
        self.poses = transforms_from_option(config.lidar_to_camera, lidars)

    def lookup(self, camera: Viewpoint, cloud: Any, lidar: int = 0) -> NDArray[np.float64]:
        """Return the transform."""
        return self.poses[lidar]

    def is_awaited(self, camera: Viewpoint, cloud: Any) -> bool:
        """Return False."""
        return False


class TreeExtrinsics:
    """A bag's transforms at the cloud's stamp; a fixed frame compensates motion."""

    def __init__(self, transforms: TransformTree, fixed_frame: str = "") -> None:
        """Take the tree, and a frame that does not move with the robot; empty for none.

        Without one, the camera is assumed to be still since the cloud's stamp.
        """
        self._transforms = transforms
        self._fixed_frame = fixed_frame

    def lookup(self, camera: Viewpoint, cloud: Any, lidar: int = 0) -> NDArray[np.float64]:
        """Return the transform; the cloud names its LiDAR's frame."""
        cloud_ns = stamp_ns(cloud)
        fixed = self._fixed_frame
        try:
            if not fixed:
                return self._transforms.lookup(camera.frame, cloud.frame_id, cloud_ns)
            return self._transforms.lookup_through(
                fixed, camera.frame, camera.stamp_ns, cloud.frame_id, cloud_ns
            )
        except SourceError as error:
            raise MessageError(missing_reason(fixed), str(error)) from error

    def is_awaited(self, camera: Viewpoint, cloud: Any) -> bool:
        """Return whether transforms at the cloud's stamp, or the image's, may still come."""
        is_awaited = self._transforms.is_awaited
        cloud_ns = stamp_ns(cloud)
        fixed = self._fixed_frame
        if not fixed:
            return is_awaited(camera.frame, cloud.frame_id, cloud_ns)
        return is_awaited(fixed, cloud.frame_id, cloud_ns) or is_awaited(
            camera.frame, fixed, camera.stamp_ns
        )


def missing_reason(fixed_frame: str) -> str:
    """Return the reason that a frame without a transform is counted under."""
    return "no_ego_motion" if fixed_frame else "no_extrinsics"


class ExtrinsicsFinder:
    """Connects camera and LiDAR, once rather than per frame.

    Attributes:
        fixed: the transforms of /tf_static.
    """

    def __init__(self, recording: Recording, bag: OpenRecording, fixed_frame: str) -> None:
        """Read the fixed transforms.

        Args:
            recording: takes notes.
            bag: is read.
            fixed_frame: the option; empty takes the transform at each cloud's stamp.
        """
        self._recording = recording
        self._bag = bag
        self._fixed_frame = fixed_frame
        self._moving_topics = transform_topics(bag.topics, "tf")
        self.fixed = TransformTree()
        topics = transform_topics(bag.topics)
        count = sum(bag.topics[topic].count for topic in topics)
        # Stop reading at the last one: they come first in most bags.
        for topic, message in islice(bag.messages(topics), count):
            if message is None:
                recording.note(f"a message on {topic} cannot be deserialised")
                continue
            for sentence in self.fixed.add_message(message):
                recording.note(f"{topic}: {sentence}")

    def find(self, camera_frame: str, cloud: Any) -> tuple[NDArray[np.float64] | None, list[str]]:
        """Return a cloud's LiDAR's pose in the camera, and the topics of moving transforms.

        The pose, (4, 4), is None if it moves; the topics are none if no transform is needed.

        Raises:
            SourceError: camera and LiDAR, or one of them and the fixed frame, are not connected.
        """
        lidar_frame = cloud.header.frame_id
        lidar_to_camera = None
        is_rigid = self.fixed.is_connected(camera_frame, lidar_frame)
        if is_rigid:
            lidar_to_camera = self.fixed.lookup(camera_frame, lidar_frame)
        if self._fixed_frame:
            topics = self._topics_through_fixed_frame(camera_frame, lidar_frame)
            return lidar_to_camera, topics
        if is_rigid:
            return lidar_to_camera, []
        moving = self._moving_until(lambda tree: tree.is_connected(camera_frame, lidar_frame))
        if moving is None:
            try:
                self.fixed.lookup(camera_frame, lidar_frame)
            except SourceError as error:  # and say what to type
                problem = f"{self._recording.path}: {error}"
                raise SourceError("; ".join([problem, *_frame_hints(cloud)])) from error
        else:
            option = option_from(moving.lookup(camera_frame, lidar_frame))
            self._recording.note(
                f"{self._named_topics()} connect{'s' if len(self._moving_topics) == 1 else ''} "
                "LiDAR and camera: the transform is interpolated at each cloud's stamp; a fixed "
                f"one, the first, is --lidar-to-camera {option}"
            )
        return None, self._moving_topics

    def _topics_through_fixed_frame(self, camera_frame: str, lidar_frame: str) -> list[str]:
        fixed_frame = self._fixed_frame
        if self.fixed.is_connected(fixed_frame, camera_frame):
            self._recording.note(
                f"fixed_frame {fixed_frame!r} is fixed to the camera frame {camera_frame!r} by "
                "/tf_static: no motion is compensated; expected a frame that the camera moves "
                "in, as odom or map"
            )
            return self._moving_topics
        moving = self._moving_until(
            lambda tree: (
                tree.is_connected(fixed_frame, camera_frame)
                and tree.is_connected(fixed_frame, lidar_frame)
            )
        )
        if moving is None:
            raise SourceError(
                f"{self._recording.path}: fixed_frame is {fixed_frame!r}; expected a frame that "
                f"/tf connects with the camera frame {camera_frame!r} and the LiDAR frame "
                f"{lidar_frame!r}"
            )
        self._recording.note(
            f"{self._named_topics()}: the LiDAR at each cloud's stamp is taken through "
            f"{fixed_frame!r} to the camera at the image's stamp"
        )
        return self._moving_topics

    def _moving_until(self, is_complete: Callable[[TransformTree], bool]) -> TransformTree | None:
        """Return the transforms that the first messages of /tf complete; None if incomplete."""
        tree = self.fixed.copy()
        for _, message in islice(self._bag.messages(self._moving_topics), MOVING):
            if message is None:
                continue
            tree.add_message(message, is_moving=True)
            if is_complete(tree):
                return tree
        return None

    def _named_topics(self) -> str:
        return " and ".join(self._moving_topics)


def _frame_hints(cloud: Any) -> Iterator[str]:
    """Yield what to type if no transform connects camera and LiDAR."""
    try:
        points = lidar_points(cloud)
    except MessageError:
        return
    if len(points) and looks_like_body_frame(points):
        yield (
            "the cloud looks as if it were in a body frame (x forward, z up); the transform "
            "leads to the camera's optical frame (z forward, x right, y down): for a LiDAR "
            f"at the camera's place it is --lidar-to-camera {BODY_TO_OPTICAL_OPTION}"
        )
