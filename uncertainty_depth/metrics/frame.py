"""All exact figures of one set of pixels, for sigma and for the two trivial baselines, with every array computed and sorted once."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from uncertainty_depth.metrics import calibration
from uncertainty_depth.metrics.arrays import Array, Arrays, Floats
from uncertainty_depth.metrics.depth import (
    PixelErrors,
    depth_means,
    depth_sums,
    exact_depth_errors,
)
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

BASELINES = ("constant", "proportional_to_depth")
STATISTICS = POGGI.errors
FIGURES = (
    "n_merci",
    "n_merci_trimmed",
    "merci",
    "ause",
    "aurg",
    "ause_pooled",
    "aurg_pooled",
    "auce",
    "spearman",
    "nll",
)
PER_STATISTIC = ("ause", "aurg", "ause_pooled", "aurg_pooled")


class Frame:
    """The valid pixels of one frame, at least one; (N,) float64 each."""

    def __init__(self, xp: Arrays, depth: Array, sigma: Array, ground_truth: Array) -> None:
        self.xp = xp
        self.depth, self.sigma, self.ground_truth = (
            xp.floats(value) for value in (depth, sigma, ground_truth)
        )
        self.pixels = len(self.depth)
        self.errors = PixelErrors.of(xp, self.depth, self.ground_truth)

    @cached_property
    def sums(self) -> dict[str, float]:
        """Sums of the depth errors."""
        return depth_sums(self.xp, self.errors)

    @cached_property
    def ordered_errors(self) -> tuple[Array, Array]:
        """Order of the absolute errors, and these in it."""
        return self.xp.ordered(self.errors.absolute)

    @property
    def ascending_error(self) -> Array:
        """Sorted absolute errors."""
        return self.ordered_errors[1]

    @cached_property
    def error_ranks(self) -> Array:
        """Centred ranks of the absolute errors."""
        return calibration.ranks_in_place(self.xp, *self.ordered_errors)

    @cached_property
    def oracles(self) -> Floats:
        """Raw oracle curve of each statistic, (3, K)."""
        squared = self.ascending_error * self.ascending_error
        ascending = {
            "abs_rel": self.ascending_relative,
            "rmse": squared,
            "a1": self.ascending_factor,
        }
        return np.stack(
            [sorted_oracle(self.xp, POGGI, name, ascending[name]) for name in STATISTICS]
        )

    @cached_property
    def ascending_relative(self) -> Array:
        """Sorted relative errors."""
        return self.xp.sort(self.errors.relative)

    @cached_property
    def ascending_factor(self) -> Array:
        """Sorted factors."""
        return self.xp.sort(self.errors.factor)

    def constant_figures(self, alpha: float) -> dict[str, Any]:
        """A constant sigma has closed forms: all pixels tie, so nothing is removed before everything is."""
        number, xp = order_number(alpha, self.pixels), self.xp
        rmse = math.sqrt(self.sums["squared"] / self.pixels)
        largest = float(xp.pick(self.ascending_error, np.array([number - 1]))[0])
        plain, trimmed = normalised(
            largest,
            1.0,
            np.array(
                [self.sums["mae"] / self.pixels, float(self.ascending_error[:number].mean())]
            ),
            largest,
        )
        full = np.repeat(self.oracles[:, :1], len(POGGI.fractions), axis=1)
        shares = (
            calibration.covered(xp, self.ascending_error, calibration.HALF_WIDTHS * rmse)
            / self.pixels
        )
        likelihood = constant_nll(self.pixels, rmse)
        return named_figures(
            float(plain),
            float(trimmed),
            largest,
            poggi_areas(full, self.oracles),
            shares,
            math.nan,
            likelihood,
        )


class Ranked:
    """One sigma of a frame: its ratios and its order, computed when first asked for."""

    def __init__(self, frame: Frame, sigma: Array, scale: float | None) -> None:
        self.frame, self.sigma = frame, sigma
        self.ratio = error_ratio(frame.xp, frame.errors.absolute, sigma)
        self.log_sum, self.squared_ratio_sum = calibration.nll_sums(frame.xp, sigma, self.ratio)
        self.scale = likely_scale(*self.finite_squares) if scale is None else scale

    @cached_property
    def finite_squares(self) -> tuple[float, int]:
        """Sum of the squared ratios that are finite, and how many are."""
        if math.isfinite(self.squared_ratio_sum):
            return self.squared_ratio_sum, self.frame.pixels
        finite = self.ratio[self.frame.xp.lib.isfinite(self.ratio)]
        return float((finite * finite).sum()), len(finite)

    @cached_property
    def ascending_ratio(self) -> Array:
        """Sorted ratios."""
        return self.frame.xp.sort(self.ratio)

    @cached_property
    def covered(self) -> np.ndarray:
        """Pixels within the Gaussian interval of each level."""
        return calibration.covered(
            self.frame.xp, self.ascending_ratio, calibration.HALF_WIDTHS * self.scale
        )

    @cached_property
    def ranking(self) -> Ranking:
        """The pixels in the order of sigma."""
        return Ranking(self.frame.xp, self.sigma)

    @cached_property
    def removal(self) -> Floats:
        """Raw removal curve of each statistic, (3, K)."""
        return self.ranking.curves(
            POGGI, {name: statistic_values(self.frame.errors, name)[0] for name in STATISTICS}
        )

    @cached_property
    def spearman(self) -> float:
        """Rank correlation with the error."""
        return calibration.correlation(
            self.frame.xp.average_ranks(self.ranking.ascending),
            self.frame.error_ranks.take(self.ranking.order),
        )

    def figures(self, alpha: float) -> dict[str, Any]:
        """The figures under "uncertainty"."""
        frame, number = self.frame, order_number(alpha, self.frame.pixels)
        place = np.array([number - 1])
        factor, largest = (
            float(frame.xp.pick(values, place)[0])
            for values in (self.ascending_ratio, frame.ascending_error)
        )
        terms = (float(self.sigma.mean()), frame.sums["mae"] / frame.pixels, largest)
        kept_terms = trimmed_terms(
            frame.xp, frame.errors.absolute, self.sigma, self.ratio, factor, number
        )
        plain, trimmed = normalised(factor, *np.array((terms, kept_terms)).T).tolist()
        likelihood = scaled_nll(frame.pixels, self.log_sum, self.squared_ratio_sum, self.scale)
        merci, areas = rescaled_mean(factor, terms[0]), poggi_areas(self.removal, frame.oracles)
        return named_figures(
            plain, trimmed, merci, areas, self.covered / frame.pixels, self.spearman, likelihood
        )


class Scores:
    """A frame with its sigma and the two baselines.

    It holds them, they hold the frame, and the frame holds neither: without a cycle all is freed as soon as it is dropped.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.method = Ranked(frame, frame.sigma, scale=1.0)
        self.proportional = Ranked(frame, frame.errors.positive_depth, scale=None)

    def figures(self, alpha: float) -> dict[str, Any]:
        """The nested mapping of `OnlineMetrics.compute` for this frame alone."""
        frame = self.frame
        baselines = {
            "constant": frame.constant_figures(alpha),
            "proportional_to_depth": self.proportional.figures(alpha),
        }
        depth = exact_depth_errors(frame.errors, frame.sums)
        return {
            "pixels": frame.pixels,
            "depth": depth,
            "uncertainty": self.method.figures(alpha),
            "baselines": baselines,
        }

    @cached_property
    def spans(self) -> dict[str, tuple[float, float]]:
        """Least and greatest value of each sorted quantity."""
        ascending = {
            "error": self.frame.ascending_error,
            "relative": self.frame.ascending_relative,
            "factor": self.frame.ascending_factor,
            "sigma": self.method.ranking.ascending,
            "depth": self.proportional.ranking.ascending,
            "ratio": self.method.ascending_ratio,
            "depth_ratio": self.proportional.ascending_ratio,
        }
        ends = np.array([0, self.frame.pixels - 1])
        return {
            name: tuple(self.frame.xp.pick(values, ends).tolist())
            for name, values in ascending.items()
        }


