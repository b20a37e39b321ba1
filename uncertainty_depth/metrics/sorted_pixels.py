# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The valid pixels of one frame, sorted once by error and shared by the metrics of every sigma."""

from __future__ import annotations

import numpy as np

from uncertainty_depth.metrics.arrays import Floats, average_ranks, sorted_order, sorted_values
from uncertainty_depth.metrics.depth import PixelErrors, depth_sums, exact_depth_errors
from uncertainty_depth.metrics.merci import order_number
from uncertainty_depth.metrics.removal_curves import sorted_oracle, statistic_values
from uncertainty_depth.metrics.sparsification_variants import POGGI

STATISTICS = POGGI.errors


class SortedPixels:
    """The valid pixels of one frame, at least one, in ascending order of their absolute error.

    Attributes:
        pixels: number of pixels, N.
        depth: (N,) predicted depth, metres; 0 where it is not positive.
        sigma: (N,) predicted standard deviation, metres.
        ground_truth: (N,) metres.
        error: (N,) absolute error, metres, ascending.
        error_ranks: (N,) centred ranks of `error`.
        ascending_relative: (N,) relative errors, sorted on their own.
        ascending_factor: (N,) factors `max(d / g, g / d)`, sorted on their own.
        statistic_values: (3, N) what each of `STATISTICS` averages.
        oracles: (3, K) raw oracle curve of each of `STATISTICS`.
        depth_sums: sums of the depth errors, by name.
        depth_errors: the metrics of the depth, by name.
        mae: mean absolute error, metres.
        covered: number of pixels that cover a fraction alpha of all.
        covered_of_rest: the same of the pixels left when the largest errors are withdrawn.
    """

    def __init__(self, depth: Floats, sigma: Floats, ground_truth: Floats, alpha: float) -> None:
        self.pixels = len(depth)
        self.covered = order_number(alpha, self.pixels)
        self.covered_of_rest = order_number(alpha, self.covered)
        order, _ = sorted_order(np.abs(depth - ground_truth))
        self.sigma = sigma.take(order)
        self.ground_truth = ground_truth.take(order)
        errors = PixelErrors.of(depth.take(order), self.ground_truth)
        self.depth = errors.positive_depth
        self.error = errors.absolute
        self.error_ranks = average_ranks(self.error)
        self.ascending_relative = sorted_values(errors.relative)
        self.ascending_factor = sorted_values(errors.factor)
        self.statistic_values = np.stack(
            [statistic_values(errors, name)[0] for name in STATISTICS]
        )
        ascending = (self.ascending_relative, errors.squared, self.ascending_factor)
        pairs = zip(STATISTICS, ascending, strict=True)
        self.oracles = np.stack([sorted_oracle(POGGI, name, values) for name, values in pairs])
        self.depth_sums = depth_sums(errors)
        self.depth_errors = exact_depth_errors(errors, self.depth_sums)
        self.mae = self.depth_errors["mae"]
