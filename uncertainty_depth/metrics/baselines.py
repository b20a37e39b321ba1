# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The trivial sigmas that every sigma is compared with."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics.arrays import Floats

BASELINES = ("constant", "proportional_to_depth", "proportional_to_depth_noisy")
CANDIDATES = ("method", *BASELINES)
"""Everything that is scored: the predicted sigma and the baselines."""
NOISE = 0.25
"""Standard deviation of the logarithm of the noise on the third baseline."""
FACTOR_BITS = 12
SALT = np.uint64(0x9E3779B97F4A7C15)
MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def _factors() -> Floats:
    """Return the quantiles of lognormal(0, NOISE) in the middle of equal parts."""
    number = 1 << FACTOR_BITS
    normal = NormalDist()
    quantiles = [normal.inv_cdf((place + 0.5) / number) for place in range(number)]
    return np.exp(NOISE * np.array(quantiles))


FACTORS = _factors()


def noisy_depth(depth: Floats, ground_truth: Floats) -> Floats:
    """Return depth times lognormal(0, 0.25) noise: a sigma that knows no more than depth.

    The noise is a hash of each pixel's ground truth (the finaliser of SplitMix64, Steele, Lea and
    Flood 2014). So it has no state: the same frame has the same noise live and offline, whole or
    in parts, and for every prediction that is scored on it. The depth is not part of the hash:
    its last bits change with the number of threads.

    Args:
        depth: (N,) metres, not negative.
        ground_truth: (N,) metres.
    """
    bits = _mixed(ground_truth.view(np.uint64) + SALT)
    bits >>= np.uint64(64 - FACTOR_BITS)
    return depth * FACTORS.take(bits.view(np.int64))


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return SplitMix64's finaliser: every bit of the input changes half of the bits."""
    bits = bits ^ (bits >> np.uint64(30))
    bits *= MULTIPLIERS[0]
    bits ^= bits >> np.uint64(27)
    bits *= MULTIPLIERS[1]
    bits ^= bits >> np.uint64(31)
    return bits
