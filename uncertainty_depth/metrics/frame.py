# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The single exact pass over a frame's pixels, which makes its block of sums."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics.arrays import (
    Integers,
    as_floats,
    average_ranks,
    inner,
    sorted_order,
)
from uncertainty_depth.metrics.bins import Bins
from uncertainty_depth.metrics.calibration import (
    DISTRIBUTIONS,
    GAUSSIAN,
    HALF_WIDTHS,
    NOMINAL_WIDTHS,
    crps_sum,
    excess_sum,
    log_sum,
    of_distribution,
    power_sum,
)
from uncertainty_depth.metrics.depth import (
    A1_FACTOR,
    PixelErrors,
    flat_maps,
    has_prediction,
    scorable,
)
from uncertainty_depth.metrics.merci import error_ratio
from uncertainty_depth.metrics.sparsification import (
    ause_and_aurg,
    correlation,
    mean_of_running_means,
    oracle_curves,
    removal_curves,
)
from uncertainty_depth.metrics.state import (
    BLOCK_GRID,
    DEPTH_RATIO,
    DEPTH_RATIO_SUMS,
    DISTANCE,
    DISTANCE_ERROR,
    DISTANCE_RATIO,
    DISTRIBUTION_NAMES,
    ERROR,
    MAX_LOG_ERROR,
    MAX_RATIO_EXPONENT,
    PLOTTED_FRACTIONS,
    RATIO,
    SIGMA,
    SIGMA_NAMES,
    SUMS,
    TRUTH,
    Block,
    empty_block,
)

LARGEST_SUM = 1e200
"""Replaces a frame's infinite sum, which no weight could take out again."""


class ScoredPixels:
    """A frame's pixels with ground truth, and the scored ones among them.

    Attributes:
        truth: (M,) ground truth within the evaluation's limits, metres.
        depth, sigma, ground_truth: (N,) float64, metres, for pixels that also have a prediction;
            sigma is None for a depth alone.
        cells: (N,) each one's cell in `BLOCK_GRID`; None if the maps are flat.
    """

    def __init__(
        self,
        depth: ArrayLike,
        sigma: ArrayLike | None,
        ground_truth: ArrayLike,
        min_depth: float,
        max_depth: float,
    ) -> None:
        """Select the pixels, see `valid_pixels`; sigma is None for a depth alone."""
        depths, truth = flat_maps(depth=depth, ground_truth=ground_truth)
        valid = np.flatnonzero(scorable(truth, min_depth, max_depth))
        self.truth = as_floats(truth.take(valid))
        self.depth = as_floats(depths.take(valid))
        self.sigma: Floats | None = None
        if sigma is not None:
            _, sigmas = flat_maps(depth=depth, sigma=sigma)
            self.sigma = as_floats(sigmas.take(valid))
        self.ground_truth = self.truth
        shape = np.shape(ground_truth)
        self.cells = _cell_map(*shape).take(valid) if len(shape) == 2 else None
        scored = has_prediction(self.depth, self.sigma)
        if not scored.all():
            self.depth = self.depth[scored]
            self.sigma = None if self.sigma is None else self.sigma[scored]
            self.ground_truth = self.ground_truth[scored]
            self.cells = None if self.cells is None else self.cells[scored]

    def __len__(self) -> int:
        """Return how many pixels are scored."""
        return len(self.depth)

    @cached_property
    def error(self) -> Floats:
        """(N,) absolute errors, metres."""
        return np.abs(self.depth - self.ground_truth)

    @property
    def scale(self) -> float:
        """The depth's missing factor: median of ground truth / depth; NaN without any."""
        positive = self.depth > 0
        factors = self.ground_truth[positive] / self.depth[positive]
        return float(np.median(factors)) if len(factors) else math.nan


@lru_cache(maxsize=4)
def _cell_map(height: int, width: int) -> Integers:
    """Return each pixel's cell in `BLOCK_GRID`, (height * width,), row by row."""
    rows = np.arange(height) * BLOCK_GRID[0] // height
    columns = np.arange(width) * BLOCK_GRID[1] // width
    return (rows[:, None] * BLOCK_GRID[1] + columns).reshape(-1)


