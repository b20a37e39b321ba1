# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Fit the maps that are tried: a shape by regression on the error, then its size.

A shape needs the error's spread only up to a factor, the same for all pixels. The 68 % quantile
of the absolute error is used in place of a mean: for errors of one distribution both are the same
curve up to the factor, and a few mismatched pixels, whose errors are a hundred sigmas, move the
quantile little and a mean as far as they like. The size is fitted in two ways, by
the error's distribution:

coverage
    The factor with the smallest AUCE.
95 %
    The factor that covers 95 %. It makes room for tails that the distribution lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.metrics.calibration import (
    CONFIDENCE_LEVELS,
    HALF_WIDTHS,
    area_of_miscoverage,
    named,
)
from uncertainty_depth.metrics.merci import at_shares, error_ratio
from uncertainty_depth.sigma.calibration.sigma_map import IDENTITY, SigmaMap, affine, flat

Size = Callable[[Floats, Floats, str], float]
GROUPS = 64
"""Pixel groups with like sigma that a shape is fitted to: most knots in a map, ends aside."""
GROUP_QUANTILE = 0.68
MIN_SLOPE = 1e-3
"""Lowest slope of an affine shape as a fraction of mean error / mean sigma: keeps the order."""
OFFSET = 0.01
"""Added to an uncertainty without a unit, as a fraction of its 99 % quantile."""
MAX_POWER = 4.0
NOMINAL = 0.95
POWER_TEXTS = {
    0.0: "",
    2.0: ", times depth squared",
    None: ", times a power of depth",
}
CONSTANT = "constant"
DEPTH_ALONE = "power of depth"


@dataclass(frozen=True)
class MapInput:
    """What a map is fitted to.

    Attributes:
        has_unit: whether it is a standard deviation in metres.
        powers: of the depth that maps are tried with; None is the one with which errors grow.
        may_be_ignored: whether maps from the depth alone are tried, too.
    """

    has_unit: bool
    powers: tuple[float | None, ...]
    may_be_ignored: bool

    @property
    def references(self) -> tuple[str, ...]:
        """Maps to compare with: the fitted map must not be worse than the best.

        Without a map, raw sigma is published; a confidence without a unit is compared with sigmas
        that ignore it.
        """
        if self.has_unit:
            return (IDENTITY.name,)
        return (CONSTANT, DEPTH_ALONE) if self.powers else (CONSTANT,)


NETWORK = MapInput(True, (0.0,), False)
"""A network's raw sigma. The map keeps its order."""
RECORDED_SIGMA = MapInput(True, tuple(POWER_TEXTS), True)
UNITLESS_CONFIDENCE = MapInput(False, tuple(POWER_TEXTS), True)
"""A confidence without a unit. The error of stereo grows with the depth's square."""
NO_CONFIDENCE = MapInput(False, (), True)
DEPTH_HEAD = MapInput(False, (0.0,), True)
"""A sigma that was learned from the depth: it must be better than a power of the depth."""


class Pixels(NamedTuple):
    """(N,) pixels: positive predicted depth, uncertainty, absolute error; metres."""

    depth: Floats
    uncertainty: Floats
    error: Floats


def maps_to_try(pixels: Pixels, kind: MapInput, distribution: str) -> dict[str, SigmaMap]:
    """Return every map that is tried, by its name.

    `|error| / depth^power` is fitted to the uncertainty, for each power; that leaves `error /
    sigma` as it is, and with it coverage.
    """
    depth, uncertainty, error = pixels
    _check(uncertainty, error, kind.has_unit)
    maps = [IDENTITY] if kind.has_unit else []
    if kind.may_be_ignored:  # by a constant sigma, or one of a depth^k
        for name, power in ((CONSTANT, 0.0), (DEPTH_ALONE, error_power(depth, error))):
            for size_name, size in SIZES.items():
                factor = size(np.ones_like(error), error / depth**power, distribution)
                maps.append(flat(factor, power, name + size_name))
    offset = 0.0
    if not kind.has_unit:
        offset = OFFSET * float(np.quantile(uncertainty, 0.99)) or 1.0
    for tried in kind.powers:
        power = error_power(depth, error) if tried is None else tried
        for curve in _curves(uncertainty + offset, error / depth**power, distribution):
            name = curve.name + POWER_TEXTS[tried]
            maps.append(replace(curve, name=name, depth_power=power, offset=offset))
    return {candidate.name: candidate for candidate in maps}


def _check(uncertainty: Floats, error: Floats, has_unit: bool) -> None:
    if has_unit and not uncertainty.any():
        raise SourceError(
            "sigma is 0 for every pixel; expected a model and method that predict one "
            "(see `--method` and `--samples`)"
        )
    if not error[uncertainty > 0].any() and (has_unit or not error.any()):
        raise SourceError(
            "the error is 0 for every pixel whose sigma is not; expected errors to calibrate "
            "sigma to"
        )


