"""Figures and curves of everything seen, read off the state of `OnlineMetrics`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from uncertainty_depth.metrics import calibration
from uncertainty_depth.metrics.arrays import Floats
from uncertainty_depth.metrics.bins import Bins, first_sums, kept_with_ties
from uncertainty_depth.metrics.depth import depth_means
from uncertainty_depth.metrics.frame import (
    BASELINES,
    STATISTICS,
    constant_nll,
    likely_scale,
    named_figures,
    no_figures,
    scaled_nll,
)
from uncertainty_depth.metrics.intervals import ENOUGH_PIXELS
from uncertainty_depth.metrics.merci import ALPHAS, normalised, order_number, rescaled_mean
from uncertainty_depth.metrics.sparsification import POGGI, poggi_areas, statistic
from uncertainty_depth.metrics.sparsification import curves as finished
from uncertainty_depth.metrics.state import (
    EXTREMES,
    HISTOGRAMS,
    JOINT,
    JOINT_ERROR,
    SCALARS,
    Intervals,
    State,
)

SUM_OF = {"abs_rel": "relative", "rmse": "squared", "a1": "inaccurate"}
CANDIDATES = ("method", *BASELINES)


@dataclass(frozen=True, eq=False)
class Pooled:
    """A state with at least one pixel, as NumPy arrays."""

    tables: dict[str, np.ndarray]
    small: dict[str, np.ndarray]

    @property
    def pixels(self) -> int:
        """Pixels seen."""
        return int(self.small["counts"][0])

    def total(self, name: str) -> float:
        """A sum over all pixels."""
        return float(self.small["sums"][SCALARS.index(name)])

    def order_statistics(self, name: str, numbers: np.ndarray) -> Floats:
        """Order statistics of the error or a ratio."""
        extremes = tuple(
            float(self.small[side][EXTREMES.index(name)]) for side in ("least", "greatest")
        )
        return HISTOGRAMS[name][0].order_statistics(
            self.tables[f"{name}.count"], numbers, extremes
        )

    def n_merci(self, candidate: str, alphas: Floats, trimmed: bool) -> Floats:
        """n-MeRCI at each alpha."""
        numbers = np.array([order_number(alpha, self.pixels) for alpha in alphas])
        if candidate == "constant":
            return self._constant_n_merci(numbers, trimmed)
        name, key = ("ratio", "sigma") if candidate == "method" else ("depth_ratio", "depth")
        factor = self.order_statistics(name, numbers)
        if not trimmed:
            return normalised(
                factor,
                self.mean_sigma(candidate),
                self.total("mae") / self.pixels,
                self.order_statistics("error", numbers),
            )
        counts = self.tables[f"{name}.count"]
        sigma, error = (
            first_sums(counts, self.tables[f"{name}.{item}"], numbers) / numbers
            for item in (key, "error")
        )
        return normalised(factor, sigma, error, self._largest_kept(name, numbers))

    def _largest_kept(self, name: str, numbers: np.ndarray) -> Floats:
        """Largest error among the pixels with the smallest ratios; that of the bin which is cut counts if most of it is kept."""
        counts, largest = (
            self.tables[f"{name}.count"],
            np.maximum.accumulate(self.tables[f"{name}.max_error"]),
        )
        total = np.cumsum(counts)
        place = np.searchsorted(total, numbers)
        mostly = 2 * (total[place] - numbers) < counts[place]
        return np.where(mostly, largest[place], largest[np.maximum(place - 1, 0)])

    def _constant_n_merci(self, numbers: np.ndarray, trimmed: bool) -> Floats:
        """1, or NaN where all the errors that count are equal."""
        largest, counts = self.order_statistics("error", numbers), self.tables["error.count"]
        if not trimmed:
            return normalised(largest, 1.0, self.total("mae") / self.pixels, largest)
        first = self.order_statistics("error", np.ones_like(numbers))
        return np.where(
            (largest == first) | (np.searchsorted(np.cumsum(counts), numbers) == 0), math.nan, 1.0
        )

    def mean_sigma(self, candidate: str) -> float:
        """Mean of the method's sigma, or of the depth."""
        return (
            float(self.small["sigma_sums" if candidate == "method" else "depth_sums"][0])
            / self.pixels
        )

    def merci(self, candidate: str, alpha: float) -> float:
        """The rescaled mean."""
        numbers = np.array([order_number(alpha, self.pixels)])
        if candidate == "constant":
            return float(self.order_statistics("error", numbers)[0])
        name = "ratio" if candidate == "method" else "depth_ratio"
        return float(
            rescaled_mean(self.order_statistics(name, numbers), self.mean_sigma(candidate))[0]
        )

    def removal(self, candidate: str) -> Floats:
        """Raw pooled removal curve of each statistic, (3, K)."""
        return np.stack([self._removal(candidate, name) for name in STATISTICS])

    @cached_property
    def oracles(self) -> Floats:
        """Raw pooled oracle curve of each statistic, (3, K)."""
        return np.stack([self._oracle(name) for name in STATISTICS])

    def _removal(self, candidate: str, name: str) -> Floats:
        key = {"method": "sigma", "proportional_to_depth": "depth"}.get(candidate)
        counts = self.tables[f"{key or 'sigma'}.count"]
        kept = (
            np.full(len(POGGI.fractions), self.pixels)
            if key is None
            else kept_with_ties(counts, POGGI.fractions)
        )
        return statistic(
            name, first_sums(counts, self.tables[f"{key or 'sigma'}.{SUM_OF[name]}"], kept) / kept
        )

    def _oracle(self, name: str) -> Floats:
        key = {"abs_rel": "relative", "rmse": "error", "a1": "factor"}[name]
        counts = self.tables[f"{key}.count"]
        kept = kept_with_ties(counts, POGGI.fractions)
        if name == "a1":
            return np.maximum(kept - self.total("a1"), 0) / kept
        return statistic(
            name, first_sums(counts, self.tables[f"{key}.{SUM_OF[name]}"], kept) / kept
        )

    def scale(self, candidate: str) -> float:
        """Most likely scale of a baseline; the method is taken as it is."""
        if candidate == "method":
            return 1.0
        if candidate == "constant":
            return math.sqrt(self.total("squared") / self.pixels)
        return likely_scale(*map(float, self.small["depth_sums"][3:]))

    def covered(self, candidate: str) -> Floats:
        """Share covered at each level."""
        if candidate == "method":
            return self.small["covered"] / self.pixels
        name = "error" if candidate == "constant" else "depth_ratio"
        return (
            HISTOGRAMS[name][0].below(
                self.tables[f"{name}.count"], calibration.HALF_WIDTHS * self.scale(candidate)
            )
            / self.pixels
        )

    def nll(self, candidate: str) -> float:
        """Mean negative log likelihood."""
        if candidate == "constant":
            return constant_nll(self.pixels, self.scale(candidate))
        _, log_sum, squared = self.small["sigma_sums" if candidate == "method" else "depth_sums"][
            :3
        ]
        return scaled_nll(self.pixels, float(log_sum), float(squared), self.scale(candidate))

    def spearman(self, candidate: str) -> float:
        """Rank correlation from the joint histogram."""
        if candidate == "constant":
            return math.nan
        name, place = ("sigma", 0) if candidate == "method" else ("depth", 1)
        span = np.array([self.small[f"{side}_row"][place] for side in ("least", "greatest")])
        joint = (
            JOINT[name]
            .ordered(self.tables[f"joint.{name}"].reshape(-1, JOINT_ERROR.number), span)
            .astype(np.float64)
        )
        rows, columns = (_middle_ranks(joint.sum(axis)) for axis in (1, 0))
        spread = math.sqrt(float(rows**2 @ joint.sum(1)) * float(columns**2 @ joint.sum(0)))
        return float(rows @ joint @ columns) / spread if spread else math.nan

    def figures(self, candidate: str, alpha: float) -> dict[str, Any]:
        """The mapping under "uncertainty"; per-image figures are the mean over the frames."""
        plain, trimmed = (
            float(self.n_merci(candidate, np.array([alpha]), kind)[0]) for kind in (False, True)
        )
        areas, shares = poggi_areas(self.removal(candidate), self.oracles), self.covered(candidate)
        figures = named_figures(
            plain,
            trimmed,
            self.merci(candidate, alpha),
            areas,
            shares,
            self.spearman(candidate),
            self.nll(candidate),
        )
        means = self.small["areas"][CANDIDATES.index(candidate)] / self.small["counts"][1]
        figures["ause"], figures["aurg"] = (
            dict(zip(STATISTICS, map(float, row), strict=True)) for row in means
        )
        return figures


