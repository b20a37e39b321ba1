# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores for frames, and the frames that a report shows: added one by one, saved to be merged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.geometry.focal_length import CameraRange
from uncertainty_depth.core.options import changed, takes_options
from uncertainty_depth.core.records import DepthMap, DepthPrediction, Frame, Skipped, sigma_of
from uncertainty_depth.frames.image_files import ImageLike, as_rgb
from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.bootstrap import Resampled
from uncertainty_depth.metrics.conditional import PixelSample
from uncertainty_depth.metrics.frame import ScoredPixels
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import flat_values, nested
from uncertainty_depth.metrics.state import Block
from uncertainty_depth.report.frame_table import FrameName, FrameTable
from uncertainty_depth.report.repeats import RepeatDetector

EXAMPLE_FRAMES = 6
"""Frames plotted in the report, half of them those with the largest error."""
MIN_DISTANCE = 1 / 20
"""Fraction of the run that lies between two worst frames, at least."""

_STAMP = re.compile(r"(\d+)\.(\d{9})")
"""Seconds and nanoseconds, a frame's name in a bag."""
STATE_FILE = "state.npz"
FORMAT = 17
"""The number of the state's format."""


def frame_name(name: str) -> str:
    """Return a frame's name for people: a stamp in seconds and nanoseconds without the last."""
    stamp = _STAMP.fullmatch(name)
    return f"{stamp[1]}.{stamp[2][:3]}".rstrip("0").rstrip(".") + " s" if stamp else name


@dataclass(frozen=True, eq=False)
class Example:
    """A frame to show, and its metrics by dotted name."""

    frame: Frame
    metrics: Mapping[str, float]

    def __deepcopy__(self, _: dict[int, Any]) -> Example:
        """Return itself: a copy of an evaluation shares the arrays, which do not change."""
        return self


class ExampleSlot(NamedTuple):
    """An example with its place in the run and its error."""

    place: int
    error: float
    example: Example


class Examples:
    """A run's worst frames, and every k-th, k doubling, of which typical ones are selected."""

    def __init__(self, number: int) -> None:
        """Select `number` frames, half of them the worst."""
        self._number = number
        self._stride = 1
        self._offers = 0
        self._spread: list[ExampleSlot] = []
        self._worst: list[ExampleSlot] = []

    def offer(self, error: float, example: Example) -> None:
        """Store the frame if it is among the worst or every k-th."""
        index = self._offers
        self._offers += 1
        spread = bool(self._number) and index % self._stride == 0
        replaced = self._replaced_by(index, error)
        if not spread and replaced is None:
            return
        slot = ExampleSlot(index, error, example)
        if replaced is not None:
            remaining = [worst for worst in self._worst if worst not in replaced]
            self._worst = [*remaining, slot]
        if spread:
            self._spread.append(slot)
        if len(self._spread) > 2 * self._number:
            self._spread = self._spread[::2]
            self._stride *= 2

    def worst(self) -> list[Example]:
        """Return the frames with the largest errors, worst first."""
        worst_first = sorted(self._worst, key=lambda slot: -slot.error)
        return [slot.example for slot in worst_first]

    def typical(self) -> list[Example]:
        """Return frames with an error near the median, in the run's order."""
        if not self._spread:
            return []
        median = float(np.median([slot.error for slot in self._spread]))
        worst = {slot.place for slot in self._worst}
        others = [slot for slot in self._spread if slot.place not in worst]
        others.sort(key=lambda slot: abs(slot.error - median))
        typical = others[: self._number - len(self._worst)]
        typical.sort(key=lambda slot: slot.place)
        return [slot.example for slot in typical]

    def _replaced_by(self, index: int, error: float) -> list[ExampleSlot] | None:
        """Return the worst frames that this one replaces; None if it is not among the worst."""
        near = [
            worst for worst in self._worst if index - worst.place < self._offers * MIN_DISTANCE
        ]
        if near:
            return near if error > max(worst.error for worst in near) else None
        if len(self._worst) < self._number // 2:
            return []
        lowest = min(self._worst, key=lambda worst: worst.error, default=None)
        return [lowest] if lowest and error > lowest.error else None


