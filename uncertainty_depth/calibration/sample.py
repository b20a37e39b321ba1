"""The pixels a map is fitted to: a bounded, seeded sample of each frame, kept frame by frame."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.data.source import Source
from uncertainty_depth.errors import SourceError
from uncertainty_depth.evaluation.evaluate import DepthPredictor
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.records import Frame

LEAST_FRAMES = 8
LEAST_PIXELS = 1000


@dataclass(frozen=True, eq=False)
class Sample:
    """Pixels of one sequence, or of a part of it.

    Attributes:
        name: what a person calls it.
        frames: (3, n) float32 for each frame, in the order of time: predicted depth, raw sigma and true depth, metres. n is at least 1.
    """

    name: str
    frames: tuple[NDArray[np.float32], ...]

    @property
    def pixels(self) -> int:
        """Pixels of all frames."""
        return sum(frame.shape[1] for frame in self.frames)

    def blocks(self, number: int) -> list[Sample]:
        """Cut into contiguous blocks of time, as equal as can be: neighbours in time are alike and must not be on both sides of a split.

        Raises:
            SourceError: fewer frames than blocks.
        """
        if len(self.frames) < number:
            raise SourceError(
                f"{self.name} has {len(self.frames)} frames to fit to; expected at least {number}, as many as blocks"
            )
        edges = np.linspace(0, len(self.frames), number + 1).round().astype(int)
        return [
            Sample(f"{self.name}, block {i + 1} of {number}", self.frames[edges[i] : edges[i + 1]])
            for i in range(number)
        ]

    def split(self, share: float) -> tuple[Sample, Sample]:
        """The first frames, and the last `share` of them; at least one of each."""
        cut = len(self.frames) - min(max(round(share * len(self.frames)), 1), len(self.frames) - 1)
        return Sample(self.name, self.frames[:cut]), Sample(self.name, self.frames[cut:])


def sigma_and_error(samples: Iterable[Sample]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(N,) raw sigma and (N,) absolute error, metres, of all pixels together."""
    depth, sigma, truth = np.concatenate(
        [frame for sample in samples for frame in sample.frames], axis=1
    ).astype(np.float64)
    return sigma, np.abs(depth - truth)


def collect(
    source: Source, predictor: DepthPredictor, config: CalibrationConfig, progress: bool = True
) -> Sample:
    """Predict the frames of a source and keep some of the pixels that have a ground truth; memory is bounded by the two limits in `config`.

    The first Ctrl-C ends it after the frame at hand; the sample is that of the frames so far.

    Raises:
        SourceError: fewer frames or pixels than a map can be fitted to.
    """
    random = np.random.default_rng(config.pixel_seed)
    step = -(-len(source) // config.max_frames) if config.max_frames else 1
    step = max(step, 1)
    bar = tqdm(source, total=len(source), unit="frame", desc=source.name, disable=not progress)
    frames = []
    with deferred_interrupt() as interrupt:
        for index, record in enumerate(bar):
            if index % step == 0 and isinstance(record, Frame):
                pixels = _pixels(record, predictor, config, random)
                if pixels.shape[1]:
                    frames.append(pixels)
            if interrupt.requested:
                break
    return _checked(Sample(source.name, tuple(frames)))


def _pixels(
    frame: Frame, predictor: DepthPredictor, config: CalibrationConfig, random: np.random.Generator
) -> NDArray[np.float32]:
    """(3, n) predicted depth, raw sigma and true depth of some of a frame's pixels, metres."""
    prediction = predictor.predict(frame.image, frame.stamp_ns)
    maps = (prediction.depth_m, prediction.sigma_m, frame.ground_truth_m)
    known = np.stack(valid_pixels(*maps, config.min_depth, config.max_depth))
    number = min(config.pixels_per_frame, known.shape[1])
    if not number:
        return known
    return known[:, random.choice(known.shape[1], number, replace=False)].astype(np.float32)


def _checked(sample: Sample) -> Sample:
    if len(sample.frames) < LEAST_FRAMES or sample.pixels < LEAST_PIXELS:
        raise SourceError(
            f"{sample.name} has {len(sample.frames)} frames and {sample.pixels} pixels with a prediction and a ground truth within the depth range;"
            f" expected at least {LEAST_FRAMES} frames and {LEAST_PIXELS} pixels to calibrate on"
        )
    return sample
