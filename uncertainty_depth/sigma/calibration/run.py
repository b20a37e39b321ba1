# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The whole calibration: sample, choose, fit, and score on held-out frames.

It is the same for a network's raw sigma and for recorded depth, with or without confidence.

Maps are compared by bounded scores, so gross errors cannot decide: a pixel moves the difference
between two maps' CRPS by no more than their sigmas differ, and a coverage by one pixel. The
likelihood is only shown: in a Gaussian's, a few dozen mismatched pixels outweigh all others.

A map is chosen by values and refused by intervals: some map must serve, and the coverage of a few
frames is off by chance.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from uncertainty_depth.core.config.scoring import CalibrationConfig
from uncertainty_depth.core.errors import CalibrationError, SourceError
from uncertainty_depth.core.process import deferred_interrupt
from uncertainty_depth.frames.protocol import Source
from uncertainty_depth.metrics import auce, coverage, crps, nll
from uncertainty_depth.metrics.bootstrap import ROUGH_SPREAD, Interval, mean_interval
from uncertainty_depth.metrics.calibration import (
    DISTRIBUTIONS,
    NOMINAL_LEVEL,
    NOMINAL_WIDTHS,
    SIZE_TOLERANCE,
)
from uncertainty_depth.metrics.merci import at_shares, error_ratio
from uncertainty_depth.sigma.calibration.fit import (
    NETWORK,
    UNITLESS_CONFIDENCE,
    MapInput,
    maps_to_try,
)
from uncertainty_depth.sigma.calibration.fitted_data import FittedData
from uncertainty_depth.sigma.calibration.half_widths import (
    FrameGuarantee,
    frame_factor,
    guarantee,
    measured_half_widths,
)
from uncertainty_depth.sigma.calibration.sample import (
    MAX_PIXELS,
    Sample,
    collect,
    fitted_data,
    pixels_of,
)
from uncertainty_depth.sigma.calibration.sigma_map import SigmaMap

