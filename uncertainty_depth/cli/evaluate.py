# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `evaluate` command: score a model, or predictions that were recorded, and report on it."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from uncertainty_depth.cli.requirements import check_requirements
from uncertainty_depth.completion.config import HeldOutConfig
from uncertainty_depth.config import (
    EvaluationConfig,
    PredictorConfig,
    RequirementConfig,
    SourceConfig,
)
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.model_location import check_location
from uncertainty_depth.options import from_arguments, to_mapping
from uncertainty_depth.predictions.config import PredictionConfig, PredictionTopics
from uncertainty_depth.shipped_model import model_path

if TYPE_CHECKING:
    from uncertainty_depth.evaluation.evaluation import Evaluation
    from uncertainty_depth.evaluation.report import Context

logger = logging.getLogger(__name__)


def evaluate(arguments: argparse.Namespace) -> None:
    """Score a model, or recorded predictions, on every frame of sources, and write a report."""
    from uncertainty_depth.cli.fleet import evaluate_fleet
    from uncertainty_depth.evaluation import report, summary, verdict
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
        page = report.write(evaluation, arguments.output, context)
    print(f"scored: {context.model['method']}, {summary.scored_sigma(context.model)}")
    scores = report.summarize(evaluation, context)
    print(summary.table(scores, context.model))
    print("\n".join(["", *verdict.sentences(scores["verdict"])]))
    print(f"report: {page}")
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
    return _score_predictions(arguments) if _is_recorded(arguments) else _score_model(arguments)


def _is_recorded(arguments: argparse.Namespace) -> bool:
    from uncertainty_depth.predictions.open import are_predictions

    return are_predictions(arguments.source, from_arguments(PredictionTopics, arguments))


def check_model(arguments: argparse.Namespace) -> None:
    """Raise `ConfigError` unless there is a model, or predictions that were recorded."""
    is_recorded = _is_recorded(arguments)
    if is_recorded and arguments.model:
        raise ConfigError(
            f"model is {str(arguments.model)!r}, but {arguments.source} has its own predictions; "
            "expected --model, or a depth topic or predictions:DIR, not both"
        )
    if is_recorded and arguments.write_bag:
        raise ConfigError(
            f"write_bag is {str(arguments.write_bag)!r}; expected none for recorded predictions, "
            "which are in a bag or folder already"
        )
    if is_recorded and arguments.corrupt:
        raise ConfigError(
            f"corrupt is {', '.join(arguments.corrupt)}; expected none for recorded predictions, "
            "which are of the images as they were"
        )
    if not is_recorded and not arguments.model:
        raise ConfigError(
            "there is no --model to score; expected --model (demo: the shipped one), or "
            "--depth-topic and --confidence-topic of what is recorded in the bag"
        )


def _score_model(arguments: argparse.Namespace) -> tuple[Evaluation, Context]:
    from uncertainty_depth.completion.source import for_model
    from uncertainty_depth.corruption.corruption import parse
    from uncertainty_depth.corruption.source import corrupted
    from uncertainty_depth.data.checked_source import CheckedSource
    from uncertainty_depth.data.source import open_source, trained_on
    from uncertainty_depth.evaluation.evaluate import Sink
    from uncertainty_depth.evaluation.evaluate import evaluate as score_source
    from uncertainty_depth.evaluation.report import Context
    from uncertainty_depth.evaluation.unfamiliar import Unfamiliarity
    from uncertainty_depth.writers.prediction_bag import prediction_sink

    options = from_arguments(SourceConfig, arguments)
    checked = CheckedSource(open_source(arguments.source, options))
    as_seen = corrupted(checked, [parse(text) for text in arguments.corrupt])
    check_location(model_path(arguments.model))

    # Only now, or a wrong path would be told after the seconds that torch takes to import.
    from uncertainty_depth.inference.predictor import Predictor

    predictor = Predictor(arguments.model, from_arguments(PredictorConfig, arguments))
    source = for_model(as_seen, predictor, from_arguments(HeldOutConfig, arguments))
    seen = trained_on(predictor.model.name, predictor.model.training, [source.name])
    warn(seen)
    monitor = predictor.data_monitor
    unfamiliarity = Unfamiliarity()
    with ExitStack() as stack:
        sinks: list[Sink] = [
            lambda frame, _: monitor.add_ground_truth(frame.ground_truth_m, frame.camera),
            lambda _, prediction: unfamiliarity.add(prediction.unfamiliarity),
        ]
        if arguments.write_bag:
            sinks.append(stack.enter_context(prediction_sink(arguments.write_bag)))
        evaluation = score_source(
            source, predictor, from_arguments(EvaluationConfig, arguments), sinks
        )
    unlike = monitor.notes()
    warn(source.notes)
    notes = [*seen, *unlike, *source.notes, *_end_notes(evaluation, len(source))]
    context = Context(
        arguments.source,
        predictor.describe(),
        tuple(notes),
        to_mapping(options),
        tuple(seen),
        checked.check.summary(),
        arguments.command_line,
        unfamiliarity=unfamiliarity,
    )
    return evaluation, context


def _score_predictions(arguments: argparse.Namespace) -> tuple[Evaluation, Context]:
    from uncertainty_depth.evaluation.report import Context
    from uncertainty_depth.predictions.evaluate import describe
    from uncertainty_depth.predictions.evaluate import evaluate as score_source
    from uncertainty_depth.predictions.interpreter import Interpreter
    from uncertainty_depth.predictions.open import open_predictions

    options = from_arguments(SourceConfig, arguments)
    topics = from_arguments(PredictionTopics, arguments)
    limits = from_arguments(EvaluationConfig, arguments)
    interpreter = Interpreter(from_arguments(PredictionConfig, arguments), limits)
    meaning = interpreter.config
    source = open_predictions(arguments.source, options, topics, meaning)
    evaluation = score_source(source, interpreter, limits)
    notes = [*interpreter.notes(), *source.notes]
    warn(notes)
    notes += _end_notes(evaluation, len(source))
    context = Context(
        arguments.source,
        describe(source, interpreter),
        tuple(notes),
        {**to_mapping(options), **to_mapping(topics), **to_mapping(meaning)},
        None,
        source.check.summary(),
        arguments.command_line,
    )
    return evaluation, context


def _end_notes(evaluation: Evaluation, frames: int) -> list[str]:
    """Return a note on each reason that frames were skipped for, and on a run Ctrl-C ended."""
    notes = [f"first {reason}: {text}" for reason, text in evaluation.first_skips.items()]
    if evaluation.interrupted:
        logger.warning("interrupted: writing what has been scored; Ctrl-C again aborts")
        notes.append(f"interrupted: only the first frames of about {frames} were read")
    return notes


def warn(sentences: Sequence[str]) -> None:
    """Log sentences as warnings."""
    for sentence in sentences:
        logger.warning(sentence)
