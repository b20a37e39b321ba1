# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score frames that have predictions, without ROS and whatever their source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from typing import Any

from tqdm import tqdm

from uncertainty_depth.blas import single_threaded_blas
from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.frames.predicted import Behind
from uncertainty_depth.frames.source import Source
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.options import takes_options
from uncertainty_depth.records import Frame, Skipped
from uncertainty_depth.report.evaluation import Evaluation

Sink = Callable[[Frame], None]


@takes_options(EvaluationConfig)
def evaluate(
    frames: Source,
    config: EvaluationConfig = EvaluationConfig(),  # noqa: B008  frozen
    sinks: Iterable[Sink] = (),
    progress: bool = True,
    without_size: str = "",
    **options: Any,
) -> Evaluation:
    """Score every frame once, in order, and return the evaluation.

    Frames are scored and handed to the sinks on a thread of their own, while the caller's predicts
    the next.

    The first Ctrl-C finishes the frame that is being predicted, or else is predicted next, and
    returns the evaluation up to it, with `interrupted` set; a second one raises
    `KeyboardInterrupt`.

    Args:
        frames: with predictions and ground truth, see `frames.predicted`.
        config: which pixels are scored, and how.
        sinks: called with each frame, e.g. to write it to a bag.
        progress: show a progress bar.
        without_size: why the size of sigma is not judged; empty if it is in metres.
        **options: of `EvaluationConfig`, in place of the config's, e.g. `max_depth=10`.

    Raises:
        SourceError: the source cannot be read.
    """
    evaluation = Evaluation(config, without_size=without_size, **options)
    records = (record for record in frames)  # which can be closed whatever the frames are
    bar = tqdm(records, total=len(frames), unit="frame", desc=frames.name, disable=not progress)
    scoring: Behind[float | None] = Behind()
    errors: list[float] = []
    with (
        single_threaded_blas(),
        deferred_interrupt() as interrupt,
        closing(records),
        scoring,
    ):
        for record in bar:
            scoring.add(partial(_score, record, evaluation, sinks, errors))
            if scoring.latest is not None:
                bar.set_postfix_str(f"mean abs_rel {scoring.latest:.3f}", refresh=False)
            if interrupt.requested:
                evaluation.interrupted = True
                break
    return evaluation


def _score(
    record: Frame | Skipped,
    evaluation: Evaluation,
    sinks: Iterable[Sink],
    errors: list[float],
) -> float | None:
    """Score a frame, and return the mean abs_rel of the frames so far; None if not scored."""
    if isinstance(record, Skipped):
        evaluation.skip(record)
        return None
    metrics = evaluation.add(record)
    for sink in sinks:
        sink(record)
    if metrics is None:
        return None
    errors.append(metrics["depth.abs_rel"])
    return sum(errors) / len(errors)
