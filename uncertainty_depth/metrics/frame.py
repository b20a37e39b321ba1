"""All exact metrics of one frame, of the predicted sigma and of the trivial baselines.

Every array is computed and sorted once and shared by all metrics.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from uncertainty_depth.metrics import calibration
from uncertainty_depth.metrics.arrays import Floats, Integers, order_statistic
from uncertainty_depth.metrics.baselines import CANDIDATES, noisy_depth
from uncertainty_depth.metrics.depth import (
    PixelErrors,
    depth_means,
    depth_sums,
    exact_depth_errors,
)
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS, HALF_WIDTHS
from uncertainty_depth.metrics.merci import (
    error_ratio,
    normalised,
    order_number,
    rescaled_mean,
    trimmed_terms,
)
from uncertainty_depth.metrics.sparsification import (
    POGGI,
    Ranking,
    poggi_areas,
    sorted_oracle,
    statistic_values,
)

STATISTICS = POGGI.errors
SHOWN_LEVELS = (68, 95)
"""Confidence levels, per cent, whose coverage is a metric of its own."""


class Frame:
    """The valid pixels of one frame, at least one; (N,) float64 each, metres."""

    def __init__(self, depth: Floats, sigma: Floats, ground_truth: Floats) -> None:
        self.depth = depth
        self.sigma = sigma
        self.ground_truth = ground_truth
        self.pixels = len(depth)
        self.errors = PixelErrors.of(depth, ground_truth)

    @cached_property
    def depth_sums(self) -> dict[str, float]:
        """Sums of the depth errors."""
        return depth_sums(self.errors)

    @cached_property
    def error_order(self) -> Integers:
        """The argsort of the absolute errors."""
        return np.argsort(self.errors.absolute)

    @cached_property
    def ascending_error(self) -> Floats:
        """Sorted absolute errors."""
        return self.errors.absolute[self.error_order]

    @cached_property
    def error_ranks(self) -> Floats:
        """Centred ranks of the absolute errors."""
        return calibration.ranks(self.errors.absolute, self.error_order)

    @cached_property
    def ascending_relative(self) -> Floats:
        """Sorted relative errors."""
        return np.sort(self.errors.relative)

    @cached_property
    def ascending_factor(self) -> Floats:
        """Sorted factors `max(d / g, g / d)`."""
        return np.sort(self.errors.factor)

    @cached_property
    def oracles(self) -> Floats:
        """Raw oracle curve of each statistic, (3, K)."""
        ascending = {
            "abs_rel": self.ascending_relative,
            "rmse": self.ascending_error**2,
            "a1": self.ascending_factor,
        }
        return np.stack([sorted_oracle(POGGI, name, ascending[name]) for name in STATISTICS])


class Candidate:
    """One sigma of a frame.

    Attributes:
        frame: the pixels.
        sigma: (N,) metres, or anything proportional to it.
        fitted: whether the sigma's scale is unknown; size is then judged at the most likely scale.
    """

    def __init__(self, frame: Frame, sigma: Floats, fitted: bool) -> None:
        self.frame = frame
        self.sigma = sigma
        self.fitted = fitted
        self.ratio = error_ratio(frame.errors.absolute, sigma)

    @cached_property
    def sums(self) -> dict[str, float]:
        """Sums over the pixels: sigma, its logarithm, and of the finite ratios by power."""
        finite = self.ratio[np.isfinite(self.ratio)]
        return {
            "sigma": float(self.sigma.sum()),
            "log_sigma": calibration.log_sum(self.sigma),
            "finite": float(len(finite)),
            **{name: calibration.power_sum(finite, law) for name, law in DISTRIBUTIONS.items()},
        }

    @cached_property
    def ascending_ratio(self) -> Floats:
        """Sorted ratios `error / sigma`."""
        return np.sort(self.ratio)

    def scale(self, distribution: str) -> float:
        """The factor on sigma at which its size is judged."""
        if not self.fitted:
            return 1.0
        return DISTRIBUTIONS[distribution].likely_scale(
            self.sums[distribution], self.sums["finite"]
        )

    @cached_property
    def covered(self) -> dict[str, Integers]:
        """Pixels within the interval of each level, by distribution."""
        return {
            name: calibration.covered_pixels(self.ascending_ratio, widths * self.scale(name))
            for name, widths in HALF_WIDTHS.items()
        }

    @cached_property
    def ranking(self) -> Ranking:
        """The pixels in the order of sigma."""
        return Ranking(self.sigma)

    @cached_property
    def removal(self) -> Floats:
        """Raw removal curve of each statistic, (3, K)."""
        values = {name: statistic_values(self.frame.errors, name)[0] for name in STATISTICS}
        return self.ranking.curves(POGGI, values)

    @cached_property
    def spearman(self) -> float:
        """Rank correlation with the error."""
        sigma_ranks = calibration.ranks(self.sigma, self.ranking.order)
        return calibration.correlation(sigma_ranks, self.frame.error_ranks)

    def plain(self, alpha: float) -> float:
        """n-MeRCI over all pixels."""
        number = order_number(alpha, self.frame.pixels)
        factor = self.ascending_ratio[number - 1]
        largest = self.frame.ascending_error[number - 1]
        mae = self.frame.depth_sums["mae"] / self.frame.pixels
        return float(normalised(factor, self.sigma.mean(), mae, largest))

    def withdrawn(self, alpha: float) -> float:
        """n-MeRCI without the pixels with the largest errors."""
        kept = self.frame.error_order[: order_number(alpha, self.frame.pixels)]
        number = order_number(alpha, len(kept))
        factor = order_statistic(self.ratio[kept], number)
        largest = self.frame.ascending_error[number - 1]
        mae = self.frame.ascending_error[: len(kept)].mean()
        return float(normalised(factor, self.sigma[kept].mean(), mae, largest))

    def trimmed(self, alpha: float) -> float:
        """n-MeRCI without the pixels with the largest error / sigma."""
        number = order_number(alpha, self.frame.pixels)
        factor = self.ascending_ratio[number - 1]
        error = self.frame.errors.absolute
        terms = trimmed_terms(error, self.sigma, self.ratio, factor, number)
        return float(normalised(factor, *terms))

    def merci(self, alpha: float) -> float:
        """Mean length of the error bars."""
        factor = self.ascending_ratio[order_number(alpha, self.frame.pixels) - 1]
        return float(rescaled_mean(factor, self.sigma.mean()))

    def nll(self, distribution: str) -> float:
        """Mean negative log likelihood."""
        return candidate_nll(self.frame.pixels, self.sums, distribution, self.scale(distribution))

    def metrics(self, alpha: float) -> dict[str, Any]:
        """The mapping under "uncertainty"; pooled metrics of a single frame are its own."""
        ause, aurg = (
            by_statistic(areas) for areas in poggi_areas(self.removal, self.frame.oracles)
        )
        return {
            "n_merci": self.plain(alpha),
            "n_merci_withdrawn": self.withdrawn(alpha),
            "n_merci_trimmed": self.trimmed(alpha),
            "merci": self.merci(alpha),
            "ause": ause,
            "aurg": aurg,
            "ause_pooled": dict(ause),
            "aurg_pooled": dict(aurg),
            **size_metrics(
                {name: covered / self.frame.pixels for name, covered in self.covered.items()},
                {name: self.nll(name) for name in DISTRIBUTIONS},
            ),
            "spearman": self.spearman,
        }


class Constant(Candidate):
    """A constant sigma of 1 m: all pixels tie, and the ratios are the errors."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame, np.ones(frame.pixels), fitted=True)

    @property
    def ascending_ratio(self) -> Floats:
        """Sorted ratios `error / sigma`."""
        return self.frame.ascending_error

    @property
    def removal(self) -> Floats:
        """Nothing is removed before everything is."""
        return np.repeat(self.frame.oracles[:, :1], len(POGGI.fractions), axis=1)

    @property
    def spearman(self) -> float:
        """Not defined."""
        return math.nan


