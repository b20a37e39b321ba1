# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Immutable records passed between the parts: units in names, shapes in docstrings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.geometry.camera import Camera


@dataclass(frozen=True, eq=False)
class Scan:
    """A LiDAR scan and the pose of the LiDAR.

    Attributes:
        points: (N, 3), metres, in the LiDAR's frame.
        lidar_to_camera: (4, 4) float64, LiDAR frame to camera optical frame.
    """

    points: NDArray[np.floating]
    lidar_to_camera: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Frame:
    """One camera image with its known depth.

    Attributes:
        stamp_ns: time of the image, nanoseconds.
        image: (H, W, 3) uint8, RGB.
        camera: the intrinsics at this image's size; None where a source has none.
        ground_truth_m: (H, W) float32, metres along the optical axis, NaN where nothing is known.
            Sparse for LiDAR.
        name: what a person calls this frame (file stem, or the stamp in seconds).
        scan: what the ground truth was projected from; None without a LiDAR.
        sparse_m: (H, W) float32, the known depth that a model may use, metres, NaN where unknown;
            no pixel of it has ground truth. None where the image is all that a model may use.
    """

    stamp_ns: int
    image: NDArray[np.uint8]
    camera: Camera | None
    ground_truth_m: NDArray[np.float32]
    name: str
    scan: Scan | None = None
    sparse_m: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Skipped:
    """A frame that was read but cannot be scored, and the reason.

    Sources yield it in the frame's place, so that every lost frame is counted.

    Attributes:
        stamp_ns: time of the image, nanoseconds; None where even that could not be read.
        reason: short key that losses are counted under, e.g.
            "no_lidar_within_max_time_difference".
        message: the sentence that explains it.
        frame: the frame itself, where all that it lacks is ground truth in view.
    """

    stamp_ns: int | None
    reason: str
    message: str
    frame: Frame | None = None


def in_view(frame: Frame, message: str) -> Frame | Skipped:
    """Return the frame, or why it is skipped if no LiDAR point is in view."""
    if np.isnan(frame.ground_truth_m).all():
        return Skipped(frame.stamp_ns, "no_lidar_point_in_view", message, frame)
    return frame


@dataclass(frozen=True, eq=False)
class DepthPrediction:
    """Depth and its standard deviation at the image's size.

    Attributes:
        depth_m: (H, W) float32, metres along the optical axis, NaN = no value, never clipped.
        sigma_m: (H, W) float32, metres, higher = less certain, the same NaN mask as the depth.
        unfamiliarity: of the frame: 1 is what one in a hundred held-out frames of the training
            reaches; None where it is not known.
    """

    depth_m: NDArray[np.float32]
    sigma_m: NDArray[np.float32]
    unfamiliarity: float | None = None


@dataclass(frozen=True, eq=False)
class Observation:
    """Input of a prediction: an image, its stamp and camera, and sparse depth if any.

    Attributes:
        image: (H, W, 3) uint8, RGB, any size.
        stamp_ns: time of the image, nanoseconds; part of the noise's seed.
        camera: of the image; its focal length scales depth and sigma, see `rescale_depth`. None
            predicts the depth of a camera like the training's.
        sparse_m: (H, W) known depth for a model with sparse input, metres, NaN or 0 where
            unknown; None or nowhere known: the image alone.
    """

    image: NDArray[np.uint8]
    stamp_ns: int = 0
    camera: Camera | None = None
    sparse_m: NDArray[np.floating] | None = None


@dataclass(frozen=True)
class SampleRange:
    """Which of the MC-dropout samples or ensemble members make a prediction.

    With the image, its stamp and the options it decides the maps to the last bit.

    Attributes:
        first: number of the first one.
        count: how many, one after the other; after the last of all comes the first of all.
    """

    first: int
    count: int

    def numbers(self, passes: int) -> list[int]:
        """Return the numbers of the samples, of as many as there are `passes`."""
        return [number % passes for number in range(self.first, self.first + self.count)]


@dataclass(frozen=True, eq=False)
class PredictedFrame:
    """A recorded prediction with its known depth.

    Attributes:
        stamp_ns: time of the prediction, nanoseconds.
        depth: (H, W) float32, depth or inverse depth as it was recorded, NaN where there is none.
        confidence: (H, W) float32, in whatever type it was recorded.
        camera: the intrinsics at this size; None where a source has none.
        ground_truth_m: (H, W) float32, metres, NaN where nothing is known.
        name: what a person calls this frame (file stem, or the stamp in seconds).
        image: (h, w, 3) uint8 RGB, for the report; None where there is none.
        is_registered: a pixel of the image and of the maps, which have its size, look in the same
            direction.
    """

    stamp_ns: int
    depth: NDArray[np.float32]
    confidence: NDArray[np.float32]
    camera: Camera | None
    ground_truth_m: NDArray[np.float32]
    name: str
    image: NDArray[np.uint8] | None = None
    is_registered: bool = True
