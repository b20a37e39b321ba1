# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All exact metrics of one frame, of the predicted sigma and of the trivial baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from uncertainty_depth.metrics import calibration
from uncertainty_depth.metrics.arrays import (
    Floats,
    Integers,
    average_ranks,
    order_statistic,
    sorted_values,
)
from uncertainty_depth.metrics.baselines import CANDIDATES, noisy_depth
from uncertainty_depth.metrics.depth import depth_means
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS, HALF_WIDTHS
from uncertainty_depth.metrics.merci import (
    MerciTerms,
    error_ratio,
    normalised,
    rescaled_mean,
    trimmed_terms,
)
from uncertainty_depth.metrics.proper_scores import (
    NOMINAL_WIDTHS,
    ScoreSums,
    mean_interval_score,
    score_sums,
)
from uncertainty_depth.metrics.removal_curves import Ranking
from uncertainty_depth.metrics.sorted_pixels import STATISTICS, SortedPixels
from uncertainty_depth.metrics.sparsification import poggi_areas
from uncertainty_depth.metrics.sparsification_variants import POGGI

COVERAGE_LEVELS = (68, 95)
"""Confidence levels, per cent, whose coverage is a metric of its own."""


class Candidate:
    """One sigma of a frame.

    Attributes:
        frame: the pixels.
        sigma: (N,) metres, or anything proportional to it, in the order of the frame's pixels.
        is_fitted: whether the scale of sigma is unknown; its size is then judged at the most
            likely scale.
        ratio: (N,) `error / sigma`.
        ratio_span: minimum and maximum of `ratio`.
        factor: order statistic of `ratio` that covers the fraction alpha.
        sums: of sigma, of its logarithm, and of the finite ratios by power.
        covered: pixels within the interval of each level, by distribution.
        scores: sums of the scores at `scale`, by distribution.
        sigma_span: (2,) minimum and maximum of sigma.
        removal: (3, K) raw removal curve of each of `STATISTICS`.
        spearman: rank correlation with the error.
    """

    def __init__(self, frame: SortedPixels, sigma: Floats, is_fitted: bool) -> None:
        self.frame = frame
        self.sigma = sigma
        self.is_fitted = is_fitted
        self.ratio = error_ratio(frame.error, sigma)
        self._measure_size(sorted_values(self.ratio))
        self._measure_order(Ranking(sigma))

    def _measure_size(self, ascending_ratio: Floats) -> None:
        frame = self.frame
        self.ratio_span = float(ascending_ratio[0]), float(ascending_ratio[-1])
        self.factor = float(ascending_ratio[frame.covered - 1])
        self.sums = self._sums()
        self.covered: dict[str, Integers] = {
            name: calibration.covered_pixels(ascending_ratio, widths * self.scale(name))
            for name, widths in HALF_WIDTHS.items()
        }
        self.scores = {
            name: score_sums(frame.error, self.sigma, self.ratio, law, self.scale(name))
            for name, law in DISTRIBUTIONS.items()
        }

    def _measure_order(self, ranking: Ranking) -> None:
        """Fill in what only the order of sigma decides, so that the ranking need not stay."""
        frame = self.frame
        self.sigma_span = ranking.ascending[[0, -1]]
        self.removal = ranking.curves(POGGI, STATISTICS, frame.statistic_values)
        self.spearman = calibration.correlation(
            average_ranks(ranking.ascending), frame.error_ranks.take(ranking.order)
        )

    def _sums(self) -> dict[str, float]:
        finite = self.ratio
        if math.isinf(self.ratio_span[1]):
            finite = finite[np.isfinite(finite)]
        return {
            "sigma": float(self.sigma.sum()),
            "log_sigma": calibration.log_sum(self.sigma),
            "finite": float(len(finite)),
            **{name: calibration.power_sum(finite, law) for name, law in DISTRIBUTIONS.items()},
        }

    def scale(self, distribution: str) -> float:
        """Return the factor on sigma at which its size is judged."""
        if not self.is_fitted:
            return 1.0
        law = DISTRIBUTIONS[distribution]
        return law.likely_scale(self.sums[distribution], self.sums["finite"])

    def n_merci(self) -> dict[str, float]:
        """Return n-MeRCI in its three readings."""
        frame = self.frame
        number = frame.covered
        factor = self.factor
        mean_sigma = self.sums["sigma"] / frame.pixels
        plain = MerciTerms(factor, mean_sigma, frame.mae, frame.error[number - 1])
        trimmed = trimmed_terms(frame.error, self.sigma, self.ratio, factor, number)
        values = normalised(*np.array((plain, self._withdrawn_terms(), trimmed)).T)
        names = ("n_merci", "n_merci_withdrawn", "n_merci_trimmed")
        return dict(zip(names, values.tolist(), strict=True))

    def _withdrawn_terms(self) -> MerciTerms:
        smallest = slice(self.frame.covered)
        number = self.frame.covered_of_rest
        factor = order_statistic(self.ratio[smallest], number)
        error = self.frame.error
        return MerciTerms(
            factor, self.sigma[smallest].mean(), error[smallest].mean(), error[number - 1]
        )

    def metrics(self) -> dict[str, Any]:
        """Return the mapping under "uncertainty"; pooled metrics of one frame are its own."""
        frame = self.frame
        areas = poggi_areas(self.removal, frame.oracles)
        fractions = {name: covered / frame.pixels for name, covered in self.covered.items()}
        nll = {
            name: candidate_nll(frame.pixels, self.sums, name, self.scale(name))
            for name in DISTRIBUTIONS
        }
        return {
            **self.n_merci(),
            "merci": float(rescaled_mean(self.factor, self.sums["sigma"] / frame.pixels)),
            **area_metrics(*areas),
            **size_metrics(fractions, nll),
            **score_metrics(
                frame.pixels,
                self.scores,
                {law: self.scale(law) * self.sums["sigma"] for law in DISTRIBUTIONS},
            ),
            "spearman": self.spearman,
        }