class Scores:
    """A frame with the predicted sigma and the baselines; `candidates` by their names."""

    def __init__(self, frame: Frame) -> None:
        depth = frame.errors.positive_depth
        noisy = noisy_depth(depth, frame.ground_truth)
        candidates = (
            Candidate(frame, frame.sigma, fitted=False),
            Constant(frame),
            Candidate(frame, depth, fitted=True),
            Candidate(frame, noisy, fitted=True),
        )
        self.frame = frame
        self.candidates = dict(zip(CANDIDATES, candidates, strict=True))

    def metrics(self, alpha: float, scored_fraction: float) -> dict[str, Any]:
        """The nested mapping of `OnlineMetrics.compute` for this frame alone."""
        metrics = {name: one.metrics(alpha) for name, one in self.candidates.items()}
        return {
            "pixels": self.frame.pixels,
            "scored_fraction": scored_fraction,
            "depth": exact_depth_errors(self.frame.errors, self.frame.depth_sums),
            "uncertainty": metrics.pop("method"),
            "baselines": metrics,
        }


def candidate_nll(pixels: int, sums: dict[str, float], distribution: str, scale: float) -> float:
    """Mean negative log likelihood from `Candidate.sums`; +inf with an infinite ratio."""
    power_sum = sums[distribution] if sums["finite"] == pixels else math.inf
    law = DISTRIBUTIONS[distribution]
    return law.mean_nll(pixels, sums["log_sigma"], power_sum, scale)


def by_statistic(values: Floats) -> dict[str, float]:
    """Areas by the name of their statistic."""
    return dict(zip(STATISTICS, values.tolist(), strict=True))


def size_metrics(covered: dict[str, Floats], nll: dict[str, float]) -> dict[str, float]:
    """The metrics of the size of sigma.

    Args:
        covered: by distribution, the fractions covered at `LEVELS`.
        nll: by distribution.
    """
    metrics: dict[str, float] = {}
    for name, fractions in covered.items():
        suffix = "" if name == "gaussian" else f"_{name}"
        metrics[f"auce{suffix}"] = calibration.area_of_miscoverage(fractions)
        for percent in SHOWN_LEVELS:
            metrics[f"coverage_{percent}{suffix}"] = float(fractions[percent - 1])
        metrics[f"nll{suffix}"] = nll[name]
    return metrics


def no_metrics(scored_fraction: float) -> dict[str, Any]:
    """The nested mapping for no pixel at all: NaN, but for the counts."""
    one_pixel = Scores(Frame(*(np.ones(1) for _ in range(3)))).metrics(1.0, math.nan)
    blank = _blank(one_pixel)
    return {**blank, "pixels": 0, "scored_fraction": scored_fraction, "depth": depth_means({}, 0)}


def _blank(metrics: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _blank(value) if isinstance(value, dict) else math.nan
        for name, value in metrics.items()
    }
