# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`evaluate` without a model: score what is recorded, of any camera or network."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING

from uncertainty_depth.cli.notes import end_notes, warn
from uncertainty_depth.config import EvaluationConfig, SourceConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.options import from_arguments, to_mapping
from uncertainty_depth.predictions.config import PredictionConfig, PredictionTopics

if TYPE_CHECKING:
    from uncertainty_depth.evaluation.evaluation import Evaluation
    from uncertainty_depth.evaluation.report import Context
    from uncertainty_depth.predictions.evaluate import PredictionSource
    from uncertainty_depth.predictions.interpreter import Interpreter


def check_recorded(arguments: argparse.Namespace) -> None:
    """Raise `ConfigError` for options that only models have, or whose recording is missing."""
    if arguments.model:
        raise ConfigError(
            f"model is {str(arguments.model)!r}, but {arguments.source} has its own predictions; "
            "expected --model, or a depth topic or predictions:DIR, not both"
        )
    if arguments.corrupt:
        raise ConfigError(
            f"corrupt is {', '.join(arguments.corrupt)}; expected none for recorded predictions, "
            "which are of the images as they were"
        )
    if arguments.write_bag and not from_arguments(PredictionTopics, arguments).confidence_topic:
        raise ConfigError(
            f"write_bag is {str(arguments.write_bag)!r}, which is to hold depth and sigma at the "
            f"times of a bag, but {arguments.source} is scored without a confidence topic; "
            "expected a bag with --depth-topic and --confidence-topic, or no --write-bag"
        )


def score_predictions(arguments: argparse.Namespace) -> tuple[Evaluation, Context]:
    """Return the evaluation of recorded predictions, and where its metrics come from."""
    from uncertainty_depth.evaluation.report import Context
    from uncertainty_depth.frames.source import calibrated_on
    from uncertainty_depth.predictions.evaluate import describe, fitted_to
    from uncertainty_depth.predictions.open import open_predictions

    options = from_arguments(SourceConfig, arguments)
    topics = from_arguments(PredictionTopics, arguments)
    interpreter = _interpreter(arguments)
    meaning = interpreter.config
    source = open_predictions(arguments.source, options, topics, meaning)
    calibrated = calibrated_on(fitted_to(interpreter), [arguments.source])
    evaluation = _evaluated(arguments, source, interpreter)
    notes = [*calibrated, *interpreter.notes(), *source.notes]
    warn(notes)
    context = Context(
        source=arguments.source,
        model=describe(source, interpreter),
        notes=(*notes, *end_notes(evaluation, len(source))),
        options={**to_mapping(options), **to_mapping(topics), **to_mapping(meaning)},
        calibrated_on=tuple(calibrated),
        geometry=source.check.summary(),
        command=arguments.command_line,
    )
    return evaluation, context


def _interpreter(arguments: argparse.Namespace) -> Interpreter:
    """Return what gives the maps their meaning; refuses a bag for sigma that has no unit."""
    from uncertainty_depth.predictions.interpreter import Interpreter

    limits = from_arguments(EvaluationConfig, arguments)
    interpreter = Interpreter(from_arguments(PredictionConfig, arguments), limits)
    if arguments.write_bag and interpreter.without_size:
        raise ConfigError(
            f"write_bag is {str(arguments.write_bag)!r}, which is to hold sigma in metres, but "
            f"confidence_type {interpreter.config.confidence_type!r} has no unit; expected "
            "--sigma-map map.json of `uncertainty-depth calibrate`, or no --write-bag"
        )
    return interpreter


def _evaluated(
    arguments: argparse.Namespace, source: PredictionSource, interpreter: Interpreter
) -> Evaluation:
    from uncertainty_depth.predictions.evaluate import evaluate
    from uncertainty_depth.writers.prediction_bag import prediction_sink

    limits = from_arguments(EvaluationConfig, arguments)
    with ExitStack() as stack:
        sinks = []
        if arguments.write_bag:
            sinks.append(stack.enter_context(prediction_sink(arguments.write_bag)))
        return evaluate(source, interpreter, limits, sinks=sinks)
