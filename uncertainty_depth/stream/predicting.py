# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What fills the prediction of a stream's frames: nothing, or what was recorded beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncertainty_depth.core import strict
from uncertainty_depth.core.config.recorded import PredictionConfig, PredictionTopics
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.options import to_mapping
from uncertainty_depth.core.records import DepthMap, DepthPrediction, Frame, Overlap, Skipped
from uncertainty_depth.frames.notation import RECORDED
from uncertainty_depth.frames.protocol import MapSource, Source
from uncertainty_depth.frames.published import published_model
from uncertainty_depth.stream.held_out import (
    MEASURED_MARGIN,
    HeldOutRule,
    for_model,
    held_out_rule,
    without_given,
)
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.overlap import calibrated_on

if TYPE_CHECKING:
    from uncertainty_depth.metrics.state import Sums

Facts = Mapping[str, Any]


class Predicting:
    """What fills the prediction of frames. By itself it fills none.

    Attributes:
        topics: that sources are read with.
        meaning: of what these hold.
        depth_range: min and max depth of what predicts, metres; None if that is not known.
    """

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
        self._rule: HeldOutRule | None = None
        if self.topics.depth_topic:
            model = published_model(Path(job.sources[0]), self.topics.depth_topic)
            self._familiar = list(strict.limits_of(model.get("familiar_places")) or ())
            try:
                self._rule = held_out_rule(model)
            except MessageError as error:
                raise ConfigError(f"{job.sources[0]}: {error}") from error

    def seen_by(self, source: Source) -> Source:
        if self._job.predictor.measurements:
            sparse = self._job.measuring.sparse
            source = for_model(source, sparse, self._job.held_out, MEASURED_MARGIN)
        return MapSource(source, self._scorable, list)

    def _scorable(self, record: Frame | Skipped) -> Frame | Skipped:
        """Return a frame without ground truth where it corrected the recorded prediction."""
        if isinstance(record, Skipped):
            return record
        measured = () if record.recorded is None else record.recorded.measured
        try:
            return without_given(record, self._rule, measured)
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
    """Return what reads the predictions that a job's sources have recorded.

    Raises:
        ConfigError: the options do not say what they hold, or the sigma map does not fit.
    """
    return _Recorded(job)
