# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `calibrate` command: fit a calibration of sigma, report on it, and save it if it helps."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from uncertainty_depth.cli.calibrate_predictions import calibrate_predictions
from uncertainty_depth.completion.config import HeldOutConfig
from uncertainty_depth.config import CalibrationConfig, PredictorConfig, SourceConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.model_location import check_location, is_hugging_face
from uncertainty_depth.notes import warn
from uncertainty_depth.options import from_arguments
from uncertainty_depth.predictions.config import PredictionTopics
from uncertainty_depth.shipped_model import model_path

if TYPE_CHECKING:
    from uncertainty_depth.calibration.report import Provenance
    from uncertainty_depth.calibration.run import Calibration
    from uncertainty_depth.frames.source import Source
    from uncertainty_depth.inference.predictor import Predictor

logger = logging.getLogger(__name__)


def calibrate(arguments: argparse.Namespace) -> None:
    """Fit a calibration of sigma and write it if it improves the scores of held-out frames."""
    from uncertainty_depth.calibration import report
    from uncertainty_depth.calibration.table import table
    from uncertainty_depth.frames.source import has_recorded

    if has_recorded(str(arguments.model), from_arguments(PredictionTopics, arguments)):
        calibrate_predictions(arguments)
        return
    _check(arguments)
    predictor, sources = _opened(arguments)
    with deferred_interrupt() as interrupt:
        calibration, provenance = _fit(arguments, sources, predictor)
        print(table(calibration))
        if arguments.output:
            report.write(calibration, arguments.output, provenance)
    if interrupt.requested:
        logger.warning("the model folder is left as it was")
        raise KeyboardInterrupt
    if not arguments.dry_run:
        _keep(arguments, predictor, calibration, provenance)


def _check(arguments: argparse.Namespace) -> None:
    """Check the arguments and the model folder before any frame is read."""
    from uncertainty_depth.evaluation.report import check_folder

    if not arguments.source:
        raise ConfigError(
            f"the source to calibrate {arguments.model} on is missing; expected MODEL SOURCE, or "
            "--depth-topic of what is recorded in a bag"
        )
    if not arguments.dry_run and is_hugging_face(arguments.model):
        raise ConfigError(
            f"{arguments.model} has no model folder to keep a calibration in; expected "
            f"`uncertainty-depth wrap {arguments.model} --output MODEL` first, or --dry-run"
        )
    shipped = model_path(arguments.model)
    if not arguments.dry_run and shipped != arguments.model:
        raise ConfigError(
            f"{arguments.model} is shipped with the package; expected a copy of {shipped}, or "
            "--dry-run"
        )
    if arguments.output:
        check_folder(arguments.output)


def _opened(arguments: argparse.Namespace) -> tuple[Predictor, list[Source]]:
    """Return the uncalibrated predictor, and the sources with its sparse input split off."""
    from uncertainty_depth.completion.source import for_model
    from uncertainty_depth.frames.checked_source import CheckedSource
    from uncertainty_depth.frames.source import open_source

    options = from_arguments(SourceConfig, arguments)
    checked = [CheckedSource(open_source(notation, options)) for notation in arguments.source]
    check_location(model_path(arguments.model))

    # Imported here, after the paths are checked: torch takes seconds to import.
    from uncertainty_depth.inference.predictor import Predictor

    raw = replace(from_arguments(PredictorConfig, arguments), calibrated=False)
    predictor = Predictor(arguments.model, raw)
    held_out = from_arguments(HeldOutConfig, arguments)
    return predictor, [for_model(source, predictor, held_out) for source in checked]


def _fit(
    arguments: argparse.Namespace, sources: Sequence[Source], predictor: Predictor
) -> tuple[Calibration, Provenance]:
    from uncertainty_depth.calibration.report import Provenance
    from uncertainty_depth.calibration.run import calibrate
    from uncertainty_depth.frames.source import trained_on
    from uncertainty_depth.metrics.distributions import distribution_of

    names = [source.name for source in sources]
    overlaps = trained_on(predictor.model.name, predictor.model.training, names)
    warn(overlaps)
    options = from_arguments(CalibrationConfig, arguments)
    law = options.distribution or distribution_of(predictor.model.network.head)
    config = replace(options, distribution=law)
    with deferred_interrupt() as interrupt:
        calibration = calibrate(sources, predictor, config)
    losses = [*chain.from_iterable(source.notes for source in sources)]
    if interrupt.requested:
        losses.append("interrupted: only the first frames were read")
    warn(losses)
    provenance = Provenance(
        tuple(arguments.source), predictor.describe(), config, tuple([*overlaps, *losses])
    )
    return calibration, provenance


def _keep(
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
