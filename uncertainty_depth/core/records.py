# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Immutable records passed between the parts: units in names, shapes in docstrings."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.measurements import Measurements


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
class DepthMap:
    """Depth at the image's size; nothing says how certain it is.

    Attributes:
        depth_m: (H, W) float32, metres along the optical axis, NaN = no value, never clipped.
        unfamiliarity: of the frame: only a few % of familiar images score above 1; None if it is
            not known.
        aligned_by: factor that brought the depth to the ground truth's scale; 1 if the depth
            is as it was predicted.
    """

    depth_m: NDArray[np.float32]
    unfamiliarity: float | None = field(default=None, kw_only=True)
    aligned_by: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True, eq=False)
class DepthPrediction(DepthMap):
    """Depth and its standard deviation.

    Attributes:
        sigma_m: (H, W) float32, metres, higher = less certain, the same NaN mask as the depth.
        scale_log_sigma: standard deviation of the logarithm of the frame's scale, an error that
            all pixels share, if measurements tell it; else None.
    """

    sigma_m: NDArray[np.float32]
    scale_log_sigma: float | None = field(default=None, kw_only=True)


def sigma_of(depth: DepthMap) -> NDArray[np.float32] | None:
    """Return a depth's sigma; None if it has none."""
    return depth.sigma_m if isinstance(depth, DepthPrediction) else None


@dataclass(frozen=True, eq=False)
class RecordedMaps:
    """A prediction as it was recorded, before it is given a meaning and a scale.

    `depth` and `confidence` are (H, W) float32, NaN for none. A depth node published the image's
    unfamiliarity, and as row * width + column the pixels that were `measured`.
    """

    depth: NDArray[np.float32]
    confidence: NDArray[np.float32] | None
    unfamiliarity: float | None = None
    measured: tuple[int, ...] = ()


class LeftOut(NamedTuple):
    """Pixels that a mask leaves out, (H, W), without ground truth now; `known` had one before."""

    mask: NDArray[np.bool_]
    known: int


@dataclass(frozen=True, eq=False)
class Frame:
    """One moment of one camera: what travels from every source to everything that uses frames.

    A source fills what it knows; a model adds `prediction`. All maps have one size, (H, W).

    Attributes:
        stamp_ns: time of the image, nanoseconds.
        name: what a person calls this frame (file stem, or the stamp in seconds).
        camera: the intrinsics at the maps' size; None if unknown.
        image: (H, W, 3) uint8, RGB.
        sparse_m: (H, W) float32, the known depth that measures, metres, NaN for unknown; no pixel
            of it has ground truth. None if nothing is known.
        ground_truth_m: (H, W) float32, metres along the optical axis, NaN for unknown. Sparse
            for LiDAR.
        prediction: depth, and sigma if there is any.
        pose: (4, 4) float64, camera optical frame to a world that stands still.
        scan: what the ground truth was projected from; None without a LiDAR.
        recorded: maps that an `Interpreter` turns into the prediction.
        is_registered: a pixel of the image and of the maps looks in the same direction; if not,
            the image is only for people, and of any size.
        measurements: depths of single pixels that something beside the network measured; none of
            these pixels has ground truth. None if nothing measures.
        left_out: what a mask leaves out of the scores; None without a mask.
    """

    stamp_ns: int
    name: str
    camera: Camera | None = None
    image: NDArray[np.uint8] | None = None
    sparse_m: NDArray[np.floating] | None = None
    ground_truth_m: NDArray[np.float32] | None = None
    prediction: DepthMap | None = None
    pose: NDArray[np.float64] | None = None
    scan: Scan | None = None
    recorded: RecordedMaps | None = None
    is_registered: bool = True
    measurements: Measurements | None = None
    left_out: LeftOut | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the predicted depth, or before it is predicted of the image."""
        depth = self.need_image() if self.prediction is None else self.prediction.depth_m
        return depth.shape[0], depth.shape[1]

    def need_image(self) -> NDArray[np.uint8]:
        """Return the image, or raise `MessageError` "no_image"."""
        if self.image is None:
            raise MessageError("no_image", f"frame {self.name} has no image")
        return self.image

    def need_ground_truth(self) -> NDArray[np.float32]:
        """Return the ground truth, or raise `MessageError` "no_ground_truth"."""
        if self.ground_truth_m is None:
            raise MessageError("no_ground_truth", f"frame {self.name} has no ground truth")
        return self.ground_truth_m

    def need_depth(self) -> DepthMap:
        """Return the predicted depth, or raise `MessageError` "no_prediction"."""
        if self.prediction is None:
            raise MessageError("no_prediction", f"frame {self.name} has no prediction")
        return self.prediction

    def need_prediction(self) -> DepthPrediction:
        """Return depth and sigma, or raise `MessageError` "no_prediction" or "no_sigma"."""
        depth = self.need_depth()
        if not isinstance(depth, DepthPrediction):
            raise MessageError("no_sigma", f"frame {self.name} has a depth without sigma")
        return depth


@dataclass(frozen=True)
class Skipped:
    """A frame that was read but cannot be scored, and the reason.

    Sources yield it in the frame's place, so that every lost frame is counted.

    Attributes:
        stamp_ns: the image's time, nanoseconds; None if it could not be read.
        reason: short key that losses are counted under, e.g.
            "no_lidar_within_max_time_difference".
        message: the sentence that explains it.
        frame: the frame itself, if it only lacks ground truth.
    """

    stamp_ns: int | None
    reason: str
    message: str
    frame: Frame | None = None


UNWANTED = Skipped(None, "unwanted", "the image was not decoded: its frame is not wanted")
"""Stands for an image that a reader was told to leave out."""


def in_view(frame: Frame, message: str) -> Frame | Skipped:
    """Return the frame, or why it is skipped if no LiDAR point is in view."""
    if np.isnan(frame.need_ground_truth()).all():
        return Skipped(frame.stamp_ns, "no_lidar_point_in_view", message, frame)
    return frame


@dataclass(frozen=True)
class SampleRange:
    """Which MC-dropout samples or ensemble members make a prediction: `count` from `first` on.

    With the image, its stamp and the options it decides the maps to the last bit. After the last
    sample comes the first.
    """

    first: int
    count: int

    def numbers(self, passes: int) -> list[int]:
        """Return the samples' numbers, of as many as there are `passes`."""
        return [number % passes for number in range(self.first, self.first + self.count)]


class Use(Enum):
    """What frames served before they are scored."""

    TRAINING = "training"
    CALIBRATION = "calibration"


@dataclass(frozen=True)
class Overlap:
    """A scored source whose frames a model was trained on, or its sigma was calibrated on.

    Attributes:
        source: its name.
        use: what its frames served.
        certain: whether it is the same place; if not, only the last parts of the paths agree: the
            folder may have moved, or be another.
        model: name of what was trained or calibrated.
    """

    source: str
    use: Use
    certain: bool
    model: str

    def as_dict(self) -> dict[str, Any]:
        """Return all but the use as plain values."""
        return {"source": self.source, "certain": self.certain, "model": self.model}

    def __str__(self) -> str:
        """Return the sentence for a report."""
        verb, effect = _OVERLAP_WORDS[self.use]
        if self.certain:
            return f"{self.model} {verb} frames of {self.source}: {effect}"
        return (
            f"{self.model} {verb} a source of the same name as {self.source}: if they are one, "
            f"{effect}"
        )


_OVERLAP_WORDS = {
    Use.TRAINING: ("was trained on", "its errors are smaller there than on new frames"),
    Use.CALIBRATION: ("was calibrated on", "its size fits better there than on new frames"),
}
