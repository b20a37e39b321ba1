# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score frames: the evaluation that the evaluator node and the commands add frames to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from tqdm import tqdm

from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.options import takes_options
from uncertainty_depth.core.process import deferred_interrupt, single_threaded_blas
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.report.scores import Scores
from uncertainty_depth.report.verdict import Verdict, judge

Sink = Callable[[Frame], None]


class Evaluation(Scores):
    """The `Scores` for frames, with their verdict and report; it takes the same arguments.

    Examples:
        >>> import numpy as np
        >>> evaluation = Evaluation(max_depth=10)
        >>> truth = np.linspace(1, 8, 48 * 64).reshape(48, 64)
        >>> row = evaluation.add_arrays(depth=truth + 0.1, sigma=truth / 20, ground_truth=truth)
        >>> round(row["depth.mae"], 3)
        0.1
        >>> evaluation.verdict().color
        'red'
        >>> evaluation.page(name="my network").startswith("<!doctype html>")
        True
    """

    def verdict(self, distribution: str = "gaussian") -> Verdict:
        """Return the verdict on all frames so far; as text it is what a terminal shows.

        Nothing is known of a training: they are judged as a camera's or as recorded depth is. The
        error's distribution, "gaussian" or "laplace", gives sigma's intervals.
        """
        return judge(self, {"head": distribution}, trained_on=None)

    def page(self, name: str = "predictions", distribution: str = "gaussian") -> str:
        """Return the report on `name` as one self-contained HTML page; see `verdict`."""
        from uncertainty_depth.report import report

        return report.page(self, report.Context(name, {"head": distribution}))

    def write(
        self, folder: Path | str, name: str = "predictions", distribution: str = "gaussian"
    ) -> Path:
        """Write the report, as the command `evaluate` does, and return its page's path.

        A missing folder is created; a report in it is replaced.
        """
        from uncertainty_depth.report import report

        report.check_output(Path(folder), overwrite=True)
        return report.write(self, Path(folder), report.Context(name, {"head": distribution}))


@takes_options(EvaluationConfig)
def evaluate(
    frames: Source,
    config: EvaluationConfig = EvaluationConfig(),  # noqa: B008  frozen
    sinks: Iterable[Sink] = (),
    progress: bool = True,
    sigma_kind: SigmaKind = SigmaKind.METRES,
    **options: Any,
) -> Evaluation:
    """Score every frame once, in order, and return the evaluation.

    A separate thread scores frames and passes them to the sinks, while the caller's thread
    predicts the next frame.

    The first Ctrl-C finishes the current (or else the next) prediction and returns the evaluation
    up to that frame, with `interrupted` set. A second one raises `KeyboardInterrupt`.

    Args:
        frames: with predictions and ground truth, see `stream.stream.predicted`.
        config: which pixels are scored, and how.
        sinks: called with each frame, e.g. to write it to a bag.
        progress: show a progress bar.
        sigma_kind: what sigma is.
        **options: `EvaluationConfig`'s, in place of the config's, e.g. `max_depth=10`.
    """
    evaluation = Evaluation(config, sigma_kind, **options)
    records = (record for record in frames)  # which can be closed whatever the frames are
    bar = tqdm(records, total=len(frames), unit="frame", desc=frames.name, disable=not progress)
    scored: Future[None] | None = None
    mean_error = 0.0

    def score(record: Frame | Skipped) -> None:
        nonlocal mean_error
        if isinstance(record, Skipped):
            evaluation.skip(record)
            return
        metrics = evaluation.add(record)
        for sink in sinks:
            sink(record)
        if not isinstance(metrics, Skipped):
            mean_error += (metrics["depth.abs_rel"] - mean_error) / evaluation.evaluated

    with (
        single_threaded_blas(),
        deferred_interrupt() as interrupt,
        closing(records),
        ThreadPoolExecutor(1, "scoring") as scoring,
    ):
        for record in bar:
            if scored is not None:  # one frame late at most: memory stays bounded
                scored.result()
            if evaluation.evaluated:
                bar.set_postfix_str(f"mean abs_rel {mean_error:.3f}", refresh=False)
            scored = scoring.submit(score, record)
            if interrupt.requested:
                evaluation.interrupted = True
                break
        if scored is not None:
            scored.result()
    return evaluation
