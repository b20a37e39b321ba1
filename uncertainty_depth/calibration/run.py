"""The whole calibration: sample, choose, fit, and score on frames that had no part in it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration.choose import Choice, choose
from uncertainty_depth.calibration.sample import Sample, collect, sigma_and_error
from uncertainty_depth.calibration.sigma_map import IDENTITY, SigmaMap
from uncertainty_depth.config import CalibrationConfig, EvaluationConfig
from uncertainty_depth.data.source import Source
from uncertainty_depth.errors import SourceError
from uncertainty_depth.evaluation.evaluate import DepthPredictor
from uncertainty_depth.interrupt import deferred_interrupt
from uncertainty_depth.metrics import OnlineMetrics

LEAST_SPREAD = 0.05  # standard deviation of calibrated sigma over its mean
logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Trial:
    """Frames with a map that was neither fitted nor chosen on them, scored with raw (before) and with mapped sigma (after)."""

    name: str
    sigma_map: SigmaMap
    before: OnlineMetrics
    after: OnlineMetrics


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted map, what it was chosen by, and what it does to frames not used.

    Trials are never pooled: each has its own map, and sequences covered too much and too little would cancel.

    Attributes:
        choice: the map for the model folder, and the held-out figures of every candidate.
        trials: one for each held-out sequence; of a single source, one for its last frames.
        raw_range_m: 99 % of the raw sigmas are smaller, metres.
    """

    choice: Choice
    trials: tuple[Trial, ...]
    raw_range_m: float


def calibrate(
    sources: Sequence[Source],
    predictor: DepthPredictor,
    config: CalibrationConfig,
    progress: bool = True,
) -> Calibration:
    """Fit a map from raw to calibrated sigma to the sources' ground truth.

    Of a single source the last frames are kept to report on; blocks of time of the others are left out in turn to choose the kind of map, which is
    then fitted to them all. Of several sources each is left out in turn to choose the kind, which is fitted to them all; to report on a source, the
    same is done with the other sources alone.

    Args:
        sources: one or more sequences.
        predictor: gives raw sigma.
        config: what is used, and how it is split.
        progress: show bars.

    The first Ctrl-C ends the reading after the frame at hand: what has been read is calibrated on.

    Raises:
        SourceError: a source has too few frames or pixels to calibrate on, or its sigma or errors are 0.
    """
    samples = []
    with deferred_interrupt() as interrupt:
        for source in sources:
            try:
                samples.append(collect(source, predictor, config, progress))
            except SourceError:
                if not (interrupt.requested and samples):
                    raise
            if interrupt.requested:
                logger.warning("interrupted: fitting to what has been read; Ctrl-C again aborts")
                break
    if len(samples) > 1:
        choice = choose(samples, config)
        trials = [
            _trial(
                one,
                choose(
                    _parts([other for other in samples if other is not one], config), config
                ).sigma_map,
                config,
            )
            for one in samples
        ]
    else:
        used, kept = samples[0].split(config.report_share)
        choice = choose(_parts([used], config), config)
        trials = [_trial(kept, choice.sigma_map, config)]
    raw_m = sigma_and_error(samples)[0]
    _warn_if_constant(choice.sigma_map(raw_m))
    return Calibration(choice, tuple(trials), float(np.quantile(raw_m, 0.99)))


def _warn_if_constant(sigma_m: NDArray[np.floating]) -> None:
    """An order-preserving map can be so flat that nothing of the order is left to see; AUSE, blind to the size of sigma, does not tell."""
    spread = float(np.std(sigma_m) / np.mean(sigma_m))
    if spread < LEAST_SPREAD:
        logger.warning(
            "calibrated sigma varies by only %.1f %%: on these frames raw sigma says next to nothing about the error",
            100 * spread,
        )


def _parts(samples: list[Sample], config: CalibrationConfig) -> list[Sample]:
    """Sequences to leave out in turn; of one alone, its blocks of time."""
    return samples if len(samples) > 1 else samples[0].blocks(config.blocks)


def _trial(sample: Sample, sigma_map: SigmaMap, config: CalibrationConfig) -> Trial:
    scored = EvaluationConfig(
        min_depth=config.min_depth, max_depth=config.max_depth, alpha=config.alpha
    )
    before, after = OnlineMetrics(scored), OnlineMetrics(scored)
    for depth, sigma, truth in sample.frames:
        before.update(depth, IDENTITY(sigma), truth)
        after.update(depth, sigma_map(sigma), truth)
    return Trial(sample.name, sigma_map, before, after)
