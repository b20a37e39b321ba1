# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Check in a few frames whether depth and image fit together: unit, view and edges."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.geometry.alignment import (
    MAX_SHIFT,
    ROTATIONS,
    alignment,
    depth_edges,
    image_edges,
    reduction,
    row_density,
)
from uncertainty_depth.core.geometry.camera import (
    Camera,
    ground_truth_from_cloud,
    image_coordinates,
)
from uncertainty_depth.core.geometry.transforms import candidate_poses
from uncertainty_depth.core.records import Frame, Scan, Skipped
from uncertainty_depth.frames.protocol import MapSource, Source

FRAMES = 8  # frames checked, then as many at twice the distance, and so on
MEDIAN_DEPTH = (0.05, 500.0)  # metres; a median outside is in another unit
MAX_BASELINE = 20.0  # metres between LiDAR and camera
MIN_FRACTION_IN_VIEW = 0.002
MIN_ROW_DENSITY = 0.15  # of rings: only gross mistakes are reported below it
UPSIDE_DOWN = "the image rotated by 180 degrees"
MIRRORED = "the image mirrored left to right"
FLIPPED = "the image mirrored top to bottom"
FITS = "fits"
DOES_NOT_FIT = "does not fit"
CANNOT_TELL = "cannot tell"


MIN_FRAMES = 3  # fewer say nothing
SIGNIFICANT = 4.0  # a pose fits from this many deviations above other poses
MARGIN = 1.2  # deviations by which another pose must fit better than the pose itself
MIN_WINS = 0.7  # fraction of the frames in which it must fit better
MIN_SHIFT = 3  # pixels of the reduced image; a smaller shift is no other pose
_WITHIN_A_PIXEL = slice(MAX_SHIFT - 1, MAX_SHIFT + 2)
_AT_POSE = (0, _WITHIN_A_PIXEL, _WITHIN_A_PIXEL)  # of a surface of alignments


@dataclass(frozen=True)
class Fit:
    """A pose's alignment, in robust standard deviations above the poses around it.

    `score` is the pose's own, the best within a pixel, `best` the best pose's around it, at a
    `shift` right and down, pixels of the reduced image, and a `rotation` clockwise, degrees;
    `wins` is the fraction of the frames in which that one fits better.
    """

    score: float
    best: float
    shift: tuple[int, int]
    rotation: float
    wins: float

    @property
    def contradicts_pose(self) -> bool:
        """Whether another pose is clearly better than this one."""
        is_other = max(map(abs, self.shift)) >= MIN_SHIFT or self.rotation != 0
        is_better = self.best > max(SIGNIFICANT, self.score + MARGIN)
        return is_other and is_better and self.wins >= MIN_WINS


class PoseEvidence:
    """How one pose fits over frames: its edges' mean alignment, and its points in view."""

    def __init__(self) -> None:
        self.frames = 0
        self.fractions_in_view: list[float] = []
        self._sum: NDArray[np.float64] | float = 0.0
        self._wins: NDArray[np.intp] | int = 0

    def count_in_view(self, scan: Scan, pose: NDArray[np.float64], camera: Camera) -> None:
        """Add the fraction of a scan's points that the pose puts into the image."""
        depths = image_coordinates(scan.points, pose, camera)[2]
        self.fractions_in_view.append(len(depths) / max(len(scan.points), 1))

    def add(self, values: NDArray[np.float32] | None) -> None:
        """Add a frame's alignment, see `geometry.alignment`; skip None, a frame without one."""
        if values is None:
            return
        self._sum = self._sum + values.astype(np.float64)
        self._wins = self._wins + (values > values[_AT_POSE].max())
        self.frames += 1

    def fit(self) -> Fit | None:
        """Return the fit over the frames so far; None if fewer than `MIN_FRAMES`."""
        if self.frames < MIN_FRAMES:
            return None
        median = np.median(self._sum)
        deviation = 1.4826 * np.median(np.abs(self._sum - median))
        if not deviation > 0:
            return None
        scores = (self._sum - median) / deviation
        rotation, row, column = map(int, np.unravel_index(scores.argmax(), scores.shape))
        best = (rotation, row, column)
        return Fit(
            score=float(scores[_AT_POSE].max()),
            best=float(scores[best]),
            shift=(column - MAX_SHIFT, row - MAX_SHIFT),
            rotation=ROTATIONS[rotation],
            wins=float(np.asarray(self._wins)[best]) / self.frames,
        )


