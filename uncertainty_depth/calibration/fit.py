# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Fitting the map: its shape by regression of the absolute error on raw sigma, then its size.

A shape needs a mean only up to a factor. The mean absolute error is used instead of the squared
one, where a few gross errors outweigh the rest; for any distribution of one shape both are the
same curve up to the factor. The size is fitted in two ways, in the distribution of the head:

coverage
    The factor with the smallest AUCE. Gross errors do not move it.
likelihood
    The factor under which the errors are most likely. It covers the tails.

A shape at full strength levels sigma where it tells little of the error; shapes are also offered
part of the way towards a pure scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.calibration.sigma_map import IDENTITY, SigmaMap, affine
from uncertainty_depth.errors import SourceError
from uncertainty_depth.metrics.calibration import area_of_miscoverage
from uncertainty_depth.metrics.distributions import CONFIDENCE_LEVELS, HALF_WIDTHS, named
from uncertainty_depth.metrics.merci import error_ratio

Floats = NDArray[np.float64]
Shape = Callable[[Floats, Floats], SigmaMap]
Size = Callable[[NDArray[Any], Floats, str], float]
GROUPS = 64
"""Groups of pixels with like sigma that a shape is fitted to: most knots of a map, ends aside."""
STRENGTHS = (0.25, 0.5, 0.75, 1.0)
"""Fractions of the fitted shape in a map; the rest is a pure scale."""
MIN_SLOPE = 1e-3
"""Of an affine shape, as a fraction of mean error / mean sigma: keeps the order of sigma."""


def candidates(sigma: Floats, error: Floats, distribution: str) -> dict[str, SigmaMap]:
    """Return every map that is tried, by its name: identity, pure scales and shapes.

    Args:
        sigma: (N,) raw standard deviations, metres.
        error: (N,) absolute errors, metres.
        distribution: "gaussian" or "laplace", what sigma is the standard deviation of.

    Raises:
        SourceError: sigma is 0, or the error is, for so many of the pixels that no map can be
            fitted.
    """
    _check(sigma, error)
    shapes = [shape(sigma, error) for shape in SHAPES.values()]
    maps = [IDENTITY]
    for size_name, size in SIZES.items():
        scale = affine(0.0, size(sigma, error, distribution), "scale")
        for shape in (scale, *_shapes_towards(scale, shapes, sigma, error, size, distribution)):
            maps.append(shape.named(f"{shape.name}{size_name}"))
    return {candidate.name: candidate for candidate in maps}


def _check(sigma: Floats, error: Floats) -> None:
    if not sigma.any():
        raise SourceError(
            "sigma is 0 for every pixel; expected a model and method that predict one "
            "(see `--method` and `--samples`)"
        )
    if not error[sigma > 0].any():
        raise SourceError(
            "the error is 0 for every pixel whose sigma is not; expected errors to calibrate "
            "sigma to"
        )


def _shapes_towards(
    scale: SigmaMap,
    shapes: list[SigmaMap],
    sigma: Floats,
    error: Floats,
    size: Size,
    distribution: str,
) -> Iterator[SigmaMap]:
    """Yield each shape at each strength, the rest being the pure scale, in its own best size."""
    for shape in shapes:
        sized = shape.scaled(size(shape(sigma), error, distribution))
        for strength in STRENGTHS:
            blend = _blend(sized, scale, strength)
            yield blend.scaled(size(blend(sigma), error, distribution))


def _blend(shape: SigmaMap, scale: SigmaMap, strength: float) -> SigmaMap:
    pure_scale = scale(np.array(shape.raw_m))
    values = strength * np.array(shape.calibrated_m) + (1 - strength) * pure_scale
    return SigmaMap(f"{shape.name} {strength:.0%}", shape.raw_m, tuple(values.tolist()))


def affine_shape(sigma: Floats, error: Floats) -> SigmaMap:
    """Return `|e| ~ a + b sigma`, a, b >= 0, with the least squares of the relative residual."""
    from sklearn.linear_model import LinearRegression

    raw, mean_error, counts = grouped(sigma, error)
    terms = np.stack((np.ones_like(raw), raw), axis=1)
    model = LinearRegression(fit_intercept=False, positive=True)
    model.fit(terms, mean_error, sample_weight=counts / mean_error**2)
    offset, slope = model.coef_
    min_slope = MIN_SLOPE * mean_error.mean() / raw.mean()
    return affine(float(offset), max(float(slope), min_slope))


