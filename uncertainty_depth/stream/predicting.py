# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What fills the prediction of a stream's frames: nothing, a record beside them, or a model.

A model's depth is in metres, aligned if it gives none, or as a node would publish it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.nodes import OnlineCorrectionConfig
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.config.source import PredictionConfig, PredictionTopics
from uncertainty_depth.core.errors import ConfigError, MessageError, ModelError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.model_location import check_location, model_path
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import (
    DepthMap,
    DepthPrediction,
    Frame,
    Overlap,
    RecordedMaps,
    Skipped,
)
from uncertainty_depth.frames.protocol import RECORDED, MapSource, Source
from uncertainty_depth.frames.published import published_model
from uncertainty_depth.stream.geometry_check import FITS, GeometryCheck
from uncertainty_depth.stream.held_out import held_out_rule, hold_out_pixels, without_given
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.opening import calibrated_on, trained_on

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor
    from uncertainty_depth.metrics.state import Sums

Facts = Mapping[str, Any]


class Predicting:
    """What fills the prediction of frames, by itself none; `depth_range` is metres or None."""

    topics = PredictionTopics()
    meaning = PredictionConfig()
    depth_range: tuple[float, ...] | None = None

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
        fitted_to = self.describe().get("fitted_to")
        return tuple(calibrated_on(fitted_to if isinstance(fitted_to, Mapping) else {}, names))


class _Recorded(Predicting):
    """Depth that the sources have recorded, with or without a confidence."""

    def __init__(self, job: Job) -> None:
        from uncertainty_depth.sigma.recorded.interpreter import recorded_predictions

        self._interpreter, self.topics = recorded_predictions(
            job.sources, job.topics, job.meaning, job.evaluation
        )
        self.meaning = self._interpreter.config
        self._job = job
        self.depth_range: tuple[float, ...] = (job.evaluation.min_depth, job.evaluation.max_depth)
        topics = filter(None, (self.topics.depth_topic, self.topics.confidence_topic))
        folder = job.sources[0].removeprefix(RECORDED).partition(",per_metre=")[0]
        self._name = " with ".join(topics) or f"{folder}/depth"
        self._familiar: list[float] = []
        self._given: HeldOutConfig | None = None
        if self.topics.depth_topic:
            model = published_model(Path(job.sources[0]), self.topics.depth_topic)
            self._familiar = list(strict.limits_of(model.get("familiar_places")) or ())
            try:
                self._given = held_out_rule(model)
            except MessageError as error:
                raise ConfigError(f"{job.sources[0]}: {error}") from error

    def seen_by(self, source: Source) -> Source:
        if self._job.predictor.measurements:
            source = hold_out_pixels(source, self._job.measuring, self._job.held_out)
        return MapSource(source, self._scorable)

    def _scorable(self, record: Frame | Skipped) -> Frame | Skipped:
        """Return a frame without ground truth where it corrected the recorded prediction."""
        if isinstance(record, Skipped):
            return record
        measured = () if record.recorded is None else record.recorded.measured
        try:
            return without_given(record, self._given, measured)
        except MessageError as error:
            return Skipped(record.stamp_ns, error.reason, f"{record.name}: {error}")

    def fit_to(self, source: Source) -> None:
        self._interpreter.fit_to(source.name, source)

    def predict(self, frame: Frame) -> DepthMap:
        made = self._interpreter.predict(frame)
        if not (self._job.predictor.measurements and isinstance(made, DepthPrediction)):
            return made
        from uncertainty_depth.sigma.posterior import corrected  # SciPy loads slowly

        return corrected(made, frame, self.depth_range)

    def describe(self) -> Facts:
        familiar = {"familiar_places": self._familiar} if self._familiar else {}
        return {**self._interpreter.describe(self._name), **familiar, **self._measured()}

    def options(self) -> Facts:
        return {**to_mapping(self.topics), **to_mapping(self.meaning), **self._measured()}

    def _measured(self) -> Facts:
        measurements = self._job.predictor.measurements
        return {"measurements": measurements} if measurements else {}

    def notes(self) -> list[str]:
        return self._interpreter.notes()

    def doubts(self, sums: Sums) -> list[str]:
        return self._interpreter.doubts(sums)


def open_recorded(job: Job) -> Predicting:
    """Return what reads the predictions that a job's sources recorded, or raise `ConfigError`."""
    return _Recorded(job)


class DepthPredictor(Protocol):
    """Protocol of a predictor of depth and sigma, such as `depth.predictor.Predictor`."""

    def predict(
        self, image: NDArray[np.uint8], stamp_ns: int, camera: Camera | None = None
    ) -> DepthPrediction:
        """Return depth and sigma, metres, at the size of `image`, (H, W, 3) uint8 RGB."""
        ...


