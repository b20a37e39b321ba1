"""Fitting the map: its shape by regression of the absolute error on raw sigma, its size by coverage.

The size is what AUCE measures, so it is fitted by AUCE itself. Real errors have heavier tails than a Gaussian; a sigma with the right second
moment then covers too much at every level but the highest. The shape needs a mean only up to a factor. The mean absolute error is used instead of the
squared one, where a few gross errors outweigh the rest; for a Gaussian, or any other law of one shape, both are the same curve up to the factor.

A pure scale leaves n-MeRCI exactly as it was. A shape at full strength levels sigma where it tells little of the error, which lowers the plain
n-MeRCI and the likelihood's penalty but can raise the trimmed n-MeRCI; so shapes are also offered part of the way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration.sigma_map import IDENTITY, SigmaMap, affine
from uncertainty_depth.errors import SourceError
from uncertainty_depth.metrics.calibration import area_of_miscoverage
from uncertainty_depth.metrics.distributions import HALF_WIDTHS, LEVELS
from uncertainty_depth.metrics.merci import error_ratio

Floats = NDArray[np.float64]
GROUPS = 64  # groups of pixels with like sigma that a shape is fitted to: the most knots of a map, besides its ends
STRENGTHS = (0.25, 0.5, 0.75, 1.0)  # shares of the fitted shape in a map; the rest is a pure scale
LEAST_SLOPE = 1e-3  # of an affine shape, as a share of (mean error / mean sigma): keeps the order where sigma says nothing of the error


def affine_shape(sigma: Floats, error: Floats) -> SigmaMap:
    """Least squares of the relative residual of `|e| ~ a + b sigma` with a, b >= 0, over groups of like sigma."""
    from sklearn.linear_model import LinearRegression

    raw, mean_error, counts = grouped(sigma, error)
    terms = np.stack((np.ones_like(raw), raw), axis=1)
    model = LinearRegression(fit_intercept=False, positive=True).fit(
        terms, mean_error, sample_weight=counts / mean_error**2
    )
    offset, slope = model.coef_
    return affine(float(offset), max(float(slope), LEAST_SLOPE * mean_error.mean() / raw.mean()))


def isotonic_shape(sigma: Floats, error: Floats) -> SigmaMap:
    """Centred isotonic regression of |e| on sigma, over groups of like sigma.

    Isotonic regression gives plateaus, on which all sigmas would become equal; each plateau's value is put at the mean raw sigma of its pixels and
    the map is linear in between (Oron and Flournoy, "Centered isotonic regression", Statistics in Biopharmaceutical Research, 2017). A raw sigma of 0
    becomes half of the first value; beyond the last knot calibrated sigma is proportional to raw sigma.
    """
    from sklearn.isotonic import IsotonicRegression

    raw, mean_error, counts = grouped(sigma, error)
    fitted = IsotonicRegression().fit_transform(raw, mean_error, sample_weight=counts)
    plateau = np.cumsum(np.diff(fitted, prepend=fitted[0]) > 1e-9 * fitted[-1])
    pixels = np.bincount(plateau, counts)
    x, y = (np.bincount(plateau, counts * values) / pixels for values in (raw, fitted))
    return SigmaMap(
        "isotonic",
        (0.0, *x.tolist(), 2 * float(x[-1])),
        (float(y[0]) / 2, *y.tolist(), 2 * float(y[-1])),
    )


SHAPES: dict[str, Callable[[Floats, Floats], SigmaMap]] = {
    "affine": affine_shape,
    "isotonic": isotonic_shape,
}


def candidates(sigma: Floats, error: Floats) -> dict[str, SigmaMap]:
    """Every map that is tried, by its kind: identity, a pure scale, and each shape at full strength or drawn towards the pure scale.

    Args:
        sigma: (N,) raw standard deviations, metres.
        error: (N,) absolute errors, metres.

    Raises:
        SourceError: sigma is 0, or the error is, for so many of the pixels that no map can be fitted.
    """
    if not sigma.any():
        raise SourceError(
            "sigma is 0 for every pixel; expected a model and method that give one (see `--method` and `--samples`)"
        )
    if not error[sigma > 0].any():
        raise SourceError(
            "the error is 0 for every pixel whose sigma is not; expected errors to calibrate sigma to"
        )
    scale = affine(0.0, coverage_scale(sigma, error), "scale")
    shapes = {kind: _sized(shape(sigma, error), sigma, error) for kind, shape in SHAPES.items()}
    drawn = [
        _sized(_blend(shape, scale, strength), sigma, error)
        for shape in shapes.values()
        for strength in STRENGTHS
    ]
    return {one.kind: one for one in (IDENTITY, scale, *drawn)}


def _sized(shape: SigmaMap, sigma: Floats, error: Floats) -> SigmaMap:
    return shape.scaled(coverage_scale(shape(sigma), error))


def _blend(shape: SigmaMap, scale: SigmaMap, strength: float) -> SigmaMap:
    values = strength * np.array(shape.calibrated_m) + (1 - strength) * scale(
        np.array(shape.raw_m)
    )
    return SigmaMap(f"{shape.kind} {strength:.0%}", shape.raw_m, tuple(values.tolist()))


def coverage_scale(sigma: Floats, error: Floats) -> float:
    """The factor on sigma with the least AUCE, out of those that give exactly the right coverage at one of the 99 levels.

    Raises:
        SourceError: no factor is positive and finite.
    """
    ratios = np.sort(error_ratio(error, sigma))
    factors = ratios[np.ceil(LEVELS * len(ratios)).astype(int) - 1] / HALF_WIDTHS["gaussian"]
    factors = factors[np.isfinite(factors) & (factors > 0)]
    if not factors.size:
        raise SourceError(
            "error / sigma is 0 or infinite for nearly every pixel; expected both to be positive"
        )
    areas = [
        area_of_miscoverage(
            np.searchsorted(ratios, factor * HALF_WIDTHS["gaussian"], side="right") / len(ratios)
        )
        for factor in factors
    ]
    return float(factors[np.argmin(areas)])


def grouped(sigma: Floats, error: Floats) -> tuple[Floats, Floats, Floats]:
    """At most `GROUPS` groups of like sigma, as many pixels in each: mean sigma (rising), mean error (positive), number of pixels."""
    order = np.argsort(sigma, kind="stable")
    _, first = np.unique(sigma[order], return_index=True)  # equals stay together
    edges = np.linspace(0, len(sigma), min(GROUPS, len(sigma)) + 1)[:-1]
    starts = np.unique(first[np.searchsorted(first, edges, side="right") - 1])
    counts = np.diff(np.append(starts, len(sigma))).astype(np.float64)
    raw, mean_error = (
        np.add.reduceat(values[order].astype(np.float64), starts) / counts
        for values in (sigma, error)
    )
    known = (raw > 0) & (mean_error > 0)
    return raw[known], mean_error[known], counts[known]
