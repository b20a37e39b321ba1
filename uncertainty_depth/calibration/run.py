# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The whole calibration: sample, choose, fit, and score on frames that had no part in it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration.choose import Choice, choose
from uncertainty_depth.calibration.fitted_data import FittedData
from uncertainty_depth.calibration.half_widths import measured_half_widths
from uncertainty_depth.calibration.sample import (
    Sample,
    all_pixels,
    collect,
    fitted_data,
    sigma_and_error,
)
from uncertainty_depth.calibration.scores import LABELS, Scores, harmed, mean_scores, scores
from uncertainty_depth.calibration.sigma_map import IDENTITY, SigmaMap
from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.errors import CalibrationError, SourceError
from uncertainty_depth.frames.predicted import DepthPredictor
from uncertainty_depth.frames.source import Source
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.metrics import coverage
from uncertainty_depth.metrics.distributions import CONFIDENCE_LEVELS

MIN_SPREAD = 0.05  # standard deviation of calibrated sigma over its mean
logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Trial:
    """Held-out frames, and a map that was neither fitted nor selected on them.

    Attributes:
        name: of the frames.
        sigma_map: the map.
        frames: number of frames.
        pixels: number of pixels.
        before: scores of raw sigma.
        after: scores of mapped sigma.
        reliability: (2, 99) coverage of raw and of mapped sigma at the levels 1 to 99 %.
        half_widths: (99,) of the intervals that cover those levels, in mapped sigmas.
    """

    name: str
    sigma_map: SigmaMap
    frames: int
    pixels: int
    before: Scores
    after: Scores
    reliability: NDArray[np.float64]
    half_widths: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted map, the scores it was selected by, and its scores on held-out frames.

    Trials are never pooled: each has its own map, and sequences covered too much and too little
    would cancel.

    Attributes:
        choice: the map for the model folder, and the held-out scores of every candidate.
        trials: one for each held-out sequence; of a single source, one for its last frames.
        fitted: the data that the map was fitted to.
        distribution: what sigma is taken to be the standard deviation of.
        raw_range_m: 99 % of the raw sigmas are smaller, metres.
    """

    choice: Choice
    trials: tuple[Trial, ...]
    fitted: FittedData
    distribution: str
    raw_range_m: float

    def scores(self) -> tuple[Scores, Scores]:
        """Return the scores before and after, the mean over the trials."""
        before = mean_scores([trial.before for trial in self.trials])
        return before, mean_scores([trial.after for trial in self.trials])

    def half_widths(self) -> NDArray[np.float64]:
        """Return the half widths of intervals in mapped sigmas, (99,), the mean over the trials.

        Infinite where sigma is 0 and the error is not.
        """
        widths: NDArray[np.float64] = np.mean([trial.half_widths for trial in self.trials], axis=0)
        return widths

    def harmed(self) -> list[str]:
        """Return the names of the scores that the map makes worse on frames not used."""
        return harmed(*self.scores())


def check(calibration: Calibration) -> None:
    """Refuse a map that is worse than raw sigma on frames not used.

    Raises:
        CalibrationError: it is, by its score, its likelihood or its coverage.
    """
    before, after = calibration.scores()
    changes = [
        f"{LABELS[name]} {before[name]:.4g} -> {after[name]:.4g}" for name in calibration.harmed()
    ]
    if changes:
        raise CalibrationError(
            f"the map '{calibration.choice.sigma_map.name}' is worse than raw sigma on frames not "
            f"used: {', '.join(changes)}; the model folder is left as it is: calibrate on more "
            "data like those of the robot, or write it all the same with --force"
        )


def calibrate(
    sources: Sequence[Source],
    predictor: DepthPredictor,
    config: CalibrationConfig,
    progress: bool = True,
) -> Calibration:
    """Fit a map from raw to calibrated sigma to the sources' ground truth.

    Of a single source the last frames are kept to report on; blocks of time of the others are left
    out in turn to choose the map, which is then fitted to them all. Of several sources each is
    left out in turn to choose the map, which is fitted to them all; to report on a source, the
    same is done with the other sources alone.

    Args:
        sources: one or more sequences.
        predictor: gives raw sigma.
        config: what is used, and how it is split; an empty distribution is a Gaussian.
        progress: show bars.

    The first Ctrl-C ends the reading after the frame at hand: what has been read is calibrated on.

    Raises:
        SourceError: a source has too few frames or pixels to calibrate on, or its sigma or errors
            are 0.
    """
    samples = _collect_all(sources, predictor, config, progress)
    distribution = config.distribution or "gaussian"
    if len(samples) > 1:
        fitting_samples = samples
        choice = choose(samples, distribution)
        trials = [_trial_of_one(samples, sample, config) for sample in samples]
    else:
        first, last = samples[0].split(config.report_fraction)
        fitting_samples = [first]
        choice = choose(first.blocks(config.blocks), distribution)
        trials = [_trial(last, choice.sigma_map, distribution)]
    raw_m = all_pixels(samples)[1]
    _warn_if_constant(choice.sigma_map(raw_m))
    raw_range_m = float(np.quantile(raw_m, 0.99))
    return Calibration(
        choice, tuple(trials), fitted_data(fitting_samples), distribution, raw_range_m
    )


def _collect_all(
    sources: Sequence[Source],
    predictor: DepthPredictor,
    config: CalibrationConfig,
    progress: bool,
) -> list[Sample]:
    """Return a sample of each source; after Ctrl-C of those that were read."""
    samples: list[Sample] = []
    with deferred_interrupt() as interrupt:
        for source in sources:
            try:
                samples.append(collect(source, predictor, config, progress))
            except SourceError:
                if not (interrupt.requested and samples):
                    raise
            if interrupt.requested:
                logger.warning(
                    "interrupted: fitting to the frames read so far; Ctrl-C again aborts"
                )
                break
    return samples


def _warn_if_constant(sigma_m: NDArray[np.floating]) -> None:
    """Warn where a map is so flat that calibrated sigma hardly varies.

    AUSE does not show it, since it depends on the order of sigma alone.
    """
    spread = float(np.std(sigma_m) / np.mean(sigma_m))
    if spread < MIN_SPREAD:
        logger.warning(
            "calibrated sigma varies by only %.1f %%: on these frames raw sigma says next to "
            "nothing about the error",
            100 * spread,
        )


def _trial_of_one(samples: list[Sample], left_out: Sample, config: CalibrationConfig) -> Trial:
    """Score one sequence by a map that is chosen on and fitted to the others."""
    distribution = config.distribution or "gaussian"
    others = [sample for sample in samples if sample is not left_out]
    parts = others if len(others) > 1 else others[0].blocks(config.blocks)
    return _trial(left_out, choose(parts, distribution).sigma_map, distribution)


def _trial(sample: Sample, sigma_map: SigmaMap, distribution: str) -> Trial:
    raw, error = sigma_and_error([sample])
    reliability = [
        coverage(error, sigma, CONFIDENCE_LEVELS, distribution=distribution)
        for sigma in (raw, sigma_map(raw))
    ]
    return Trial(
        sample.name,
        sigma_map,
        len(sample.frames),
        sample.pixels,
        scores(sample, IDENTITY, distribution),
        scores(sample, sigma_map, distribution),
        np.array(reliability),
        measured_half_widths(error, sigma_map(raw)),
    )
