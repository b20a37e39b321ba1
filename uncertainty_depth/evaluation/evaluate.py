# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score a predictor on every frame of a source, without ROS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.blas import single_threaded_blas
from uncertainty_depth.config import EvaluationConfig, SourceConfig
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.overlap import AtOnce, Behind, read_ahead
from uncertainty_depth.frames.source import Source, open_source
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.records import DepthPrediction, Frame, Skipped

Sink = Callable[[Frame], None]
Row = dict[str, float]


class DepthPredictor(Protocol):
    """Protocol of a predictor of depth and sigma, such as `inference.predictor.Predictor`."""

    def predict(
        self, image: NDArray[np.uint8], stamp_ns: int, camera: Camera | None = None
    ) -> DepthPrediction:
        """Return depth and sigma, metres, at the size of `image`, (H, W, 3) uint8 RGB.

        The camera is the image's; None where it is not known.
        """
        ...


def predict_frame(predictor: DepthPredictor, frame: Frame) -> DepthPrediction:
    """Return the prediction of a frame, from its sparse depth too if it has any."""
    image = frame.need_image()
    if frame.sparse_m is None:
        return predictor.predict(image, frame.stamp_ns, frame.camera)
    completing: Any = predictor  # of a model with sparse input, which alone has such frames
    prediction: DepthPrediction = completing.predict(
        image, frame.stamp_ns, frame.camera, sparse_m=frame.sparse_m
    )
    return prediction


def evaluate(
    source: Source | str | Path,
    predictor: DepthPredictor,
    config: EvaluationConfig = EvaluationConfig(),  # noqa: B008  frozen
    sinks: Iterable[Sink] = (),
    progress: bool = True,
    overlapped: bool = True,
) -> Evaluation:
    """Score every frame of a source once, in its order, and return the evaluation.

    Frames are read and projected on one thread, predicted on the caller's, and scored and handed
    to the sinks on a third.

    The first Ctrl-C finishes the frame that is being predicted, or else is predicted next, and
    returns the evaluation up to it, with `interrupted` set; a second one raises
    `KeyboardInterrupt`.

    Args:
        source: a source, or its notation: a bag, `nyu:DIR`, `kitti:DIR`, `synthetic:...`.
        predictor: predicts depth and sigma from an image.
        config: which pixels are scored, and how.
        sinks: called with each frame, which has its prediction, e.g. to write it to a bag.
        progress: show a progress bar.
        overlapped: whether the threads are used; the results are the same without.

    Raises:
        SourceError: the source cannot be opened or read.
    """
    if isinstance(source, (str, Path)):
        source = open_source(str(source), SourceConfig())
    evaluation = Evaluation(config)
    records = read_ahead(source) if overlapped else (record for record in source)
    bar = tqdm(records, total=len(source), unit="frame", desc=source.name, disable=not progress)
    scoring: Behind[Row | None] | AtOnce[Row | None] = Behind() if overlapped else AtOnce()
    with (
        single_threaded_blas(),
        deferred_interrupt() as interrupt,
        closing(records),
        scoring,
    ):
        for record in bar:
            scoring.add(_scoring_step(record, predictor, evaluation, sinks))
            if scoring.latest is not None:
                abs_rel = scoring.latest["depth.abs_rel"]
                bar.set_postfix_str(f"abs_rel {abs_rel:.3f}", refresh=False)
            if interrupt.requested:
                evaluation.interrupted = True
                break
    return evaluation


def _scoring_step(
    record: Frame | Skipped,
    predictor: DepthPredictor,
    evaluation: Evaluation,
    sinks: Iterable[Sink],
) -> Callable[[], Row | None]:
    """Predict a record, and return the step that scores it."""
    if isinstance(record, Skipped):
        return partial(evaluation.skip, record)
    frame = replace(record, prediction=predict_frame(predictor, record))
    return partial(_score, frame, evaluation, sinks)


def _score(frame: Frame, evaluation: Evaluation, sinks: Iterable[Sink]) -> Row | None:
    metrics = evaluation.add(frame)
    for sink in sinks:
        sink(frame)
    return metrics
