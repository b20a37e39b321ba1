# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `calibrate` command: fit sigma to ground truth, report on it, and save it if it helps.

A model's map goes into its folder, a recorded depth's map into a file.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from uncertainty_depth.cli.jobs import job_of
from uncertainty_depth.core.config import (
    CalibrationConfig,
    CalibrationFramesConfig,
    PredictionConfig,
    PredictionTopics,
    SourceConfig,
)
from uncertainty_depth.core.errors import ConfigError, warn
from uncertainty_depth.core.interrupt import deferred_interrupt
from uncertainty_depth.core.model_location import is_hugging_face, model_path
from uncertainty_depth.core.options import from_arguments, to_mapping
from uncertainty_depth.core.output import OutputFile
from uncertainty_depth.core.records import DepthPrediction, Frame, Skipped
from uncertainty_depth.core.version import __version__

if TYPE_CHECKING:
    from uncertainty_depth.frames.protocol import Source
    from uncertainty_depth.sigma.calibration.depth_head import DepthHead
    from uncertainty_depth.sigma.calibration.fit import Uncertainty
    from uncertainty_depth.sigma.calibration.run import FittedCalibration
    from uncertainty_depth.stream.stream import Stream

logger = logging.getLogger(__name__)
LEARNED_FROM = 0.6
"""Fraction of each source that a head is learned from; the rest tells what it is worth."""


def calibrate(arguments: argparse.Namespace) -> None:
    """Give sigma the right size on your data; kept only if frames left out agree."""
    from uncertainty_depth.frames.notation import has_recorded

    if has_recorded(str(arguments.model), from_arguments(PredictionTopics, arguments)):
        _calibrate_recorded(arguments)
    else:
        _calibrate_model(arguments)


def _max_frames(arguments: argparse.Namespace) -> int:
    return from_arguments(CalibrationFramesConfig, arguments).max_frames


def _fitted(
    stream: Stream,
    parts: Sequence[Source],
    config: CalibrationConfig,
    kind: Uncertainty,
    is_dry: bool = False,
    is_forced: bool = False,
) -> tuple[FittedCalibration, list[str]] | None:
    """Fit a map, print what it is worth, and return it with its notes; None if it is not kept.

    Args:
        stream: what the frames are of.
        parts: frames with predictions and ground truth, of each source.
        config: what is used, and how it is split.
        kind: of the uncertainty.
        is_dry: whether no map is kept.
        is_forced: whether a map is kept that makes scores worse.

    Raises:
        CalibrationError: the map makes scores worse.
        KeyboardInterrupt: it was interrupted; what was found is printed.
    """
    from uncertainty_depth.sigma.calibration.report import table
    from uncertainty_depth.sigma.calibration.run import calibrate as fit
    from uncertainty_depth.sigma.calibration.run import check

    with deferred_interrupt() as interrupt:
        try:
            calibration = fit(parts, config, kind)
        finally:
            losses = stream.notes
            warn(losses)
        print(table(calibration))
        notes = calibration.notes()
        warn(notes)
    if interrupt.requested:
        logger.warning("interrupted: only the first frames were read, and no map is written")
        raise KeyboardInterrupt
    if is_dry:
        return None
    if not is_forced:
        check(calibration)
    return calibration, [*losses, *notes]


def _calibrate_model(arguments: argparse.Namespace) -> None:
    """Fit a model's sigma: the map goes into the model folder."""
    from uncertainty_depth.report.model_facts import law_of
    from uncertainty_depth.sigma.calibration.fit import NETWORK
    from uncertainty_depth.sigma.calibration.report import record
    from uncertainty_depth.sigma.calibration.sigma_map import IDENTITY
    from uncertainty_depth.stream.stream import Stream

    _check_model(arguments)
    job = job_of(arguments, arguments.source)
    raw = replace(job.predictor, calibrated=False)
    job = replace(job, predictor=raw, may_align=False, max_frames=_max_frames(arguments))
    stream = Stream.open(job)
    warn(map(str, stream.overlaps))
    facts = stream.predicting.describe()
    config = from_arguments(CalibrationConfig, arguments)
    config = replace(config, distribution=config.distribution or law_of(facts))
    kept = _fitted(stream, stream.parts, config, NETWORK, arguments.dry_run, arguments.force)
    if kept is None:
        return
    from uncertainty_depth.depth.model_folder.writing import set_calibration

    calibration, _ = kept
    sigma_map = calibration.choice.sigma_map
    method, model = facts["method"], arguments.model
    set_calibration(model, method, sigma_map, record(calibration, facts["samples"]))
    if sigma_map == IDENTITY:
        print(f"sigma of {method} stays raw; its scores are kept in {model}")
    else:
        print(f"calibration of {method} written to {model}")