def _middle_ranks(counts: Floats) -> Floats:
    """Centred rank that the pixels of each bin share."""
    return np.cumsum(counts) - (counts - 1) / 2 - (counts.sum() + 1) / 2


def summary(state: State, alpha: float) -> dict[str, Any]:
    """The nested mapping that `summary.json` holds."""
    pooled = Pooled(state.local(), state.small)
    if not pooled.pixels:
        return no_figures()
    return {
        "pixels": pooled.pixels,
        "depth": depth_means(
            dict(zip(SCALARS, map(float, state.small["sums"]), strict=True)), pooled.pixels
        ),
        "uncertainty": pooled.figures("method", alpha),
        "baselines": {name: pooled.figures(name, alpha) for name in BASELINES},
    }


def curves(state: State, intervals: Intervals, alpha: float) -> dict[str, Any]:
    """What the plots draw, as plain arrays, for the method and each baseline ("method", "constant", "proportional_to_depth": the candidates).

    Returns:
        "alpha", "pixels", "variant", and by name of the plot

        - "sparsification": statistic -> {"fractions", "oracle", "random", candidate -> curve, "ause": candidate -> area};
        - "n_merci": {"alphas", "tail", "plain" and "trimmed": candidate -> curve}; "tail" is where the largest error covered exceeds the mean error;
        - "reliability": {"levels", candidate -> share covered};
        - "intervals": {"edges", "pixels", "mae", "n_merci", "enough"}, of the method.

        Only "pixels" and "variant" when no pixel was seen.
    """
    pooled = Pooled(state.local(), state.small)
    if not pooled.pixels:
        return {"pixels": 0, "variant": POGGI.title}
    removed = {candidate: pooled.removal(candidate) for candidate in CANDIDATES}
    numbers = np.array([order_number(value, pooled.pixels) for value in ALPHAS])
    return {
        "pixels": pooled.pixels,
        "alpha": alpha,
        "variant": POGGI.title,
        "sparsification": {
            name: _statistic_curves(removed, pooled.oracles, row, name)
            for row, name in enumerate(STATISTICS)
        },
        "n_merci": {
            "alphas": ALPHAS,
            "tail": pooled.order_statistics("error", numbers)
            > pooled.total("mae") / pooled.pixels,
            "plain": {
                candidate: pooled.n_merci(candidate, ALPHAS, False) for candidate in CANDIDATES
            },
            "trimmed": {
                candidate: pooled.n_merci(candidate, ALPHAS, True) for candidate in CANDIDATES
            },
        },
        "reliability": {
            "levels": calibration.LEVELS,
            **{candidate: pooled.covered(candidate) for candidate in CANDIDATES},
        },
        "intervals": interval_curves(pooled, intervals, alpha),
    }


