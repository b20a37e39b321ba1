# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluation that the evaluator node and the offline command add frames to."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.evaluation.examples import Example, Examples
from uncertainty_depth.evaluation.frame_pixels import FramePixels, Positions
from uncertainty_depth.evaluation.frame_statistics import (
    CameraRange,
    ScaleDrift,
    Unfamiliarity,
    frame_scale,
)
from uncertainty_depth.evaluation.frame_table import FrameTable, flatten
from uncertainty_depth.evaluation.repeated_frames import RepeatedFrames
from uncertainty_depth.evaluation.unit_sums import LAYOUT, frame_sums
from uncertainty_depth.evaluation.unitless import without_sizes
from uncertainty_depth.evaluation.units import Units
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.records import DepthPrediction, Skipped


class Evaluation:
    """Metrics of all frames so far, and the number of frames skipped, by reason.

    Attributes:
        without_size: why the size of sigma is not judged; empty where sigma is in metres.
        first_skips: for each reason the sentence of its first frame, in this process.
    """

    def __init__(
        self,
        config: EvaluationConfig | None = None,
        table: FrameTable | None = None,
        without_size: str = "",
    ) -> None:
        """Start without frames; rows of frames go to `table`, without one to a temporary file."""
        self.config = config or EvaluationConfig()
        self.without_size = without_size
        self.metrics = OnlineMetrics(self.config)
        self.skipped: Counter[str] = Counter()
        self.first_skips: dict[str, str] = {}
        self.evaluated = 0
        self.interrupted = False
        self.units = Units(LAYOUT)
        self.positions = Positions()
        self.cameras = CameraRange()
        self.scale = ScaleDrift()
        self.unfamiliarity = Unfamiliarity()
        self.repeated = RepeatedFrames()
        self.table = FrameTable() if table is None else table
        self.examples = Examples(self.config.example_frames)

    def add(
        self,
        name: str,
        stamp_ns: int,
        prediction: DepthPrediction,
        ground_truth_m: NDArray[np.float32],
        image: NDArray[np.uint8] | None = None,
        camera: Camera | None = None,
        aligned_by: float = 1.0,
        is_registered: bool = True,
    ) -> dict[str, float] | None:
        """Score one frame.

        Args:
            name: of the frame, in the table.
            stamp_ns: its time stamp, nanoseconds.
            prediction: maps of shape (H, W), metres.
            ground_truth_m: (H, W), metres, NaN where unknown.
            image: (h, w, 3) uint8 RGB, for the report only; None if not available.
            camera: its intrinsics; None if unknown.
            aligned_by: factor that brought the depth to the scale of the ground truth.
            is_registered: the image has the maps' size, and a pixel of each looks in the same
                direction.

        Returns:
            The metrics of this frame by dotted name; None if no pixel could be scored, and the
            frame is counted as skipped.
        """
        pixels = FramePixels(prediction, ground_truth_m, self.config)
        truth_pixels = len(pixels.valid_truth)
        metrics = self.metrics.update_pixels(
            pixels.depth, pixels.sigma, pixels.ground_truth, truth_pixels
        )
        if truth_pixels:
            self.units.add(frame_sums(pixels, metrics))
        if metrics is None:
            text = f"{name}: no pixel has a prediction and a ground truth within the depth range"
            self.skip(Skipped(stamp_ns, "no_valid_pixel", text))
            return None
        self.evaluated += 1
        self.positions.add(pixels)
        self.cameras.add(camera, prediction.depth_m.shape)
        scale = aligned_by * frame_scale(pixels.depth, pixels.ground_truth)
        self.scale.add(scale)
        row = flatten(without_sizes(metrics) if self.without_size else metrics)
        row["scale"] = scale
        self.unfamiliarity.add(prediction.unfamiliarity)
        row["unfamiliarity"] = (
            math.nan if prediction.unfamiliarity is None else prediction.unfamiliarity
        )
        self.repeated.add(row)
        self.table.add({"frame": name, "stamp_ns": stamp_ns} | row)
        self.examples.offer(
            row["depth.abs_rel"],
            lambda: Example(name, image, ground_truth_m, prediction, row, is_registered),
        )
        return row

    def merge(self, other: Evaluation, source: str, with_frames: bool = True) -> None:
        """Add the frames of another evaluation after those of this one.

        Args:
            other: scored with the same options; not changed. Its example frames are not added.
            source: name of its source, in the table of frames.
            with_frames: copy its rows of frames too.

        Raises:
            ValueError: it was scored with other options.
        """
        self.metrics.merge(other.metrics)
        self.units.merge(other.units)
        self.positions.merge(other.positions)
        self.cameras.merge(other.cameras)
        self.scale.merge(other.scale)
        self.unfamiliarity.merge(other.unfamiliarity)
        self.repeated.merge(other.repeated)
        self.skipped += other.skipped
        self.evaluated += other.evaluated
        self.first_skips = {**other.first_skips, **self.first_skips}
        self.interrupted = self.interrupted or other.interrupted
        for row in other.table.rows().dicts() if with_frames else ():
            self.table.add({"source": source, **row})

    def skip(self, record: Skipped) -> None:
        """Count a frame that could not be scored."""
        self.skipped[record.reason] += 1
        self.first_skips.setdefault(record.reason, record.message)

    def frames(self) -> dict[str, Any]:
        """Return `{read, evaluated, skipped: {reason: count}}`; read = evaluated + skipped."""
        return {
            "read": self.evaluated + self.skipped.total(),
            "evaluated": self.evaluated,
            "skipped": dict(self.skipped),
        }

    def summary(self) -> dict[str, Any]:
        """Return the metrics over all frames, as in `summary.json`."""
        metrics = self.metrics.compute()
        if self.without_size:
            metrics = without_sizes(metrics)
        return {
            "frames": self.frames(),
            **metrics,
            "scale": self.scale.as_dict(),
            "unfamiliarity": self.unfamiliarity.as_dict(),
        }
