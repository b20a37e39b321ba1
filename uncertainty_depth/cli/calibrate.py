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
from uncertainty_depth.frames.protocol import MapSource, SliceSource, Source, has_recorded
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.opening import place_of

if TYPE_CHECKING:
    from uncertainty_depth.sigma.calibration.depth_head import DepthHead
    from uncertainty_depth.sigma.calibration.fit import MapInput
    from uncertainty_depth.sigma.calibration.run import FittedCalibration
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
        if has_recorded(str(self.model), self.topics):
            self._calibrate_recorded()
        else:
            self._calibrate_model()

    def job_of(self, sources: Sequence[str], model: str) -> Job:
        """Return the job of sources, predicted by a model or, without one, recorded."""
        limits = self.calibration
        return self.job(
            *sources,
            model=model,
            may_align=False,
            max_frames=self.frames.max_frames,
            evaluation=EvaluationConfig(limits.min_depth, limits.max_depth),
            predictor=PredictorConfig(**asdict(self.predictor), calibrated=False),
        )

    def _fitted(
        self, stream: Stream, parts: Sequence[Source], config: CalibrationConfig, kind: MapInput
    ) -> tuple[FittedCalibration, list[str]] | None:
        """Fit a map, print what it is worth, and return it with notes; None if it is not kept."""
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
        if self.dry_run:
            return None
        if not self.force:
            reject_if_worse(calibration)
        return calibration, [*losses, *notes]

    def _calibrate_model(self) -> None:
        """Fit a model's sigma: the map goes into the model folder."""
        from uncertainty_depth.metrics.calibration import distribution_of
        from uncertainty_depth.sigma.calibration.fit import NETWORK
        from uncertainty_depth.sigma.calibration.report import record
        from uncertainty_depth.sigma.calibration.sigma_map import IDENTITY
        from uncertainty_depth.stream.stream import Stream

        self._check_model()
        stream = Stream.open(self.job_of(self.source, str(self.model)))
        warn(map(str, stream.overlaps))
        described = stream.predicting.describe()
        config = self.calibration
        config = replace(
            config, distribution=config.distribution or distribution_of(described["head"])
        )
        kept = self._fitted(stream, stream.parts, config, NETWORK)
        if kept is None:
            return
        from uncertainty_depth.depth.model_folder.writing import set_calibration

        calibration, _ = kept
        sigma_map = calibration.choice.sigma_map
        method, model = described["method"], self.model
        set_calibration(model, method, sigma_map, record(calibration, described["samples"]))
        if sigma_map == IDENTITY:
            print(f"sigma of {method} stays raw; its scores are kept in {model}")
        else:
            print(f"calibration of {method} written to {model}")

    def _check_model(self) -> None:
        """Check the arguments and the model folder before any frame is read."""
        if self.learn:
            raise ConfigError(
                f"--learn learns the sigma of a recorded depth, but {self.model} is a model; "
                "expected --depth-topic or predictions:DIR, or no --learn"
            )
        if not self.source:
            raise ConfigError(
                f"the source to calibrate {self.model} on is missing; expected MODEL SOURCE, or "
                "--depth-topic of what is recorded in a bag"
            )
        if not self.dry_run and is_hugging_face(self.model):
            download = (
                ""
                if self.model.is_dir()
                else f"`hf download {self.model} --local-dir MODEL` of a published model folder, "
            )
            raise ConfigError(
                f"{self.model} has no model folder to keep a calibration in; expected "
                f"`uncertainty-depth wrap {self.model} --output MODEL` first, {download}"
                "or --dry-run"
            )
        shipped = model_path(self.model)
        if not self.dry_run and shipped != self.model:
            raise ConfigError(
                f"{self.model} is shipped with the package; expected a copy of {shipped}, or "
                "--dry-run"
            )
        if self.output:
            raise ConfigError(
                f"output is {self.output}, but the calibration goes into the model folder "
                f"{self.model}; expected no --output, which is for recorded predictions"
            )

    def _calibrate_recorded(self) -> None:
        """Fit a recorded depth's sigma, with or without confidence: the map goes into a file."""
        from uncertainty_depth.sigma.recorded.confidence import NONE, TYPES
        from uncertainty_depth.stream.stream import Stream

        sources = [str(self.model), *self.source]  # there is no model before them
        self._check_recorded(sources)
        job = self.job_of(sources, "")
        if self.learn:
            job = replace(job, meaning=replace(job.meaning, confidence_type=NONE))
        stream = Stream.open(job)
        parts: Sequence[Source] = stream.parts
        head: DepthHead | None = None
        kind = TYPES[stream.predicting.describe()["confidence_type"]].uncertainty_kind
        if self.learn:
            parts, head, kind = _with_learned_sigma(parts, self.calibration)
        kept = self._fitted(stream, parts, self.calibration, kind)
        if kept is not None and self.output:
            self._write_map(self.output, stream, *kept, head=head)

    def _check_recorded(self, sources: Sequence[str]) -> None:
        from uncertainty_depth.sigma.recorded.confidence import NONE

        meaning = self.meaning
        if not (self.output or self.dry_run):
            raise ConfigError("--output is missing; expected --output map.json, or --dry-run")
        if self.output:
            OutputFile(self.output).check(map(place_of, sources))
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
        given = self.topics.confidence_topic or meaning.confidence_type
        if self.learn and given not in ("", NONE):
            raise ConfigError(
                f"--learn learns sigma from the depth alone, but {given!r} is a confidence; "
                "expected no --confidence-topic and no --confidence-type, or no --learn"
            )

    def _write_map(
        self,
        output: Path,
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
                "command": self.command_line,
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


def _with_learned_sigma(
    parts: Sequence[Source], config: CalibrationConfig
) -> tuple[list[Source], DepthHead, MapInput]:
    """Learn a head from each part's first frames; return the rest with its sigma."""
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