def _statistic_curves(
    removed: dict[str, Floats], oracles: Floats, row: int, name: str
) -> dict[str, Any]:
    curves = {
        candidate: finished(POGGI, name, removed[candidate][row], oracles[row])
        for candidate in CANDIDATES
    }
    method = curves["method"]
    drawn = {candidate: curve.sparsification for candidate, curve in curves.items()}
    ause = {candidate: curve.ause for candidate, curve in curves.items()}
    return {
        "fractions": method.fractions,
        "oracle": method.oracle,
        "random": method.random,
        **drawn,
        "ause": ause,
    }


def interval_curves(pooled: Pooled, intervals: Intervals, alpha: float) -> dict[str, Any]:
    """Figures per depth interval; NaN where an interval is empty."""
    tables = {
        name: pooled.tables[f"interval.{name}_bins"].reshape(intervals.number, -1)
        for name in ("error", "ratio")
    }
    count = tables["error"].sum(axis=1)
    with np.errstate(invalid="ignore"):
        mae, sigma = (pooled.tables[f"interval.{name}"] / count for name in ("error", "sigma"))
    merci = np.full(len(count), math.nan)
    for place in np.flatnonzero(count):
        numbers = np.array([order_number(alpha, int(count[place]))])
        largest, factor = (
            _one(bins, tables[name][place], numbers)
            for name, bins in (("error", intervals.error), ("ratio", intervals.ratio))
        )
        merci[place] = float(normalised(factor, sigma[place], mae[place], largest))
    return {
        "edges": intervals.edges,
        "pixels": count,
        "mae": mae,
        "n_merci": merci,
        "enough": ENOUGH_PIXELS,
    }


def _one(bins: Bins, counts: np.ndarray, numbers: np.ndarray) -> float:
    filled = np.flatnonzero(counts)
    extremes = float(bins.edges[filled[0]]), float(bins.edges[filled[-1] + 1])
    return float(bins.order_statistics(counts, numbers, extremes)[0])