def frame_block(pixels: ScoredPixels, ratio_exponent: float = -math.inf) -> Block:
    """Return one frame's block, by the ratio exponent of the frames before; -inf takes its own.

    Rankings are exact per image. Pixels are sorted once by error, once by each sigma, and the rest
    is arithmetic; a pass over the pixels takes longer than any arithmetic in it.
    """
    block = empty_block()
    if not len(pixels.truth):
        return block
    block["known_pixels"] = len(pixels.truth)
    block["truths"] = np.bincount(TRUTH.index(pixels.truth), minlength=TRUTH.number)
    if not len(pixels):
        return block
    order, error = sorted_order(pixels.error)
    sigma = None if pixels.sigma is None else pixels.sigma.take(order)
    truth = pixels.ground_truth.take(order)
    depth = pixels.depth.take(order)
    errors = PixelErrors.of(depth, truth)
    signed_error = depth - truth
    block["frames"] = 1
    block["pixels"] = len(error)
    _add_depth(block, errors, signed_error, truth)
    _add_rankings(block, errors, sigma)
    _add_depth_as_sigma(block, errors)
    index = _add_histogram(block, "error", ERROR, error)
    coarse = {"errors": (DISTANCE_ERROR, ERROR.coarse(index, DISTANCE_ERROR))}
    values = {"signed_error": signed_error, "error": error, "exact": error == 0}
    covered: dict[str, Floats] = {}
    if sigma is not None:
        ratio = _add_sigma(block, error, sigma, ratio_exponent)
        exponent = float(block["ratio_exponent"])
        ratio_bins = RATIO.at(int(exponent) if math.isfinite(exponent) else 0)
        index = _add_histogram(block, "ratio", ratio_bins, ratio)
        coarse["ratios"] = (DISTANCE_RATIO, RATIO.coarse(index, DISTANCE_RATIO))
        covered = {
            of_distribution("covered", distribution): (ratio <= width).astype(np.float64)
            for distribution, width in NOMINAL_WIDTHS.items()
        }
        group = SIGMA.index(sigma)
        block["by_sigma.pixels"] = np.bincount(group, minlength=SIGMA.number)
        block["by_sigma.covered"] = [
            np.bincount(group, is_covered, SIGMA.number) for is_covered in covered.values()
        ]
        block["by_sigma.squared_error"] = _binned(group, error * error, SIGMA)
        block["by_sigma.squared_sigma"] = _binned(group, sigma * sigma, SIGMA)
        values |= {"sigma": sigma, **covered, "certain_errors": np.isinf(ratio)}
    place = DISTANCE.index(truth)
    _add_by(block, "distance", place, values)
    for name, (bins, index) in coarse.items():
        table = block[f"distance.{name}"]
        counts = np.bincount(place * bins.number + index, minlength=table.size)
        table[...] = counts.reshape(table.shape)
    if pixels.cells is not None:
        cells = pixels.cells.take(order)
        log = np.log(truth)
        values = {"log_truth": log, "squared_log_truth": log * log, "error": error, **covered}
        _add_by(block, "cell", cells, values)
    for name in SUMS:
        np.minimum(block[name], LARGEST_SUM, out=block[name])
    return block


def _add_depth(block: Block, errors: PixelErrors, signed_error: Floats, truth: Floats) -> None:
    block["signed_error"] = signed_error.sum()
    block["error"] = errors.absolute.sum()
    block["exact"] = len(truth) - np.count_nonzero(errors.absolute)
    block["squared_error"] = errors.squared.sum()
    block["abs_rel"] = errors.relative.sum()
    block["sq_rel"] = inner(errors.relative, errors.absolute)
    block["within_10_percent"] = np.count_nonzero(errors.relative <= 0.1)
    for power in (1, 2, 3):
        block[f"a{power}"] = np.count_nonzero(errors.factor < A1_FACTOR**power)
    depth, log, inverse = errors.positive_depth, errors.log, errors.inverse
    positive = depth > 0
    if not positive.all():
        depth, log, inverse = depth[positive], log[positive], inverse[positive]
    block["no_depth"] = len(truth) - len(depth)
    block["depth"] = depth.sum()
    block["log_depth"] = log_sum(depth)
    block["log"] = log.sum()
    block["squared_log"] = inner(log, log)
    bounded = np.clip(log, -MAX_LOG_ERROR, MAX_LOG_ERROR)
    block["bounded_log"] = inner(bounded, bounded) + block["no_depth"] * MAX_LOG_ERROR**2
    if len(log):
        centred = log - log.mean()
        block["log_within_frame"] = inner(centred, centred)
    block["inverse"] = inverse.sum()
    block["squared_inverse"] = inner(inverse, inverse)


