# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Transforms between frames, fixed and moving, and the LiDARs' poses that follow from them."""

from __future__ import annotations

import math
from bisect import bisect_left
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.source import ProjectionConfig
from uncertainty_depth.core.errors import ConfigError, MessageError, SourceError
from uncertainty_depth.core.geometry.transforms import (
    interpolated,
    transform_from,
    transforms_from_option,
)
from uncertainty_depth.frames.messages.decoding import SECOND_NS, frame_name, stamp_ns

BUFFER_NS = 10 * SECOND_NS  # as tf2's buffer
JUMP_NS = SECOND_NS  # a larger step back is a time jump: the bag loops
UNIT_TOLERANCE = 0.01  # of a quaternion's length, as tf2's
SAME_POSE = 1e-6  # metres, and entries of a rotation: rounding of what is said again
LOOKAHEAD_NS = 2 * SECOND_NS  # once transforms are this much later, none is expected for a stamp


class Placed(NamedTuple):
    """Where a frame is: its parent, and the (4, 4) transform to the parent's coordinates."""

    parent: str
    pose: NDArray[np.float64]


class MovingFrame:
    """Where one frame was over the last 10 s, interpolated between the stamps, as in tf2."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._places: list[tuple[int, Placed]] = []  # by time

    def __len__(self) -> int:
        return len(self._places)

    @property
    def newest_ns(self) -> int:
        """The latest stamp, nanoseconds."""
        return self._places[-1][0]

    def _index(self, time_ns: int) -> int:
        """Return the first place's that is not before a time."""
        return bisect_left(self._places, time_ns, key=itemgetter(0))

    def add(self, time_ns: int, place: Placed) -> None:
        """Add a place, and forget those that are 10 s older, or from before a time jump."""
        if self._places and time_ns < self.newest_ns - JUMP_NS:
            self._places.clear()
        index = self._index(time_ns)
        is_repeated = index < len(self) and self._places[index][0] == time_ns
        self._places[index : index + is_repeated] = [(time_ns, place)]
        del self._places[: self._index(self.newest_ns - BUFFER_NS)]

    def at(self, time_ns: int | None) -> Placed:
        """Return the place at a time, or the newest; raise `SourceError` outside the buffer."""
        newest_ns, newest = self._places[-1]
        if time_ns is None:
            return newest
        after = self._index(time_ns)
        if after < len(self) and self._places[after][0] == time_ns:
            return self._places[after][1]
        if after in (0, len(self)):
            first_ns, _ = self._places[0]
            raise SourceError(
                f"/tf has {self._name!r} in {newest.parent!r} from {frame_name(first_ns)} s to "
                f"{frame_name(newest_ns)} s"
            )
        (before_ns, earlier), (after_ns, later) = self._places[after - 1 : after + 1]
        if earlier.parent != later.parent:
            return earlier
        fraction = (time_ns - before_ns) / (after_ns - before_ns)
        return Placed(earlier.parent, interpolated(earlier.pose, later.pose, fraction))


