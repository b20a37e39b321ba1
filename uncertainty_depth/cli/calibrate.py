# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `calibrate` command: fit sigma to ground truth, report on it, and save it if it helps.

A model's map goes into its folder, a recorded depth's map into a file.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from uncertainty_depth import __version__
from uncertainty_depth.config import (
    CalibrationConfig,
    EvaluationConfig,
    PredictorConfig,
    SourceConfig,
)
from uncertainty_depth.config.prediction import HeldOutConfig, PredictionConfig, PredictionTopics
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.model_location import check_location, is_hugging_face, model_path
from uncertainty_depth.notes import warn
from uncertainty_depth.options import from_arguments, to_mapping
from uncertainty_depth.records import DepthPrediction, Frame

if TYPE_CHECKING:
    from uncertainty_depth.calibration.depth_head import DepthHead
    from uncertainty_depth.calibration.report import Provenance
    from uncertainty_depth.calibration.run import Calibration
    from uncertainty_depth.frames.source import Source
    from uncertainty_depth.inference.predictor import Predictor

LEARNED_FROM = 0.6
"""Fraction of each source that a head is learned from; the rest tells what it is worth."""
logger = logging.getLogger(__name__)


def calibrate(arguments: argparse.Namespace) -> None:
    """Fit a map to sigma and write it if it improves the scores of held-out frames."""
    from uncertainty_depth.frames.source import has_recorded

    topics = from_arguments(PredictionTopics, arguments)
    if has_recorded(str(arguments.model), topics):
        _calibrate_recorded(arguments, topics)
    else:
        _calibrate_model(arguments)


def _calibrate_model(arguments: argparse.Namespace) -> None:
    from uncertainty_depth.calibration import report
    from uncertainty_depth.calibration.run import calibrate as fit
    from uncertainty_depth.frames.predicted import predict_frame
    from uncertainty_depth.frames.source import trained_on
    from uncertainty_depth.metrics.calibration import distribution_of

    _check_model(arguments)
    predictor, sources = _opened(arguments)
    overlaps = trained_on(
        predictor.model.name, predictor.model.training, [source.name for source in sources]
    )
    warn(overlaps)
    options = from_arguments(CalibrationConfig, arguments)
    law = options.distribution or distribution_of(predictor.model.network.head)
    config = replace(options, distribution=law)
    with deferred_interrupt() as interrupt:
        calibration = fit(sources, partial(predict_frame, predictor), config)
        losses = [*chain.from_iterable(source.notes for source in sources)]
        if interrupt.requested:
            losses.append("interrupted: only the first frames were read")
        warn(losses)
        provenance = report.Provenance(
            tuple(arguments.source), predictor.describe(), config, (*overlaps, *losses)
        )
        _show(calibration)
        if arguments.output:
            report.write(calibration, arguments.output, provenance)
    if interrupt.requested:
        logger.warning("the model folder is left as it was")
        raise KeyboardInterrupt
    if not arguments.dry_run:
        _keep_in_model(arguments, predictor, calibration, provenance)


def _check_model(arguments: argparse.Namespace) -> None:
    """Check the arguments and the model folder before any frame is read."""
    from uncertainty_depth.report.report import check_folder

    if not arguments.source:
        raise ConfigError(
            f"the source to calibrate {arguments.model} on is missing; expected MODEL SOURCE, or "
            "--depth-topic of what is recorded in a bag"
        )
    if not arguments.dry_run and is_hugging_face(arguments.model):
        raise ConfigError(
            f"{arguments.model} has no model folder to keep a calibration in; expected "
            f"`uncertainty-depth wrap {arguments.model} --output MODEL` first, `hf download "
            f"{arguments.model} --local-dir MODEL` of a published model folder, or --dry-run"
        )
    shipped = model_path(arguments.model)
    if not arguments.dry_run and shipped != arguments.model:
        raise ConfigError(
            f"{arguments.model} is shipped with the package; expected a copy of {shipped}, or "
            "--dry-run"
        )
    if arguments.output:
        check_folder(arguments.output)


def _opened(arguments: argparse.Namespace) -> tuple[Predictor, Sequence[Source]]:
    """Return the uncalibrated predictor, and the sources with its sparse input split off."""
    from uncertainty_depth.frames.held_out import for_model
    from uncertainty_depth.frames.source import checked, open_source

    options = from_arguments(SourceConfig, arguments)
    sources = [checked(open_source(notation, options))[0] for notation in arguments.source]
    check_location(model_path(arguments.model))

    # Imported here, after the paths are checked: torch takes seconds to import.
    from uncertainty_depth.inference.predictor import Predictor

    raw = replace(from_arguments(PredictorConfig, arguments), calibrated=False)
    predictor = Predictor(arguments.model, raw)
    held_out = from_arguments(HeldOutConfig, arguments)
    return predictor, [for_model(source, predictor, held_out) for source in sources]


def _keep_in_model(
    arguments: argparse.Namespace,
    predictor: Predictor,
    calibration: Calibration,
    provenance: Provenance,
) -> None:
    """Save the map to the model folder, unless it is worse than raw sigma."""
    from uncertainty_depth.calibration import report
    from uncertainty_depth.calibration.run import check
    from uncertainty_depth.model_folder.writing import set_calibration

    if not arguments.force:
        check(calibration)
    if not arguments.output:
        report.write(calibration, arguments.model, provenance)
    set_calibration(
        arguments.model,
        predictor.calibration_key,
        calibration.choice.sigma_map,
        report.record(calibration, provenance),
    )
    print(f"calibration of {predictor.method} written to {arguments.model}")


