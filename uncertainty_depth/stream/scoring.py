# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score a job's frames."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from uncertainty_depth.core.errors import ConfigError, warn
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.stream import Stream

if TYPE_CHECKING:
    from uncertainty_depth.report.evaluation import Evaluation
    from uncertainty_depth.report.report import Context


def score(
    job: Job, command: str = "", write_bag: Path | None = None
) -> tuple[Evaluation, Context]:
    """Score a checked job with one source; return its evaluation and what a report says of it.

    The command is what made it, for the report; predictions go into the bag, if there is one.

    Raises `SourceError`, `ModelError` or `ConfigError` if source, model or an option do not fit.
    """
    from uncertainty_depth.report.evaluation import Sink, evaluate
    from uncertainty_depth.report.report import Context

    stream = Stream.open(job)
    (check,) = stream.checks
    predicting = stream.predicting
    sigma_kind = job.sigma_kind
    if write_bag and sigma_kind is not SigmaKind.METRES:
        raise ConfigError(
            f"write_bag is {str(write_bag)!r}, which is to hold sigma in metres, but "
            f"confidence_type {job.meaning.confidence_type!r} has no unit; expected "
            "--sigma-map map.json of `uncertainty-depth calibrate`, or no --write-bag"
        )
    known = [*map(str, stream.overlaps)]
    warn(known)
    with ExitStack() as stack:
        sinks: list[Sink] = []
        if write_bag:
            from uncertainty_depth.stream.prediction_bag import prediction_sink

            sinks.append(stack.enter_context(prediction_sink(write_bag)))
        evaluation = evaluate(stream, job.evaluation, sinks, sigma_kind=sigma_kind)
    notes = [*stream.notes, *predicting.doubts(evaluation.metrics.total())]
    warn(notes)
    notes += [f"first {reason}: {text}" for reason, text in evaluation.first_skips.items()]
    if evaluation.interrupted:
        warn(["interrupted: reporting on the frames scored so far; Ctrl-C again aborts"])
        count = len(stream)
        notes.append(f"interrupted: only the first frames of about {count} were read")
    options = {"max_frames": job.max_frames} if job.max_frames else {}
    context = Context(
        source=job.sources[0],
        model=predicting.describe(),
        notes=(*known, *notes),
        options={
            **options,
            **to_mapping(job.reading),
            **to_mapping(job.mask),
            **predicting.options(),
        },
        trained_on=stream.trained_on,
        calibrated_on=stream.calibrated_on,
        geometry=check.summary(),
        command=command,
    )
    return evaluation, context


def score_and_write(job: Job, folder: Path, command: str) -> None:
    """Score a job in a worker, by one thread, and write its report, unless it is interrupted."""
    from uncertainty_depth.core.process import deferred_interrupt
    from uncertainty_depth.report import report

    if job.model and find_spec("torch"):  # which a class of one's own may do without
        import torch

        torch.set_num_threads(1)
    with deferred_interrupt():
        evaluation, context = score(job, command)
        if evaluation.interrupted:
            raise KeyboardInterrupt
        report.write(evaluation, folder, context)