def isotonic_shape(sigma: Floats, error: Floats) -> SigmaMap:
    """Return the centred isotonic regression of |e| on sigma, over groups of like sigma.

    Isotonic regression gives plateaus, on which all sigmas would become equal; each plateau's
    value is put at the mean raw sigma of its pixels and the map is linear in between (Oron and
    Flournoy, "Centered isotonic regression", Statistics in Biopharmaceutical Research, 2017). A
    raw sigma of 0 becomes half of the first value; beyond the last knot calibrated sigma is
    proportional to raw sigma.
    """
    from sklearn.isotonic import IsotonicRegression

    raw, mean_error, counts = grouped(sigma, error)
    fitted = IsotonicRegression().fit_transform(raw, mean_error, sample_weight=counts)
    rises = np.diff(fitted, prepend=fitted[0]) > 1e-9 * fitted[-1]
    plateau = np.cumsum(rises)
    pixels = np.bincount(plateau, counts)
    x = np.bincount(plateau, counts * raw) / pixels
    y = np.bincount(plateau, counts * fitted) / pixels
    return SigmaMap(
        "isotonic",
        (0.0, *x.tolist(), 2 * float(x[-1])),
        (float(y[0]) / 2, *y.tolist(), 2 * float(y[-1])),
    )


SHAPES: dict[str, Shape] = {"affine": affine_shape, "isotonic": isotonic_shape}


def coverage_scale(sigma: Floats, error: Floats, distribution: str = "gaussian") -> float:
    """Return the factor on sigma with the smallest AUCE.

    Tried are those factors that give exactly the right coverage at one of the 99 levels.

    Raises:
        SourceError: no factor is positive and finite.
    """
    half_widths = HALF_WIDTHS[distribution]
    ratios = np.sort(error_ratio(error, sigma))
    at_levels = ratios[np.ceil(CONFIDENCE_LEVELS * len(ratios)).astype(int) - 1]
    factors = at_levels / half_widths
    factors = factors[np.isfinite(factors) & (factors > 0)]
    if not factors.size:
        raise SourceError(
            "error / sigma is 0 or infinite for nearly every pixel; expected both to be positive"
        )
    areas = []
    for factor in factors:
        covered = np.searchsorted(ratios, factor * half_widths, side="right")
        areas.append(area_of_miscoverage(covered / len(ratios)))
    return float(factors[np.argmin(areas)])


def likelihood_scale(sigma: Floats, error: Floats, distribution: str = "gaussian") -> float:
    """Return the factor on sigma under which the errors are most likely, where sigma is not 0."""
    law = named(distribution)
    ratios = error[sigma > 0] / sigma[sigma > 0]
    return law.likely_scale(float((ratios**law.power).sum()), len(ratios))


SIZES: dict[str, Size] = {"": coverage_scale, ", likelihood": likelihood_scale}


def grouped(sigma: Floats, error: Floats) -> tuple[Floats, Floats, Floats]:
    """Return at most `GROUPS` groups of like sigma, as many pixels in each; equals stay together.

    Returns:
        Mean sigma (rising), mean error (positive) and number of pixels of each group.
    """
    order = np.argsort(sigma, kind="stable")
    _, first = np.unique(sigma[order], return_index=True)
    edges = np.linspace(0, len(sigma), min(GROUPS, len(sigma)) + 1)[:-1]
    starts = np.unique(first[np.searchsorted(first, edges, side="right") - 1])
    counts = np.diff(np.append(starts, len(sigma))).astype(np.float64)
    raw = np.add.reduceat(sigma[order].astype(np.float64), starts) / counts
    mean_error = np.add.reduceat(error[order].astype(np.float64), starts) / counts
    valid = (raw > 0) & (mean_error > 0)
    return raw[valid], mean_error[valid], counts[valid]
