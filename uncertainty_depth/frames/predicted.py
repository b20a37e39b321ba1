# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model as a mapping over frames, which fills their prediction; reading overlaps with it.

NumPy, OpenCV and torch let other threads run while they compute, so a loop over frames takes as
long as its slowest part. A few frames at most are in flight: memory stays bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.process import single_threaded_blas
from uncertainty_depth.core.records import DepthMap, DepthPrediction, Frame, Skipped
from uncertainty_depth.frames.protocol import Source, SourceWrapper

Predict = Callable[[Frame], DepthMap]
"""Returns a frame's prediction; a `MessageError` skips the frame."""


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


class PredictedSource(SourceWrapper):
    """The frames of a source with their predictions; a thread reads the next ones meanwhile."""

    def __init__(self, source: Source, predict: Predict) -> None:
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
