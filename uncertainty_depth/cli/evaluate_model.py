# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`evaluate --model`: score a model on every frame of a source."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING

from uncertainty_depth.cli.notes import end_notes, warn
from uncertainty_depth.completion.config import HeldOutConfig
from uncertainty_depth.completion.source import for_model
from uncertainty_depth.config import EvaluationConfig, PredictorConfig, SourceConfig
from uncertainty_depth.corruption.corruption import parse
from uncertainty_depth.corruption.source import corrupted
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.evaluation.evaluate import Sink, evaluate
from uncertainty_depth.evaluation.evaluation import Evaluation
from uncertainty_depth.evaluation.model_facts import part_of
from uncertainty_depth.evaluation.report import Context
from uncertainty_depth.frames.checked_source import CheckedSource
from uncertainty_depth.frames.source import Source, calibrated_on, open_source, trained_on
from uncertainty_depth.model_location import check_location
from uncertainty_depth.options import from_arguments, to_mapping
from uncertainty_depth.predictions.config import PredictionConfig
from uncertainty_depth.predictions.evaluate import evaluate as evaluate_maps
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.predictions.relative import (
    RelativePredictions,
    describe_alignment,
    meaning_of_relative,
)
from uncertainty_depth.shipped_model import model_path
from uncertainty_depth.writers.prediction_bag import prediction_sink

if TYPE_CHECKING:
    from uncertainty_depth.inference.predictor import Predictor


def score_model(arguments: argparse.Namespace) -> tuple[Evaluation, Context]:
    """Return the evaluation of a model on a source, and where its metrics come from."""
    options = from_arguments(SourceConfig, arguments)
    checked = CheckedSource(open_source(arguments.source, options))
    images = corrupted(checked, [parse(text) for text in arguments.corrupt])
    predictor = _load(arguments)
    source = for_model(images, predictor, from_arguments(HeldOutConfig, arguments))
    trained = trained_on(predictor.model.name, predictor.model.training, [source.name])
    calibrated = calibrated_on(part_of(predictor.describe(), "fitted_to"), [source.name])
    warn([*trained, *calibrated])
    aligned = _alignment_of(arguments) if predictor.model.is_relative else None
    evaluation = _evaluated(arguments, source, predictor, aligned)
    own_notes = [*source.notes, *(aligned.notes() if aligned else [])]
    warn(own_notes)
    notes = [*trained, *calibrated, *predictor.data_monitor.notes(), *own_notes]
    context = Context(
        source=arguments.source,
        model={**predictor.describe(), **(describe_alignment(aligned.config) if aligned else {})},
        notes=(*notes, *end_notes(evaluation, len(source))),
        options=to_mapping(options),
        trained_on=tuple(trained),
        calibrated_on=tuple(calibrated),
        geometry=checked.check.summary(),
        command=arguments.command_line,
    )
    return evaluation, context


def _load(arguments: argparse.Namespace) -> Predictor:
    check_location(model_path(arguments.model))

    # Imported after the paths are checked: torch takes seconds to import.
    from uncertainty_depth.inference.predictor import Predictor

    config = from_arguments(PredictorConfig, arguments)
    predictor = Predictor(arguments.model, config, relative=True)
    align = from_arguments(PredictionConfig, arguments).align
    if align != "none" and not predictor.model.is_relative:
        raise ConfigError(
            f"align is {align!r}, but {arguments.model} gives metres; expected no --align, which "
            "is for recorded predictions and relative networks"
        )
    return predictor


def _alignment_of(arguments: argparse.Namespace) -> Interpreter:
    """Return what brings a relative network's inverse depth to metres."""
    meaning = meaning_of_relative(from_arguments(PredictionConfig, arguments))
    return Interpreter(meaning, from_arguments(EvaluationConfig, arguments))


def _evaluated(
    arguments: argparse.Namespace,
    source: Source,
    predictor: Predictor,
    aligned: Interpreter | None,
) -> Evaluation:
    config = from_arguments(EvaluationConfig, arguments)
    with ExitStack() as stack:
        sinks: list[Sink] = []
        if arguments.write_bag:
            sinks.append(stack.enter_context(prediction_sink(arguments.write_bag)))
        if aligned:
            return evaluate_maps(
                RelativePredictions(source, predictor), aligned, config, sinks=sinks
            )
        return evaluate(source, predictor, config, sinks)
