# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model as what predicts: its metres, aligned if it gives none, or as a node publishes them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncertainty_depth.core.config.nodes import OnlineCorrectionConfig
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.core.model_location import check_location, model_path
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import DepthMap, DepthPrediction, Frame, Overlap, RecordedMaps
from uncertainty_depth.frames.predicted import DepthPredictor, predict_frame
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.stream.geometry_check import FITS, GeometryCheck
from uncertainty_depth.stream.held_out import hold_out_pixels
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.predicting import Facts, Predicting, trained_on

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor
    from uncertainty_depth.metrics.state import Sums


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
