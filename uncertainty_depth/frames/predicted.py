# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model as a mapping over frames, which fills their prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.blas import single_threaded_blas
from uncertainty_depth.config import SourceConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.frames.overlap import read_ahead
from uncertainty_depth.frames.source import Source, open_source
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.records import DepthPrediction, Frame, Skipped

Predict = Callable[[Frame], DepthPrediction]
"""Returns the prediction of a frame; a `MessageError` skips the frame."""


class DepthPredictor(Protocol):
    """Protocol of a predictor of depth and sigma, such as `inference.predictor.Predictor`."""

    def predict(
        self, image: NDArray[np.uint8], stamp_ns: int, camera: Camera | None = None
    ) -> DepthPrediction:
        """Return depth and sigma, metres, at the size of `image`, (H, W, 3) uint8 RGB.

        The camera is the image's; None if it is not known.
        """
        ...


def predict_frame(predictor: DepthPredictor, frame: Frame) -> DepthPrediction:
    """Return the prediction of a frame, from its sparse depth too if it has any."""
    image = frame.need_image()
    if frame.sparse_m is None:
        return predictor.predict(image, frame.stamp_ns, frame.camera)
    completing: Any = predictor  # of a model with sparse input, which alone has such frames
    prediction: DepthPrediction = completing.predict(
        image, frame.stamp_ns, frame.camera, sparse_m=frame.sparse_m
    )
    return prediction


def predicted(source: Source | str | Path, predictor: DepthPredictor) -> Predicted:
    """Return the frames of a source, or of its notation, with the predictions of a model.

    Raises:
        SourceError: the source cannot be opened.
    """
    if isinstance(source, (str, Path)):
        source = open_source(str(source), SourceConfig())
    return Predicted(source, partial(predict_frame, predictor))


class Predicted:
    """The frames of a source with their predictions. A `Source`.

    The next frames are read, by a thread of their own, while one is predicted.
    """

    def __init__(self, source: Source, predict: Predict, overlapped: bool = True) -> None:
        """Take a source and what predicts a frame; without `overlapped` one thread does both."""
        self.name = source.name
        self._source = source
        self._predict = predict
        self._overlapped = overlapped

    @property
    def notes(self) -> list[str]:
        """The notes of the source."""
        return self._source.notes

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Yield each frame with its prediction, or why it has none."""
        records = read_ahead(self._source) if self._overlapped else each(self._source)
        with single_threaded_blas(), closing(records):
            for record in records:
                yield record if isinstance(record, Skipped) else self._predicted(record)

    def _predicted(self, frame: Frame) -> Frame | Skipped:
        try:
            return replace(frame, prediction=self._predict(frame))
        except MessageError as error:
            return Skipped(frame.stamp_ns, error.reason, f"{frame.name}: {error}")


def each(frames: Iterable[Frame | Skipped]) -> Any:
    """Return a generator over the frames, which can be closed whatever they are."""
    yield from frames
