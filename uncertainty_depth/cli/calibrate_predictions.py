# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""`calibrate` without a model: fit a map from recorded confidence to metres, saved as JSON."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from uncertainty_depth import __version__, strict_json
from uncertainty_depth.config import CalibrationConfig, EvaluationConfig, SourceConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.notes import warn
from uncertainty_depth.options import from_arguments, to_mapping
from uncertainty_depth.predictions.config import PredictionConfig, PredictionTopics

if TYPE_CHECKING:
    from uncertainty_depth.predictions.calibrate import MapCalibration
    from uncertainty_depth.predictions.interpreter import Interpreter


def calibrate_predictions(arguments: argparse.Namespace) -> None:
    """Fit the map of recorded confidence to sigma, print its scores, and write its file."""
    from uncertainty_depth.predictions.calibrate import check
    from uncertainty_depth.predictions.confidence_map import SavedMap
    from uncertainty_depth.predictions.interpreter import Interpreter

    _check(arguments)
    meaning = from_arguments(PredictionConfig, arguments)
    topics = from_arguments(PredictionTopics, arguments)
    config = from_arguments(CalibrationConfig, arguments)
    limits = EvaluationConfig(min_depth=config.min_depth, max_depth=config.max_depth)
    interpreter = Interpreter(meaning, limits)
    calibration = _fit(arguments, topics, interpreter, config)
    if arguments.dry_run:
        return
    if not arguments.force:
        check(calibration)
    provenance = _provenance(arguments, topics, interpreter, calibration)
    saved = SavedMap(
        calibration.confidence_map,
        _confidence_type(meaning),
        meaning.depth_type,
        calibration.distribution,
        provenance,
    )
    saved.write(arguments.output)
    print(f"map '{calibration.confidence_map.name}' written to {arguments.output}")


def _fit(
    arguments: argparse.Namespace,
    topics: PredictionTopics,
    interpreter: Interpreter,
    config: CalibrationConfig,
) -> MapCalibration:
    """Return the map fitted to all sources, and print its scores.

    Raises:
        KeyboardInterrupt: after Ctrl-C, once the scores of the frames read so far are printed.
    """
    from uncertainty_depth.frames.source import open_source
    from uncertainty_depth.predictions.calibrate import calibrate, collect
    from uncertainty_depth.predictions.confidence import TYPES
    from uncertainty_depth.predictions.map_table import table

    meaning = interpreter.config
    options = from_arguments(SourceConfig, arguments)
    names = [str(arguments.model), *arguments.source]
    sources = [open_source(name, options, topics, meaning) for name in names]
    with deferred_interrupt() as interrupt:
        samples = []
        for source in sources:
            samples.append(collect(source, interpreter, config))
            warn(source.notes)
            if interrupt.requested:
                break
        warn(interpreter.notes())
        calibration = calibrate(samples, TYPES[_confidence_type(meaning)].has_unit, config)
        print(table(calibration))
    if interrupt.requested:
        raise KeyboardInterrupt
    return calibration


def _confidence_type(meaning: PredictionConfig) -> str:
    return meaning.confidence_type or "sigma"


def _check(arguments: argparse.Namespace) -> None:
    meaning = from_arguments(PredictionConfig, arguments)
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


def _provenance(
    arguments: argparse.Namespace,
    topics: PredictionTopics,
    interpreter: Interpreter,
    calibration: MapCalibration,
) -> dict[str, Any]:
    before, after = calibration.scores()
    return {
        **to_mapping(topics),
        "fitted_to": calibration.fitted.to_mapping(),
        "not_used": strict_json.plain(
            {"reference": calibration.reference, "before": before, "after": after}
        ),
        "notes": interpreter.notes(),
        "command": arguments.command_line,
        "version": __version__,
    }