class ConstantCandidate:
    """A constant sigma of 1 m: all pixels tie, and the ratios are the errors.

    Attributes:
        frame: the pixels.
    """

    def __init__(self, frame: SortedPixels) -> None:
        self.frame = frame

    def metrics(self) -> dict[str, Any]:
        """Return the mapping under "uncertainty"; nothing is removed before everything is."""
        frame = self.frame
        removal = np.repeat(frame.oracles[:, :1], len(POGGI.fractions), axis=1)
        powers = {"gaussian": frame.depth_sums["squared"], "laplace": frame.depth_sums["mae"]}
        sums = {"log_sigma": 0.0, "finite": float(frame.pixels), **powers}
        fractions = {}
        nll = {}
        scores = {}
        sigma_sums = {}
        ones = np.ones(frame.pixels)
        for name, law in DISTRIBUTIONS.items():
            scale = law.likely_scale(sums[name], frame.pixels)
            covered = calibration.covered_pixels(frame.error, HALF_WIDTHS[name] * scale)
            fractions[name] = covered / frame.pixels
            nll[name] = candidate_nll(frame.pixels, sums, name, scale)
            scores[name] = score_sums(frame.error, ones, frame.error, law, scale)
            sigma_sums[name] = scale * frame.pixels
        return {
            **self.n_merci(),
            "merci": float(frame.error[frame.covered - 1]),
            **area_metrics(*poggi_areas(removal, frame.oracles)),
            **size_metrics(fractions, nll),
            **score_metrics(frame.pixels, scores, sigma_sums),
            "spearman": math.nan,
        }

    def n_merci(self) -> dict[str, float]:
        """Return n-MeRCI in its three readings: 1, or NaN where the errors are equal."""
        frame = self.frame
        mae_of_rest = frame.error[: frame.covered].mean()
        mae = np.array((frame.mae, mae_of_rest, mae_of_rest))
        numbers = np.array((frame.covered, frame.covered_of_rest, frame.covered))
        max_errors = frame.error[numbers - 1]
        values = normalised(max_errors, 1.0, mae, max_errors)
        names = ("n_merci", "n_merci_withdrawn", "n_merci_trimmed")
        return dict(zip(names, values.tolist(), strict=True))


