# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `evaluate` command: score a model, or predictions that were recorded, and report on it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from uncertainty_depth.calibration.depth_scale import DepthScaleConfig
from uncertainty_depth.cli.requirements import check_requirements
from uncertainty_depth.completion.config import HeldOutConfig
from uncertainty_depth.config import (
    EvaluationConfig,
    PredictorConfig,
    RequirementConfig,
    SourceConfig,
)
from uncertainty_depth.errors import SourceError
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.options import from_arguments
from uncertainty_depth.predictions.config import PredictionConfig, PredictionTopics

if TYPE_CHECKING:
    from uncertainty_depth.report.evaluation import Evaluation
    from uncertainty_depth.scoring import ScoringJob


def evaluate(arguments: argparse.Namespace) -> None:
    """Score a model, or recorded predictions, on every frame of sources, and write a report."""
    from uncertainty_depth.cli.fleet import evaluate_fleet
    from uncertainty_depth.report import report
    from uncertainty_depth.report.requirements import requirements_of

    report.check_folder(arguments.output)
    requirements = requirements_of(from_arguments(RequirementConfig, arguments))
    jobs = [job_of(arguments, source) for source in arguments.source]
    if len(jobs) > 1 or arguments.ray:
        evaluate_fleet(jobs, arguments, requirements)
        return
    (job,) = jobs
    job.check(arguments.write_bag)
    if not arguments.overwrite:
        report.refuse_existing(arguments.output)
    _evaluate_one(job, arguments, requirements)


def job_of(arguments: argparse.Namespace, source: str) -> ScoringJob:
    """Return the job of one source."""
    from uncertainty_depth.scoring import ScoringJob

    return ScoringJob(
        source,
        str(arguments.model or ""),
        tuple(getattr(arguments, "corrupt", ())),
        getattr(arguments, "max_frames", 0),
        from_arguments(SourceConfig, arguments),
        from_arguments(EvaluationConfig, arguments),
        from_arguments(PredictorConfig, arguments),
        from_arguments(HeldOutConfig, arguments),
        from_arguments(PredictionTopics, arguments),
        from_arguments(PredictionConfig, arguments),
        from_arguments(DepthScaleConfig, arguments),
    )


def _evaluate_one(job: ScoringJob, arguments: argparse.Namespace, requirements: tuple) -> None:
    from uncertainty_depth.cli.scored_report import write_and_print
    from uncertainty_depth.report import summary
    from uncertainty_depth.scoring import score

    with deferred_interrupt():  # also while the report is written
        evaluation, context = score(job, arguments.command_line, arguments.write_bag)
        context = replace(context, requirements=requirements)
        print(f"scored: {context.model['method']}, {summary.scored_sigma(context.model)}")
        scores = write_and_print(evaluation, arguments.output, context)
    check_requirements(scores, arguments.junit)
    if evaluation.interrupted:
        raise KeyboardInterrupt
    if not evaluation.evaluated:
        raise SourceError(_nothing_scored(job.source, evaluation))


def _nothing_scored(source: str, evaluation: Evaluation) -> str:
    """Return why no frame could be scored: the most frequent reason's first sentence."""
    sentence = f"no frame of {source} could be scored"
    if not evaluation.skipped:
        return f"{sentence}: it has none"
    reason, _ = evaluation.skipped.most_common(1)[0]
    return f"{sentence}: {evaluation.first_skips[reason]}"
