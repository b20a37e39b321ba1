# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Transforms between frames, fixed and moving, and the poses of LiDARs that follow from them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config import ProjectionConfig
from uncertainty_depth.core.errors import ConfigError, MessageError, SourceError
from uncertainty_depth.core.geometry.transforms import (
    interpolated,
    transform_from,
    transforms_from_option,
)
from uncertainty_depth.frames.messages.decoding import SECOND_NS, frame_name, stamp_ns

BUFFER_NS = 10 * SECOND_NS  # as tf2's buffer
JUMP_NS = SECOND_NS  # a larger step back is a time jump: the bag loops
LOOKAHEAD_NS = 2 * SECOND_NS  # once transforms are this much later, none is expected for a stamp


class MovingPose:
    """The poses of one frame in another over the last 10 s, interpolated between their stamps."""

    def __init__(self, parent: str, child: str) -> None:
        self._parent = parent
        self._child = child
        self._stamps_ns: list[int] = []
        self._poses: list[NDArray[np.float64]] = []

    def __len__(self) -> int:
        """Return the number of poses in the buffer."""
        return len(self._stamps_ns)

    @property
    def newest_ns(self) -> int:
        """The latest stamp, nanoseconds."""
        return self._stamps_ns[-1]

    def add(self, time_ns: int, pose: NDArray[np.float64]) -> None:
        """Add a (4, 4) pose, and forget those that are 10 s older, or from before a time jump."""
        if self._stamps_ns and time_ns < self.newest_ns - JUMP_NS:
            self._stamps_ns.clear()
            self._poses.clear()
        index = bisect_left(self._stamps_ns, time_ns)
        is_repeated = index < len(self) and self._stamps_ns[index] == time_ns
        if is_repeated:
            self._poses[index] = pose
            return
        self._stamps_ns.insert(index, time_ns)
        self._poses.insert(index, pose)
        expired = bisect_left(self._stamps_ns, self.newest_ns - BUFFER_NS)
        del self._stamps_ns[:expired]
        del self._poses[:expired]

    def at(self, time_ns: int | None) -> NDArray[np.float64]:
        """Return the (4, 4) pose at a time, or the newest for None.

        Raises:
            SourceError: the time lies outside the buffer.
        """
        if time_ns is None:
            return self._poses[-1]
        after = bisect_left(self._stamps_ns, time_ns)
        if after < len(self) and self._stamps_ns[after] == time_ns:
            return self._poses[after]
        if after in (0, len(self)):
            first = frame_name(self._stamps_ns[0])
            last = frame_name(self.newest_ns)
            raise SourceError(
                f"/tf has {self._child!r} in {self._parent!r} from {first} s to {last} s"
            )
        before_ns = self._stamps_ns[after - 1]
        fraction = (time_ns - before_ns) / (self._stamps_ns[after] - before_ns)
        return interpolated(self._poses[after - 1], self._poses[after], fraction)


class _Edge(NamedTuple):
    """A pose, or the inverse of one; a matrix holds at all times."""

    pose: NDArray[np.float64] | MovingPose
    is_inverse: bool

    def at(self, time_ns: int | None) -> NDArray[np.float64]:
        pose = self.pose.at(time_ns) if isinstance(self.pose, MovingPose) else self.pose
        return np.linalg.inv(pose).astype(np.float64) if self.is_inverse else pose


