# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""An invertible correction of sigma: a factor that depends on sigma itself.

It strictly increases, so the pixels' order does not change, nor do AUSE, AURG and Spearman. It is
invertible, so a model's own sigma follows from a corrected one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import MessageError

Floats = NDArray[np.float64]
KNOTS: Floats = np.arange(-10, 7).astype(np.float64)
"""log2 of the sigmas, metres, at which a correction has a factor: 1 mm to 64 m."""
MIN_SLOPE = 0.1
"""Of log corrected against log own sigma."""
MAX_OCTAVES = 10.0


@dataclass(frozen=True)
class Correction:
    """Factors on sigma at `KNOTS`; log-linear in between, constant beyond.

    Attributes:
        octaves: log2 of the factor at each of `KNOTS`.
    """

    octaves: tuple[float, ...]

    def __call__(self, sigma_m: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return corrected sigma, metres, from the model's own; NaN, 0 and the dtype stay."""
        return self._scaled(sigma_m, KNOTS, 1.0)

    def inverse(self, sigma_m: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the model's own sigma, metres, from a corrected one."""
        return self._scaled(sigma_m, KNOTS + self.octaves, -1.0)

    def _scaled(
        self, sigma_m: NDArray[np.floating], knots: Floats, sign: float
    ) -> NDArray[np.floating]:
        sigma = np.asarray(sigma_m)
        if len(set(self.octaves)) == 1:
            return sigma * sigma.dtype.type(2.0 ** (sign * self.octaves[0]))
        with np.errstate(divide="ignore"):
            octaves = np.interp(np.log2(sigma), knots, self.octaves)
        return sigma * np.exp2(sign * octaves).astype(sigma.dtype, copy=False)

    @property
    def min_factor(self) -> float:
        """The smallest factor of any sigma."""
        return float(2.0 ** min(self.octaves))

    @property
    def max_factor(self) -> float:
        """The largest factor of any sigma."""
        return float(2.0 ** max(self.octaves))

    def limited(self, min_factor: float, max_factor: float) -> Correction:
        """Return the correction with its factors clipped to `min_factor` ... `max_factor`."""
        return _correction(np.clip(self.octaves, math.log2(min_factor), math.log2(max_factor)))

    def towards(self, target: Correction, shrinking: float, growing: float) -> Correction:
        """Return the correction one step away that is nearest to `target`.

        The minimum and maximum of two increasing functions increase, so it strictly increases too.

        Args:
            target: the correction to move to.
            shrinking: how much factors may fall, a factor of 1 or more.
            growing: how much they may rise.
        """
        octaves = np.array(self.octaves)
        low = octaves - math.log2(shrinking)
        return _correction(np.clip(target.octaves, low, octaves + math.log2(growing)))

    def to_mapping(self) -> dict[str, list[float]]:
        """Return plain values for JSON; `from_mapping` is the inverse."""
        factors = [2.0**value for value in self.octaves]
        return {"sigma_m": (2.0**KNOTS).tolist(), "factor": factors}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Correction:
        """Read what `to_mapping` returned.

        Raises:
            MessageError: "correction", the values make no correction.
        """
        try:
            sigma_m = np.array(values["sigma_m"], dtype=np.float64)
            factor = np.array(values["factor"], dtype=np.float64)
        except (KeyError, TypeError, ValueError) as error:
            raise _refused(values, "sigma_m and factor, lists of numbers") from error
        if sigma_m.shape != KNOTS.shape or not np.allclose(sigma_m, 2.0**KNOTS, rtol=1e-9):
            raise _refused(values, f"factors at the {len(KNOTS)} sigmas of this version")
        is_valid = factor.shape == KNOTS.shape and np.isfinite(factor).all()
        if not is_valid or factor.min() < 2.0**-MAX_OCTAVES or factor.max() > 2.0**MAX_OCTAVES:
            raise _refused(values, "factors between 1/1024 and 1024")
        octaves = np.log2(factor)
        if not (np.diff(KNOTS + octaves) > 0).all():
            raise _refused(values, "a corrected sigma that increases with sigma")
        return _correction(octaves)


def _correction(octaves: NDArray[np.floating]) -> Correction:
    return Correction(tuple(octaves.tolist()))


def _refused(values: object, expected: str) -> MessageError:
    return MessageError("correction", f"correction is {str(values)[:120]!r}; expected {expected}")


def constant(factor: float) -> Correction:
    """Return a correction with the same factor for every sigma."""
    return Correction((math.log2(factor),) * len(KNOTS))


def increasing(octaves: Floats) -> Correction:
    """Return the correction nearest to these log2 factors whose slope is at least `MIN_SLOPE`.

    The mean of the running maximum and the running minimum from the other end, of what exceeds
    the minimal slope: both never decrease.

    Args:
        octaves: log2 of the factor wanted at each of `KNOTS`.
    """
    excess = KNOTS * (1 - MIN_SLOPE) + octaves
    above = np.maximum.accumulate(excess)
    below = np.minimum.accumulate(excess[::-1])[::-1]
    return _correction((above + below) / 2 - KNOTS * (1 - MIN_SLOPE))


IDENTITY = constant(1.0)
