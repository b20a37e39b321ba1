# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The pixels a map is fitted to: a bounded, seeded sample of each frame, kept frame by frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.calibration.fitted_data import QUANTILE_LEVELS, FittedData
from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.errors import SourceError
from uncertainty_depth.frames.predicted import DepthPredictor, predict_frame
from uncertainty_depth.frames.source import Source
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.focal_length import camera_ranges
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.records import DepthPrediction, Frame, Skipped

RecordT = TypeVar("RecordT")
RecordT_co = TypeVar("RecordT_co", covariant=True)
MIN_FRAMES = 8
MIN_PIXELS = 1000


@dataclass(frozen=True, eq=False)
class Sample:
    """Pixels of one sequence, or of a part of it.

    Attributes:
        name: what a person calls it.
        frames: (3, n) float32 for each frame, in the order of time: predicted depth, raw sigma and
            true depth, metres. n is at least 1.
        cameras: of the frames, as many; empty where they are not known.
    """

    name: str
    frames: tuple[NDArray[np.float32], ...]
    cameras: tuple[Camera | None, ...] = ()

    @property
    def pixels(self) -> int:
        """Return the number of pixels of all frames."""
        return sum(frame.shape[1] for frame in self.frames)

    def blocks(self, number: int) -> list[Sample]:
        """Cut into contiguous blocks of time, as equal as can be.

        Neighbours in time are alike and must not be on both sides of a split.

        Raises:
            SourceError: fewer frames than blocks.
        """
        if len(self.frames) < number:
            raise SourceError(
                f"{self.name} has {len(self.frames)} frames to fit to; "
                f"expected at least {number}, as many as blocks"
            )
        edges = np.linspace(0, len(self.frames), number + 1).round().astype(int)
        blocks = []
        for index, (start, stop) in enumerate(pairwise(edges), 1):
            blocks.append(self._part(f"{self.name}, block {index} of {number}", start, stop))
        return blocks

    def split(self, fraction: float) -> tuple[Sample, Sample]:
        """Return the first frames, and the last `fraction` of them; at least one of each."""
        count = len(self.frames)
        cut = count - min(max(round(fraction * count), 1), count - 1)
        return self._part(self.name, 0, cut), self._part(self.name, cut, count)

    def _part(self, name: str, start: int, end: int) -> Sample:
        return replace(
            self, name=name, frames=self.frames[start:end], cameras=self.cameras[start:end]
        )


def all_pixels(samples: Iterable[Sample]) -> NDArray[np.float64]:
    """Return (3, N) predicted depth, raw sigma and true depth, metres, of all pixels together."""
    frames = list(chain.from_iterable(sample.frames for sample in samples))
    return np.concatenate(frames, axis=1).astype(np.float64)


def sigma_and_error(samples: Iterable[Sample]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (N,) raw sigma and (N,) absolute error, metres, of all pixels together."""
    depth, sigma, truth = all_pixels(samples)
    return sigma, np.abs(depth - truth)


def collect(
    source: Source, predictor: DepthPredictor, config: CalibrationConfig, progress: bool = True
) -> Sample:
    """Predict the frames of a source and keep some of the pixels that have a ground truth.

    Memory is bounded by `max_frames` and `pixels_per_frame` of `config`.

    The first Ctrl-C ends it after the frame at hand; the sample is that of the frames so far.

    Raises:
        SourceError: fewer frames or pixels than a map can be fitted to.
    """
    random = np.random.default_rng(config.pixel_seed)
    pixels: list[NDArray[np.float32]] = []
    cameras: list[Camera | None] = []
    skipped: list[Skipped] = []
    for frame in evenly_spread(source, Frame, config.max_frames, progress, skipped):
        prediction = predict_frame(predictor, frame)
        pixel_values = random_pixels(prediction, frame.need_ground_truth(), config, random)
        if pixel_values.shape[1]:
            pixels.append(pixel_values)
            cameras.append(frame.camera)
    problem = f"; of {len(skipped)} skipped, the first: {skipped[0].message}" if skipped else ""
    return check_sample(Sample(source.name, tuple(pixels), tuple(cameras)), problem)


class Records(Protocol[RecordT_co]):
    """A source of frames, of recorded predictions, or of the reasons why one is lost."""

    name: str

    def __len__(self) -> int:
        """Return the expected number of records."""

    def __iter__(self) -> Iterator[RecordT_co | Skipped]:
        """Yield each record once."""


def evenly_spread(
    source: Records[RecordT],
    record_type: type[RecordT],
    max_frames: int,
    progress: bool,
    skipped: list[Skipped] | None = None,
) -> Iterator[RecordT]:
    """Yield at most `max_frames` records of a type, evenly spread; all for 0. Ctrl-C ends it.

    What was skipped is added to `skipped`.
    """
    step = max(-(-len(source) // max_frames), 1) if max_frames else 1
    total = len(source)
    bar = tqdm(source, total=total, unit="frame", desc=source.name, disable=not progress)
    with deferred_interrupt() as interrupt:
        for index, record in enumerate(bar):
            if index % step == 0 and isinstance(record, record_type):
                yield record
            elif isinstance(record, Skipped) and skipped is not None:
                skipped.append(record)
            if interrupt.requested:
                break


def random_pixels(
    prediction: DepthPrediction,
    ground_truth_m: NDArray[np.float32],
    config: CalibrationConfig,
    random: np.random.Generator,
) -> NDArray[np.float32]:
    """Return predicted depth, raw sigma and true depth of random pixels, (3, n) metres."""
    maps = (prediction.depth_m, prediction.sigma_m, ground_truth_m)
    pixel_values = np.stack(valid_pixels(*maps, config.min_depth, config.max_depth))
    number = min(config.pixels_per_frame, pixel_values.shape[1])
    if not number:
        return pixel_values
    return pixel_values[:, random.choice(pixel_values.shape[1], number, replace=False)].astype(
        np.float32
    )


def check_sample(sample: Sample, problem: str = "") -> Sample:
    """Return the sample.

    Args:
        sample: of a source.
        problem: what the sentence of the error ends with.

    Raises:
        SourceError: it has too few frames or pixels to calibrate on.
    """
    if len(sample.frames) < MIN_FRAMES or sample.pixels < MIN_PIXELS:
        raise SourceError(
            f"{sample.name} has {len(sample.frames)} frames and {sample.pixels} pixels with a "
            "prediction and a ground truth within the depth range; expected at least "
            f"{MIN_FRAMES} frames and {MIN_PIXELS} pixels to calibrate on{problem}"
        )
    return sample


def fitted_data(samples: Sequence[Sample]) -> FittedData:
    """Describe the samples that a map is fitted to."""
    _, sigma, truth = all_pixels(samples)
    cameras = chain.from_iterable(sample.cameras for sample in samples)
    return FittedData(
        tuple(sample.name for sample in samples),
        sum(len(sample.frames) for sample in samples),
        sum(sample.pixels for sample in samples),
        _quantiles(truth, (0.01, 0.99)),
        _quantiles(sigma, QUANTILE_LEVELS),
        camera_ranges(cameras),
    )


def _quantiles(values: NDArray[np.float64], levels: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(float(value), 6) for value in np.quantile(values, levels))