def predict_frame(predictor: DepthPredictor, frame: Frame) -> DepthPrediction:
    """Return a frame's prediction, from known depth and measurements too if it has any."""
    image = frame.need_image()
    if frame.sparse_m is None and frame.measurements is None:
        return predictor.predict(image, frame.stamp_ns, frame.camera)
    measured: Any = predictor  # one that takes depth beside the image, which alone has such frames
    prediction: DepthPrediction
    if frame.measurements is None:
        prediction = measured.predict(image, frame.stamp_ns, frame.camera, sparse_m=frame.sparse_m)
    else:
        prediction = measured.predict_frame(frame)
    return prediction


class Network(Predicting):
    """Anything that predicts images; its name in reports may be empty."""

    def __init__(self, predictor: DepthPredictor, name: str = "") -> None:
        self._predictor = predictor
        self.name = name

    def predict(self, frame: Frame) -> DepthMap:
        """Return its prediction of a frame; raise `ModelError` for one that is none."""
        made: Any = predict_frame(self._predictor, frame)
        name = self.name or "the network"
        shape = frame.need_image().shape[:2]
        if not isinstance(made, DepthPrediction):
            raise ModelError(
                f"predict of {name} returned {type(made).__name__}; expected "
                "uncertainty_depth.DepthPrediction(depth_m, sigma_m)"
            )
        if made.depth_m.shape != shape or made.sigma_m.shape != shape:
            raise ModelError(
                f"{name} predicted depth {made.depth_m.shape} and sigma {made.sigma_m.shape} of "
                f"an image {shape}; expected both at the image's size"
            )
        return made

    def describe(self) -> Facts:
        """Return its name: no more is known."""
        return {"name": self.name} if self.name else {}


def open_own(job: Job) -> Network:
    """Import the class that a job's model names, and make one.

    Raise `ConfigError` or `ModelError`.
    """
    defaults = to_mapping(PredictorConfig())
    for name, value in to_mapping(job.predictor).items():
        if value != defaults[name]:
            raise ConfigError(
                f"{name} is {value!r}, but {job.model} is a class of your own, which takes no "
                f"options; expected no {name}"
            )
    place, _, name = job.model.rpartition(":")
    folder, _, module_name = place.rpartition("/")
    sys.path.insert(0, str(Path(folder or ".").resolve()))
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ModelError(f"{job.model}: {module_name} needs {error.name}: {error}") from error
        raise ModelError(
            f"model is {job.model}, but {folder or 'the current folder'} has no Python module "
            f"{module_name}"
        ) from error
    made = getattr(module, name, None)
    network: Any = made() if isinstance(made, type) else made
    if not callable(getattr(network, "predict", None)):
        raise ModelError(
            f"model is {job.model}, but {module.__file__} has no {name} with a method "
            "predict(image, stamp_ns, camera)"
        )
    return Network(network, name)


class _Model(Predicting):
    """A model that gives metres."""

    def __init__(self, job: Job, predictor: Predictor) -> None:
        self._held_out = job.held_out
        self._predictor = predictor
        self.depth_range = predictor.depth_range

    def seen_by(self, source: Source) -> Source:
        return hold_out_pixels(source, self._predictor.measurements, self._held_out)

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
        from uncertainty_depth.sigma.recorded.interpreter import Interpreter

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
        from uncertainty_depth.sigma.online.correction import OnlineCorrected

        super().__init__(job, predictor)
        config = OnlineCorrectionConfig(use_depth_scale=True)
        own = partial(predict_frame, predictor)
        self._published = OnlineCorrected(own, config, job.evaluation)
        self._checks = checks

    def predict(self, frame: Frame) -> DepthMap:
        return self._published(frame)

    def describe(self) -> Facts:
        from uncertainty_depth.sigma.online.correction import FOLLOWED

        return {**super().describe(), "depth_scale": FOLLOWED}

    def notes(self) -> list[str]:
        doubtful = [
            "use_depth_scale trusts the ground truth, and nothing shows that it fits the "
            f"image ({check.description()}): look at it with `uncertainty-depth info`"
            for check in self._checks
            if check.outcome != FITS
        ]
        return [*super().notes(), *self._published.scales.notes(), *doubtful]


def open_model(
    job: Job, checks: Sequence[GeometryCheck], predictor: Predictor | None = None
) -> Predicting:
    """Load a job's model, unless `predictor` is it; checks see the sources' geometry."""
    if predictor is None:
        check_location(model_path(job.model))
        # Imported after the paths are checked: torch takes seconds to import.
        from uncertainty_depth.depth.predictor import Predictor

        predictor = Predictor(Path(job.model), job.predictor, relative=job.may_align)
    follows = job.scale.use_depth_scale
    if predictor.model.is_relative and not job.predictor.measurements:
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
