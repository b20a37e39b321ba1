# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score recorded predictions on every frame of a source: no model, no ROS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from tqdm import tqdm

from uncertainty_depth.blas import single_threaded_blas
from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import MessageError, SourceError
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.overlap import read_ahead
from uncertainty_depth.frames.source import Source
from uncertainty_depth.geometry.check import GeometryCheck
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.predictions.alignment import MIN_POINTS, Alignment
from uncertainty_depth.predictions.config import SOURCE
from uncertainty_depth.predictions.interpreter import Interpreter, Points
from uncertainty_depth.predictions.relative import describe_alignment
from uncertainty_depth.records import Frame, Skipped

Sink = Callable[[Frame], None]
MAX_POINTS_PER_FRAME = 2000
"""Of a frame, evenly spaced, for the alignment of a whole source."""


class PredictionSource(Protocol):
    """Recorded predictions in order; iterating starts from the first frame each time.

    Attributes:
        name: the source's notation.
        predictor: what the predictions are called in a report.
        check: has seen the ground truth of every frame of the last iteration.
    """

    name: str
    predictor: str
    check: GeometryCheck

    @property
    def notes(self) -> list[str]:
        """Sentences about what was lost or assumed, complete after an iteration."""

    def __len__(self) -> int:
        """Return the expected number of predictions: exact where the source knows it."""

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Yield each prediction exactly once, as a frame or as the reason for its loss."""


def evaluate(
    source: Source,
    interpreter: Interpreter,
    config: EvaluationConfig = EvaluationConfig(),  # noqa: B008  frozen
    progress: bool = True,
    sinks: Sequence[Sink] = (),
) -> Evaluation:
    """Score every prediction of a source once, and return the evaluation.

    The first Ctrl-C finishes the current frame and returns the evaluation so far with
    `interrupted` set; a second one raises `KeyboardInterrupt`.

    Args:
        source: of frames with `recorded` maps.
        interpreter: what they mean, and how they are aligned.
        config: which pixels are scored, and how.
        progress: show a progress bar.
        sinks: called with each frame, which has its prediction in metres.

    Raises:
        SourceError: the source cannot be read, or not be aligned as a whole.
    """
    if interpreter.config.align_per == SOURCE and interpreter.config.align != "none":
        with single_threaded_blas():
            interpreter.alignment = fit_to_source(source, interpreter)
    evaluation = Evaluation(config, without_size=interpreter.without_size)
    records = read_ahead(source)
    bar = tqdm(records, total=len(source), unit="frame", desc=source.name, disable=not progress)
    with single_threaded_blas(), deferred_interrupt() as interrupt, closing(records):
        for record in bar:
            scored = evaluate_record(record, interpreter, evaluation)
            if scored is not None:
                for sink in sinks:
                    sink(scored.frame)
            if interrupt.requested:
                evaluation.interrupted = True
                break
    return evaluation


class Scored(NamedTuple):
    """A frame with its prediction, and its metrics by dotted name; none without a pixel."""

    frame: Frame
    metrics: dict[str, float]


def evaluate_record(
    record: Frame | Skipped, interpreter: Interpreter, evaluation: Evaluation
) -> Scored | None:
    """Score one prediction; return None where the reason is counted why it cannot be read."""
    if isinstance(record, Skipped):
        evaluation.skip(record)
        return None
    try:
        frame = replace(record, prediction=interpreter.predict(record))
    except MessageError as error:
        sentence = f"{record.name}: {error}"
        evaluation.skip(Skipped(record.stamp_ns, error.reason, sentence))
        return None
    metrics = evaluation.add(frame)
    return Scored(frame, metrics or {})


def fit_to_source(source: Source, interpreter: Interpreter) -> Alignment:
    """Return the alignment of all frames together.

    Of each frame at most `MAX_POINTS_PER_FRAME` points count.

    Raises:
        SourceError: too few points, or no positive scale fits.
    """
    parts: list[Points] = []
    for record in source:
        if isinstance(record, Frame) and record.recorded is not None:
            truth_m = record.need_ground_truth()
            points = np.stack(interpreter.points(record.recorded.depth, truth_m))
            step = max(-(-points.shape[1] // MAX_POINTS_PER_FRAME), 1)
            parts.append(points[:, ::step])
    prediction, truth = np.concatenate(parts, axis=1) if parts else np.empty((2, 0))
    if len(prediction) < MIN_POINTS:
        raise SourceError(
            f"{source.name} cannot be aligned: in all its frames together {len(prediction)} "
            "pixels have a prediction and a ground truth within the depth range; expected at "
            f"least {MIN_POINTS}: another --depth-topic, or other --min-depth and --max-depth"
        )
    try:
        return interpreter.fit(prediction, truth)
    except MessageError as error:
        raise SourceError(f"{source.name} cannot be aligned: {error}") from error


def fitted_to(interpreter: Interpreter) -> Mapping[str, Any]:
    """Return the record of what the map to sigma was fitted to; empty without a map."""
    saved = interpreter.sigma_map
    return {} if saved is None else saved.provenance.get("fitted_to", {})


def describe(source: PredictionSource, interpreter: Interpreter) -> dict[str, object]:
    """Return the predictions as plain values for a report, in the place of a model."""
    config = interpreter.config
    fitted: dict[str, object] = {}
    if interpreter.sigma_map is not None:
        saved = interpreter.sigma_map
        fitted = {
            "calibration": saved.confidence_map.name,
            "head": saved.distribution,
            "fitted_to": fitted_to(interpreter),
        }
    return {
        "model": source.predictor,
        "method": "recorded",
        **fitted,
        "confidence_type": config.confidence_type or "sigma",
        **describe_alignment(config),
    }