def _check_model(arguments: argparse.Namespace) -> None:
    """Check the arguments and the model folder before any frame is read."""
    if not arguments.source:
        raise ConfigError(
            f"the source to calibrate {arguments.model} on is missing; expected MODEL SOURCE, or "
            "--depth-topic of what is recorded in a bag"
        )
    if not arguments.dry_run and is_hugging_face(arguments.model):
        download = (
            ""
            if arguments.model.is_dir()
            else f"`hf download {arguments.model} --local-dir MODEL` of a published model folder, "
        )
        raise ConfigError(
            f"{arguments.model} has no model folder to keep a calibration in; expected "
            f"`uncertainty-depth wrap {arguments.model} --output MODEL` first, {download}"
            "or --dry-run"
        )
    shipped = model_path(arguments.model)
    if not arguments.dry_run and shipped != arguments.model:
        raise ConfigError(
            f"{arguments.model} is shipped with the package; expected a copy of {shipped}, or "
            "--dry-run"
        )
    if arguments.output:
        raise ConfigError(
            f"output is {arguments.output}, but the calibration goes into the model folder "
            f"{arguments.model}; expected no --output, which is for recorded predictions"
        )


def _calibrate_recorded(arguments: argparse.Namespace) -> None:
    """Fit the sigma of a recorded depth, with or without confidence: the map goes into a file."""
    from uncertainty_depth.sigma.recorded.confidence import TYPES
    from uncertainty_depth.stream.stream import Stream

    sources = [str(arguments.model), *arguments.source]
    job = replace(job_of(arguments, sources), model="", max_frames=_max_frames(arguments))
    _check_recorded(arguments, job.meaning)
    stream = Stream.open(job)
    kind = TYPES[stream.predicting.describe()["confidence_type"]].uncertainty_kind
    config = from_arguments(CalibrationConfig, arguments)
    kept = _fitted(stream, stream.parts, config, kind, arguments.dry_run, arguments.force)
    if kept is not None:
        _write_map(arguments, stream, *kept)


def learn_sigma(arguments: argparse.Namespace) -> None:
    """Learn the sigma of a recorded depth from the depth itself, and write its map's file.

    The first part of each source teaches the head, the rest decides what it is worth.
    """
    from uncertainty_depth.frames.protocol import MapSource, SliceSource
    from uncertainty_depth.sigma.calibration.depth_head import learn
    from uncertainty_depth.sigma.calibration.fit import LEARNED
    from uncertainty_depth.sigma.recorded.confidence import NONE
    from uncertainty_depth.stream.job import Job
    from uncertainty_depth.stream.stream import Stream

    _check_file(arguments)
    job = Job(
        sources=tuple(arguments.source),
        max_frames=CalibrationFramesConfig().max_frames,
        reading=from_arguments(SourceConfig, arguments),
        topics=PredictionTopics(arguments.depth_topic),
        meaning=PredictionConfig(confidence_type=NONE),
    )
    stream = Stream.open(job)
    config = CalibrationConfig()
    head = learn([SliceSource(part, 0, LEARNED_FROM) for part in stream.parts], config)

    def with_sigma(record: Frame | Skipped) -> Frame | Skipped:
        if isinstance(record, Skipped):
            return record
        depth_m = record.need_depth().depth_m
        return replace(record, prediction=DepthPrediction(depth_m, head(depth_m)))

    rest = [SliceSource(part, LEARNED_FROM, 1) for part in stream.parts]
    kept = _fitted(stream, [MapSource(part, with_sigma) for part in rest], config, LEARNED)
    if kept is not None:
        _write_map(arguments, stream, *kept, head=head)


def _check_recorded(arguments: argparse.Namespace, meaning: PredictionConfig) -> None:
    if not (arguments.output or arguments.dry_run):
        raise ConfigError("--output is missing; expected --output map.json, or --dry-run")
    _check_file(arguments)
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


def _check_file(arguments: argparse.Namespace) -> None:
    from uncertainty_depth.stream.opening import place_of

    if arguments.output:
        first = [str(arguments.model)] if "model" in arguments else []
        OutputFile(arguments.output).check(map(place_of, [*first, *arguments.source]))


def _write_map(
    arguments: argparse.Namespace,
    stream: Stream,
    calibration: FittedCalibration,
    notes: list[str],
    head: DepthHead | None = None,
) -> None:
    from uncertainty_depth.sigma.calibration import report
    from uncertainty_depth.sigma.recorded.saved_map import SavedMap

    sigma_map = calibration.choice.sigma_map
    facts = stream.predicting.describe()
    options = stream.predicting.options()
    saved = SavedMap(
        sigma_map,
        facts["confidence_type"],
        facts["depth_type"],
        calibration.distribution,
        {
            **{name: options[name] for name in to_mapping(PredictionTopics())},
            **report.record(calibration),
            "notes": notes,
            "command": arguments.command_line,
            "version": __version__,
        },
        None if sigma_map.ignores_uncertainty else head,
    )
    saved.write(arguments.output)
    print(f"map '{sigma_map.name}' written to {arguments.output}")