class Scores:
    """Metrics on all frames so far, and how many frames were skipped, by reason.

    Args:
        config: which pixels are scored, and how; None for the defaults.
        sigma_kind: what sigma is, if the frames have any.
        table: the frames of an evaluation that is only read; None to add frames.
        **options: `EvaluationConfig`'s, in place of the config's, e.g. `max_depth=10`.

    Attributes:
        left_out: `known` pixels with ground truth in masked frames, and those `left_out`.
        sample: pixels from the frames that were added in this process; it is not saved.
        first_skips: the first frame's sentence for each reason, in this process.
    """

    @takes_options(EvaluationConfig)
    def __init__(
        self,
        config: EvaluationConfig | None = None,
        sigma_kind: SigmaKind = SigmaKind.METRES,
        table: FrameTable | None = None,
        **options: Any,
    ) -> None:
        self.config = changed(config or EvaluationConfig(), options)
        self._sigma_kind = sigma_kind
        self.metrics = OnlineMetrics(self.config)
        self.skipped: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.first_skips: dict[str, str] = {}
        self.evaluated = 0
        self.interrupted = False
        self.cameras = CameraRange()
        self.views = RepeatDetector()
        self.sample = PixelSample()
        self.table = table or FrameTable()
        self.examples = Examples(EXAMPLE_FRAMES)

    @property
    def sigma_kind(self) -> SigmaKind:
        """What sigma is; none if the frames so far have none."""
        return self._sigma_kind if self.metrics.has_sigma else SigmaKind.NONE

    def add(self, frame: Frame) -> dict[str, float] | Skipped:
        """Score one frame.

        Args:
            frame: with a predicted depth and ground truth, and with a sigma if the frames before
                have one; its image is for the report only.

        Returns:
            The metrics of this frame by dotted name; `Skipped` if no pixel could be scored, and
            the frame is counted as such.

        Raises:
            MessageError: the frame has no prediction or no ground truth.
            ValueError: it has a sigma, and an earlier one had none, or the reverse.
        """
        prediction = frame.need_depth()
        ground_truth_m = frame.need_ground_truth()
        pixels = ScoredPixels(
            prediction.depth_m,
            sigma_of(prediction),
            ground_truth_m,
            self.config.min_depth,
            self.config.max_depth,
        )
        changes = self.views.look(frame, pixels) if len(pixels) else None
        block = self.metrics.add(pixels, prediction.aligned_by, prediction.unfamiliarity, changes)
        if not len(pixels):
            text = (
                f"{frame.name}: no pixel has a prediction and a ground truth within the depth "
                "range"
            )
            return self.skip(Skipped(frame.stamp_ns, "no_valid_pixel", text))
        self.evaluated += 1
        self.cameras.add(frame.camera, prediction.depth_m.shape)
        row = self._row_of(block)
        self.views.add(row)
        if changes is None:  # else the frame says nothing new
            self.sample.add(pixels)
        name = FrameName(frame.name, frame.stamp_ns, continues=changes is not None)
        self.table.add(name, row, block)
        if frame.left_out is not None:
            known = int(np.isfinite(ground_truth_m).sum()) + frame.left_out.known
            self.left_out.update(known=known, left_out=frame.left_out.known)
        self.examples.offer(row["depth.abs_rel"], Example(frame, row))
        return row

    def _row_of(self, block: Block) -> dict[str, float]:
        sums = self.metrics.sums_of(block)
        return flat_values(sums, self.sigma_kind, of_frame=True)

    def add_arrays(
        self,
        depth: ArrayLike,
        sigma: ArrayLike | None,
        ground_truth: ArrayLike,
        image: ImageLike | None = None,
        name: str = "",
    ) -> dict[str, float] | Skipped:
        """Score one frame, by arrays or tensors.

        Args:
            depth: (H, W) metres, NaN for no prediction.
            sigma: (H, W) standard deviation, metres; None for a depth alone.
            ground_truth: (H, W) metres, NaN or 0 for unknown.
            image: for the report: (H, W, 3) uint8 RGB, a PIL image, or an image file, of the
                maps' size.
            name: the frame's name in the report; if empty, its number.

        Returns:
            As `add`.

        Raises:
            ValueError: an argument is not an array of numbers, the shapes differ, or this frame
                has a sigma and an earlier one had none, or the reverse.
        """
        depth_m, truth_m = (
            checks.numbers_of(word, values).astype(np.float32)
            for word, values in {"depth": depth, "ground_truth": ground_truth}.items()
        )
        prediction = DepthMap(depth_m)
        if sigma is not None:
            sigma_m = checks.numbers_of("sigma", sigma).astype(np.float32)
            prediction = DepthPrediction(depth_m, sigma_m)
        checks.warn_of_millimetres(depth_m, truth_m)
        rgb = None if image is None else as_rgb(image)
        if rgb is not None and (rgb.dtype != np.uint8 or rgb.shape != (*depth_m.shape, 3)):
            raise ValueError(
                f"image is {rgb.dtype} of shape {rgb.shape}; expected uint8 RGB of the maps' "
                f"size, {(*depth_m.shape, 3)}"
            )
        number = self.evaluated + self.skipped.total()
        frame = Frame(
            stamp_ns=number,
            name=name or f"{number:06d}",
            image=rgb,
            ground_truth_m=truth_m,
            prediction=prediction,
        )
        return self.add(frame)

    @property
    def repeated(self) -> float:
        """Fraction of the frames that repeat earlier ones, frames of a still camera left out."""
        return self.views.repeated / max(self.evaluated - self.views.still, 1)

    @property
    def left_out_fraction(self) -> float:
        """Fraction of the scored frames' ground truth that a mask left out; 0 without one."""
        return self.left_out["left_out"] / max(self.left_out["known"], 1)

    def resampled(self) -> Resampled:
        """Return the bootstrap replicates for all frames, at least one, for intervals."""
        return Resampled(self.metrics, self.repeated, places=self.views.places)

    def merge(self, other: Scores, source: str, with_frames: bool = True) -> None:
        """Append another evaluation's frames, without its examples, to this one's.

        `source` names them in the table of frames, whose rows are copied `with_frames`.

        Raises:
            ValueError: it was scored with other options.
        """
        self.metrics.merge(other.metrics)
        self.cameras.merge(other.cameras)
        self.views.merge(other.views)
        self.skipped += other.skipped
        self.left_out += other.left_out
        self.evaluated += other.evaluated
        self.first_skips = {**other.first_skips, **self.first_skips}
        self.interrupted = self.interrupted or other.interrupted
        for name, block in other.table.saved() if with_frames else ():
            own_name = replace(name, source=name.source or source)
            self.table.add(own_name, self._row_of(block), block)

    def skip(self, record: Skipped) -> Skipped:
        """Count a frame that could not be scored, and return it."""
        self.skipped[record.reason] += 1
        self.first_skips.setdefault(record.reason, record.message)
        return record

    def frames(self) -> dict[str, Any]:
        """Return `{read, evaluated, skipped: {reason: count}}`; read = evaluated + skipped."""
        return {
            "read": self.evaluated + self.skipped.total(),
            "evaluated": self.evaluated,
            "skipped": dict(self.skipped),
        }

    def values(self) -> dict[str, float]:
        """Return the metrics over all frames by dotted name; NaN for what has no value."""
        return flat_values(self.metrics.total(), self.sigma_kind)

    def summary(self) -> dict[str, Any]:
        """Return the metrics over all frames, as in `summary.json`."""
        return {"frames": self.frames(), **nested(self.values())}

    def save(self, folder: Path, details: Mapping[str, Any]) -> None:
        """Write state, details in JSON, and frames to a report's folder, for `read_report`."""
        self.table.saved().write(folder)
        header = {
            "format": FORMAT,
            **self.metrics.header(),
            "evaluated": self.evaluated,
            "skipped": dict(self.skipped),
            "left_out": dict(self.left_out),
            "cameras": asdict(self.cameras),
            "sigma_kind": self.sigma_kind.value,
            "repeated_frames": self.views.repeated,
            "still_frames": self.views.still,
            "places": self.views.places,
            "details": details,
        }
        arrays = {**self.metrics.arrays(), **self.views.arrays()}
        strict.write_arrays(folder / STATE_FILE, header, arrays)

    @classmethod
    def restored(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray], table: FrameTable
    ) -> Self:
        """Return the evaluation that `save` wrote, to be read.

        Raise as JSON's readers if damaged.
        """
        metrics = OnlineMetrics.from_arrays(header, arrays)
        evaluation = cls(metrics.config, SigmaKind(header["sigma_kind"]), table)
        evaluation.metrics = metrics
        evaluation.evaluated = int(header["evaluated"])
        evaluation.skipped = Counter({str(k): int(v) for k, v in header["skipped"].items()})
        evaluation.left_out = Counter(
            {str(k): int(v) for k, v in header.get("left_out", {}).items()}
        )
        evaluation.cameras = CameraRange.from_dict(header["cameras"])
        evaluation.views = RepeatDetector(
            int(header["still_frames"]),
            int(header["repeated_frames"]),
            int(header["places"]),
            arrays["frame_keys"].tolist(),
            arrays["frame_patterns"],
        )
        return evaluation
