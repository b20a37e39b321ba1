# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What another topic measures in an image, live and in a bag alike: points, or a depth image.

The points may be a visual odometry's or a SLAM's, in any frame of tf; the depth image a stereo or
time-of-flight camera's, registered to the image, with holes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.core.geometry.rectification import Rectifier
from uncertainty_depth.core.measurements import MAX_MEASUREMENTS, Measurements, check_unit
from uncertainty_depth.frames.messages.clouds import lidar_points
from uncertainty_depth.frames.messages.decoding import SECOND_NS, check_stamp, stamp_ns
from uncertainty_depth.frames.messages.images import ground_truth_from_depth_image
from uncertainty_depth.frames.pairing import surplus
from uncertainty_depth.frames.transforms import Extrinsics, Viewpoint

MAX_AGE_S = 0.15
"""Between an image and what is measured in it."""
KEPT = 32
"""Newest messages among which the nearest in time is looked for, `MAX_WAITING_BYTES` at most."""


class PointsOfTopic:
    """Points in a frame of tf.

    Without a fixed frame they are taken where tf has their frame at the image's stamp: a map
    stands still, and what is on the robot moves with the camera.
    """

    def __init__(self, extrinsics: Extrinsics, fixed_frame: str) -> None:
        self._extrinsics = extrinsics
        self._fixed_frame = fixed_frame

    def read(
        self, message: Any, viewpoint: Viewpoint, camera: Camera | None, shape: tuple[int, int]
    ) -> NDArray[np.float32]:
        """Return the projected points that no other hides, (H, W) metres, NaN for none.

        Raises `MessageError`.
        """
        if camera is None or camera.intrinsics[0, 0] == 0:
            raise MessageError("no_camera_info", "points cannot be projected without camera info")
        points = lidar_points(message)
        pose = self._extrinsics.lookup(viewpoint, self._header(message, viewpoint))
        return ground_truth_from_cloud(points, pose, camera)

    def is_awaited(self, message: Any, viewpoint: Viewpoint) -> bool:
        """Return whether tf may still have their frame."""
        return self._extrinsics.is_awaited(viewpoint, self._header(message, viewpoint))

    def _header(self, message: Any, viewpoint: Viewpoint) -> Any:
        if self._fixed_frame:
            return message.header
        header = copy(message.header)
        header.stamp = copy(header.stamp)
        header.stamp.sec, header.stamp.nanosec = divmod(viewpoint.stamp_ns, SECOND_NS)
        return header


