# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`evaluate --model`: score a model on every frame of a source."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING

from uncertainty_depth.cli.notes import end_notes, warn
from uncertainty_depth.completion.config import HeldOutConfig
from uncertainty_depth.config import EvaluationConfig, PredictorConfig, SourceConfig
from uncertainty_depth.model_location import check_location
from uncertainty_depth.options import from_arguments, to_mapping
from uncertainty_depth.shipped_model import model_path

if TYPE_CHECKING:
    from uncertainty_depth.data.source import Source
    from uncertainty_depth.evaluation.evaluation import Evaluation
    from uncertainty_depth.evaluation.report import Context
    from uncertainty_depth.inference.predictor import Predictor


def score_model(arguments: argparse.Namespace) -> tuple[Evaluation, Context]:
    """Return the evaluation of a model on a source, and where its metrics come from."""
    from uncertainty_depth.completion.source import for_model
    from uncertainty_depth.corruption.corruption import parse
    from uncertainty_depth.corruption.source import corrupted
    from uncertainty_depth.data.checked_source import CheckedSource
    from uncertainty_depth.data.source import calibrated_on, open_source, trained_on
    from uncertainty_depth.evaluation.model_facts import part_of
    from uncertainty_depth.evaluation.report import Context

    options = from_arguments(SourceConfig, arguments)
    checked = CheckedSource(open_source(arguments.source, options))
    images = corrupted(checked, [parse(text) for text in arguments.corrupt])
    check_location(model_path(arguments.model))

    # Imported here, after the paths are checked: torch takes seconds to import.
    from uncertainty_depth.inference.predictor import Predictor

    predictor = Predictor(arguments.model, from_arguments(PredictorConfig, arguments))
    source = for_model(images, predictor, from_arguments(HeldOutConfig, arguments))
    overlaps = trained_on(predictor.model.name, predictor.model.training, [source.name])
    calibrated = calibrated_on(part_of(predictor.describe(), "fitted_to"), [source.name])
    warn([*overlaps, *calibrated])
    evaluation = _evaluated(arguments, source, predictor)
    unlike = predictor.data_monitor.notes()
    warn(source.notes)
    notes = [*overlaps, *calibrated, *unlike, *source.notes, *end_notes(evaluation, len(source))]
    context = Context(
        arguments.source,
        predictor.describe(),
        tuple(notes),
        to_mapping(options),
        tuple(overlaps),
        checked.check.summary(),
        arguments.command_line,
        calibrated_on=tuple(calibrated),
    )
    return evaluation, context


def _evaluated(arguments: argparse.Namespace, source: Source, predictor: Predictor) -> Evaluation:
    from uncertainty_depth.evaluation.evaluate import Sink, evaluate
    from uncertainty_depth.writers.prediction_bag import prediction_sink

    with ExitStack() as stack:
        sinks: list[Sink] = []
        if arguments.write_bag:
            sinks.append(stack.enter_context(prediction_sink(arguments.write_bag)))
        return evaluate(source, predictor, from_arguments(EvaluationConfig, arguments), sinks)