class TransformTree:
    """Frames and where they are: each in one parent, the last one that was said, as in tf2."""

    def __init__(self) -> None:
        self._places: dict[str, Placed | MovingFrame] = {}
        self._parents: dict[str, dict[str, None]] = {}  # of each frame, all that were said
        self._odd: dict[str, None] = {}  # sentences
        self._latest_ns: int | None = None  # of all moving frames

    @property
    def frames(self) -> list[str]:
        """All frames' names, sorted, without leading slashes."""
        names = set(self._parents)
        for parents in self._parents.values():
            names.update(parents)
        return sorted(names)

    def copy(self) -> TransformTree:
        """Return a tree with the same fixed transforms; `self` must have no moving ones."""
        tree = TransformTree()
        tree._places = dict(self._places)
        tree._parents = {child: dict(parents) for child, parents in self._parents.items()}
        tree._odd = dict(self._odd)
        return tree

    def add(self, parent: str, child: str, child_to_parent: NDArray[np.float64]) -> None:
        """Add or replace one fixed transform, (4, 4): `child`'s pose in `parent`."""
        parent = parent.lstrip("/")
        child = child.lstrip("/")
        self._parents.setdefault(child, {})[parent] = None
        earlier = self._places.get(child)
        if (
            isinstance(earlier, Placed)
            and earlier.parent == parent
            and not np.allclose(earlier.pose, child_to_parent, rtol=0, atol=SAME_POSE)
        ):
            self._note(
                f"tf gives {child!r} several fixed poses in {parent!r}: the last one said counts "
                "for all frames"
            )
        self._places[child] = Placed(parent, child_to_parent)

    def _note(self, sentence: str) -> None:
        self._odd[sentence] = None

    def add_moving(
        self, time_ns: int, parent: str, child: str, child_to_parent: NDArray[np.float64]
    ) -> None:
        """Add `child`'s (4, 4) pose in `parent` at a time; a fixed transform stays."""
        parent = parent.lstrip("/")
        child = child.lstrip("/")
        frame = self._places.setdefault(child, MovingFrame(child))
        if isinstance(frame, MovingFrame):
            self._parents.setdefault(child, {})[parent] = None
            frame.add(time_ns, Placed(parent, child_to_parent))
            self._latest_ns = time_ns

    def notes(self) -> list[str]:
        """Return a sentence on each frame that was placed in several others, or oddly."""
        moved = [
            f"tf places {child!r} in {' and in '.join(map(repr, parents))}: the last one said "
            "counts, as in tf2"
            for child, parents in self._parents.items()
            if len(parents) > 1
        ]
        return [*self._odd, *moved]

    def add_message(self, message: Any, is_moving: bool = False) -> list[str]:
        """Add the transforms of a `tf2_msgs/TFMessage`; return a sentence on each unusable one."""
        rejections = []
        for stamped in message.transforms:
            shift = stamped.transform.translation
            turn = stamped.transform.rotation
            parent = stamped.header.frame_id
            child = stamped.child_frame_id
            names = {parent.lstrip("/"), child.lstrip("/")}
            if len(names) < 2 or "" in names:
                rejections.append(
                    f"the transform from {child!r} to {parent!r} is left out, as tf2 does: "
                    "expected the names of two frames"
                )
                continue
            try:
                pose = transform_from(shift.x, shift.y, shift.z, turn.x, turn.y, turn.z, turn.w)
            except ConfigError as error:
                rejections.append(
                    f"the transform from {child!r} to {parent!r} is left out: {error}"
                )
                continue
            length = math.hypot(turn.x, turn.y, turn.z, turn.w)
            if abs(length - 1) > UNIT_TOLERANCE:
                self._note(
                    f"tf turns {child!r} in {parent!r} by a quaternion of length {length:.3g}, "
                    "which is scaled to 1; tf2, and so a running node, ignores it"
                )
            if is_moving:
                self.add_moving(stamp_ns(stamped.header), parent, child, pose)
            else:
                self.add(parent, child, pose)
        return rejections

    def lookup(self, target: str, source: str, time_ns: int | None = None) -> NDArray[np.float64]:
        """Return the (4, 4) transform from `source` to `target` at a time; None: the newest.

        Raises `SourceError`: no chain connects the two (the error names the known frames), or the
        time lies outside a moving one's buffer.
        """
        from_target = self._way_up(target, time_ns)
        from_source = self._way_up(source, time_ns)
        common = _first_common(from_target, from_source)
        if common is None:
            if error := from_target.error or from_source.error:
                when = "" if time_ns is None else f" at {frame_name(time_ns)} s"
                raise SourceError(
                    f"no transform from {source!r} to {target!r}{when}: {error}"
                ) from error
            names = ", ".join(self.frames) or "none"
            raise SourceError(
                f"no transform connects the LiDAR frame {source!r} with the camera frame "
                f"{target!r}; /tf_static knows {names}; record it or give lidar_to_camera"
            )
        to_common = from_target.poses[common]
        return np.linalg.inv(to_common).astype(np.float64) @ from_source.poses[common]

    def lookup_through(
        self, fixed_frame: str, target: str, target_ns: int, source: str, source_ns: int
    ) -> NDArray[np.float64]:
        """Return the (4, 4) transform from `source` at one time to `target` at another.

        A point at rest in `fixed_frame` stays there in between, as in tf2's
        `lookup_transform_full`. Raises as `lookup`.
        """
        to_fixed = self.lookup(fixed_frame, source, source_ns)
        return self.lookup(target, fixed_frame, target_ns) @ to_fixed

    def is_connected(self, target: str, source: str) -> bool:
        """Return whether a chain of transforms connects two frames."""
        ways = self._way_up(target, None), self._way_up(source, None)
        return _first_common(*ways) is not None

    def is_awaited(self, target: str, source: str, time_ns: int) -> bool:
        """Return whether moving poses at or after a time may still come for this chain."""
        if self._latest_ns is not None:
            delay_ns = time_ns - self._latest_ns
            if not -LOOKAHEAD_NS <= delay_ns <= BUFFER_NS:
                return False
        ways = self._way_up(target, None), self._way_up(source, None)
        common = _first_common(*ways)
        if common is None:
            return True
        frames: list[str] = []
        for way in ways:
            names = list(way.poses)
            frames += names[: names.index(common)]
        places = [self._places[frame] for frame in frames]
        return any(
            isinstance(place, MovingFrame) and place.newest_ns < time_ns for place in places
        )

    def _way_up(self, frame: str, time_ns: int | None) -> _WayUp:
        """Return the frame and those that it lies in, up to the root or the first obstacle."""
        name = frame.lstrip("/")
        poses = {name: np.eye(4)}
        error = None
        while name in self._places:
            place = self._places[name]
            try:
                parent, pose = place.at(time_ns) if isinstance(place, MovingFrame) else place
            except SourceError as outside:
                error = outside
                break
            if parent in poses:
                error = SourceError(f"tf places {', '.join(map(repr, poses))} in a loop")
                break
            poses[parent] = pose @ poses[name]
            name = parent
        return _WayUp(poses, error)