def candidates(frame: SortedPixels) -> Iterator[tuple[str, Candidate | ConstantCandidate]]:
    """Yield the predicted sigma and the baselines by name, each computed on demand."""
    for name in CANDIDATES:
        if name == "method":
            yield name, Candidate(frame, frame.sigma, is_fitted=False)
        elif name == "constant":
            yield name, ConstantCandidate(frame)
        elif name == "proportional_to_depth":
            yield name, Candidate(frame, frame.depth, is_fitted=True)
        else:
            noisy = noisy_depth(frame.depth, frame.ground_truth)
            yield name, Candidate(frame, noisy, is_fitted=True)


def frame_metrics(
    frame: SortedPixels, by_candidate: dict[str, dict[str, Any]], scored_fraction: float
) -> dict[str, Any]:
    """Return the nested mapping of `OnlineMetrics.compute` for one frame alone."""
    baselines = dict(by_candidate)
    return {
        "pixels": frame.pixels,
        "scored_fraction": scored_fraction,
        "depth": frame.depth_errors,
        "uncertainty": baselines.pop("method"),
        "baselines": baselines,
    }


def candidate_nll(pixels: int, sums: dict[str, float], distribution: str, scale: float) -> float:
    """Return the mean negative log likelihood from the sums; +inf with an infinite ratio."""
    power_sum = sums[distribution] if sums["finite"] == pixels else math.inf
    law = DISTRIBUTIONS[distribution]
    return law.mean_nll(pixels, sums["log_sigma"], power_sum, scale)


def area_metrics(ause: Floats, aurg: Floats) -> dict[str, dict[str, float]]:
    """Return the areas of one frame, (3,) each; pooled over it alone they are the same."""
    areas = {"ause": ause, "aurg": aurg, "ause_pooled": ause, "aurg_pooled": aurg}
    return {name: by_statistic(values) for name, values in areas.items()}


def by_statistic(values: Floats) -> dict[str, float]:
    """Return areas by the name of their statistic."""
    return dict(zip(STATISTICS, values.tolist(), strict=True))


def size_metrics(covered: dict[str, Floats], nll: dict[str, float]) -> dict[str, float]:
    """Return the metrics of the size of sigma.

    Args:
        covered: by distribution, the fractions covered at `CONFIDENCE_LEVELS`.
        nll: by distribution.
    """
    metrics: dict[str, float] = {}
    for name, fractions in covered.items():
        suffix = "" if name == "gaussian" else f"_{name}"
        metrics[f"auce{suffix}"] = calibration.area_of_miscoverage(fractions)
        for percent in COVERAGE_LEVELS:
            metrics[f"coverage_{percent}{suffix}"] = float(fractions[percent - 1])
        metrics[f"nll{suffix}"] = nll[name]
    return metrics


def score_metrics(
    pixels: int, sums: Mapping[str, ScoreSums], sigma_sums: Mapping[str, float]
) -> dict[str, float]:
    """Return CRPS, interval score and mean interval width, metres, under each distribution.

    Args:
        pixels: how many the sums are over.
        sums: of the scores, by distribution.
        sigma_sums: of sigma at the scale at which it is judged, by distribution.
    """
    metrics: dict[str, float] = {}
    for name, scores in sums.items():
        suffix = "" if name == "gaussian" else f"_{name}"
        mean_half_width = NOMINAL_WIDTHS[name] * sigma_sums[name] / pixels
        metrics[f"crps{suffix}"] = float(scores.crps / pixels)
        metrics[f"interval_score_95{suffix}"] = mean_interval_score(
            mean_half_width, scores.excess / pixels
        )
        metrics[f"mpiw_95{suffix}"] = float(2 * mean_half_width)
    return metrics


def no_metrics(scored_fraction: float) -> dict[str, Any]:
    """Return the nested mapping for no pixel at all: NaN, but for the counts."""
    pixel = np.ones(1)
    frame = SortedPixels(pixel, pixel, pixel, alpha=1.0)
    by_candidate = {name: candidate.metrics() for name, candidate in candidates(frame)}
    blank = _blank(frame_metrics(frame, by_candidate, math.nan))
    return {**blank, "pixels": 0, "scored_fraction": scored_fraction, "depth": depth_means({}, 0)}


def _blank(metrics: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _blank(value) if isinstance(value, dict) else math.nan
        for name, value in metrics.items()
    }
