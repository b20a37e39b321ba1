# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What fills the prediction of a stream's frames: a model, or what was recorded beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncertainty_depth.core.config import PredictionConfig, PredictionTopics
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.model_location import check_location, model_path
from uncertainty_depth.core.node_config import OnlineCorrectionConfig
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import DepthMap, Frame, Overlap, RecordedMaps
from uncertainty_depth.frames.notation import RECORDED
from uncertainty_depth.frames.predicted import predict_frame
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics.registry import SigmaKind
from uncertainty_depth.metrics.state import Sums
from uncertainty_depth.report.model_facts import part_of
from uncertainty_depth.sigma.online.correction_in_force import FOLLOWED
from uncertainty_depth.sigma.online.loop import AsPublished
from uncertainty_depth.sigma.recorded.interpreter import Interpreter, recorded_predictions
from uncertainty_depth.stream.geometry_check import FITS, GeometryCheck
from uncertainty_depth.stream.held_out import MEASURED_MARGIN, for_model
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.overlap import calibrated_on, trained_on

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor

Facts = Mapping[str, Any]


class Predicting:
    """What fills the prediction of frames. By itself it fills none.

    Attributes:
        sigma_kind: what sigma is.
        topics: that sources are read with.
        meaning: of what these hold.
    """

    sigma_kind = SigmaKind.METRES
    topics = PredictionTopics()
    meaning = PredictionConfig()

    def seen_by(self, source: Source) -> Source:
        """Return the source with the depth that is given beside the image, and no truth there."""
        return source

    def fit_to(self, source: Source) -> None:
        """Align all frames of a source together, if the options ask for that."""

    def predict(self, frame: Frame) -> DepthMap:
        """Return a frame's prediction; a `MessageError` skips the frame."""
        raise NotImplementedError

    def describe(self) -> Facts:
        """Return what predicts, as plain values for a report."""
        return {}

    def options(self) -> Facts:
        """Return what of it somebody chose, as plain values for a report."""
        return {}

    def notes(self) -> list[str]:
        """Return what predictions rest on, complete after the last frame."""
        return []

    def doubts(self, sums: Sums) -> list[str]:
        """Return what seems wrong with sigma, from the sums over all frames."""
        return []

    def trained_on(self, names: Sequence[str]) -> tuple[Overlap, ...] | None:
        """Return the sources that a model was trained on; None if that is not known."""
        return None

    def calibrated_on(self, names: Sequence[str]) -> tuple[Overlap, ...]:
        """Return the sources that sigma was fitted to."""
        return tuple(calibrated_on(part_of(self.describe(), "fitted_to"), names))


class _Model(Predicting):
    """A model that gives metres."""

    def __init__(self, job: Job, predictor: Predictor) -> None:
        self._held_out = job.held_out
        self._predictor = predictor

    def seen_by(self, source: Source) -> Source:
        margin = MEASURED_MARGIN if self._predictor.measurements.sparse else 0
        return for_model(source, self._predictor.sparse_input, self._held_out, margin)

    def predict(self, frame: Frame) -> DepthMap:
        return predict_frame(self._predictor, frame)

    def describe(self) -> Facts:
        return self._predictor.describe()

    def notes(self) -> list[str]:
        return self._predictor.data_monitor.notes()

    def trained_on(self, names: Sequence[str]) -> tuple[Overlap, ...] | None:
        model = self._predictor.model
        return tuple(trained_on(model.name, model.training, names))


class _AlignedModel(_Model):
    """A model that gives inverse depth up to scale and shift, aligned to the ground truth."""

    def __init__(self, job: Job, predictor: Predictor) -> None:
        super().__init__(job, predictor)
        align = "scale_shift" if job.meaning.align == "none" else job.meaning.align
        meaning = replace(
            job.meaning, depth_type="inverse_depth", confidence_type="sigma", align=align
        )
        self._interpreter = Interpreter(meaning, job.evaluation)

    def fit_to(self, source: Source) -> None:
        records = (self._recorded(it) for it in source if isinstance(it, Frame))
        self._interpreter.fit_to(source.name, records)

    def predict(self, frame: Frame) -> DepthMap:
        return self._interpreter.predict(self._recorded(frame))

    def _recorded(self, frame: Frame) -> Frame:
        maps = predict_frame(self._predictor, frame)
        return replace(frame, recorded=RecordedMaps(maps.depth_m, maps.sigma_m))

    def describe(self) -> Facts:
        return {**super().describe(), **self._interpreter.describe_alignment()}

    def notes(self) -> list[str]:
        return [*super().notes(), *self._interpreter.notes()]

    def doubts(self, sums: Sums) -> list[str]:
        return self._interpreter.doubts(sums)