DISTRIBUTION_NAMES = ("laplace", "gaussian")
"""Tried for a camera."""
REPORT_FRACTION = 0.33
"""A single source's last fraction, held out for the reported scores."""
BLOCKS = 4
"""Blocks in time that a single source has, left out in turn to select the map."""
MIN_SPREAD = 0.05  # standard deviation of calibrated sigma over its mean
MIN_TURNED = -0.2
"""Rank correlation with the error below which a confidence seems to be read the wrong way."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Choice:
    """The selected map, fitted to all parts, and what it was selected by.

    `held_out` holds each map's mean scores on parts that it was not fitted to, `rejected` why one
    was, and `distribution_scores` the best map's CRPS by distribution. It must not be worse than
    the map called `reference`.
    """

    sigma_map: SigmaMap
    distribution: str
    reference: str
    held_out: dict[str, Scores]
    rejected: dict[str, str]
    distribution_scores: dict[str, float]


@dataclass(frozen=True, eq=False)
class Trial:
    """Held-out frames, and a map that was neither fitted nor selected on them.

    Attributes:
        before, after: the reference's and the map's scores.
        covered: interval for the map's coverage at 95 %.
        lost: interval for what the map adds to the reference's CRPS, as a fraction of its size.
        half_widths: (99,) for the intervals that cover those levels, in mapped sigmas.
        frame_factors: (frames,) that cover most pixels in each frame, see `frame_factor`.
    """

    name: str
    sigma_map: SigmaMap
    frames: int
    pixels: int
    before: Scores
    after: Scores
    covered: Interval
    lost: Interval
    half_widths: NDArray[np.float64]
    frame_factors: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedCalibration:
    """A fitted map, the scores it was selected by, and its scores on held-out frames.

    Trials are never pooled: each has its own map, and sequences covered too much and too little
    would cancel.
    """

    choice: Choice
    trials: tuple[Trial, ...]
    fitted: FittedData
    kind: MapInput

    @property
    def distribution(self) -> str:
        """What sigma is the standard deviation of."""
        return self.choice.distribution

    def scores(self) -> tuple[Scores, Scores]:
        """Return the reference's and the map's scores, the mean over the trials."""
        before = mean_scores([trial.before for trial in self.trials])
        return before, mean_scores([trial.after for trial in self.trials])

    def half_widths(self) -> NDArray[np.float64]:
        """Return the intervals' half widths in mapped sigmas, (99,), the mean over the trials.

        Infinite if sigma is 0 and the error is not.
        """
        return np.asarray(np.mean([trial.half_widths for trial in self.trials], axis=0))

    def guarantee(self) -> FrameGuarantee:
        """Return the guarantee by frame, from frames that the maps were not fitted to."""
        found = guarantee([trial.frame_factors for trial in self.trials])
        return replace(found, is_refused=bool(self.rejected()))

    def coverage(self) -> Interval:
        """Return the coverage at 95 % and what it may be, the mean over the trials."""
        every = [(each.covered.value, each.covered.low, each.covered.high) for each in self.trials]
        value, low, high = np.mean(every, axis=0).tolist()
        return Interval(value, max(low, 0), min(high, 1))

    def rejected(self) -> dict[str, str]:
        """Return why the map is not to be used, by score; empty for a good map.

        Only what is certain counts. Sequences that are covered too much and too little do not
        cancel. Too wide intervals promise nothing that is not kept, and are refused only if
        sigma's size is as far off as a report's verdict calls red.
        """
        before, after = self.scores()
        reasons = {}
        if np.mean([trial.lost.low for trial in self.trials]) > CRPS_MARGIN:
            reasons["crps"] = f"CRPS {after['crps']:.4g} m, reference {before['crps']:.4g} m"
        missing = np.mean([max(NOMINAL_LEVEL - trial.covered.high, 0.0) for trial in self.trials])
        excess = np.mean([max(trial.covered.low - NOMINAL_LEVEL, 0.0) for trial in self.trials])
        widest = DISTRIBUTIONS[self.distribution].coverage(
            SIZE_TOLERANCE * NOMINAL_WIDTHS[self.distribution]
        )
        is_off = missing > MAX_MISCOVERAGE or excess > widest - NOMINAL_LEVEL
        off = [
            [abs(scores["coverage_95"] - NOMINAL_LEVEL) for scores in (trial.before, trial.after)]
            for trial in self.trials
        ]
        is_nearer = sum(reference - mapped for reference, mapped in off) >= 0
        if is_off and not (self.kind.has_unit and is_nearer):
            held = f"its 95% interval holds {self._covered_text()}"
            reasons["coverage_95"] = f"{held}, reference {before['coverage_95']:.1%}"
        return reasons

    def _covered_text(self) -> str:
        covered = self.coverage()
        return f"{covered.value:.1%} ({covered.low:.1%} to {covered.high:.1%})"

    def notes(self) -> list[str]:
        """Return warnings about the map: it ignores the confidence, or covers too little."""
        sigma_map = self.choice.sigma_map
        _, after = self.scores()
        notes = []
        low, high = self.fitted.sigma_range_m
        if low == high and self.kind.powers:
            notes.append(
                f"the confidence is {low:g} in nearly every pixel: it ranks nothing; expected "
                "another --confidence-topic, or a camera whose confidence is switched on"
            )
        if sigma_map.ignores_uncertainty and self.kind.powers:
            notes.append(
                f"the map '{sigma_map.name}' ignores the confidence: on frames left out no map "
                "of it was better than a sigma without it"
            )
        if abs(after["coverage_95"] - NOMINAL_LEVEL) > MAX_MISCOVERAGE:
            word = "much" if after["coverage_95"] > NOMINAL_LEVEL else "little"
            notes.append(
                f"the 95% interval holds {self._covered_text()} of the errors of frames not "
                f"used: it may claim too {word}"
            )
        if abs(after["coverage_68"] - 0.68) > MAX_MISCOVERAGE_68:
            notes.append(
                f"the 68% interval of a {self.distribution} error holds "
                f"{after['coverage_68']:.1%} of the errors of frames not used: they have another "
                "distribution"
            )
        return notes


def reject_if_worse(calibration: FittedCalibration) -> None:
    """Raise `CalibrationError` if the map fails on held-out frames, by scores or coverage."""
    reasons = calibration.rejected()
    if reasons:
        raise CalibrationError(
            f"the map '{calibration.choice.sigma_map.name}' fails on frames not used: "
            f"{'; '.join(reasons.values())} ({calibration.choice.reference}); nothing is written: "
            "calibrate on more data like those of the robot, or write it all the same with "
            "--force"
        )


def calibrate(
    sources: Sequence[Source],
    config: CalibrationConfig,
    kind: MapInput = NETWORK,
    progress: bool = True,
) -> FittedCalibration:
    """Fit a map from an uncertainty to sigma to the sources' ground truth.

    With a single source, the last frames are kept for the report. To choose the map, blocks of
    time among the other frames are left out in turn; then the map is fitted to all of these. With
    several sources, each is left out in turn to choose the map, which is then fitted to all. To
    report on a source, the same is done with only the other sources.

    The first Ctrl-C stops reading after the current frame; the frames read so far are used.

    An empty distribution in the config tries both; `progress` shows bars. Raises `SourceError` if
    a source has too few frames or pixels, or its sigma or errors are 0.
    """
    samples: list[Sample] = []
    with deferred_interrupt() as interrupt:
        for source in sources:
            try:
                samples.append(collect(source, config, progress))
            except SourceError:
                if not interrupt.requested:
                    raise
                if not samples:
                    raise KeyboardInterrupt from None  # too few frames, because it was cut short
            if interrupt.requested:
                logger.warning(
                    "interrupted: fitting to the frames read so far; Ctrl-C again aborts"
                )
                break
    return calibrate_samples(samples, config, kind)


def calibrate_samples(
    samples: Sequence[Sample], config: CalibrationConfig, kind: MapInput = NETWORK
) -> FittedCalibration:
    """Choose and fit a map to the pixels of one or more sources, and score it; see `calibrate`."""
    samples = [sample.thinned(MAX_PIXELS // len(samples)) for sample in samples]
    distributions = (config.distribution,) if config.distribution else DISTRIBUTION_NAMES
    if len(samples) > 1:
        fitting_samples = samples
        choice = choose(samples, kind, distributions)
        trials = []
        for sample in samples:
            others = [other for other in samples if other is not sample]
            parts = others if len(others) > 1 else others[0].blocks(BLOCKS)
            of_others = choose(parts, kind, (choice.distribution,))
            trials.append(_trial(sample, others, of_others, kind))
    else:
        first, last = samples[0].split(REPORT_FRACTION)
        fitting_samples = [first]
        choice = choose(first.blocks(BLOCKS), kind, distributions)
        trials = [_trial(last, fitting_samples, choice, kind)]
    raw = pixels_of(samples)
    if kind is UNITLESS_CONFIDENCE and np.ptp(raw.uncertainty) > 0:
        rank = float(spearmanr(raw.uncertainty, raw.error).statistic)
        if rank < MIN_TURNED:
            logger.warning(
                "the confidence ranks the errors better the other way: their rank correlation is "
                "%.2f; expected another --confidence-type, as certainty_rank for uncertainty_rank",
                rank,
            )
    if kind is NETWORK:
        sigma_m = choice.sigma_map(raw.uncertainty)
        spread = float(np.std(sigma_m) / np.mean(sigma_m))
        if spread < MIN_SPREAD:  # AUSE does not show it: it depends on the order of sigma alone
            logger.warning(
                "calibrated sigma varies by only %.1f %%: on these frames raw sigma says next to "
                "nothing about the error",
                100 * spread,
            )
    return FittedCalibration(choice, tuple(trials), fitted_data(fitting_samples), kind)


def choose(parts: Sequence[Sample], kind: MapInput, distributions: Sequence[str]) -> Choice:
    """Leave one part out in turn, two parts or more; then fit the best map to all.

    Among the maps that are not rejected, in all distributions, those within `CRPS_MARGIN` of the
    smallest CRPS are as good. Among these, those within `SIZE_MARGIN` of the best size are as good
    again, and the one with the smallest CRPS is taken.
    """
    choices = [_choice(parts, kind, distribution) for distribution in distributions]
    best = _best([made.held_out[made.sigma_map.name] for made in choices])
    crps = {made.distribution: made.held_out[made.sigma_map.name]["crps"] for made in choices}
    return replace(choices[best], distribution_scores=crps)


def _choice(parts: Sequence[Sample], kind: MapInput, distribution: str) -> Choice:
    folds = []
    for left_out in parts:
        others = [part for part in parts if part is not left_out]
        maps = maps_to_try(pixels_of(others), kind, distribution)
        depth, uncertainty, error = pixels_of([left_out])
        folds.append(
            {
                name: scores_of_sigma(error, made(uncertainty, depth), distribution)
                for name, made in maps.items()
            }
        )
    held_out = {name: mean_scores([fold[name] for fold in folds]) for name in folds[0]}
    reference = min(kind.references, key=lambda name: held_out[name]["crps"])
    rejected = {
        name: "; ".join(reasons)
        for name, scores in held_out.items()
        if (reasons := _rejections(held_out[reference], scores, kind.has_unit))
    }
    allowed = [name for name in held_out if name not in rejected] or list(held_out)
    best = allowed[_best([held_out[name] for name in allowed])]
    sigma_map = maps_to_try(pixels_of(parts), kind, distribution)[best]
    return Choice(sigma_map, distribution, reference, held_out, rejected, {})


def _best(tried: Sequence[Scores]) -> int:
    """Return the index into the scores that the map to take has, see `choose`."""
    least = min(tried, key=lambda scores: scores["crps"])
    limit = least["crps"] + _crps_margin(least)
    as_good = [place for place, scores in enumerate(tried) if scores["crps"] <= limit]
    limit = min(_size_error(tried[place]) for place in as_good) + SIZE_MARGIN
    sized = [place for place in as_good if _size_error(tried[place]) <= limit]
    return min(sized, key=lambda place: tried[place]["crps"])


def _size_error(scores: Scores) -> float:
    """Return how far sigma is off at 95 % as a log factor, or half that at 68 %."""
    return max(abs(scores["log_factor_95"]), abs(scores["log_factor_68"]) / 2)


def _crps_margin(scores: Scores) -> float:
    """Return a CRPS difference that does not matter, metres, without the gross errors."""
    return CRPS_MARGIN * min(scores["crps"], scores["mean_sigma"])


def _rejections(reference: Scores, scores: Scores, replaces: bool) -> list[str]:
    """Return why a map is not chosen; empty for a good one, or a better one than is served."""
    reasons = []
    if not scores["crps"] <= reference["crps"] + _crps_margin(reference):
        reasons.append(f"CRPS {scores['crps']:.4g} m, reference {reference['crps']:.4g} m")
    off, of_reference = (abs(each["coverage_95"] - NOMINAL_LEVEL) for each in (scores, reference))
    if off > MAX_MISCOVERAGE and not (replaces and off <= of_reference):
        held = f"its 95% interval holds {scores['coverage_95']:.1%}"
        reasons.append(f"{held}, reference {reference['coverage_95']:.1%}")
    return reasons


def _trial(sample: Sample, fitted_to: Sequence[Sample], choice: Choice, kind: MapInput) -> Trial:
    """Score a map and the reference on a sample that the map was not fitted to."""
    distribution = choice.distribution
    reference = maps_to_try(pixels_of(fitted_to), kind, distribution)[choice.reference]
    depth, uncertainty, error = pixels_of([sample])
    before = scores_of_sigma(error, reference(uncertainty, depth), distribution)
    sigma = choice.sigma_map(uncertainty, depth)
    after = scores_of_sigma(error, sigma, distribution)
    factors = []
    rows = []
    for frame in sample.frames:
        depth_m, raw, error_m = pixels_of([Sample("", (frame,))])
        if not len(error_m):
            factors.append(np.inf)
            continue
        sigmas = choice.sigma_map(raw, depth_m)
        factors.append(frame_factor(error_m, sigmas))
        lost = crps(error_m, sigmas, distribution) - crps(
            error_m, reference(raw, depth_m), distribution
        )
        rows.append((len(error_m), coverage(error_m, sigmas, NOMINAL_LEVEL, distribution), lost))
    pixels, covered, lost = np.array(rows).T
    weights = pixels / pixels.mean()
    size = max(_crps_margin(before) / CRPS_MARGIN, np.finfo(float).tiny)
    share = float(np.average(covered, weights=weights))
    rough = NOMINAL_LEVEL - DISTRIBUTIONS[distribution].coverage(
        NOMINAL_WIDTHS[distribution] / (1 + ROUGH_SPREAD)
    )
    return Trial(
        sample.name,
        choice.sigma_map,
        len(sample.frames),
        sample.pixels,
        before,
        after,
        mean_interval(share + weights * (covered - share), rough),
        mean_interval(weights * lost / size, ROUGH_CRPS),
        measured_half_widths(error, sigma),
        np.array(factors),
    )


Scores = dict[str, float]
LABELS = {
    "crps": "CRPS (m)",
    "auce": "AUCE",
    "coverage_68": "coverage at 68%",
    "coverage_95": "coverage at 95%",
    "nll": "NLL",
}
CRPS_MARGIN = 0.005
"""Margin in CRPS above another map's, as a fraction of it."""
SIZE_MARGIN = 0.03
"""Margin in `_size_error` above another map's."""
ROUGH_CRPS = 0.05
"""Half width for what few frames say on a difference in CRPS, as a fraction of it."""
MAX_MISCOVERAGE = 0.03
"""Largest miscoverage at 95 %."""
MAX_MISCOVERAGE_68 = 0.15
"""Miscoverage at 68 % above which a note is added."""


def scores_of_sigma(
    error: NDArray[np.float64], sigma: NDArray[np.floating], distribution: str
) -> Scores:
    """Return the scores for (N,) sigmas and absolute errors, metres."""
    levels = np.array([0.68, NOMINAL_LEVEL])
    covered = np.asarray(coverage(error, sigma, levels, distribution=distribution))
    ratios = np.sort(error_ratio(error, np.asarray(sigma, np.float64)))
    with np.errstate(divide="ignore"):
        widths = DISTRIBUTIONS[distribution].half_widths(levels)
        log_factors = np.log(at_shares(ratios, levels) / widths)
    return {
        "crps": crps(error, sigma, distribution),
        "nll": nll(error, sigma, distribution=distribution),
        "auce": auce(error, sigma, distribution=distribution),
        "coverage_68": float(covered[0]),
        "coverage_95": float(covered[1]),
        "log_factor_68": float(log_factors[0]),
        "log_factor_95": float(log_factors[1]),
        "mean_sigma": float(np.mean(sigma)),
    }


def mean_scores(score_sets: Sequence[Mapping[str, float]]) -> Scores:
    """Return each score's mean."""
    return {name: float(np.mean([each[name] for each in score_sets])) for name in score_sets[0]}
