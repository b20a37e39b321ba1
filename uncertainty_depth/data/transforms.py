"""Fixed transforms between frames, as `/tf_static` gives them."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.geometry.transforms import transform_from


class TransformTree:
    """Frames and the transforms between them; any two that are connected can be asked for, whichever way the arrows point."""

    def __init__(self) -> None:
        self._neighbours: dict[str, dict[str, NDArray[np.float64]]] = {}

    @property
    def frames(self) -> list[str]:
        """The names of all frames, sorted, without leading slashes."""
        return sorted(self._neighbours)

    def add(self, parent: str, child: str, child_to_parent: NDArray[np.float64]) -> None:
        """Add or replace one transform, (4, 4): the pose of `child` in `parent`."""
        parent, child = parent.lstrip("/"), child.lstrip("/")
        self._neighbours.setdefault(parent, {})[child] = child_to_parent
        self._neighbours.setdefault(child, {})[parent] = np.linalg.inv(child_to_parent)

    def add_message(self, message: Any) -> list[str]:
        """Add the rigid transforms of a `tf2_msgs/TFMessage`; returns a sentence on each other one."""
        rejections = []
        for stamped in message.transforms:
            shift = stamped.transform.translation
            turn = stamped.transform.rotation
            parent = stamped.header.frame_id
            child = stamped.child_frame_id
            try:
                pose = transform_from(shift.x, shift.y, shift.z, turn.x, turn.y, turn.z, turn.w)
                self.add(parent, child, pose)
            except (ConfigError, np.linalg.LinAlgError) as error:
                rejections.append(
                    f"the transform from {child!r} to {parent!r} is left out: {error}"
                )
        return rejections

    def lookup(self, target: str, source: str) -> NDArray[np.float64]:
        """(4, 4) transform from coordinates in `source` to coordinates in `target`, along the shortest chain.

        Raises:
            SourceError: where no chain connects the two; it names both, and the frames that are known.
        """
        target, source = target.lstrip("/"), source.lstrip("/")
        found, waiting = {target: np.eye(4)}, deque([target])
        while waiting and source not in found:
            frame = waiting.popleft()
            for neighbour, transform in self._neighbours.get(frame, {}).items():
                if neighbour not in found:
                    found[neighbour] = found[frame] @ transform
                    waiting.append(neighbour)
        if source not in found:
            known = ", ".join(self.frames) or "none"
            raise SourceError(
                f"no transform connects the LiDAR frame {source!r} with the camera frame {target!r}; "
                f"/tf_static knows {known}; record it or give lidar_to_camera"
            )
        return found[source]