class _FollowedModel(_Model):
    """A model whose depth follows the scale of the frames before, as a node would publish it."""

    def __init__(self, job: Job, predictor: Predictor, checks: Sequence[GeometryCheck]) -> None:
        super().__init__(job, predictor)
        config = OnlineCorrectionConfig(use_depth_scale=True)
        own = partial(predict_frame, predictor)
        self._published = AsPublished(own, config, job.evaluation)
        self._checks = checks

    def predict(self, frame: Frame) -> DepthMap:
        return self._published(frame)

    def describe(self) -> Facts:
        return {**super().describe(), "depth_scale": FOLLOWED}

    def notes(self) -> list[str]:
        doubtful = [
            "use_depth_scale trusts the ground truth, and nothing shows that it fits the "
            f"image ({check.description()}): look at it with `uncertainty-depth info`"
            for check in self._checks
            if check.outcome != FITS
        ]
        return [*super().notes(), *self._published.scales.notes(), *doubtful]


class _Recorded(Predicting):
    """Depth that the sources have recorded, with or without a confidence."""

    def __init__(self, job: Job) -> None:
        self._interpreter, self.topics = recorded_predictions(
            job.sources, job.topics, job.meaning, job.evaluation
        )
        self.meaning = self._interpreter.config
        self.sigma_kind = self._interpreter.sigma_kind
        topics = filter(None, (self.topics.depth_topic, self.topics.confidence_topic))
        folder = job.sources[0].removeprefix(RECORDED).partition(",per_metre=")[0]
        self._name = " with ".join(topics) or f"{folder}/depth"

    def fit_to(self, source: Source) -> None:
        self._interpreter.fit_to(source.name, source)

    def predict(self, frame: Frame) -> DepthMap:
        return self._interpreter.predict(frame)

    def describe(self) -> Facts:
        return self._interpreter.describe(self._name)

    def options(self) -> Facts:
        return {**to_mapping(self.topics), **to_mapping(self.meaning)}

    def notes(self) -> list[str]:
        return self._interpreter.notes()

    def doubts(self, sums: Sums) -> list[str]:
        return self._interpreter.doubts(sums)


def open_recorded(job: Job) -> Predicting:
    """Return what reads the predictions that a job's sources have recorded.

    Raises:
        ConfigError: the options do not say what they hold, or the sigma map does not fit.
    """
    return _Recorded(job)


def open_model(job: Job, checks: Sequence[GeometryCheck]) -> Predicting:
    """Load a job's model.

    Args:
        job: with a model.
        checks: have seen the geometry of the sources, after an iteration.

    Raises:
        ModelError: the model cannot be read.
        ConfigError: an option does not fit it.
    """
    check_location(model_path(job.model))

    # Imported after the paths are checked: torch takes seconds to import.
    from uncertainty_depth.depth.predictor import Predictor

    predictor = Predictor(Path(job.model), job.predictor, relative=job.may_align)
    follows = job.scale.use_depth_scale
    if predictor.model.is_relative:
        if follows:
            raise ConfigError(
                f"use_depth_scale is true, but the depth of {job.model} has no unit; expected a "
                "model that gives metres, or false"
            )
        return _AlignedModel(job, predictor)
    if job.meaning.align != "none":
        raise ConfigError(
            f"align is {job.meaning.align!r}, but {job.model} gives metres; expected no --align, "
            "which is for recorded predictions and relative networks"
        )
    return _FollowedModel(job, predictor, checks) if follows else _Model(job, predictor)
