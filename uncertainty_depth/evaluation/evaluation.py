# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluation that the evaluator node and the offline command add frames to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.evaluation.cameras import CameraRange
from uncertainty_depth.evaluation.examples import Example, Examples
from uncertainty_depth.evaluation.frame_table import FrameTable
from uncertainty_depth.evaluation.positions import Positions
from uncertainty_depth.evaluation.repeated_frames import RepeatedFrames
from uncertainty_depth.metrics import OnlineMetrics, registry
from uncertainty_depth.metrics.pixels import ScoredPixels
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
        self.positions = Positions()
        self.cameras = CameraRange()
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
        pixels = ScoredPixels(
            prediction.depth_m,
            prediction.sigma_m,
            ground_truth_m,
            self.config.min_depth,
            self.config.max_depth,
        )
        block = self.metrics.add(pixels, prediction.aligned_by, prediction.unfamiliarity)
        if not len(pixels):
            text = (
                f"{frame.name}: no pixel has a prediction and a ground truth within the depth "
                "range"
            )
            self.skip(Skipped(frame.stamp_ns, "no_valid_pixel", text))
            return None
        self.evaluated += 1
        self.positions.add(pixels)
        self.cameras.add(frame.camera, prediction.depth_m.shape)
        row = registry.frame_values(self.metrics.sums_of(block), bool(self.without_size))
        self.repeated.add(row)
        self.table.add({"frame": frame.name, "stamp_ns": frame.stamp_ns} | row, block)
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
        self.positions.merge(other.positions)
        self.cameras.merge(other.cameras)
        self.repeated.merge(other.repeated)
        self.skipped += other.skipped
        self.evaluated += other.evaluated
        self.first_skips = {**other.first_skips, **self.first_skips}
        self.interrupted = self.interrupted or other.interrupted
        if with_frames:
            rows = other.table.rows()
            for row, block in zip(rows.dicts(), rows.blocks(), strict=True):
                self.table.add({"source": source, **row}, block)

    def set_example_frames(self, number: int) -> None:
        """Set the one option that changes no score, from now on."""
        self.config = replace(self.config, example_frames=number)
        self.metrics.config = self.config
        self.examples.resize(number)

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
        values = registry.flat_values(self.metrics.total(), bool(self.without_size))
        return {"frames": self.frames(), **registry.nested(values)}
