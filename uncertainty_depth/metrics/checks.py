# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Argument checks for the exact functions; each error is one sentence."""

from __future__ import annotations

import logging
import math
import numbers
import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.metrics.arrays import as_array, as_floats

logger = logging.getLogger(__name__)

MILLIMETRES = (300.0, 3000.0)
"""Two maps' ratio if one is in millimetres, and the depth is off by up to three."""
FAR_M = 1000.0
"""Farther than what a robot scores, metres."""


def flat(**arguments: Any) -> list[Floats]:
    """Return the arguments as float64, flat, equally long and finite, or raise ValueError."""
    values = [floats(name, value) for name, value in arguments.items()]
    first = next(iter(arguments))
    for name, value in zip(arguments, values, strict=True):
        if value.ndim != 1:
            raise ValueError(
                f"{name} has shape {value.shape}; expected a flat array of valid pixels "
                "(see valid_pixels)"
            )
        if len(value) != len(values[0]):
            raise ValueError(
                f"{name} has {len(value)} elements; expected {len(values[0])}, as many as {first}"
            )
    masks = [np.ma.getmaskarray(it) for it in arguments.values() if np.ma.isMaskedArray(it)]
    if masks:
        kept = ~np.logical_or.reduce(masks)
        values = [value[kept] for value in values]
    for name, value in zip(arguments, values, strict=True):
        if len(value) and not math.isfinite(value.sum()):  # finite values may have such a sum
            for extreme in (float(value.min()), float(value.max())):
                if not math.isfinite(extreme):
                    raise ValueError(f"{name} contains {extreme}; expected finite values")
    return values


def errors(error: Any, sigma: Any) -> list[Floats]:
    """Return errors and sigmas as `flat` does, checked to be at least 0."""
    values = flat(error=error, sigma=sigma)
    at_least_zero(error=values[0], sigma=values[1])
    return values


def floats(name: str, values: Any) -> Floats:
    """Return the values as float64, or raise ValueError, which names the argument."""
    try:
        return as_floats(values)
    except (TypeError, ValueError, RuntimeError) as error:
        text = repr(values)
        excerpt = text if len(text) <= 60 else f"{text[:60]}..."
        raise ValueError(f"{name} is {excerpt}; expected an array of numbers") from error


def numbers_of(name: str, values: Any) -> NDArray:
    """Return the values as an array in their own dtype, checked as by `floats`."""
    try:
        array = as_array(values)
    except (TypeError, ValueError, RuntimeError):
        return floats(name, values)
    return array if array.dtype.kind in "fiu" else floats(name, values)


def warn_of_millimetres(depth: NDArray, ground_truth: NDArray) -> None:
    """Log a warning if one map is a thousand times the other, or both are a kilometre away."""
    known = np.isfinite(depth) & np.isfinite(ground_truth) & (depth > 0) & (ground_truth > 0)
    if not known.any():
        return
    with np.errstate(over="ignore", invalid="ignore"):  # a median of two may be too large
        truth_m, depth_m = (np.median(values[known]) for values in (ground_truth, depth))
        ratios = {"ground_truth": truth_m / depth_m, "depth": depth_m / truth_m}
    if min(truth_m, depth_m) > FAR_M:
        logger.warning(
            "depth and ground_truth are %.0f and %.0f in the median, as millimetres are; "
            "expected metres",
            depth_m,
            truth_m,
        )
    for name, ratio in ratios.items():
        if MILLIMETRES[0] < ratio < MILLIMETRES[1]:
            logger.warning(
                "%s is %.0f times the other map, as millimetres are; expected metres", name, ratio
            )


def at_least_zero(**arguments: Floats) -> None:
    """Refuse negative values."""
    for name, value in arguments.items():
        if len(value) and value.min() < 0:
            raise ValueError(f"{name} contains {value.min():g}; expected no negative value")


def above_zero(**arguments: Floats) -> None:
    """Refuse values that are not positive."""
    for name, value in arguments.items():
        if len(value) and value.min() <= 0:
            raise ValueError(f"{name} contains {value.min():g}; expected positive values")


def fraction(name: str, value: float) -> float:
    """Return the value; refuse it unless it is in (0, 1]."""
    if not (isinstance(value, numbers.Real) and 0 < value <= 1):
        raise ValueError(f"{name} is {value!r}; expected a number in (0, 1]")
    return float(value)


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return the value; refuse it unless it is among the names."""
    if not isinstance(value, str) or value not in choices:
        shown = reprlib.repr(value)  # an array is easily given in place of a name
        raise ValueError(f"{name} is {shown}; expected one of {', '.join(map(repr, choices))}")
    return value


def depth_limits(min_depth: float, max_depth: float) -> None:
    """Raise `ConfigError` for depth limits that are not finite, negative or reversed."""
    for name, value in (("min_depth", min_depth), ("max_depth", max_depth)):
        if not (math.isfinite(value) and value >= 0):
            raise ConfigError(
                f"{name} is {value}; expected a finite number of metres, not negative"
            )
    if min_depth >= max_depth:
        raise ConfigError(f"min_depth is {min_depth}; expected less than max_depth, {max_depth}")