def likely_scale(squared_ratios: float, number: float) -> float:
    """The factor on sigma that makes the errors most likely under a Gaussian: the root mean square of error / sigma."""
    return math.sqrt(squared_ratios / number) if number else 0.0


def scaled_nll(pixels: int, log_sum: float, squared_ratio_sum: float, scale: float) -> float:
    """Mean negative log likelihood of `scale * sigma`; without any error the best scale is 0, and the likelihood has no bound."""
    if not scale:
        return -math.inf if pixels else math.nan
    return calibration.gaussian_nll(
        pixels, log_sum + pixels * math.log(scale), squared_ratio_sum / scale**2
    )


def constant_nll(pixels: int, rmse: float) -> float:
    """Mean negative log likelihood of the most likely constant sigma, the rmse."""
    return scaled_nll(pixels, 0.0, pixels * rmse**2, rmse)


def named_figures(
    n_merci: float,
    trimmed: float,
    merci: float,
    areas: tuple[Floats, Floats],
    shares: Floats,
    spearman: float,
    nll: float,
) -> dict[str, Any]:
    """The mapping under "uncertainty", in its order; pooled figures of a single frame are its own."""
    ause, aurg = (dict(zip(STATISTICS, values.tolist(), strict=True)) for values in areas)
    auce = calibration.area_of_miscoverage(shares)
    return dict(
        zip(
            FIGURES,
            (n_merci, trimmed, merci, ause, aurg, dict(ause), dict(aurg), auce, spearman, nll),
            strict=True,
        )
    )


def no_figures() -> dict[str, Any]:
    """The nested mapping for no pixel at all: NaN everywhere."""
    blank = {
        name: dict.fromkeys(STATISTICS, math.nan) if name in PER_STATISTIC else math.nan
        for name in FIGURES
    }
    copies = [
        {name: dict(value) if isinstance(value, dict) else value for name, value in blank.items()}
        for _ in range(3)
    ]
    return {
        "pixels": 0,
        "depth": depth_means({}, 0),
        "uncertainty": copies[0],
        "baselines": dict(zip(BASELINES, copies[1:], strict=True)),
    }
