# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What fills the prediction of a stream's frames: nothing, or what was recorded beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.config.source import PredictionConfig, PredictionTopics
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import DepthMap, DepthPrediction, Frame, Overlap, Skipped, Use
from uncertainty_depth.frames.protocol import NAME_SEPARATOR, RECORDED, MapSource, Source
from uncertainty_depth.frames.published import published_model
from uncertainty_depth.stream.held_out import (
    held_out_rule,
    hold_out_pixels,
    without_given,
)
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.opening import frames_of, prefix_of

if TYPE_CHECKING:
    from uncertainty_depth.metrics.state import Sums

Facts = Mapping[str, Any]


def trained_on(model: str, training: Mapping[str, Any], sources: Sequence[str]) -> list[Overlap]:
    """Return each source whose frames the model has seen in training, by their names alone.

    A fine-tuned model's record has, in `started_from`, the sources of the trainings before.
    """
    started_from = training.get("started_from")
    earlier = started_from.get("sources") if isinstance(started_from, Mapping) else None
    joined = [training.get("source"), *(earlier if isinstance(earlier, list) else [])]
    trained: list[str] = []
    for names in joined:
        trained += str(names or "").split(NAME_SEPARATOR)
    return _overlaps(model, Use.TRAINING, trained, sources)


def calibrated_on(fitted_to: Mapping[str, Any], sources: Sequence[str]) -> list[Overlap]:
    """Return each source that a calibration of sigma was fitted to, by its record's `sources`."""
    fitted = fitted_to.get("sources")
    names = [str(name) for name in fitted] if isinstance(fitted, (list, tuple)) else []
    return _overlaps("sigma", Use.CALIBRATION, names, sources)


def _overlaps(model: str, use: Use, used: Sequence[str], sources: Sequence[str]) -> list[Overlap]:
    overlaps = []
    for source in sources:
        found = [same for name in used if (same := _is_same(source, name)) is not None]
        if found:
            overlaps.append(Overlap(source, use, any(found), model))
    return overlaps


def _is_same(source: str, used: str) -> bool | None:
    """Return whether two sources share frames for certain; None if they share none."""
    if not used or prefix_of(source) != prefix_of(used):
        return None
    place, parts = frames_of(source)
    other_place, other_parts = frames_of(used)
    if not parts & other_parts:
        return None
    real, other_real = map(_real, (place, other_place))
    if real == other_real:
        return True
    return False if real.name == other_real.name else None


def _real(place: Path) -> Path:
    """Return the path without links, as far as it can be followed: a model may name any place."""
    try:
        return place.resolve()
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links, no path at all
        return place


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
