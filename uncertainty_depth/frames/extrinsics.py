# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Where a bag has the pose of its LiDAR: fixed, moving, or through a frame that stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import MessageError, SourceError
from uncertainty_depth.frames.recording import OpenRecording, Recording
from uncertainty_depth.frames.topics import transform_topics
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.geometry.candidate_poses import (
    BODY_TO_OPTICAL_OPTION,
    looks_like_body_frame,
)
from uncertainty_depth.geometry.transforms import option_from
from uncertainty_depth.messages.clouds import lidar_points

MOVING = 1000  # first messages of /tf that are searched for a connection


class LidarExtrinsics(NamedTuple):
    """How camera and LiDAR of a bag are connected.

    Attributes:
        lidar_to_camera: (4, 4) float64; None where it moves.
        transform_topics: of moving transforms, where they are needed.
    """

    lidar_to_camera: NDArray[np.float64] | None
    transform_topics: list[str]


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
        self.fixed = self._read_fixed()

    def find(self, camera_frame: str, cloud: Any) -> LidarExtrinsics:
        """Return the extrinsics of the LiDAR of a cloud.

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
            return LidarExtrinsics(lidar_to_camera, topics)
        if is_rigid:
            return LidarExtrinsics(lidar_to_camera, [])
        moving = self._moving_until(lambda tree: tree.is_connected(camera_frame, lidar_frame))
        if moving is None:
            self._refuse(camera_frame, cloud)
        else:
            option = option_from(moving.lookup(camera_frame, lidar_frame))
            self._recording.note(
                f"{self._named_topics()} connect{'s' if len(self._moving_topics) == 1 else ''} "
                "LiDAR and camera: the transform is interpolated at each cloud's stamp; a fixed "
                f"one, the first, is --lidar-to-camera {option}"
            )
        return LidarExtrinsics(None, self._moving_topics)

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
        """Return the transforms of the first messages of /tf that complete them; None if none."""
        tree = self.fixed.copy()
        for _, message in islice(self._bag.messages(self._moving_topics), MOVING):
            if message is None:
                continue
            tree.add_message(message, is_moving=True)
            if is_complete(tree):
                return tree
        return None

    def _refuse(self, camera_frame: str, cloud: Any) -> None:
        """Raise `SourceError`, with what to type."""
        try:
            self.fixed.lookup(camera_frame, cloud.header.frame_id)
        except SourceError as error:
            problem = f"{self._recording.path}: {error}"
            raise SourceError("; ".join([problem, *_frame_hints(cloud)])) from error

    def _named_topics(self) -> str:
        return " and ".join(self._moving_topics)

    def _read_fixed(self) -> TransformTree:
        tree = TransformTree()
        topics = transform_topics(self._bag.topics)
        count = sum(self._bag.topics[topic].count for topic in topics)
        # Reading stops at the last one: they come first in most bags.
        for topic, message in islice(self._bag.messages(topics), count):
            if message is None:
                self._recording.note(f"a message on {topic} cannot be deserialised")
                continue
            for sentence in tree.add_message(message):
                self._recording.note(f"{topic}: {sentence}")
        return tree


def _frame_hints(cloud: Any) -> Iterator[str]:
    """Yield what to type where no transform connects camera and LiDAR."""
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
