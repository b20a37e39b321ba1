# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a depth map's stored numbers mean, in messages and files alike: holes and units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SATURATED = np.array([65535, 65.535], np.float32)
"""A 16-bit sensor saw nothing, or too far: as millimetres and in metres."""


def holes(values: NDArray[Any], is_inverse: bool = False) -> NDArray[np.bool_]:
    """Return which pixels of a stored depth map hold no depth: the one answer for every reader.

    They are NaN, 0 or below, whatever the type: drivers and data sets write 0 or -1. `SATURATED`,
    and an integer type's largest number, are a sensor's end, not in inverse depth, which
    networks stretch over all 16 bits. Infinity is no hole: it is beyond the range (REP 117); in
    inverse depth it is one, for nothing is at the camera.
    """
    none = ~(values > 0)
    if is_inverse:
        return none | np.isinf(values)
    return none | _is_saturated(values)


def _is_saturated(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind in "iu":
        return (values == np.iinfo(values.dtype).max) | (values == SATURATED[0])
    return np.isin(values.astype(np.float32), SATURATED)


def depth_of(
    values: NDArray[Any], is_inverse: bool = False, per_metre: float = 1000
) -> NDArray[np.float32]:
    """Return a stored depth map in metres or, if it is inverse, unchanged; NaN for holes.

    Whole numbers are `per_metre` to the metre (REP 118), others are metres.
    """
    numbers = values.astype(np.float32)
    if values.dtype.kind in "iu" and not is_inverse:
        numbers /= np.float32(per_metre)
    return np.where(holes(values, is_inverse), np.float32(np.nan), numbers)


def sigma_of(values: NDArray[Any], per_metre: float = 1000) -> NDArray[np.float32]:
    """Return a map of sigma as it is stored in metres.

    Whole numbers have holes and units as depth has; of others 0 is a claim, `SATURATED` is none.
    """
    if values.dtype.kind in "iu":
        return depth_of(values, per_metre=per_metre)
    return np.where(_is_saturated(values), np.float32(np.nan), values.astype(np.float32))
