# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Open a job: the one way to frames, for whatever is done with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from uncertainty_depth.core.config import ODOMETRY_FRAME, SourceConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.records import Frame, Overlap, Skipped
from uncertainty_depth.frames.predicted import Predicted
from uncertainty_depth.frames.protocol import JoinedSource, Source, SourceWrapper, Subsampled
from uncertainty_depth.stream.geometry_check import GeometryCheck
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.opening import open_source
from uncertainty_depth.stream.predicting import Predicting, open_recorded


class Stream(SourceWrapper):
    """The frames of a job's sources, with their predictions if anything predicts. A `Source`.

    While frames are read, their geometry is checked; what the check found is among the notes.

    Attributes:
        sources: the readers, as they were opened.
        checks: have seen the geometry of each source, after an iteration.
        parts: the frames of each source.
        predicting: what predicts.
        trained_on: sources that the model was trained on; None if that is not known.
        calibrated_on: sources that sigma was calibrated on.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        checks: Sequence[GeometryCheck],
        parts: Sequence[Source],
        predicting: Predicting,
    ) -> None:
        super().__init__(_joined(parts))
        self.sources = sources
        self.checks = checks
        self.parts = parts
        self.predicting = predicting
        names = [part.name for part in parts]
        self.trained_on = predicting.trained_on(names)
        self.calibrated_on = predicting.calibrated_on(names)

    @classmethod
    def open(cls, job: Job) -> Stream:
        """Open the sources of a job and what predicts their frames.

        Raises:
            SourceError: a source does not exist, cannot be read, or lacks a part of a frame.
            ModelError: the model cannot be read.
            ConfigError: an option does not fit the sources or the model.
        """
        predicting = open_recorded(job) if job.is_recorded else Predicting()
        reading = _reading(job)
        sources = [
            open_source(name, reading, predicting.topics, predicting.meaning)
            for name in job.sources
        ]
        spread = [Subsampled(source, job.max_frames) for source in _measured(job, sources)]
        checks = [GeometryCheck() for _ in sources]
        parts = [check.seeing(source) for check, source in zip(checks, spread, strict=True)]
        if job.model:
            from uncertainty_depth.stream.by_model import open_model

            predicting = open_model(job, checks)
        if job.model or job.is_recorded:
            predicting.fit_to(_joined(spread))
            parts = [Predicted(predicting.seen_by(part), predicting.predict) for part in parts]
        return cls(sources, checks, parts, predicting)

    @property
    def notes(self) -> list[str]:
        """What was lost or assumed, complete after an iteration."""
        return [*super().notes, *self.predicting.notes()]

    @property
    def overlaps(self) -> list[Overlap]:
        """Sources whose frames the model or its sigma was fitted to."""
        return [*(self.trained_on or ()), *self.calibrated_on]

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Yield each image once, as a frame or the reason for its loss."""
        return iter(self._source)


def _reading(job: Job) -> SourceConfig:
    """Return how a job's sources are read: with the camera's poses if motion is to measure."""
    frame = job.reading.odometry_frame
    if job.needs_motion:
        return replace(job.reading, odometry_frame=frame or ODOMETRY_FRAME)
    if frame and job.model:
        raise ConfigError(
            f"odometry_frame is {frame!r}, but measurements is {job.predictor.measurements!r}; "
            "expected --measurements motion, which takes the camera's poses, or no odometry_frame"
        )
    return job.reading


def _measured(job: Job, sources: list[Source]) -> list[Source]:
    """Return the sources with what the camera's motion measures, if it is to."""
    if not job.needs_motion:
        return sources
    from uncertainty_depth.stream.motion import with_motion

    return [with_motion(source) for source in sources]


def _joined(sources: Sequence[Source]) -> Source:
    return sources[0] if len(sources) == 1 else JoinedSource(sources)
