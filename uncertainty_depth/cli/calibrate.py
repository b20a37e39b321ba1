# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The `calibrate` command: fit sigma to ground truth, report on it, and save it if it helps.

A model's map goes into its folder, a recorded depth's map into a file.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from uncertainty_depth.cli.arguments import SOURCE, Command, flag, positional, written
from uncertainty_depth.core.config.predictor import PredictorConfig, RawPredictorConfig
from uncertainty_depth.core.config.scoring import (
    CalibrationConfig,
    CalibrationFramesConfig,
    EvaluationConfig,
    HeldOutConfig,
    MaskConfig,
)
from uncertainty_depth.core.config.source import PredictionConfig, PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import ConfigError, warn
from uncertainty_depth.core.model_location import is_hugging_face, model_path
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.output import OutputFile
from uncertainty_depth.core.process import deferred_interrupt
from uncertainty_depth.core.records import DepthPrediction, Frame, Skipped
from uncertainty_depth.core.version import __version__

if TYPE_CHECKING:
    from uncertainty_depth.frames.protocol import Source
    from uncertainty_depth.sigma.calibration.depth_head import DepthHead
    from uncertainty_depth.sigma.calibration.fit import MapInput
    from uncertainty_depth.sigma.calibration.run import FittedCalibration
    from uncertainty_depth.stream.job import Job
    from uncertainty_depth.stream.stream import Stream

logger = logging.getLogger(__name__)
HEAD_TRAINING_FRACTION = 0.6
"""Fraction of each source that a head is learned from; the rest tells what it is worth."""


@dataclass(frozen=True, kw_only=True)
class Calibrate(Command):
    """Give sigma the right size on your data; kept only if frames left out agree."""

    example = "my_model my_bag another_bag"
    model: Path = positional(
        type=Path,
        metavar="MODEL",
        help="model folder; with --depth-topic or predictions:DIR the first source",
    )
    source: list[str] = positional(
        nargs="*", metavar="SOURCE", help=f"one or more sequences, each {SOURCE}"
    )
    output: Path | None = written(
        "FILE",
        "file of the map of recorded predictions, e.g. map.json; a model's map goes into its "
        "folder",
        required=False,
    )
    dry_run: bool = flag(action="store_true", help="report only, do not change the model folder")
    force: bool = flag(
        action="store_true",
        help="write the calibration even if it makes the scores of held-out frames worse",
    )
    learn: bool = flag(
        action="store_true",
        help="learn sigma from a recorded depth alone; kept only if better than a power of depth",
    )
    calibration: CalibrationConfig
    frames: CalibrationFramesConfig
    mask: MaskConfig
    predictor: RawPredictorConfig
    topics: PredictionTopics
    meaning: PredictionConfig
    held_out: HeldOutConfig
    reading: SourceConfig

    def _run(self) -> None:
        from uncertainty_depth.frames.protocol import has_recorded

        if has_recorded(str(self.model), self.topics):
            _calibrate_recorded(self)
        else:
            _calibrate_model(self)

    def job(self, sources: Sequence[str], model: str) -> Job:
        """Return the job of sources, predicted by a model or, without one, recorded."""
        from uncertainty_depth.stream.job import Job

        limits = self.calibration
        return Job(
            sources=tuple(sources),
            model=model,
            may_align=False,
            max_frames=self.frames.max_frames,
            reading=self.reading,
            evaluation=EvaluationConfig(limits.min_depth, limits.max_depth),
            mask=self.mask,
            predictor=PredictorConfig(**asdict(self.predictor), calibrated=False),
            held_out=self.held_out,
            topics=self.topics,
            meaning=self.meaning,
        )


def _fitted(
    stream: Stream,
    parts: Sequence[Source],
    config: CalibrationConfig,
    kind: MapInput,
    is_dry: bool = False,
    is_forced: bool = False,
) -> tuple[FittedCalibration, list[str]] | None:
    """Fit a map, print what it is worth, and return it with its notes; None if it is not kept."""
    from uncertainty_depth.sigma.calibration.report import table
    from uncertainty_depth.sigma.calibration.run import calibrate as fit
    from uncertainty_depth.sigma.calibration.run import reject_if_worse

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
        reject_if_worse(calibration)
    return calibration, [*losses, *notes]


def _calibrate_model(command: Calibrate) -> None:
    """Fit a model's sigma: the map goes into the model folder."""
    from uncertainty_depth.metrics.calibration import distribution_of
    from uncertainty_depth.sigma.calibration.fit import NETWORK
    from uncertainty_depth.sigma.calibration.report import record
    from uncertainty_depth.sigma.calibration.sigma_map import IDENTITY
    from uncertainty_depth.stream.stream import Stream

    _check_model(command)
    stream = Stream.open(command.job(command.source, str(command.model)))
    warn(map(str, stream.overlaps))
    described = stream.predicting.describe()
    config = command.calibration
    config = replace(
        config, distribution=config.distribution or distribution_of(described["head"])
    )
    kept = _fitted(stream, stream.parts, config, NETWORK, command.dry_run, command.force)
    if kept is None:
        return
    from uncertainty_depth.depth.model_folder.writing import set_calibration

    calibration, _ = kept
    sigma_map = calibration.choice.sigma_map
    method, model = described["method"], command.model
    set_calibration(model, method, sigma_map, record(calibration, described["samples"]))
    if sigma_map == IDENTITY:
        print(f"sigma of {method} stays raw; its scores are kept in {model}")
    else:
        print(f"calibration of {method} written to {model}")


