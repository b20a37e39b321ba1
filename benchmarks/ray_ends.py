# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Where a costmap's clearing rays may end, and what may mark it: the ways of `costmap.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.moments import MEASURES, STRIDE, Map, Moment
from uncertainty_depth.core.config.nodes import GatingConfig
from uncertainty_depth.sigma.gating import confident_pixels, lower_bound, nearest_bound

GATING = GatingConfig()
COMMON = 0.58
"""Standard deviation of a frame's scale, over its mean sigma / depth: README.md."""
STEPS = 40
"""Points of a ray at which two frames must agree."""
Ends = Callable[[Moment], Map]
"""Depths at which rays end, or that mark."""


def exact(moment: Moment) -> Map:
    """Return the exact depth."""
    return moment.truth_m


def factor(part: float, moment: Moment) -> Map:
    """Return a part of the depth."""
    return np.float32(part) * moment.predictions[""].depth_m


def sigmas(number: float, moment: Moment, by: str = "") -> Map:
    """Return depth - k sigma."""
    prediction = moment.predictions[by]
    return lower_bound(prediction.depth_m, prediction.sigma_m, number)


def common_once(number: float, moment: Moment) -> Map:
    """Return the depth at the least scale of the frame, less k sigma of what is each pixel's."""
    prediction = moment.predictions[""]
    relative = prediction.sigma_m / prediction.depth_m
    common = COMMON * np.nanmean(relative)
    own = np.sqrt(np.maximum(relative**2 - common**2, 0))
    part = np.maximum(np.exp(-number * common) - number * own, 0)
    return (part * prediction.depth_m).astype(np.float32)


def agreed(ends: Ends, moment: Moment) -> Map:
    """Return the ends as far as the frame before, where it looked, found the space free too."""
    own_m = ends(moment)
    if moment.before is None:
        return own_m
    before_m = ends(moment.before).ravel()
    own_m = np.where(own_m > 0, own_m, np.float32(1e-3))  # NaN too: all steps have all rays
    agrees = np.ones(own_m[::STRIDE, ::STRIDE].shape, bool)
    agreed_m = np.full_like(own_m, np.nan)
    agreed_m[::STRIDE, ::STRIDE] = 0
    for step in range(1, STEPS + 1):
        at_m = own_m * np.float32(step / STEPS)
        pixels, index, depth_m = moment.before.seen(moment.points(at_m))
        np.put(agrees, index[depth_m > before_m[pixels]], False)
        agreed_m[::STRIDE, ::STRIDE][agrees] = at_m[::STRIDE, ::STRIDE][agrees]
    return agreed_m


def nearest(ends: Ends, moment: Moment) -> Map:
    """Return the nearest end that a ray passes within the margin, as `points/clearing` does."""
    focal_length = float(moment.camera.intrinsics[0, 0])
    return nearest_bound(ends(moment), GATING.clearing_margin, focal_length)


def trusted(moment: Moment, by: str = "") -> Map:
    """Return the depth of `points/confident`."""
    prediction = moment.predictions[by]
    is_trusted = confident_pixels(prediction.depth_m, prediction.sigma_m, GATING)
    return np.where(is_trusted, prediction.depth_m, np.float32(np.nan))


PLAIN: dict[str, Ends] = {
    "exact depth": exact,
    "depth": partial(factor, 1.0),
    **{f"{part} depth": partial(factor, part) for part in (0.7, 0.6, 0.5)},
    **{f"depth - {k} sigma": partial(sigmas, k) for k in (1, 2, 3)},
    **{f"common part once, {k} sigma": partial(common_once, k) for k in (1, 2)},
    **{f"two frames agree, {k} sigma": partial(agreed, partial(sigmas, k)) for k in (1, 2)},
    **{f"{by}, {k} sigma": partial(sigmas, k, by=by) for by in MEASURES for k in (1, 2, 3)},
}
CLEARED: dict[str, Ends] = {
    **PLAIN,
    **{f"nearest: {name}": partial(nearest, ends) for name, ends in PLAIN.items()},
}
SHIPPED = partial(nearest, partial(sigmas, GATING.clearing_sigmas))
MARKED: dict[str, Ends] = {"`points`": partial(sigmas, 0), "`points/confident`": trusted}
for _by in MEASURES:
    MARKED[f"`points`, {_by}"] = partial(sigmas, 0, by=_by)
    MARKED[f"`points/confident`, {_by}"] = partial(trusted, by=_by)