class DepthOfTopic:
    """A depth image that is registered to the camera image."""

    def __init__(
        self,
        rectifier_at: Callable[[int], Rectifier | None],
        warn: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        """Take what returns the rectifier at an image's stamp, and what tells a person of doubts.

        It is told once for each frame of tf that is not the image's.
        """
        self._rectifier_at = rectifier_at
        self._warn = warn
        self._others: set[str] = set()

    def read(
        self, message: Any, viewpoint: Viewpoint, camera: Camera | None, shape: tuple[int, int]
    ) -> NDArray[np.float32]:
        """Return its depth, rectified as the camera image is; as `PointsOfTopic`."""
        other = message.header.frame_id.lstrip("/")
        of_image = viewpoint.frame.lstrip("/")
        if other and of_image and other not in {of_image, *self._others}:
            self._others.add(other)
            self._warn(
                f"the depth image that measures is in frame {other!r}, the image in {of_image!r}: "
                "it is taken as registered to the image, pixel by pixel; otherwise it corrects "
                "the wrong pixels"
            )
        depth_m = ground_truth_from_depth_image(message, shape)
        rectifier = self._rectifier_at(viewpoint.stamp_ns)
        return depth_m if rectifier is None else rectifier.depth(depth_m)

    def is_awaited(self, message: Any, viewpoint: Viewpoint) -> bool:
        """Return False."""
        return False


MeasuredDepth = PointsOfTopic | DepthOfTopic
"""Reads one topic's messages."""


class NewestMessages:
    """A topic's newest messages; they may arrive on another thread than is asked for them."""

    def __init__(self) -> None:
        self._messages: deque[Any] = deque()

    def add(self, message: Any) -> None:
        """Take a message."""
        self._messages.append(message)
        kept = list(self._messages)
        for _ in range(surplus(kept, KEPT)):
            self._messages.popleft()

    def nearest(self, time_ns: int) -> Any | None:
        """Return the message that is nearest in time, of equal ones the newest; None for none."""
        newest_first = list(self._messages)[::-1]
        return min(newest_first, key=lambda it: abs(stamp_ns(it.header) - time_ns), default=None)

    def has_reached(self, time_ns: int) -> bool:
        """Return whether a message of this stamp, or a later one, has come."""
        messages = list(self._messages)
        return bool(messages) and stamp_ns(messages[-1].header) >= time_ns


class MeasuredTopic(NewestMessages):
    """A topic's newest messages, and what they measure in images."""

    def __init__(
        self, topic: str, reader: MeasuredDepth, depth_range: tuple[float, ...] | None = None
    ) -> None:
        """Start without a message; depth far beyond `depth_range`, metres, has another unit."""
        super().__init__()
        self.topic = topic
        self._reader = reader
        self._depth_range = depth_range
        self._missing: Counter[str] = Counter()
        self._first: str | None = None
        self._images = 0
        self._pixels = 0

    def is_awaited(self, viewpoint: Viewpoint) -> bool:
        """Return whether a message that is nearer in time, or its place, may still come."""
        if not self.has_reached(viewpoint.stamp_ns):
            return True
        return self._reader.is_awaited(self.nearest(viewpoint.stamp_ns), viewpoint)

    def measured(
        self, viewpoint: Viewpoint, camera: Camera | None, shape: tuple[int, int]
    ) -> Measurements:
        """Return what is measured in an image; raise `MessageError` if nothing is, and why."""
        message = self.nearest(viewpoint.stamp_ns)
        if message is None:
            raise MessageError("nothing_measured", f"nothing came on {self.topic}")
        check_stamp(message.header, f"a message on {self.topic}")
        apart_s = abs(stamp_ns(message.header) - viewpoint.stamp_ns) / SECOND_NS
        if apart_s > MAX_AGE_S:
            raise MessageError(
                "measured_at_another_time",
                f"the nearest message on {self.topic} is {apart_s:.3f} s from the image, more "
                f"than {MAX_AGE_S} s",
            )
        depth_m = self._reader.read(message, viewpoint, camera, shape)
        known = np.isfinite(depth_m)
        if not known.any():
            raise MessageError(
                "nothing_measured", f"nothing of {self.topic} is in view of the camera"
            )
        if self._depth_range is not None:
            check_unit(depth_m[known], self._depth_range, f"depth on {self.topic}")
        return _thinned(depth_m, known)

    def measure(
        self, viewpoint: Viewpoint, camera: Camera | None, shape: tuple[int, int]
    ) -> Measurements | None:
        """Return what is measured in an image; None, counted, for nothing."""
        self._images += 1
        try:
            measured = self.measured(viewpoint, camera, shape)
        except MessageError as error:
            self._missing[error.reason] += 1
            self._first = self._first or str(error)
            return None
        self._pixels += len(measured)
        return measured

    def notes(self) -> list[str]:
        """Return how much was measured."""
        if not self._images:
            return []
        sentence = (
            f"{self.topic} measured {self._pixels / self._images:.0f} pixels per image, which are "
            "not scored"
        )
        if not self._missing:
            return [sentence]
        reasons = ", ".join(f"{count} {reason}" for reason, count in self._missing.items())
        count = self._missing.total()
        return [
            f"{sentence}, and none in {count} of {self._images} images: {reasons}; the first: "
            f"{self._first}"
        ]


def _thinned(depth_m: NDArray[np.float32], known: NDArray[np.bool_]) -> Measurements:
    """Return a map's measurements, at most `MAX_MEASUREMENTS`, evenly over the image."""
    stride = max(1, int(np.sqrt(known.sum() / (16 * MAX_MEASUREMENTS))))
    if stride > 1:  # a look at each pixel of a dense map takes longer than the network
        sparse = np.full_like(depth_m, np.nan)
        sparse[::stride, ::stride] = depth_m[::stride, ::stride]
        depth_m = sparse
    measured = Measurements.from_map(depth_m)
    return measured.taken(measured.evenly(MAX_MEASUREMENTS, depth_m.shape))
