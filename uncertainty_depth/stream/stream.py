# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Open a job: the one way to frames, for whatever is done with them.

Reading, predicting and scoring overlap: NumPy, OpenCV and torch let other threads run while they
compute, so a loop over frames takes as long as its slowest part. A few frames at most are in
flight: memory stays bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import ODOMETRY_FRAME, SourceConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.model_location import is_own_class
from uncertainty_depth.core.process import single_threaded_blas
from uncertainty_depth.core.records import DepthMap, Frame, Overlap, Skipped
from uncertainty_depth.frames.mask import Mask
from uncertainty_depth.frames.protocol import (
    JoinedSource,
    MapSource,
    Source,
    SourceWrapper,
    Subsampled,
)
from uncertainty_depth.stream.geometry_check import GeometryCheck
from uncertainty_depth.stream.held_out import without_measured
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.opening import open_source, prefix_of
from uncertainty_depth.stream.predicting import (
    DepthPredictor,
    Network,
    Predicting,
    open_model,
    open_own,
    open_recorded,
    predict_frame,
)

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor
    from uncertainty_depth.frames.bag import BagSource


class Stream(SourceWrapper):
    """The frames of a job's sources, with their predictions if anything predicts. A `Source`.

    While frames are read, their geometry is checked; what the check found is among the notes.

    `parts` are each source's frames, `checks` have seen their geometry after an iteration, and
    `trained_on` is None if that is not known.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        checks: Sequence[GeometryCheck],
        parts: Sequence[Source],
        predicting: Predicting,
    ) -> None:
        super().__init__(_joined(parts), predicting.notes)
        self.sources = sources
        self.checks = checks
        self.parts = parts
        self.predicting = predicting
        names = [part.name for part in parts]
        self.trained_on = predicting.trained_on(names)
        self.calibrated_on = predicting.calibrated_on(names)

    @classmethod
    def open(cls, job: Job, predictor: DepthPredictor | None = None) -> Stream:
        """Open the sources of a job and what predicts their frames.

        `predictor` is used if the job names no model, or is its model. Raises `SourceError`,
        `ModelError` or `ConfigError` if one does not exist, or they do not fit.
        """
        mask = Mask(job.mask)
        predicting = open_recorded(job) if job.is_recorded else Predicting()
        reading = _reading(job)
        sources = [
            open_source(name, reading, predicting.topics, predicting.meaning)
            for name in job.sources
        ]
        spread = [Subsampled(source, job.max_frames) for source in _measured(job, sources)]
        checks = [GeometryCheck() for _ in sources]
        parts = [check.seeing(source) for check, source in zip(checks, spread, strict=True)]
        if is_own_class(job.model):
            predicting = open_own(job)
        elif job.model:
            predicting = open_model(job, checks, cast("Predictor | None", predictor))
        elif predictor is not None:
            predicting = Network(predictor)
        if job.measuring.topics:
            for source in sources:  # bags all, see `_reading`
                cast("BagSource", source).depth_range = predicting.depth_range
        if job.model or predictor is not None or job.is_recorded:
            predicting.fit_to(_joined([MapSource(part, mask) for part in spread]))
            # Masked last: a model is given what it is given on a robot, which knows no mask.
            scored = [MapSource(predicting.seen_by(part), mask, mask.notes) for part in parts]
            parts = [PredictedSource(part, predicting.predict) for part in scored]
        return cls(sources, checks, parts, predicting)

    @property
    def overlaps(self) -> list[Overlap]:
        """Sources whose frames the model or its sigma was fitted to."""
        return [*(self.trained_on or ()), *self.calibrated_on]


def predicted(source: Source | str | Path, predictor: DepthPredictor) -> Source:
    """Return the frames of a source with a model's predictions.

    A source that is named is opened as commands open it: its geometry is checked, and a predictor
    that takes measurements is given them, and is not scored on them.

    The source may be a notation, or frames that hold all that the model takes. Raises
    `SourceError`, or `ConfigError` without what the predictor measures by.
    """
    if not isinstance(source, (str, Path)):
        return PredictedSource(source, partial(predict_frame, predictor))
    job = Job(sources=(str(source),))
    config = getattr(predictor, "config", None)
    if isinstance(config, PredictorConfig):
        model = cast("Predictor", predictor).model
        job = replace(job, model=str(model.path), predictor=config)
    return Stream.open(job, predictor)


def _reading(job: Job) -> SourceConfig:
    """Return how a job's sources are read: with the camera's poses if motion is to measure."""
    frame = job.reading.odometry_frame
    for kind, topic in job.measured_topics.items():
        if bool(topic) != (kind in job.measuring.topics):
            raise ConfigError(
                f"measured_{kind}_topic is {topic!r}, and measurements is "
                f"{job.predictor.measurements!r}; expected both --measurements {kind} and "
                f"--measured-{kind}-topic, or neither"
            )
        for source in job.sources if topic else ():
            if prefix_of(source):
                raise ConfigError(
                    f"measured_{kind}_topic is {topic!r}, but {source} has no topics; expected a "
                    "bag"
                )
    if job.measuring.motion:
        return replace(job.reading, odometry_frame=frame or ODOMETRY_FRAME)
    if frame:
        raise ConfigError(
            f"odometry_frame is {frame!r}, but measurements is {job.predictor.measurements!r}; "
            "expected --measurements motion, which takes the camera's poses, or no odometry_frame"
        )
    return job.reading


def _measured(job: Job, sources: list[Source]) -> list[Source]:
    """Return the sources with what measures beside the model, and no ground truth there."""
    if job.measuring.motion:
        from uncertainty_depth.stream.motion import with_motion

        sources = [with_motion(source) for source in sources]
    if job.measuring.motion or job.measuring.topics:
        sources = [without_measured(source) for source in sources]
    return sources


def _joined(sources: Sequence[Source]) -> Source:
    return sources[0] if len(sources) == 1 else JoinedSource(sources)


class PredictedSource(SourceWrapper):
    """The frames of a source with their predictions; a thread reads the next ones meanwhile.

    A `MessageError` of what predicts skips a frame.
    """

    def __init__(self, source: Source, predict: Callable[[Frame], DepthMap]) -> None:
        super().__init__(source)
        self._predict = predict

    def __iter__(self) -> Iterator[Frame | Skipped]:
        records = read_ahead(self._source)
        with single_threaded_blas(), closing(records):
            for record in records:
                if isinstance(record, Skipped):
                    yield record
                    continue
                try:
                    predicted = replace(record, prediction=self._predict(record))
                except MessageError as error:
                    yield Skipped(record.stamp_ns, error.reason, f"{record.name}: {error}")
                else:
                    yield predicted


Item = TypeVar("Item")
PREFETCH = 2
"""Items that are read before they are asked for."""
_END: Any = object()


def read_ahead(items: Iterable[Item]) -> Generator[Item, None, None]:
    """Yield the items, which another thread reads, from the first to the last.

    An exception of the reading is raised in place of its item. Leaving the loop waits for the
    item that is being read, and ends the iteration on the thread that began it.
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1, "reading") as thread:
        waiting = deque(thread.submit(next, iterator, _END) for _ in range(PREFETCH))
        try:
            while (item := waiting.popleft().result()) is not _END:
                waiting.append(thread.submit(next, iterator, _END))
                yield item
        finally:
            for future in waiting:
                future.cancel()
            close = getattr(iterator, "close", None)
            if close is not None:
                thread.submit(close).result()
