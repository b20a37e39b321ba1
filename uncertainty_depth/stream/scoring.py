# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""One source, what predicts its frames, and all options of their scores: as a job, and done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from uncertainty_depth.core.config import (
    ODOMETRY_FRAME,
    DepthScaleConfig,
    EvaluationConfig,
    HeldOutConfig,
    PredictionConfig,
    PredictionTopics,
    PredictorConfig,
    SourceConfig,
)
from uncertainty_depth.core.errors import ConfigError, warn
from uncertainty_depth.core.model_location import check_location, is_hugging_face, model_path
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import DepthMap, Frame, Overlap, RecordedMaps
from uncertainty_depth.frames.notation import RECORDED, has_recorded
from uncertainty_depth.frames.predicted import Predict, Predicted, predict_frame
from uncertainty_depth.frames.protocol import Subsampled
from uncertainty_depth.metrics.registry import SigmaKind
from uncertainty_depth.sigma.sparse_depth import parse_measurements
from uncertainty_depth.stream.geometry_check import FITS, GeometryCheck
from uncertainty_depth.stream.opening import open_source, place_of, with_geometry_check
from uncertainty_depth.stream.overlap import calibrated_on, trained_on

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor
    from uncertainty_depth.frames.protocol import Source
    from uncertainty_depth.metrics.state import Sums
    from uncertainty_depth.report.evaluation import Evaluation
    from uncertainty_depth.report.report import Context

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class ScoringJob:
    """What decides the scores of a source. Plain values: it travels to other processes.

    Attributes:
        source: its notation.
        model: folder or name of a model; empty for predictions that the source has recorded.
        max_frames: how many frames are scored at most, evenly spread; 0 for all.
        sources: how the source is read.
        evaluation: what is scored.
        predictor: how the model predicts.
        held_out: the known depth that a model with sparse input is scored on.
        topics: of recorded predictions.
        meaning: of recorded predictions.
        scale: whether depth follows the scale of the frames before.
    """

    source: str
    model: str = ""
    max_frames: int = 0
    sources: SourceConfig = field(default_factory=SourceConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    predictor: PredictorConfig = field(default_factory=PredictorConfig)
    held_out: HeldOutConfig = field(default_factory=HeldOutConfig)
    topics: PredictionTopics = field(default_factory=PredictionTopics)
    meaning: PredictionConfig = field(default_factory=PredictionConfig)
    scale: DepthScaleConfig = field(default_factory=DepthScaleConfig)

    @property
    def is_recorded(self) -> bool:
        """Whether the source brings its predictions."""
        return has_recorded(self.source, self.topics)

    def options(self) -> dict[str, Any]:
        """Return all values but the source by name, for JSON."""
        values: dict[str, Any] = {
            "model": self.model,
            "max_frames": self.max_frames,
        }
        for item in fields(self):
            part = getattr(self, item.name)
            values |= to_mapping(part) if is_dataclass(part) else {}
        return values

    def inputs(self) -> list[Path]:
        """Return the files and folders that are read: none of them may be written to."""
        read = (self.model and model_path(self.model), self.meaning.sigma_map)
        return [place_of(self.source), *(Path(path) for path in read if path)]

    @property
    def sigma_kind(self) -> SigmaKind:
        """What sigma will be; a `ConfigError` if the options do not say."""
        from uncertainty_depth.sigma.recorded.interpreter import recorded_predictions

        if not self.is_recorded:
            return SigmaKind.METRES
        interpreter, _ = recorded_predictions(
            [self.source], self.topics, self.meaning, self.evaluation
        )
        return interpreter.sigma_kind

    def check(self, write_bag: Path | None = None) -> None:
        """Refuse options that do not fit each other, before anything is opened.

        Args:
            write_bag: path of the bag to write; None for none.

        Raises:
            ConfigError: they do not.
        """
        if not self.is_recorded:
            if not self.model:
                raise ConfigError(
                    "--model is missing; expected --model (indoor, demo: shipped ones), or "
                    "--depth-topic and --confidence-topic of what is recorded in the bag"
                )
            defaults = to_mapping(PredictionConfig())
            for name, value in to_mapping(self.meaning).items():
                is_of_relative_networks = name in ("align", "align_per")
                if is_of_relative_networks and is_hugging_face(Path(self.model)):
                    continue
                if value != defaults[name]:
                    raise ConfigError(
                        f"{name} is {value!r}, an option of recorded predictions, but --model is "
                        f"{self.model}; expected --depth-topic instead of --model, or no {name}"
                    )
            return
        if self.model:
            raise ConfigError(
                f"model is {self.model!r}, but {self.source} has its own predictions; expected "
                "--model, or a depth topic or predictions:DIR, not both"
            )
        if self.scale.use_depth_scale:
            raise ConfigError(
                f"use_depth_scale is true, but {self.source} has its own predictions, whose depth "
                "no node corrects; expected --model, or false"
            )
        if write_bag and not self.topics.confidence_topic:
            raise ConfigError(
                f"write_bag is {str(write_bag)!r}, which is to hold depth and sigma at the times "
                f"of a bag, but {self.source} is scored without a confidence topic; expected a "
                "bag with --depth-topic and --confidence-topic, or no --write-bag"
            )


class Opened(NamedTuple):
    """Frames with predictions, and what a report says about them.

    Attributes:
        frames: each with a prediction.
        check: has seen their geometry, after an iteration.
        describe: returns what predicts, for `summary.json`.
        notes: returns what was lost or assumed, from the sums over all frames.
        trained_on: sources that the model was trained on; None if that is not known.
        calibrated_on: sources that sigma was calibrated on.
        sigma_kind: what sigma is.
        options: of the source and of recorded predictions.
    """

    frames: Predicted
    check: GeometryCheck
    describe: Callable[[], Facts]
    notes: Callable[[Sums], list[str]]
    trained_on: tuple[Overlap, ...] | None
    calibrated_on: tuple[Overlap, ...]
    sigma_kind: SigmaKind
    options: Facts


def open_frames(job: ScoringJob) -> Opened:
    """Open a job's source and what predicts its frames.

    Raises:
        SourceError: the source cannot be opened.
        ModelError: the model cannot be read.
        ConfigError: an option does not fit.
    """
    return _open_recorded(job) if job.is_recorded else _open_predicted(job)


def _open_predicted(job: ScoringJob) -> Opened:
    from uncertainty_depth.report.model_facts import part_of

    opened = _opened(job)
    source, check = with_geometry_check(Subsampled(opened, job.max_frames))
    check_location(model_path(job.model))

    # Imported after the paths are checked: torch takes seconds to import.
    from uncertainty_depth.depth.predictor import Predictor

    predictor = Predictor(Path(job.model), job.predictor, relative=True)
    source = _with_known_depth(source, predictor, job)
    own = partial(predict_frame, predictor)
    predict: Predict = own
    facts: Facts = {}
    more_notes: Callable[[Sums], list[str]] | None = None
    if predictor.model.is_relative:  # inverse depth up to scale and shift, aligned to the truth
        if job.scale.use_depth_scale:
            raise ConfigError(
                f"use_depth_scale is true, but the depth of {job.model} has no unit; expected a "
                "model that gives metres, or false"
            )
        from uncertainty_depth.sigma.recorded.interpreter import Interpreter

        align = "scale_shift" if job.meaning.align == "none" else job.meaning.align
        meaning = replace(
            job.meaning, depth_type="inverse_depth", confidence_type="sigma", align=align
        )
        interpreter = Interpreter(meaning, job.evaluation)

        def recorded(frame: Frame) -> Frame:
            maps = predict_frame(predictor, frame)
            return replace(frame, recorded=RecordedMaps(maps.depth_m, maps.sigma_m))

        def predict_aligned(frame: Frame) -> DepthMap:
            return interpreter.predict(recorded(frame))

        predict = predict_aligned
        more_notes = interpreter.notes
        interpreter.fit_to(source.name, (recorded(it) for it in source if isinstance(it, Frame)))
        facts = interpreter.describe_alignment()
    elif job.meaning.align != "none":
        raise ConfigError(
            f"align is {job.meaning.align!r}, but {job.model} gives metres; expected no --align, "
            "which is for recorded predictions and relative networks"
        )
    elif job.scale.use_depth_scale:
        from uncertainty_depth.core.node_config import OnlineCorrectionConfig
        from uncertainty_depth.sigma.online.correction_in_force import FOLLOWED
        from uncertainty_depth.sigma.online.loop import AsPublished

        config = OnlineCorrectionConfig(use_depth_scale=True)
        predict = followed = AsPublished(own, config, job.evaluation)
        facts = {"depth_scale": FOLLOWED}

        def more_notes(sums: Sums) -> list[str]:
            sentences = followed.scales.notes()
            if check.outcome != FITS:
                sentences.append(
                    "use_depth_scale trusts the ground truth, and nothing shows that it fits the "
                    f"image ({check.description()}): look at it with `uncertainty-depth info`"
                )
            return sentences

    frames = Predicted(source, predict)

    def notes(sums: Sums) -> list[str]:
        sentences = [*predictor.data_monitor.notes(), *frames.notes]
        return [*sentences, *(more_notes(sums) if more_notes else [])]

    return Opened(
        frames,
        check,
        lambda: {**predictor.describe(), **facts},
        notes,
        tuple(trained_on(predictor.model.name, predictor.model.training, [frames.name])),
        tuple(calibrated_on(part_of(predictor.describe(), "fitted_to"), [frames.name])),
        SigmaKind.METRES,
        to_mapping(job.sources),
    )


def _opened(job: ScoringJob) -> Source:
    """Return the source, with the camera's poses and what its motion measures if it is to."""
    from uncertainty_depth.stream.motion import with_motion

    frame = job.sources.odometry_frame
    if parse_measurements(job.predictor.measurements).motion:
        sources = replace(job.sources, odometry_frame=frame or ODOMETRY_FRAME)
        return with_motion(open_source(job.source, sources))
    if frame:
        raise ConfigError(
            f"odometry_frame is {frame!r}, but measurements is {job.predictor.measurements!r}; "
            "expected --measurements motion, which takes the camera's poses, or no odometry_frame"
        )
    return open_source(job.source, job.sources)


def _with_known_depth(source: Source, predictor: Predictor, job: ScoringJob) -> Source:
    """Return the source with what is measured beside the image, and no ground truth there."""
    from uncertainty_depth.stream.held_out import MEASURED_MARGIN, for_model

    margin = MEASURED_MARGIN if predictor.measurements.sparse else 0
    return for_model(source, predictor.sparse_input, job.held_out, margin)


def _open_recorded(job: ScoringJob) -> Opened:
    from uncertainty_depth.sigma.recorded.interpreter import recorded_predictions

    interpreter, topics = recorded_predictions(
        [job.source], job.topics, job.meaning, job.evaluation
    )
    meaning = interpreter.config
    recorded = open_source(job.source, job.sources, topics, meaning)
    spread = Subsampled(recorded, job.max_frames)
    source, check = with_geometry_check(spread)
    interpreter.fit_to(source.name, spread)
    frames = Predicted(source, interpreter.predict)
    names = [name for name in (topics.depth_topic, topics.confidence_topic) if name]
    folder = job.source.removeprefix(RECORDED).partition(",per_metre=")[0]
    facts = interpreter.describe(" with ".join(names) or f"{folder}/depth")
    fitted = facts.get("fitted_to")
    return Opened(
        frames,
        check,
        lambda: facts,
        lambda sums: [*interpreter.notes(sums), *frames.notes],
        None,
        tuple(calibrated_on(fitted if isinstance(fitted, Mapping) else {}, [job.source])),
        interpreter.sigma_kind,
        {**to_mapping(job.sources), **to_mapping(topics), **to_mapping(meaning)},
    )


def score(
    job: ScoringJob, command: str = "", write_bag: Path | None = None
) -> tuple[Evaluation, Context]:
    """Score a job's frames; return their evaluation and what a report says about them.

    Args:
        job: checked.
        command: what made it, for the report.
        write_bag: bag to write the predictions to; None for none.

    Raises:
        SourceError: the source cannot be read.
        ModelError: the model cannot be read.
        ConfigError: an option does not fit.
    """
    from uncertainty_depth.report.evaluation import Sink, evaluate
    from uncertainty_depth.report.report import Context

    opened = open_frames(job)
    if write_bag and opened.sigma_kind is not SigmaKind.METRES:
        raise ConfigError(
            f"write_bag is {str(write_bag)!r}, which is to hold sigma in metres, but "
            f"confidence_type {job.meaning.confidence_type!r} has no unit; expected "
            "--sigma-map map.json of `uncertainty-depth calibrate`, or no --write-bag"
        )
    known = [*map(str, opened.trained_on or ()), *map(str, opened.calibrated_on)]
    warn(known)
    with ExitStack() as stack:
        sinks: list[Sink] = []
        if write_bag:
            from uncertainty_depth.stream.prediction_bag import prediction_sink

            sinks.append(stack.enter_context(prediction_sink(write_bag)))
        evaluation = evaluate(opened.frames, job.evaluation, sinks, sigma_kind=opened.sigma_kind)
    notes = opened.notes(evaluation.metrics.total())
    warn(notes)
    notes += [f"first {reason}: {text}" for reason, text in evaluation.first_skips.items()]
    if evaluation.interrupted:
        warn(["interrupted: reporting on the frames scored so far; Ctrl-C again aborts"])
        count = len(opened.frames)
        notes.append(f"interrupted: only the first frames of about {count} were read")
    context = Context(
        source=job.source,
        model=opened.describe(),
        notes=(*known, *notes),
        options=({"max_frames": job.max_frames} if job.max_frames else {}) | {**opened.options},
        trained_on=opened.trained_on,
        calibrated_on=opened.calibrated_on,
        geometry=opened.check.summary(),
        command=command,
    )
    return evaluation, context


def score_and_write(job: ScoringJob, folder: Path, command: str) -> None:
    """Score a job in a worker, and write its report to a folder.

    The worker computes with one thread: the bits do not depend on how many share a machine.

    Raises:
        KeyboardInterrupt: it was interrupted; nothing is written.
    """
    from uncertainty_depth.core.interrupt import deferred_interrupt
    from uncertainty_depth.report import report

    if job.model:
        import torch

        torch.set_num_threads(1)
    with deferred_interrupt():
        evaluation, context = score(job, command)
        if evaluation.interrupted:
            raise KeyboardInterrupt
        report.write(evaluation, folder, context)
