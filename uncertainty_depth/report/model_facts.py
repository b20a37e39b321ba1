# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Checked values in a model's description, which may hold anything if it comes from a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.metrics.calibration import distribution_of
from uncertainty_depth.metrics.state import BLOCK_GRID
from uncertainty_depth.sigma.calibration.half_widths import MEASURED, HalfWidths

GRID = (2 * BLOCK_GRID[0], 2 * BLOCK_GRID[1])
"""Rows and columns of a training's median depth."""


def distribution_of_model(model: Mapping[str, Any]) -> str:
    """Return the error distribution that the model's head assumes."""
    return distribution_of(model.get("head"))


def is_recorded(model: Mapping[str, Any]) -> bool:
    """Return whether the depth is a camera's, or recorded, or arrays: nobody describes a model."""
    is_described = "method" in model or "training" in model
    return not is_described or model.get("method") == "recorded"


def half_widths_of(model: Mapping[str, Any]) -> NDArray[np.float64] | None:
    """Return the intervals' measured half widths, (99,) in sigmas; None if not measured."""
    try:
        return np.array(HalfWidths(MEASURED, tuple(map(float, model["half_widths"]))).at_levels)
    except (KeyError, TypeError, ValueError, OverflowError, ModelError):
        return None


def part_of(description: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a description's named part, e.g. "training"; empty if there is none."""
    part = description.get(name)
    return part if isinstance(part, Mapping) else {}


def median_depth_of(model: Mapping[str, Any]) -> NDArray[np.float64] | None:
    """Return the training's median depth per cell in `GRID`, metres, NaN for null."""
    try:
        grid = np.array(part_of(model, "training").get("median_depth_m"), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return grid if grid.shape == GRID else None