class TransformTree:
    """Frames and the transforms between them.

    Any two connected frames can be looked up, in either direction.
    """

    def __init__(self) -> None:
        self._neighbours: dict[str, dict[str, _Edge]] = {}
        self._latest_ns: int | None = None  # of all moving poses

    @property
    def frames(self) -> list[str]:
        """The names of all frames, sorted, without leading slashes."""
        return sorted(self._neighbours)

    def copy(self) -> TransformTree:
        """Return a tree with the same fixed transforms; `self` must have no moving ones."""
        tree = TransformTree()
        tree._neighbours = {frame: dict(edges) for frame, edges in self._neighbours.items()}
        return tree

    def add(self, parent: str, child: str, child_to_parent: NDArray[np.float64]) -> None:
        """Add or replace one fixed transform, (4, 4): the pose of `child` in `parent`."""
        self._connect(parent.lstrip("/"), child.lstrip("/"), child_to_parent)

    def add_moving(
        self, time_ns: int, parent: str, child: str, child_to_parent: NDArray[np.float64]
    ) -> None:
        """Add the (4, 4) pose of `child` in `parent` at a time; a fixed transform stays."""
        parent = parent.lstrip("/")
        child = child.lstrip("/")
        edge = self._neighbours.get(parent, {}).get(child)
        if edge is None:
            edge = self._connect(parent, child, MovingPose(parent, child))
        if isinstance(edge.pose, MovingPose):
            pose = child_to_parent
            if edge.is_inverse:
                pose = np.linalg.inv(child_to_parent).astype(np.float64)
            edge.pose.add(time_ns, pose)
            self._latest_ns = time_ns

    def add_message(self, message: Any, is_moving: bool = False) -> list[str]:
        """Add the transforms of a `tf2_msgs/TFMessage`; return a sentence on each unusable one."""
        rejections = []
        for stamped in message.transforms:
            shift = stamped.transform.translation
            turn = stamped.transform.rotation
            parent = stamped.header.frame_id
            child = stamped.child_frame_id
            try:
                pose = transform_from(shift.x, shift.y, shift.z, turn.x, turn.y, turn.z, turn.w)
            except ConfigError as error:
                rejections.append(
                    f"the transform from {child!r} to {parent!r} is left out: {error}"
                )
                continue
            if is_moving:
                self.add_moving(stamp_ns(stamped.header), parent, child, pose)
            else:
                self.add(parent, child, pose)
        return rejections

    def lookup(self, target: str, source: str, time_ns: int | None = None) -> NDArray[np.float64]:
        """Return the (4, 4) transform from coordinates in `source` to coordinates in `target`.

        Args:
            target: frame.
            source: frame.
            time_ns: time, nanoseconds; None takes the newest moving poses.

        Raises:
            SourceError: no chain connects the two (the error names the known frames), or the time
                lies outside the buffer of a moving one.
        """
        chain = self._chain(target.lstrip("/"), source.lstrip("/"))
        if chain is None:
            names = ", ".join(self.frames) or "none"
            raise SourceError(
                f"no transform connects the LiDAR frame {source!r} with the camera frame "
                f"{target!r}; /tf_static knows {names}; record it or give lidar_to_camera"
            )
        transform = np.eye(4)
        try:
            for edge in chain:
                transform = transform @ edge.at(time_ns)
        except SourceError as error:
            when = frame_name(time_ns or 0)
            raise SourceError(
                f"no transform from {source!r} to {target!r} at {when} s: {error}"
            ) from error
        return transform

    def lookup_through(
        self, fixed_frame: str, target: str, target_ns: int, source: str, source_ns: int
    ) -> NDArray[np.float64]:
        """Return the (4, 4) transform from `source` at one time to `target` at another.

        A point at rest in `fixed_frame` stays there in between, as in tf2's
        `lookup_transform_full`.

        Args:
            fixed_frame: frame in which the world stands still.
            target: frame.
            target_ns: time of the coordinates in `target`, nanoseconds.
            source: frame.
            source_ns: time of the coordinates in `source`, nanoseconds.

        Raises:
            SourceError: as `lookup`.
        """
        to_fixed = self.lookup(fixed_frame, source, source_ns)
        return self.lookup(target, fixed_frame, target_ns) @ to_fixed

    def is_connected(self, target: str, source: str) -> bool:
        """Return whether a chain of transforms connects two frames."""
        return self._chain(target.lstrip("/"), source.lstrip("/")) is not None

    def is_awaited(self, target: str, source: str, time_ns: int) -> bool:
        """Return whether moving poses at or after a time may still come for this chain."""
        if self._latest_ns is not None:
            delay_ns = time_ns - self._latest_ns
            if not -LOOKAHEAD_NS <= delay_ns <= BUFFER_NS:
                return False
        chain = self._chain(target.lstrip("/"), source.lstrip("/"))
        if chain is None:
            return True
        poses = [edge.pose for edge in chain]
        return any(isinstance(pose, MovingPose) and pose.newest_ns < time_ns for pose in poses)

    def _connect(self, parent: str, child: str, pose: NDArray[np.float64] | MovingPose) -> _Edge:
        edge = _Edge(pose, is_inverse=False)
        self._neighbours.setdefault(parent, {})[child] = edge
        self._neighbours.setdefault(child, {})[parent] = _Edge(pose, is_inverse=True)
        return edge

    def _chain(self, target: str, source: str) -> list[_Edge] | None:
        """Return the edges of the shortest chain; None if nothing connects the two."""
        chains: dict[str, list[_Edge]] = {target: []}
        waiting = deque([target])
        while waiting and source not in chains:
            frame = waiting.popleft()
            for neighbour, edge in self._neighbours.get(frame, {}).items():
                if neighbour not in chains:
                    chains[neighbour] = [*chains[frame], edge]
                    waiting.append(neighbour)
        return chains.get(source)


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
