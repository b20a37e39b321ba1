# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `evaluate` command: score a model, or predictions that were recorded, and report on it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from uncertainty_depth.cli.requirements import check_requirements
from uncertainty_depth.config import RequirementConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.model_location import is_hugging_face
from uncertainty_depth.options import from_arguments, to_mapping
from uncertainty_depth.predictions.config import PredictionConfig, PredictionTopics

if TYPE_CHECKING:
    from uncertainty_depth.evaluation.evaluation import Evaluation
    from uncertainty_depth.evaluation.report import Context


def evaluate(arguments: argparse.Namespace) -> None:
    """Score a model, or recorded predictions, on every frame of sources, and write a report."""
    from uncertainty_depth.cli.fleet import evaluate_fleet
    from uncertainty_depth.cli.scored_report import write_and_print
    from uncertainty_depth.evaluation import report, summary
    from uncertainty_depth.evaluation.requirements import requirements_of

    report.check_folder(arguments.output)
    if len(arguments.source) > 1 or arguments.ray:
        evaluate_fleet(arguments)
        return
    (arguments.source,) = arguments.source
    requirements = requirements_of(from_arguments(RequirementConfig, arguments))
    check_model(arguments)
    if not arguments.overwrite:
        report.refuse_existing(arguments.output)
    with deferred_interrupt():  # also while the report is written
        evaluation, context = score(arguments)
        context = replace(context, requirements=requirements)
        print(f"scored: {context.model['method']}, {summary.scored_sigma(context.model)}")
        scores = write_and_print(evaluation, arguments.output, context)
    check_requirements(scores, arguments.junit)
    if evaluation.interrupted:
        raise KeyboardInterrupt
    if not evaluation.evaluated:
        raise SourceError(_nothing_scored(arguments.source, evaluation))


def _nothing_scored(source: str, evaluation: Evaluation) -> str:
    """Return why no frame could be scored: the most frequent reason's first sentence."""
    sentence = f"no frame of {source} could be scored"
    if not evaluation.skipped:
        return f"{sentence}: it has none"
    reason, _ = evaluation.skipped.most_common(1)[0]
    return f"{sentence}: {evaluation.first_skips[reason]}"


def score(arguments: argparse.Namespace) -> tuple[Evaluation, Context]:
    """Return the evaluation of a source, and where its metrics come from."""
    from uncertainty_depth.cli.evaluate_model import score_model
    from uncertainty_depth.cli.evaluate_predictions import score_predictions

    return score_predictions(arguments) if _is_recorded(arguments) else score_model(arguments)


def _is_recorded(arguments: argparse.Namespace) -> bool:
    from uncertainty_depth.predictions.open import are_predictions

    return are_predictions(arguments.source, from_arguments(PredictionTopics, arguments))


def check_model(arguments: argparse.Namespace) -> None:
    """Raise `ConfigError` unless there is a model, or predictions that were recorded."""
    from uncertainty_depth.cli.evaluate_predictions import check_recorded

    if _is_recorded(arguments):
        check_recorded(arguments)
    elif not arguments.model:
        raise ConfigError(
            "--model is missing; expected --model (demo, varied: shipped ones), or "
            "--depth-topic and --confidence-topic of what is recorded in the bag"
        )
    else:
        _refuse_options_of_recorded(arguments)


def _refuse_options_of_recorded(arguments: argparse.Namespace) -> None:
    """Raise `ConfigError` for options that only recorded predictions have."""
    defaults = to_mapping(PredictionConfig())
    of_relative_networks = ("align", "align_per") if is_hugging_face(arguments.model) else ()
    for name, value in to_mapping(from_arguments(PredictionConfig, arguments)).items():
        if value != defaults[name] and name not in of_relative_networks:
            raise ConfigError(
                f"{name} is {value!r}, an option of recorded predictions, but --model is "
                f"{arguments.model}; expected --depth-topic instead of --model, or no {name}"
            )
