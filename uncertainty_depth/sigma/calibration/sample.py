# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The pixels a map is fitted to: a bounded, seeded sample from each frame, frame by frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.core.config.scoring import CalibrationConfig
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.focal_length import camera_ranges
from uncertainty_depth.core.process import deferred_interrupt
from uncertainty_depth.core.records import Frame, Skipped, sigma_of
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.sigma.calibration.fit import Pixels
from uncertainty_depth.sigma.calibration.fitted_data import RANGE, FittedData

MIN_FRAMES = 8
MIN_PIXELS = 1000
PIXELS_PER_FRAME = 1000
"""At most, drawn at random: neighbours err alike, and say little more."""
MAX_PIXELS = 200_000
"""Pixels from all sources together: frames are the independent observations, pixels take time."""
MIN_FRAME_PIXELS = 100
"""Kept from every frame, if it has them."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Pixels from one sequence, or a part of it.

    Attributes:
        frames: (3, n) float32 for each frame, as time goes: predicted depth, raw sigma and
            true depth, metres, in random order, or what else was kept. n is at
            least 1.
        cameras: the frames', as many; empty if they are not known.
    """

    name: str
    frames: tuple[NDArray[np.float32], ...]
    cameras: tuple[Camera | None, ...] = ()

    @property
    def pixels(self) -> int:
        """Return how many pixels all frames have."""
        return sum(frame.shape[1] for frame in self.frames)

    def thinned(self, pixels: int) -> Sample:
        """Return the sample with about so many pixels, as many from each frame."""
        each = max(pixels // max(len(self.frames), 1), MIN_FRAME_PIXELS)
        return replace(self, frames=tuple(frame[:, :each] for frame in self.frames))

    def blocks(self, number: int) -> list[Sample]:
        """Cut into contiguous blocks in time, as equal as can be, or raise `SourceError`."""
        if len(self.frames) < number:
            raise SourceError(
                f"{self.name} has {len(self.frames)} frames to fit to; "
                f"expected at least {number}, as many as blocks"
            )
        edges = np.linspace(0, len(self.frames), number + 1).round().astype(int)
        return [
            self._part(f"{self.name}, block {index} of {number}", start, stop)
            for index, (start, stop) in enumerate(pairwise(edges), 1)
        ]

    def split(self, fraction: float) -> tuple[Sample, Sample]:
        """Return the first frames, and their last `fraction`; at least one each."""
        count = len(self.frames)
        cut = count - min(max(round(fraction * count), 1), count - 1)
        return self._part(self.name, 0, cut), self._part(self.name, cut, count)

    def _part(self, name: str, start: int, end: int) -> Sample:
        return replace(
            self, name=name, frames=self.frames[start:end], cameras=self.cameras[start:end]
        )


def pixels_of(samples: Iterable[Sample]) -> Pixels:
    """Return all frames' pixels together, those with a positive depth."""
    frames = list(chain.from_iterable(sample.frames for sample in samples))
    depth, uncertainty, truth = np.concatenate(frames, axis=1).astype(np.float64)
    valid = depth > 0
    return Pixels(depth[valid], uncertainty[valid], np.abs(depth - truth)[valid])


def collect(
    source: Source,
    config: CalibrationConfig,
    progress: bool = True,
    values_of: Callable[[Frame, CalibrationConfig], NDArray] | None = None,
) -> Sample:
    """Keep, from each frame, `PIXELS_PER_FRAME` pixels at most with a prediction and a truth.

    The first Ctrl-C ends it after the current frame; the sample holds the frames so far.
    `values_of` returns what a pixel keeps, (K, N); None for depth, sigma and truth.
    """
    random = np.random.default_rng(0)
    pixels: list[NDArray[np.float32]] = []
    cameras: list[Camera | None] = []
    skipped: list[str] = []
    records = (record for record in source)  # which can be closed
    bar = tqdm(records, total=len(source), unit="frame", desc=source.name, disable=not progress)
    with deferred_interrupt() as interrupt, closing(records):
        for record in bar:
            if isinstance(record, Skipped):
                skipped.append(record.message)
            else:
                values = (values_of or _depth_sigma_truth)(record, config)
                number = min(PIXELS_PER_FRAME, values.shape[1])
                if number:
                    chosen = random.choice(values.shape[1], number, replace=False)
                    pixels.append(values[:, chosen].astype(np.float32))
                    cameras.append(record.camera)
            if interrupt.requested:
                break
    sample = Sample(source.name, tuple(pixels), tuple(cameras))
    if len(sample.frames) < MIN_FRAMES or sample.pixels < MIN_PIXELS:
        problem = f"; of {len(skipped)} skipped, the first: {skipped[0]}" if skipped else ""
        raise SourceError(
            f"{sample.name} has {len(sample.frames)} frames and {sample.pixels} pixels with a "
            "prediction and a ground truth within the depth range; expected at least "
            f"{MIN_FRAMES} frames and {MIN_PIXELS} pixels to calibrate on{problem}"
        )
    return sample


def _depth_sigma_truth(frame: Frame, config: CalibrationConfig) -> NDArray[np.floating]:
    """Return predicted depth, raw sigma and true depth where all are known, metres."""
    prediction = frame.need_depth()
    sigma_m = sigma_of(prediction)
    if sigma_m is None:  # the maps of a depth alone ignore it
        sigma_m = np.ones_like(prediction.depth_m)
    maps = (prediction.depth_m, sigma_m, frame.need_ground_truth())
    return np.stack(valid_pixels(*maps, config.min_depth, config.max_depth))


def fitted_data(samples: Sequence[Sample]) -> FittedData:
    """Describe the samples that a map is fitted to."""
    frames = list(chain.from_iterable(sample.frames for sample in samples))
    _, sigma, truth = np.concatenate(frames, axis=1).astype(np.float64)
    cameras = chain.from_iterable(sample.cameras for sample in samples)
    return FittedData(
        tuple(sample.name for sample in samples),
        sum(len(sample.frames) for sample in samples),
        sum(sample.pixels for sample in samples),
        _quantiles(truth),
        _quantiles(sigma),
        camera_ranges(cameras),
    )


def _quantiles(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(float(value), 6) for value in np.quantile(values, RANGE))
