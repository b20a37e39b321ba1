# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Distributions of the error with standard deviation sigma: Gaussian and Laplace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from uncertainty_depth.metrics import checks
from uncertainty_depth.metrics.arrays import Floats


@dataclass(frozen=True)
class Distribution:
    """A zero-mean distribution of the signed error with standard deviation sigma.

    Its negative log likelihood is `normaliser + ln sigma + weight (error / sigma)^power`.

    Attributes:
        name: "gaussian" or "laplace".
        power: power of error / sigma.
        weight: weight of that power.
        normaliser: nats.
    """

    name: str
    power: int
    weight: float
    normaliser: float

    def half_widths(self, levels: ArrayLike) -> Floats:
        """Return the half width of each level's central interval, in standard deviations."""
        levels = np.asarray(levels, dtype=np.float64)
        if self.power == 1:
            return -np.log1p(-levels) / math.sqrt(2)
        quantiles = [NormalDist().inv_cdf((1 + level) / 2) for level in levels.reshape(-1)]
        return np.array(quantiles).reshape(levels.shape)

    def likely_scale(self, mean_power: ArrayLike) -> Floats:
        """Return the factor on sigma that maximises the errors' likelihood; 0 without any error.

        Args:
            mean_power: mean of `(error / sigma)^power`, of any shape.
        """
        scale: Floats = (self.power * self.weight * np.asarray(mean_power)) ** (1 / self.power)
        return scale

    def nll(self, mean_log_sigma: ArrayLike, mean_power: ArrayLike) -> Any:
        """Return the mean negative log likelihood, nats, from two means over the pixels.

        Args:
            mean_log_sigma: mean of `ln sigma`, of any shape.
            mean_power: mean of `(error / sigma)^power`, same shape.
        """
        return self.normaliser + np.asarray(mean_log_sigma) + self.weight * np.asarray(mean_power)


GAUSSIAN = Distribution("gaussian", 2, 1 / 2, math.log(2 * math.pi) / 2)
LAPLACE = Distribution("laplace", 1, math.sqrt(2), math.log(2) / 2)
DISTRIBUTIONS = {distribution.name: distribution for distribution in (GAUSSIAN, LAPLACE)}
LEVEL_STEP = 0.01
CONFIDENCE_LEVELS: Floats = np.arange(1, 100) / 100
"""Confidence levels of the reliability curve: 0.01 ... 0.99."""
HALF_WIDTHS = {
    name: distribution.half_widths(CONFIDENCE_LEVELS)
    for name, distribution in DISTRIBUTIONS.items()
}
NOMINAL_LEVEL = 0.95
"""Level of the interval whose score and width are metrics of their own."""
NOMINAL_WIDTHS = {
    name: float(distribution.half_widths(NOMINAL_LEVEL))
    for name, distribution in DISTRIBUTIONS.items()
}
NORMAL_STEPS = 512
"""Nodes of the table in each unit: a third-order step from the nearest is exact to 1e-13."""
NORMAL_LIMIT = 9.0
"""Beyond it the probability is 1 in float64."""
_NODES = range(int(NORMAL_LIMIT) * NORMAL_STEPS + 1)
CENTRAL_PROBABILITY: Floats = np.array(
    [math.erf(node / NORMAL_STEPS / math.sqrt(2)) for node in _NODES]
)
"""Probability of `[-z, z]` at the nodes."""


def distribution_of(head: str) -> str:
    """Return the error's distribution by the network's head; Gaussian without a head."""
    return head if head in DISTRIBUTIONS else "gaussian"


def named(distribution: str) -> Distribution:
    """Return the distribution of this name.

    Raises:
        ValueError: the name is unknown.
    """
    return DISTRIBUTIONS[checks.choice("distribution", distribution, tuple(DISTRIBUTIONS))]


def folded_normal(standard: Floats) -> tuple[Floats, Floats]:
    """Return density and distribution function of `|Z|`, Z standard normal.

    It takes half the time of SciPy's `erf`.

    Args:
        standard: (N,) values that are not negative, +inf included; overwritten.

    Returns:
        `2 phi(z)`, and `erf(z / sqrt 2)` with an error of at most 1e-13. Both are (N,); beyond 9
        they are constant.
    """
    np.minimum(standard, NORMAL_LIMIT, out=standard)
    density = standard * standard
    density *= -0.5
    np.exp(density, out=density)
    density *= math.sqrt(2 / math.pi)
    node = np.rint(standard * NORMAL_STEPS)
    step = standard - node * (1 / NORMAL_STEPS)
    probability = CENTRAL_PROBABILITY.take(node.astype(np.int64))
    # The series about z itself, whose derivatives are multiples of the density:
    # step (1 + step z / 2 + step^2 (z^2 - 1) / 6) 2 phi(z).
    series = standard * standard
    series -= 1
    series *= step
    series *= 1 / 3
    series += standard
    series *= step
    series *= 0.5
    series += 1
    series *= step
    series *= density
    probability += series
    return density, probability