class _WayUp(NamedTuple):
    """The (4, 4) transforms from a frame to each that it lies in, and why the way ends."""

    poses: dict[str, NDArray[np.float64]]
    error: SourceError | None


def _first_common(first: _WayUp, second: _WayUp) -> str | None:
    return next((name for name in first.poses if name in second.poses), None)


class Viewpoint(NamedTuple):
    """A camera image's optical frame, and its time in nanoseconds."""

    frame: str
    stamp_ns: int


class Extrinsics(Protocol):
    """Looks up a LiDAR's pose in a camera."""

    def lookup(self, camera: Viewpoint, cloud: Any, lidar: int = 0) -> NDArray[np.float64]:
        """Return the (4, 4) transform from a LiDAR, numbered from 0, to the camera.

        It takes the cloud at its header's stamp to the camera at the image's.

        Raises `MessageError`: the transform is not known; "no_ego_motion" with a fixed frame, else
        "no_extrinsics".
        """
        ...

    def is_awaited(self, camera: Viewpoint, cloud: Any) -> bool:
        """Return whether the transform may still come."""
        ...


class FixedExtrinsics:
    """Each LiDAR's constant pose from an option, whatever the frames' names."""

    def __init__(self, config: ProjectionConfig, lidars: int = 1) -> None:
        """Check each LiDAR's transform, x y z qx qy qz qw, metres, or raise `ConfigError`."""
        if config.fixed_frame:  # a pose that names no frames cannot be moved
            raise ConfigError(
                f"lidar_to_camera is set and fixed_frame is {config.fixed_frame!r}; expected one "
                "of them: motion is looked up in tf, with the frames of camera and LiDAR; publish "
                "the LiDAR's pose on /tf_static"
            )
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
        """Take the tree; without a fixed frame the camera is still since the cloud's stamp."""
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


class Odometry:
    """Where the camera is in a frame that stands still, at an image's stamp."""

    def __init__(self, transforms: TransformTree, frame: str) -> None:
        """Take the tree, and the frame: odom or map."""
        self._transforms = transforms
        self._frame = frame
        self._missing = 0
        self._first: str | None = None

    def pose(self, camera: Viewpoint) -> NDArray[np.float64] | None:
        """Return the (4, 4) pose, camera optical frame to the frame; None if tf has none."""
        try:
            return self._transforms.lookup(self._frame, camera.frame, camera.stamp_ns)
        except SourceError as error:
            self._missing += 1
            self._first = self._first or str(error)
            return None

    def is_awaited(self, camera: Viewpoint) -> bool:
        """Return whether the pose may still come."""
        return self._transforms.is_awaited(self._frame, camera.frame, camera.stamp_ns)

    def notes(self) -> list[str]:
        """Return how many images had no pose."""
        if not self._missing:
            return []
        return [
            f"{self._missing} images have no pose in {self._frame!r}; the first: {self._first}"
        ]


def missing_reason(fixed_frame: str) -> str:
    """Return the reason that a frame without a transform is counted under."""
    return "no_ego_motion" if fixed_frame else "no_extrinsics"