class GeometryCheck:
    """Collects evidence of wrong geometry from frames.

    In a long run the frames it looks at are ever farther apart, so its cost per frame falls
    towards zero.
    """

    def __init__(self) -> None:
        self._frames = 0
        self._stride = 1
        self._looked_at = 0
        self._factor = 1.0
        self._focal_length: float | None = None
        self._baseline_m = 0.0
        self._row_densities: list[float] = []
        self._medians_m: list[float] = []
        self._own = PoseEvidence()
        self._others: defaultdict[str, PoseEvidence] = defaultdict(PoseEvidence)

    def seeing(self, source: Source) -> Source:
        """Return the source, whose frames it checks, with its warnings among the notes."""
        return MapSource(source, self.see, self.warnings)

    def see(self, record: Frame | Skipped) -> Frame | Skipped:
        """Check a frame with ground truth, even if none of it is in view; return the record.

        Every n-th is looked at. Without a registered image edges are not compared; other
        extrinsics are tried only with a camera and the scan that the ground truth was made from.
        """
        frame = record.frame if isinstance(record, Skipped) else record
        if frame is None or frame.ground_truth_m is None:
            return record
        is_due = self._frames % self._stride == 0
        self._frames += 1
        if not is_due:
            return record
        known_m = frame.ground_truth_m[np.isfinite(frame.ground_truth_m)]
        if len(known_m):
            self._medians_m.append(float(np.median(known_m)))
        if frame.camera is not None and frame.scan is not None:
            pose = frame.scan.lidar_to_camera
            self._focal_length = float(frame.camera.intrinsics[0, 0])
            self._baseline_m = float(np.linalg.norm(pose[:3, 3]))
            self._own.count_in_view(frame.scan, pose, frame.camera)
        if frame.image is not None and frame.is_registered:
            self._compare_edges(frame.image, frame.ground_truth_m, frame.camera, frame.scan)
        self._looked_at += 1
        if self._looked_at % FRAMES == 0:
            self._stride *= 2
        return record

    def _compare_edges(
        self,
        image: NDArray[np.uint8],
        ground_truth_m: NDArray[np.floating],
        camera: Camera | None,
        scan: Scan | None,
    ) -> None:
        self._factor = reduction(image.shape[1])
        self._row_densities.append(row_density(ground_truth_m))
        edge_strength = image_edges(image)
        edges = depth_edges(ground_truth_m)
        self._own.add(alignment(edge_strength, edges, ROTATIONS))
        if self._fits:
            return
        for name, turned in (
            (UPSIDE_DOWN, edge_strength[::-1, ::-1]),
            (MIRRORED, edge_strength[:, ::-1]),
            (FLIPPED, edge_strength[::-1]),
        ):
            self._others[name].add(alignment(turned, edges, ROTATIONS[:1]))
        if camera is None or scan is None:
            return
        for name, pose in candidate_poses(scan.lidar_to_camera).items():
            other = self._others[name]
            other.count_in_view(scan, pose, camera)
            depth_m = ground_truth_from_cloud(scan.points, pose, camera)
            other.add(alignment(edge_strength, depth_edges(depth_m), ROTATIONS[:1]))

    @property
    def _fits(self) -> bool:
        fit = self._own.fit()
        return fit is not None and fit.score >= SIGNIFICANT

    @property
    def median_depth_m(self) -> float:
        """The median over the checked frames; NaN before the first."""
        return float(np.median(self._medians_m)) if self._medians_m else math.nan

    @property
    def fraction_in_view(self) -> float:
        """The fraction of a cloud's points that fall into the image; NaN without clouds."""
        fractions = self._own.fractions_in_view
        return float(np.mean(fractions)) if fractions else math.nan

    def warnings(self) -> list[str]:
        """Return a sentence for each problem with the geometry."""
        return [*self._unit_warnings(), *self._view_warnings(), *self._edge_warnings()]

    @property
    def outcome(self) -> str:
        """Whether depth and image fit: `FITS`, `DOES_NOT_FIT` or `CANNOT_TELL`."""
        if self.warnings():
            return DOES_NOT_FIT
        return FITS if self._fits else CANNOT_TELL

    def summary(self) -> dict[str, Any]:
        """Return the warnings and their numbers, as in `summary.json`."""
        fit = self._own.fit()
        return {
            "outcome": self.outcome,
            "description": self.description(),
            "median_depth_m": self.median_depth_m,
            "fraction_in_view": self.fraction_in_view,
            "edge_fit": None if fit is None else fit.score,
            "edge_fit_of_best_pose": None if fit is None else fit.best,
            "warnings": self.warnings(),
        }

    def description(self) -> str:
        """Return one sentence on the result, even if nothing is wrong."""
        parts = [f"median depth {self.median_depth_m:.3g} m"]
        if not math.isnan(self.fraction_in_view):
            parts.append(f"{self.fraction_in_view:.1%} of the points in view")
        fit = self._own.fit()
        if fit is None:
            parts.append("too few depth edges to compare with the image")
        elif any(self._edge_warnings()):
            parts.append(f"another pose fits better than this one (score {fit.score:.1f})")
        else:
            said = "extrinsics look right" if self._fits else "cannot tell if depth and image fit"
            parts.append(f"{said} (score {fit.score:.1f}, {SIGNIFICANT:g} needed)")
        return ", ".join(parts)

    def _unit_warnings(self) -> Iterator[str]:
        minimum, maximum = MEDIAN_DEPTH
        if self.median_depth_m > maximum:
            yield (
                f"the median depth is {self.median_depth_m:,.0f} m: the ground truth is in "
                "millimetres, expected metres (a cloud, a 32FC1 image) or 16UC1 millimetres"
            )
        if self.median_depth_m < minimum:
            yield (
                f"the median depth is {self.median_depth_m:.2g} m: the ground truth is 1,000 "
                "times too small, as metres are when they are read as millimetres"
            )
        if self._baseline_m > MAX_BASELINE:
            yield (
                f"lidar_to_camera puts the LiDAR {self._baseline_m:,.0f} m from the camera: "
                "its translation is in millimetres, or it leads to a map's origin; expected metres"
            )

    def _view_warnings(self) -> Iterator[str]:
        if not self.fraction_in_view < MIN_FRACTION_IN_VIEW:
            return
        means = {
            name: np.mean(other.fractions_in_view)
            for name, other in self._others.items()
            if other.fractions_in_view
        }
        name = max(means, key=lambda other: means[other], default="")
        better = f"; {name} would put {means[name]:.1%} there" if name else ""
        yield (
            f"only {self.fraction_in_view:.2%} of the LiDAR's points fall into the image{better}"
        )

    def _edge_warnings(self) -> Iterator[str]:
        own = self._own.fit()
        score = 0.0 if own is None else own.score  # without edges in view nothing fits
        fits = {name: fit for name, it in self._others.items() if (fit := it.fit()) is not None}
        name = max(fits, key=lambda other: fits[other].score, default="")
        # a dozen poses are tried: a shift that fits better still is the likelier mistake
        shifted = own.best if own is not None and own.contradicts_pose else -math.inf
        if name and fits[name].score > max(SIGNIFICANT, score + MARGIN, shifted):
            yield (
                f"camera and depth do not fit together: {name} fits clearly better (edges align "
                f"by {fits[name].score:.1f} deviations against {score:.1f}, "
                f"{self._others[name].frames} frames)"
            )
        elif own is not None:
            yield from self._shift_warnings(own)

    def _shift_warnings(self, fit: Fit) -> Iterator[str]:
        if not fit.contradicts_pose or np.median(self._row_densities) < MIN_ROW_DENSITY:
            return
        right = round(fit.shift[0] * self._factor)
        down = round(fit.shift[1] * self._factor)
        angle = ""
        if self._focal_length:
            degrees = math.degrees(math.atan(math.hypot(right, down) / self._focal_length))
            angle = f", as a camera turned by about {degrees:.0f} degrees sees it"
        yield (
            "camera and depth do not fit together: the depth shifted by "
            f"{right:+d} pixels to the right and {down:+d} down, rotated by {fit.rotation:+.0f} "
            f"degrees{angle}, fits clearly better (edges align by {fit.best:.1f} deviations "
            f"against {fit.score:.1f}, {self._own.frames} frames): check lidar_to_camera or tf, "
            "the camera info, and the times of image and depth"
        )