def _calibrate_recorded(arguments: argparse.Namespace, topics: PredictionTopics) -> None:
    """Fit the map of a recorded depth, with or without a confidence, and write its file."""
    from uncertainty_depth.calibration.run import calibrate as fit
    from uncertainty_depth.calibration.run import check
    from uncertainty_depth.frames.source import has_confidence, open_source
    from uncertainty_depth.predictions.confidence import NONE, TYPES
    from uncertainty_depth.predictions.interpreter import Interpreter

    meaning = from_arguments(PredictionConfig, arguments)
    _check_recorded(arguments, meaning)
    config = from_arguments(CalibrationConfig, arguments)
    options = from_arguments(SourceConfig, arguments)
    names = [str(arguments.model), *arguments.source]
    if not all(has_confidence(name, topics) for name in names):
        meaning = replace(meaning, confidence_type=NONE)
    sources = [open_source(name, options, topics, meaning) for name in names]
    limits = EvaluationConfig(min_depth=config.min_depth, max_depth=config.max_depth)
    interpreter = Interpreter(meaning, limits)
    kind = TYPES[meaning.confidence_type or "sigma"].uncertainty_kind
    with deferred_interrupt() as interrupt:
        calibration = fit(sources, interpreter.predict, config, kind)
        notes = [*chain.from_iterable(source.notes for source in sources), *interpreter.notes()]
        warn(notes)
        _show(calibration)
    if interrupt.requested:
        raise KeyboardInterrupt
    if arguments.dry_run:
        return
    if not arguments.force:
        check(calibration)
    _write_map(arguments, topics, meaning, calibration, notes)


def learn_sigma(arguments: argparse.Namespace) -> None:
    """Learn the sigma of a recorded depth from the depth itself, and write its map's file.

    The first part of each source teaches the head, the rest decides what it is worth.
    """
    from uncertainty_depth.calibration.depth_head import learn
    from uncertainty_depth.calibration.fit import LEARNED
    from uncertainty_depth.calibration.run import calibrate as fit
    from uncertainty_depth.calibration.run import check
    from uncertainty_depth.frames.source import Part, open_source
    from uncertainty_depth.predictions.confidence import NONE
    from uncertainty_depth.predictions.interpreter import Interpreter

    if arguments.output.is_dir():
        raise ConfigError(f"output {arguments.output} is a folder; expected a file, sigma.json")
    topics = PredictionTopics(arguments.depth_topic)
    meaning = PredictionConfig(confidence_type=NONE)
    options = from_arguments(SourceConfig, arguments)
    sources = [open_source(name, options, topics, meaning) for name in arguments.source]
    config = CalibrationConfig()
    interpreter = Interpreter(
        meaning, EvaluationConfig(min_depth=config.min_depth, max_depth=config.max_depth)
    )
    head = learn(
        [Part(source, 0, LEARNED_FROM) for source in sources], interpreter.predict, config
    )

    def predict(frame: Frame) -> DepthPrediction:
        depth_m = interpreter.predict(frame).depth_m
        return DepthPrediction(depth_m, head(depth_m))

    rest = [Part(source, LEARNED_FROM, 1) for source in sources]
    calibration = fit(rest, predict, config, LEARNED)
    notes = list(chain.from_iterable(source.notes for source in sources))
    warn(notes)
    _show(calibration)
    check(calibration)
    is_better = not calibration.choice.sigma_map.ignores_uncertainty
    _write_map(arguments, topics, meaning, calibration, notes, head if is_better else None)


def _check_recorded(arguments: argparse.Namespace, meaning: PredictionConfig) -> None:
    if not (arguments.output or arguments.dry_run):
        raise ConfigError("--output is missing; expected --output map.json, or --dry-run")
    if arguments.output and arguments.output.is_dir():
        raise ConfigError(f"output {arguments.output} is a folder; expected a file, e.g. map.json")
    if meaning.align != "none":
        raise ConfigError(
            f"align is {meaning.align!r}: a robot has no ground truth to align to; expected a "
            "depth in metres, and align none"
        )
    if meaning.sigma_map:
        raise ConfigError(
            f"sigma_map is {meaning.sigma_map!r}; expected none: a map is fitted to the "
            "confidence as it is"
        )


def _write_map(
    arguments: argparse.Namespace,
    topics: PredictionTopics,
    meaning: PredictionConfig,
    calibration: Calibration,
    notes: Sequence[str],
    head: DepthHead | None = None,
) -> None:
    from uncertainty_depth.calibration import report
    from uncertainty_depth.predictions.saved_map import SavedMap

    config = from_arguments(CalibrationConfig, arguments)
    provenance = report.Provenance(calibration.fitted.sources, {}, config)
    saved = SavedMap(
        calibration.choice.sigma_map,
        meaning.confidence_type or "sigma",
        meaning.depth_type,
        calibration.distribution,
        {
            **to_mapping(topics),
            **report.record(calibration, provenance),
            "notes": [*notes, *calibration.notes()],
            "command": arguments.command_line,
            "version": __version__,
        },
        head,
    )
    saved.write(arguments.output)
    print(f"map '{saved.sigma_map.name}' written to {arguments.output}")


def _show(calibration: Calibration) -> None:
    """Print the table, and warn of what to mind about the map."""
    from uncertainty_depth.calibration.report import table

    print(table(calibration))
    warn(calibration.notes())
