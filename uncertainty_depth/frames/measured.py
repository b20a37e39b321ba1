# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What messages say of an image's depth, live and in a bag: its ground truth, and measurements.

Ground truth is LiDAR clouds or a registered depth image. What measures beside a model is points
or a depth image with holes, of other topics.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera, ground_truth_from_cloud
from uncertainty_depth.core.geometry.rectification import Rectifier
from uncertainty_depth.core.measurements import MAX_MEASUREMENTS, Measurements, check_unit
from uncertainty_depth.core.records import Scan
from uncertainty_depth.frames.cameras import Cameras
from uncertainty_depth.frames.messages.clouds import lidar_points
from uncertainty_depth.frames.messages.decoding import SECOND_NS, check_stamp, stamp_ns
from uncertainty_depth.frames.messages.images import as_ground_truth, decode_depth
from uncertainty_depth.frames.pairing import surplus
from uncertainty_depth.frames.transforms import Extrinsics, Viewpoint

MAX_AGE_S = 0.15
"""Between an image and what is measured in it."""
KEPT = 32
"""Newest messages among which the nearest in time is looked for, `MAX_WAITING_BYTES` at most."""


class LidarGroundTruth:
    """Point clouds, projected with each LiDAR's pose."""

    noun = "cloud"
    unmatched_reason = "no_lidar_within_max_time_difference"
    cameras: Cameras | None = None

    def __init__(self, extrinsics: Extrinsics) -> None:
        self._extrinsics = extrinsics

    def read(
        self,
        messages: tuple[Any, ...],
        viewpoint: Viewpoint,
        camera: Camera | None,
        shape: tuple[int, int],
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return (H, W) float32 ground truth, metres, NaN for unknown, and the projected scan.

        Each LiDAR has a cloud in `messages`, or None, but not all. Raises `MessageError`, whose
        sentence names no time, if they give no ground truth.
        """
        if camera is None or camera.intrinsics[0, 0] == 0:
            raise MessageError("no_camera_info", "a cloud cannot be projected without camera info")
        present = {lidar: item for lidar, item in enumerate(messages) if item is not None}
        clouds = [lidar_points(message) for message in present.values()]
        if not any(map(len, clouds)):
            size = sum(message.height * message.width for message in present.values())
            raise MessageError(
                "cloud_without_points",
                f"none of the cloud's {size} points is finite and not (0, 0, 0): is the sensor "
                "covered?",
            )
        poses = [
            self._extrinsics.lookup(viewpoint, self._header(message, viewpoint), lidar)
            for lidar, message in present.items()
        ]
        scan = merged_scan([Scan(*pair) for pair in zip(clouds, poses, strict=True)])
        depth_m = ground_truth_from_cloud(scan.points, scan.lidar_to_camera, camera)
        return depth_m, scan

    def is_awaited(self, messages: tuple[Any, ...], viewpoint: Viewpoint) -> bool:
        """Return whether transforms at a cloud's stamp, or the image's, may still come."""
        clouds = [message for message in messages if message is not None]
        headers = [self._header(message, viewpoint) for message in clouds]
        return any(self._extrinsics.is_awaited(viewpoint, header) for header in headers)

    def _header(self, message: Any, viewpoint: Viewpoint) -> Any:
        """Return when and in which frame a cloud's points are what they are."""
        return message.header

    def notes(self) -> Iterator[str]:
        """Return sentences about what was assumed: nothing."""
        return iter(())


class DepthImageGroundTruth:
    """The camera's depth image, pixel by pixel, once it is rectified as the camera's image is.

    It is rectified with the camera image that it is registered to. Maps are rectified already, or
    kept raw; their depth image is rectified if they are, by its own camera info.
    """

    noun = "depth image"
    unmatched_reason = "no_ground_truth_image_within_max_time_difference"

    def __init__(self, image_cameras: Cameras, cameras: Cameras | None = None) -> None:
        """Take the camera infos of what is scored, and for maps those of the depth images."""
        self.cameras = cameras
        self._image_cameras = image_cameras
        self._without_info: dict[str, None] = {}

    def read(
        self,
        messages: tuple[Any, ...],
        viewpoint: Viewpoint,
        camera: Camera | None,
        shape: tuple[int, int],
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return as `LidarGroundTruth`, from the one depth image; there is no scan."""
        (message,) = messages
        rectifier = self._rectifier(viewpoint.stamp_ns, stamp_ns(message.header))
        depth_m = as_ground_truth(decode_depth(message), shape)
        if rectifier is not None:
            depth_m = rectifier.depth(depth_m)
        return depth_m, None

    def is_awaited(self, messages: tuple[Any, ...], viewpoint: Viewpoint) -> bool:
        """Return whether the depth image's camera info may still come."""
        (message,) = messages
        return self.cameras is not None and self.cameras.is_awaited(stamp_ns(message.header))

    def notes(self) -> Iterator[str]:
        """Yield sentences about what was assumed."""
        if self.cameras is not None:
            yield from self.cameras.notes
        for topic in self._without_info:
            yield (
                f"there is no usable camera info on {topic}: the depth images are taken as "
                "registered to the maps, pixel by pixel; otherwise the scores are wrong"
            )

    def _rectifier(self, image_ns: int, depth_ns: int) -> Rectifier | None:
        """Return what rectifies a depth image; None if its pixels are those of the image."""
        if self.cameras is None:
            return self._image_cameras.at(image_ns)
        of_maps = None
        try:
            of_maps = self._image_cameras.at(image_ns)
        except MessageError:  # an unusable one tells as little as none
            if self._image_cameras.is_missing:
                raise
        if of_maps is not None and not of_maps.is_rectified:
            return None
        own = self.cameras.at(depth_ns)
        for cameras, rectifier in ((self._image_cameras, of_maps), (self.cameras, own)):
            if rectifier is None and cameras.topic:
                self._without_info[cameras.topic] = None
        return None if of_maps is None else own


GroundTruth = LidarGroundTruth | DepthImageGroundTruth
"""Converts one topic's messages to ground truth."""


def merged_scan(scans: Sequence[Scan]) -> Scan:
    """Return all scans' points in the first LiDAR's frame, with its pose; at least one scan.

    After projection each pixel has the nearest point, and the occlusion filter sees them all: one
    LiDAR's points behind an edge are hidden by another's points on it.
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


class PointsOfTopic(LidarGroundTruth):
    """Points that measure: a visual odometry's or a SLAM's, in any frame of tf.

    Without a fixed frame they are taken where tf has their frame at the image's stamp: a map
    stands still, and what is on the robot moves with the camera.
    """

    def __init__(self, extrinsics: Extrinsics, fixed_frame: str) -> None:
        super().__init__(extrinsics)
        self._fixed_frame = fixed_frame

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
        self,
        messages: tuple[Any, ...],
        viewpoint: Viewpoint,
        camera: Camera | None,
        shape: tuple[int, int],
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return its depth, rectified as the camera image is; see `LidarGroundTruth`."""
        (message,) = messages
        other = message.header.frame_id.lstrip("/")
        of_image = viewpoint.frame.lstrip("/")
        if other and of_image and other not in {of_image, *self._others}:
            self._others.add(other)
            self._warn(
                f"the depth image that measures is in frame {other!r}, the image in {of_image!r}: "
                "it is taken as registered to the image, pixel by pixel; otherwise it corrects "
                "the wrong pixels"
            )
        depth_m = as_ground_truth(decode_depth(message), shape)
        rectifier = self._rectifier_at(viewpoint.stamp_ns)
        return (depth_m if rectifier is None else rectifier.depth(depth_m)), None

    def is_awaited(self, messages: tuple[Any, ...], viewpoint: Viewpoint) -> bool:
        """Return False."""
        return False


class NewestMessages:
    """A topic's newest messages; they may arrive on another thread than is asked for them."""

    def __init__(self, kept: int = KEPT) -> None:
        self._messages: deque[Any] = deque()
        self._kept = kept

    def add(self, message: Any) -> None:
        """Take a message."""
        self._messages.append(message)
        for _ in range(surplus(self._messages, self._kept)):
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
        self,
        topic: str,
        reader: PointsOfTopic | DepthOfTopic,
        depth_range: tuple[float, ...] | None = None,
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
        return self._reader.is_awaited((self.nearest(viewpoint.stamp_ns),), viewpoint)

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
        depth_m, _ = self._reader.read((message,), viewpoint, camera, shape)
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
