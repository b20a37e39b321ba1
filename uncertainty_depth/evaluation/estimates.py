# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The metrics that the verdict is based on, with bootstrap replicates for their intervals."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.evaluation.bootstrap import Bootstrap, Interval
from uncertainty_depth.evaluation.frame_pixels import INTERVAL_LEVELS, LAWS, LEVEL_WIDTHS
from uncertainty_depth.evaluation.unit_sums import (
    CELL_BINS,
    COARSE_RATIOS,
    COMPARED,
    DEPTH_BINS,
    ERROR_BINS,
    RATIO_BINS,
    SCALARS,
)
from uncertainty_depth.evaluation.units import Units
from uncertainty_depth.metrics.calibration import area_of_miscoverage
from uncertainty_depth.metrics.depth import A1_FACTOR
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS, HALF_WIDTHS
from uncertainty_depth.metrics.sparsification_variants import POGGI

Floats = NDArray[np.float64]


class Estimates:
    """Metrics of the sample and of each bootstrap replicate: (1 + REPLICATES,) arrays.

    Attributes:
        bootstrap: resamples the sums and computes the intervals.
    """

    def __init__(self, units: Units) -> None:
        self._tables = units.tables()
        scalars = self._tables["scalars"]
        with np.errstate(invalid="ignore"):
            mean_error = scalars[:, SCALARS.index("error")] / scalars[:, SCALARS.index("pixels")]
        self.bootstrap = Bootstrap(self._tables, mean_error)

    def interval(self, rows: Floats, scale: float | None = None) -> Interval:
        """Return the interval of a metric, see `Bootstrap.interval`."""
        return self.bootstrap.interval(rows, scale)

    @cached_property
    def _scalars(self) -> dict[str, Floats]:
        return dict(zip(SCALARS, self.bootstrap.sums("scalars").T, strict=True))

    def total(self, name: str) -> float:
        """Return one of `SCALARS`, summed over all frames."""
        return float(self._scalars[name][0])

    def mean(self, name: str, over: str = "pixels", scale: float = 1.0) -> Floats:
        """Return one of `SCALARS` divided by another one, times a factor."""
        return scale * _per(self._scalars[name], self._scalars[over])

    def scored_fraction(self) -> Floats:
        """Return the fraction of the pixels with ground truth that have a prediction."""
        return self.mean("pixels", "ground_truth")

    # Depth.

    def rmse(self) -> Floats:
        """Return the root mean squared error of the depth, metres."""
        return np.sqrt(self.mean("squared_error"))

    def a1(self) -> Floats:
        """Return the fraction of the pixels within a factor of 1.25 of the ground truth."""
        return self.mean("accurate")

    def constant_rmse(self) -> Floats:
        """Return the lowest rmse of a constant depth: the deviation of the ground truth."""
        return np.sqrt(np.maximum(self.mean("squared_depth") - self.mean("depth") ** 2, 0.0))

    def constant_a1(self) -> Floats:
        """Return the highest a1 of a constant depth, among `DEPTH_BINS.edges`."""
        edges = DEPTH_BINS.edges
        bins = self.bootstrap.sums("depth_bins")
        within = DEPTH_BINS.below(A1_FACTOR * edges) - DEPTH_BINS.below(edges / A1_FACTOR)
        return _per_total(bins @ within.T, bins).max(axis=1)

    def median_map_errors(self, median_m: Floats) -> tuple[Floats, Floats]:
        """Return a1 and rmse of a depth map that is the same for every frame.

        Args:
            median_m: `GRID` depths, metres, NaN where unknown: those cells are excluded.

        Returns:
            a1, to a fraction of a bin of `CELL_BINS`, and rmse, metres.
        """
        valid = (np.isfinite(median_m) & (median_m > 0)).reshape(-1)
        depth = median_m.reshape(-1)[valid]
        bins = self._tables["cell_bins"][:, valid]
        pixels = bins.sum(axis=2)
        squared = self._tables["cell_squared_depth"][:, valid] + pixels * depth**2
        squared = squared - 2 * depth * self._tables["cell_depth"][:, valid]
        within = CELL_BINS.below(A1_FACTOR * depth) - CELL_BINS.below(depth / A1_FACTOR)
        accurate = np.tensordot(bins, within, axes=2)
        totals = np.stack([accurate, squared.sum(axis=1), pixels.sum(axis=1)], axis=1)
        accurate_sum, squared_sum, pixel_sum = self.bootstrap.resample(totals).T
        with np.errstate(invalid="ignore", divide="ignore"):
            return accurate_sum / pixel_sum, np.sqrt(squared_sum / pixel_sum)

    def outside(self, low: float, high: float) -> Floats:
        """Return the fraction of the ground truth outside [low, high] metres, to 3 %."""
        bins = self.bootstrap.sums("depth_bins")
        inside = DEPTH_BINS.below(np.array(high)) - DEPTH_BINS.below(np.array(low))
        return np.clip(_per_total(bins @ (1 - inside), bins), 0.0, 1.0)

    # Order.

    def ause(self, statistic: str) -> dict[str, Floats]:
        """Return the mean AUSE over the frames, of the method and each trivial baseline."""
        areas = self.bootstrap.sums("ause")[..., POGGI.errors.index(statistic)]
        frames = self._scalars["frames"]
        return {name: areas[:, place] / frames for place, name in enumerate(COMPARED)}

    def aurg(self, statistic: str) -> Floats:
        """Return the mean AURG of sigma over the frames."""
        areas = self.bootstrap.sums("aurg")[:, POGGI.errors.index(statistic)]
        return areas / self._scalars["frames"]

    def merci(self, alpha: float) -> Floats:
        """Return the mean length of the error bars that cover a fraction alpha, metres."""
        factor = RATIO_BINS.quantiles(self.bootstrap.sums("ratio_bins"), alpha)
        return factor * self.mean("sigma")

    def n_merci(self, alpha: float) -> Floats:
        """Return n-MeRCI over all pixels."""
        max_error = ERROR_BINS.quantiles(self.bootstrap.sums("error_bins"), alpha)
        mae = self.mean("error")
        return _per(self.merci(alpha) - mae, max_error - mae)

    def n_merci_withdrawn(self, alpha: float) -> Floats:
        """Return n-MeRCI without the largest errors, from coarse bins: for its spread only."""
        joint = self.bootstrap.sums("joint_bins")
        counts = joint.sum(axis=2)
        before = np.cumsum(counts, axis=1) - counts
        number = alpha * counts.sum(axis=1)
        remaining = np.clip(_per(number[:, None] - before, counts), 0.0, 1.0)
        remaining = np.nan_to_num(remaining)
        ratios = np.einsum("rb,rbk->rk", remaining, joint)
        factor = COARSE_RATIOS.quantiles(ratios, alpha)
        sigma = _per((remaining * self.bootstrap.sums("sigma_by_error")).sum(axis=1), number)
        mae = _per((remaining * self.bootstrap.sums("error_by_error")).sum(axis=1), number)
        max_error = ERROR_BINS.quantiles(self.bootstrap.sums("error_bins"), alpha**2)
        return _per(factor * sigma - mae, max_error - mae)

    # Size.

    def coverage(self, law: str, level: float) -> Floats:
        """Return the fraction of the errors within the interval of a level."""
        covered = self.bootstrap.sums("covered")[:, LAWS.index(law), INTERVAL_LEVELS.index(level)]
        with np.errstate(invalid="ignore"):
            return covered / self._scalars["pixels"]

    def sigma_factor(self, law: str, level: float) -> Floats:
        """Return the factor on sigma at which the interval of `level` covers that fraction."""
        quantiles = RATIO_BINS.quantiles(self.bootstrap.sums("ratio_bins"), level)
        return quantiles / LEVEL_WIDTHS[law][INTERVAL_LEVELS.index(level)]

    def nll(self, law: str) -> Floats:
        """Return the mean negative log likelihood, nats; +inf where a sigma of 0 is in error."""
        rows = DISTRIBUTIONS[law].nll(self.mean("log_sigma"), self.mean(_power_sum("ratio", law)))
        return np.where(self._scalars["certain_errors"] > 0, np.inf, rows)

    def fitted_nll(self, law: str) -> dict[str, Floats]:
        """Return the same of the trivial baselines, each with its most likely scale."""
        distribution = DISTRIBUTIONS[law]
        log_sigma = {
            "constant": np.zeros(len(self._scalars["frames"])),
            "proportional_to_depth": self.mean("log_predicted", "positive"),
        }
        rows = {}
        for name, power in self._fitted_powers(law).items():
            scale = distribution.likely_scale(power, 1)
            with np.errstate(divide="ignore", invalid="ignore"):  # a scale of 0: no error at all
                fitted_power = power / scale**distribution.power
                rows[name] = distribution.nll(log_sigma[name] + np.log(scale), fitted_power)
        return rows

    def auce(self, law: str) -> Floats:
        """Return the area under the calibration error curve."""
        bins = self.bootstrap.sums("ratio_bins")
        below = RATIO_BINS.below(HALF_WIDTHS[law])
        return _areas_of_miscoverage(_per_total(bins @ below.T, bins))

    def fitted_auce(self, law: str) -> dict[str, Floats]:
        """Return the same of the trivial baselines, each with its most likely scale."""
        tables = {"constant": "error_bins", "proportional_to_depth": "depth_ratio_bins"}
        rows = {}
        for name, power in self._fitted_powers(law).items():
            scale = DISTRIBUTIONS[law].likely_scale(power, 1)
            widths = HALF_WIDTHS[law] * scale[:, None]
            counts = self.bootstrap.sums(tables[name])
            rows[name] = _areas_of_miscoverage(ERROR_BINS.fractions_below(counts, widths))
        return rows

    def _fitted_powers(self, law: str) -> dict[str, Floats]:
        """Return the mean power of error / sigma of each trivial baseline at scale 1."""
        return {
            "constant": self.mean(_power_sum("error", law)),
            "proportional_to_depth": self.mean(_power_sum("depth_ratio", law), "positive"),
        }


def _per(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerator / denominator


def _per_total(sums: Floats, bins: Floats) -> Floats:
    totals = bins.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return sums / (totals if sums.ndim == 1 else totals[:, None])


def _power_sum(quantity: str, law: str) -> str:
    """Return the name of the sum of a quantity to the power that the law's likelihood has."""
    return quantity if DISTRIBUTIONS[law].power == 1 else f"squared_{quantity}"


def _areas_of_miscoverage(fractions: Floats) -> Floats:
    """Return the AUCE of each row of fractions covered at the levels of the AUCE."""
    return np.array([area_of_miscoverage(row) for row in fractions])