def _check_model(command: Calibrate) -> None:
    """Check the arguments and the model folder before any frame is read."""
    if command.learn:
        raise ConfigError(
            f"--learn learns the sigma of a recorded depth, but {command.model} is a model; "
            "expected --depth-topic or predictions:DIR, or no --learn"
        )
    if not command.source:
        raise ConfigError(
            f"the source to calibrate {command.model} on is missing; expected MODEL SOURCE, or "
            "--depth-topic of what is recorded in a bag"
        )
    if not command.dry_run and is_hugging_face(command.model):
        download = (
            ""
            if command.model.is_dir()
            else f"`hf download {command.model} --local-dir MODEL` of a published model folder, "
        )
        raise ConfigError(
            f"{command.model} has no model folder to keep a calibration in; expected "
            f"`uncertainty-depth wrap {command.model} --output MODEL` first, {download}"
            "or --dry-run"
        )
    shipped = model_path(command.model)
    if not command.dry_run and shipped != command.model:
        raise ConfigError(
            f"{command.model} is shipped with the package; expected a copy of {shipped}, or "
            "--dry-run"
        )
    if command.output:
        raise ConfigError(
            f"output is {command.output}, but the calibration goes into the model folder "
            f"{command.model}; expected no --output, which is for recorded predictions"
        )


def _calibrate_recorded(command: Calibrate) -> None:
    """Fit a recorded depth's sigma, with or without confidence: the map goes into a file."""
    from uncertainty_depth.sigma.recorded.confidence import NONE, TYPES
    from uncertainty_depth.stream.stream import Stream

    _check_recorded(command)
    job = command.job(_recorded(command), "")
    if command.learn:
        job = replace(job, meaning=replace(job.meaning, confidence_type=NONE))
    stream = Stream.open(job)
    parts: Sequence[Source] = stream.parts
    head: DepthHead | None = None
    kind = TYPES[stream.predicting.describe()["confidence_type"]].uncertainty_kind
    if command.learn:
        parts, head, kind = _with_learned_sigma(parts, command.calibration)
    kept = _fitted(stream, parts, command.calibration, kind, command.dry_run, command.force)
    if kept is not None and command.output:
        _write_map(command.output, command.command_line, stream, *kept, head=head)


def _recorded(command: Calibrate) -> list[str]:
    """Return the sources of recorded predictions: there is no model before them."""
    return [str(command.model), *command.source]


def _with_learned_sigma(
    parts: Sequence[Source], config: CalibrationConfig
) -> tuple[list[Source], DepthHead, MapInput]:
    """Learn a head from each part's first frames; return the rest with its sigma."""
    from uncertainty_depth.frames.protocol import MapSource, SliceSource
    from uncertainty_depth.sigma.calibration.depth_head import learn
    from uncertainty_depth.sigma.calibration.fit import DEPTH_HEAD

    head = learn([SliceSource(part, 0, HEAD_TRAINING_FRACTION) for part in parts], config)

    def with_sigma(record: Frame | Skipped) -> Frame | Skipped:
        if isinstance(record, Skipped):
            return record
        depth_m = record.need_depth().depth_m
        return replace(record, prediction=DepthPrediction(depth_m, head(depth_m)))

    rest = [SliceSource(part, HEAD_TRAINING_FRACTION, 1) for part in parts]
    return [MapSource(part, with_sigma) for part in rest], head, DEPTH_HEAD


def _check_recorded(command: Calibrate) -> None:
    from uncertainty_depth.sigma.recorded.confidence import NONE
    from uncertainty_depth.stream.opening import place_of

    meaning = command.meaning
    if not (command.output or command.dry_run):
        raise ConfigError("--output is missing; expected --output map.json, or --dry-run")
    if command.output:
        OutputFile(command.output).check(map(place_of, _recorded(command)))
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
    given = command.topics.confidence_topic or meaning.confidence_type
    if command.learn and given not in ("", NONE):
        raise ConfigError(
            f"--learn learns sigma from the depth alone, but {given!r} is a confidence; expected "
            "no --confidence-topic and no --confidence-type, or no --learn"
        )


def _write_map(
    output: Path,
    command_line: str,
    stream: Stream,
    calibration: FittedCalibration,
    notes: list[str],
    head: DepthHead | None,
) -> None:
    from uncertainty_depth.frames.topics import camera_info_beside
    from uncertainty_depth.sigma.calibration import report
    from uncertainty_depth.sigma.recorded.interpreter import SavedMap

    sigma_map = calibration.choice.sigma_map
    described = stream.predicting.describe()
    options = stream.predicting.options()
    saved = SavedMap(
        sigma_map,
        described["confidence_type"],
        described["depth_type"],
        calibration.distribution,
        {
            **{name: options[name] for name in to_mapping(PredictionTopics())},
            **report.record(calibration),
            "notes": notes,
            "command": command_line,
            "version": __version__,
        },
        None if sigma_map.ignores_uncertainty else head,
    )
    saved.write(output)
    print(f"map '{sigma_map.name}' written to {output}")
    depth, confidence = options["depth_topic"], options["confidence_topic"]
    topics = f"MY_BAG --depth-topic {depth}" if depth else "predictions:MY_DIR"
    topics += f" --confidence-topic {confidence}" if confidence else ""
    print(f"score it: uncertainty-depth evaluate {topics} --sigma-map {output} -o report")
    if depth:
        remaps = f"depth:={depth}" + (f" confidence:={confidence}" if confidence else "")
        print(
            f"on a robot: ros2 launch uncertainty_depth sigma.launch.py sigma_map:={output} "
            f"{remaps} depth_camera_info:={camera_info_beside(depth)}"
        )
