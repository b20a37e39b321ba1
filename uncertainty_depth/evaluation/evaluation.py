# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluation that the evaluator node and the offline command add frames to."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

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
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.records import Frame, Skipped


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

    def add(self, frame: Frame) -> dict[str, float] | None:
        """Score one frame.

        Args:
            frame: with a prediction and ground truth; its image is for the report only.

        Returns:
            The metrics of this frame by dotted name; None if no pixel could be scored, and the
            frame is counted as skipped.

        Raises:
            MessageError: the frame has no prediction or no ground truth.
        """
        prediction = frame.need_prediction()
        ground_truth_m = frame.need_ground_truth()
        pixels = FramePixels(prediction, ground_truth_m, self.config)
        truth_pixels = len(pixels.valid_truth)
        metrics = self.metrics.update_pixels(
            pixels.depth, pixels.sigma, pixels.ground_truth, truth_pixels
        )
        if truth_pixels:
            self.units.add(frame_sums(pixels, metrics))
        if metrics is None:
            text = (
                f"{frame.name}: no pixel has a prediction and a ground truth within the depth "
                "range"
            )
            self.skip(Skipped(frame.stamp_ns, "no_valid_pixel", text))
            return None
        self.evaluated += 1
        self.positions.add(pixels)
        self.cameras.add(frame.camera, prediction.depth_m.shape)
        scale = prediction.aligned_by * frame_scale(pixels.depth, pixels.ground_truth)
        self.scale.add(scale)
        row = flatten(without_sizes(metrics) if self.without_size else metrics)
        row["scale"] = scale
        self.unfamiliarity.add(prediction.unfamiliarity)
        row["unfamiliarity"] = (
            math.nan if prediction.unfamiliarity is None else prediction.unfamiliarity
        )
        self.repeated.add(row)
        self.table.add({"frame": frame.name, "stamp_ns": frame.stamp_ns} | row)
        self.examples.offer(
            row["depth.abs_rel"],
            lambda: Example(
                frame.name, frame.image, ground_truth_m, prediction, row, frame.is_registered
            ),
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
