"""The offline run: every frame of a source is predicted and scored once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.config import EvaluationConfig, SourceConfig
from uncertainty_depth.data.source import Source, open_source
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.records import DepthPrediction, Frame, Skipped

Sink = Callable[[Frame, DepthPrediction], None]


class DepthPredictor(Protocol):
    """What turns an image into depth and sigma; `predictor.Predictor` is one."""

    def predict(self, image: NDArray[np.uint8], stamp_ns: int) -> DepthPrediction:
        """Depth and sigma, metres, at the size of `image`, (H, W, 3) uint8 RGB."""
        ...


def evaluate(
    source: Source | str | Path,
    predictor: DepthPredictor,
    config: EvaluationConfig = EvaluationConfig(),  # noqa: B008  frozen
    sinks: Iterable[Sink] = (),
    progress: bool = True,
) -> Evaluation:
    """Score every frame of a source once, and return the evaluation.

    The first Ctrl-C lets the frame at hand be finished; the evaluation so far is returned with
    `interrupted` set. A second one raises `KeyboardInterrupt`.

    Args:
        source: frames, or the notation of a source: a bag, `nyu:DIR`, `kitti:DIR`, `synthetic:...`.
        predictor: makes depth and sigma of an image.
        config: what is scored, and how.
        sinks: called with each frame and its prediction, e.g. to write them to a bag.
        progress: show a progress bar.

    Raises:
        SourceError: where the source cannot be opened or read.
    """
    if isinstance(source, (str, Path)):
        source = open_source(str(source), SourceConfig())
    evaluation = Evaluation(config)
    bar = tqdm(source, total=len(source), unit="frame", desc=source.name, disable=not progress)
    with deferred_interrupt() as interrupt:
        for record in bar:
            figures = _score(record, predictor, evaluation, sinks)
            if figures is not None:
                bar.set_postfix_str(f"abs_rel {figures['depth.abs_rel']:.3f}", refresh=False)
            if interrupt.requested:
                evaluation.interrupted = True
                break
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
        record.name,
        record.stamp_ns,
        prediction,
        record.ground_truth_m,
        record.image,
        record.camera,
    )
    for sink in sinks:
        sink(record, prediction)
    return figures