def error_power(depth: Floats, error: Floats) -> float:
    """Return the depth's power with which the error grows, 0 to `MAX_POWER`, by a log-log line."""
    mean_depth, spread, counts = grouped(depth, error)
    if len(mean_depth) < 2:
        return 0.0
    slope = np.polyfit(np.log(mean_depth), np.log(spread), 1, w=np.sqrt(counts))[0]
    return float(np.clip(slope, 0.0, MAX_POWER))


def _curves(uncertainty: Floats, error: Floats, distribution: str) -> Iterator[SigmaMap]:
    """Yield the pure scale and each shape, in each size."""
    raw, spread, counts = grouped(uncertainty, error)
    shapes = [shape(raw, spread, counts) for shape in SHAPES.values()] if raw.size else []
    for size_name, size in SIZES.items():
        yield affine(0.0, size(uncertainty, error, distribution), f"scale{size_name}")
        for shape in shapes:
            sigma = np.asarray(shape(uncertainty), np.float64)
            sized = shape.scaled(size(sigma, error, distribution))
            yield replace(sized, name=f"{shape.name}{size_name}")


def affine_shape(raw: Floats, spread: Floats, counts: Floats) -> SigmaMap:
    """Return `spread ~ a + b sigma`, a, b >= 0, with least squares in the relative residual.

    (G,) groups have a rising mean sigma, a positive spread in errors, and a pixel count.
    """
    from scipy.optimize import nnls

    weights = np.sqrt(counts) / spread
    terms = np.stack((np.ones_like(raw), raw), axis=1)
    (offset, slope), _ = nnls(weights[:, None] * terms, weights * spread)
    min_slope = MIN_SLOPE * spread.mean() / raw.mean()
    return affine(float(offset), max(float(slope), min_slope))


def isotonic_shape(raw: Floats, spread: Floats, counts: Floats) -> SigmaMap:
    """Return the centred isotonic regression of spread on sigma, over groups with like sigma.

    Isotonic regression gives plateaus, on which all sigmas would become equal; each plateau's
    value is put at its pixels' mean raw sigma and the map is linear in between (Oron and
    Flournoy, "Centered isotonic regression", Statistics in Biopharmaceutical Research, 2017). A
    raw sigma of 0 becomes half of the first value; beyond the last knot calibrated sigma is
    proportional to raw sigma. Arguments as in `affine_shape`.
    """
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression().fit_transform(raw, spread, sample_weight=counts)
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


SHAPES = {"affine": affine_shape, "isotonic": isotonic_shape}


def coverage_scale(sigma: Floats, error: Floats, distribution: str = "gaussian") -> float:
    """Return the factor on sigma with the smallest AUCE.

    Tried are those factors that give exactly the right coverage at one of the 99 levels.

    Raises `SourceError`: no factor is positive and finite.
    """
    half_widths = HALF_WIDTHS[distribution]
    ratios = np.sort(error_ratio(error, sigma))
    factors = _positive(at_shares(ratios, CONFIDENCE_LEVELS) / half_widths)
    areas = []
    for factor in factors:
        covered = np.searchsorted(ratios, factor * half_widths, side="right")
        areas.append(area_of_miscoverage(covered / len(ratios)))
    return float(factors[np.argmin(areas)])


def interval_scale(sigma: Floats, error: Floats, distribution: str = "gaussian") -> float:
    """Return the factor at which the 95 % interval holds 95 % of the errors.

    Sigma 0 is left out.
    """
    ratios = np.sort(error_ratio(error[sigma > 0], sigma[sigma > 0]))
    half_width = named(distribution).half_widths(NOMINAL)
    return float(_positive(at_shares(ratios, [NOMINAL]) / half_width)[0])


def _positive(factors: Floats) -> Floats:
    factors = factors[np.isfinite(factors) & (factors > 0)]
    if not factors.size:
        raise SourceError(
            "error / sigma is 0 or infinite for nearly every pixel; expected both to be positive"
        )
    return factors


SIZES: dict[str, Size] = {"": coverage_scale, ", 95%": interval_scale}


def grouped(sigma: Floats, error: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (G,) groups of like sigma: mean sigma, the error's `GROUP_QUANTILE`, pixel count."""
    order = np.argsort(sigma, kind="stable")
    _, first = np.unique(sigma[order], return_index=True)
    edges = np.linspace(0, len(sigma), min(GROUPS, len(sigma)) + 1)[:-1]
    starts = np.unique(first[np.searchsorted(first, edges, side="right") - 1])
    counts = np.diff(np.append(starts, len(sigma))).astype(np.float64)
    raw = np.add.reduceat(sigma[order].astype(np.float64), starts) / counts
    parts = np.split(error[order].astype(np.float64), starts[1:])
    spread = np.array([np.quantile(part, GROUP_QUANTILE) for part in parts])
    valid = (raw > 0) & (spread > 0)
    return raw[valid], spread[valid], counts[valid]
