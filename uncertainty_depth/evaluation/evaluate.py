"""Scoring predictions frame by frame. The evaluator node and the offline command fill the same `Evaluation`."""

from __future__ import annotations

import csv
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.records import DepthPrediction, Frame, Skipped

if TYPE_CHECKING:
    from uncertainty_depth.data.source import Source

Sink = Callable[[Frame, DepthPrediction], None]


class DepthPredictor(Protocol):
    """What turns an image into depth and sigma; `predictor.Predictor` is one."""

    def predict(self, image: NDArray[np.uint8], stamp_ns: int) -> DepthPrediction:
        """Depth and sigma, metres, at the size of `image`, (H, W, 3) uint8 RGB."""
        ...


@dataclass(frozen=True, eq=False)
class Example:
    """A frame kept to be shown: its arrays and its own scores. `image` is None where only maps are known."""

    name: str
    image: NDArray[np.uint8] | None
    ground_truth_m: NDArray[np.float32]
    prediction: DepthPrediction
    figures: Mapping[str, float]


class Examples:
    """At most `2 * wanted` frames spread evenly over a run of unknown length: every k-th, k doubling whenever it is full."""

    def __init__(self, wanted: int) -> None:
        self._wanted, self._stride, self._seen = wanted, 1, 0
        self._kept: list[Example] = []

    def offer(self, make: Callable[[], Example]) -> None:
        """Keep `make()` if its turn has come; it is not called otherwise."""
        if self._wanted and self._seen % self._stride == 0:
            self._kept.append(make())
        self._seen += 1
        if len(self._kept) > 2 * self._wanted:
            self._kept, self._stride = self._kept[::2], self._stride * 2

    def chosen(self) -> list[Example]:
        """The `wanted` frames, or fewer, evenly spread from first to last."""
        picks = (
            np.linspace(0, len(self._kept) - 1, min(self._wanted, len(self._kept)))
            .round()
            .astype(int)
        )
        return [self._kept[pick] for pick in picks]


class FrameTable:
    """One row of exact figures per frame, kept in a temporary file so that memory does not grow with the frames."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile("w+", newline="", encoding="utf-8")  # noqa: SIM115 - lives as long as the table
        self._writer: csv.DictWriter | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; the first one fixes the columns."""
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(row))
            self._writer.writeheader()
        self._writer.writerow(row)

    def text(self) -> Iterable[str]:
        """The table as CSV, line by line."""
        self._file.flush()
        self._file.seek(0)
        yield from self._file
        self._file.seek(0, 2)


def flatten(figures: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """{"ause": {"rmse": 1}} -> {"ause.rmse": 1}: nested figures as one row of a table."""
    flat: dict[str, float] = {}
    for key, value in figures.items():
        flat |= (
            flatten(value, f"{prefix}{key}.")
            if isinstance(value, Mapping)
            else {prefix + key: value}
        )
    return flat


class Evaluation:
    """Scores of all frames seen so far, and the count of every frame that could not be scored."""

    def __init__(self, config: EvaluationConfig | None = None) -> None:
        self.config = config or EvaluationConfig()
        self.metrics = OnlineMetrics(self.config)
        self.skipped: Counter[str] = Counter()
        self.evaluated = 0
        self.interrupted = False
        self.table = FrameTable()
        self.examples = Examples(self.config.pictures)

    def add(
        self,
        name: str,
        stamp_ns: int,
        prediction: DepthPrediction,
        ground_truth_m: NDArray[np.float32],
        image: NDArray[np.uint8] | None = None,
    ) -> dict[str, float] | None:
        """Score one frame.

        Args:
            name: what the frame is called in the table.
            stamp_ns: its time, nanoseconds.
            prediction: maps of shape (H, W), metres.
            ground_truth_m: (H, W), metres, NaN where unknown.
            image: (H, W, 3) uint8 RGB, only to be shown.

        Returns:
            The frame's own figures by dotted name, or None where no pixel could be scored (counted as skipped).
        """
        figures = self.metrics.update(prediction.depth_m, prediction.sigma_m, ground_truth_m)
        if figures is None:
            self.skip(
                Skipped(
                    stamp_ns,
                    "no_valid_pixel",
                    f"{name}: no pixel has a prediction and a ground truth within the depth range",
                )
            )
            return None
        self.evaluated += 1
        row = flatten(figures)
        self.table.add({"frame": name, "stamp_ns": stamp_ns} | row)
        self.examples.offer(lambda: Example(name, image, ground_truth_m, prediction, row))
        return row

    def skip(self, record: Skipped) -> None:
        """Count a frame that cannot be scored."""
        self.skipped[record.reason] += 1

    def frames(self) -> dict[str, Any]:
        """`{read, evaluated, skipped: {reason: count}}`; read = evaluated + all skipped."""
        return {
            "read": self.evaluated + self.skipped.total(),
            "evaluated": self.evaluated,
            "skipped": dict(self.skipped),
        }

    def summary(self) -> dict[str, Any]:
        """The figures over everything seen, as `summary.json` holds them."""
        return {"frames": self.frames(), **self.metrics.compute()}


def run(
    source: Source,
    predictor: DepthPredictor,
    config: EvaluationConfig,
    sinks: Iterable[Sink] = (),
    progress: bool = True,
) -> Evaluation:
    """Score every frame of a source once. `sinks` see each frame with its prediction, e.g. to write it to a bag.

    Interrupted, it returns what has been scored so far, with `interrupted` set.
    """
    evaluation = Evaluation(config)
    bar = tqdm(source, total=len(source), unit="frame", desc=source.name, disable=not progress)
    try:
        for record in bar:
            figures = _score(record, predictor, evaluation, sinks)
            if figures is not None:
                bar.set_postfix_str(f"abs_rel {figures['depth.abs_rel']:.3f}", refresh=False)
    except KeyboardInterrupt:
        evaluation.interrupted = True
    return evaluation


def _score(
    record: Frame | Skipped,
    predictor: DepthPredictor,
    evaluation: Evaluation,
    sinks: Iterable[Sink],
) -> dict[str, float] | None:
    if isinstance(record, Skipped):
        evaluation.skip(record)
        return None
    prediction = predictor.predict(record.image, record.stamp_ns)
    figures = evaluation.add(
        record.name, record.stamp_ns, prediction, record.ground_truth_m, record.image
    )
    for sink in sinks:
        sink(record, prediction)
    return figures
