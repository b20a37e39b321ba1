"""What travels between the parts: immutable records, units in the names, shapes in the docstrings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.camera import Camera


@dataclass(frozen=True, eq=False)
class Frame:
    """One camera image with the depth that is known of it.

    Attributes:
        stamp_ns: time of the image, nanoseconds.
        image: (H, W, 3) uint8, RGB.
        camera: the intrinsics at this image's size; None where a source has none.
        ground_truth_m: (H, W) float32, metres along the optical axis, NaN where nothing is known. Sparse for LiDAR.
        name: what a person calls this frame (file stem, or the stamp in seconds).
    """

    stamp_ns: int
    image: NDArray[np.uint8]
    camera: Camera | None
    ground_truth_m: NDArray[np.float32]
    name: str


@dataclass(frozen=True)
class Skipped:
    """A frame that was read but cannot be scored. Sources yield it in the frame's place: no loss goes uncounted.

    Attributes:
        stamp_ns: time of the image, nanoseconds; None where even that could not be read.
        reason: short key that losses are counted under, e.g. "no_lidar_within_max_time_difference".
        message: the sentence that explains it.
    """

    stamp_ns: int | None
    reason: str
    message: str


@dataclass(frozen=True, eq=False)
class DepthPrediction:
    """Depth and its standard deviation at the image's size.

    Attributes:
        depth_m: (H, W) float32, metres along the optical axis, NaN = no value, never clipped.
        sigma_m: (H, W) float32, metres, higher = less certain, the same NaN mask as the depth.
    """

    depth_m: NDArray[np.float32]
    sigma_m: NDArray[np.float32]