def _add_sigma(block: Block, error: Floats, sigma: Floats, ratio_exponent: float) -> Floats:
    """Add the sums that judge the predicted sigma's size; return error / sigma."""
    ratio = error_ratio(error, sigma)
    ascending = np.sort(ratio)
    first, end = np.searchsorted(ascending, (np.nextafter(0, 1), np.inf))
    if first < end and math.isinf(ratio_exponent):
        ratio_exponent = math.frexp(ascending[(first + end) // 2])[1] - 1
        ratio_exponent = min(max(ratio_exponent, -MAX_RATIO_EXPONENT), MAX_RATIO_EXPONENT)
    if first < end:
        block["ratio_exponent"] = ratio_exponent
        block["ratio_low"] = ratio_exponent + RATIO.low
        block["-ratio_high"] = -ratio_exponent - RATIO.high
    for row, distribution in enumerate(DISTRIBUTION_NAMES):
        block["covered"][row] = np.searchsorted(ascending, HALF_WIDTHS[distribution], side="right")
        block["crps"][row] = crps_sum(error, sigma, ratio, DISTRIBUTIONS[distribution])
        block["excess"][row] = excess_sum(error, sigma, NOMINAL_WIDTHS[distribution])
    finite = ratio if math.isfinite(ascending[-1]) else ratio[np.isfinite(ratio)]
    positive = sigma if sigma.min() > 0 else sigma[sigma > 0]
    block["sigmas"] = len(sigma)
    block["sigma"] = sigma.sum()
    block["log_sigma"] = log_sum(positive)
    block["no_sigma"] = len(sigma) - len(positive)
    block["certain_errors"] = len(sigma) - len(finite)
    block["ratio"] = finite.sum()
    block["squared_ratio"] = power_sum(finite, GAUSSIAN)
    return ratio


def _add_depth_as_sigma(block: Block, errors: PixelErrors) -> None:
    """Add the same sums for the predicted depth used as sigma."""
    depth = errors.positive_depth
    ratio = error_ratio(errors.absolute, depth)
    finite = ratio if not block["no_depth"] else ratio[np.isfinite(ratio)]
    block["depth_ratio"] = finite.sum()
    block["squared_depth_ratio"] = power_sum(finite, GAUSSIAN)
    index = _add_histogram(block, "depth_ratio", DEPTH_RATIO, ratio)
    coarse = DEPTH_RATIO.coarse(index, DEPTH_RATIO_SUMS)
    for name, values in (("error", errors.absolute), ("depth", depth)):
        block[f"by_depth_ratio.{name}"] = _binned(coarse, values, DEPTH_RATIO_SUMS)


def _add_rankings(block: Block, errors: PixelErrors, sigma: Floats | None) -> None:
    error = errors.absolute
    oracle = oracle_curves(errors)
    error_ranks = average_ranks(error)
    block["oracle"] = oracle[:, PLOTTED_FRACTIONS]
    keys = {"predicted": sigma, "proportional_to_depth": errors.positive_depth}
    for row, (sigma_name, key) in enumerate(keys.items()):
        if key is None:
            continue
        order, ascending = sorted_order(key)
        removal = removal_curves(order, ascending, errors)
        index = SIGMA_NAMES.index(sigma_name)
        block["ause"][index], block["aurg"][index] = ause_and_aurg(removal, oracle)
        block["aurc"][index] = mean_of_running_means(ascending, error.take(order))
        spearman = correlation(average_ranks(ascending), error_ranks.take(order))
        if math.isfinite(spearman):
            block["spearman"][index] = spearman
            block["spearmans"][index] = 1
        block["removal"][row] = removal[:, PLOTTED_FRACTIONS]
    constant = SIGMA_NAMES.index("constant")  # all pixels tie: they are removed all together
    none_removed = np.repeat(oracle[:, :1], oracle.shape[1], axis=1)
    block["ause"][constant], block["aurg"][constant] = ause_and_aurg(none_removed, oracle)
    block["aurc"][constant] = error.mean()


def _add_histogram(block: Block, name: str, bins: Bins, values: Floats) -> Integers:
    index = bins.index(values)
    block[f"{name}s"] = np.bincount(index, minlength=bins.number)
    block[f"max_{name}"] = values.max()
    block[f"-min_{name}"] = -values.min()
    return index


def _binned(index: Integers, values: Floats, bins: Bins) -> NDArray[np.float32]:
    """Return the sums in bins, rounded as coarsely as the bins: half the bytes compress away."""
    with np.errstate(over="ignore"):
        return np.bincount(index, values, bins.number).astype(np.float32)


def _add_by(block: Block, group: str, index: Integers, values: Mapping[str, Floats]) -> None:
    """Add the pixels, and the sums over their values, for each distance or cell."""
    for name, weights in {"pixels": None, **values}.items():
        part = block[f"{group}.{name}"]
        part[...] = np.bincount(index, weights, len(part))
