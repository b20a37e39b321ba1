"""What a model's description says, read with care: live it comes from a topic that anyone fills."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.evaluation.unit_sums import GRID


def law_of(model: Mapping[str, Any]) -> str:
    """Name of the law of the error that the model's sigma belongs to: that of its head."""
    return "laplace" if model.get("head") == "laplace" else "gaussian"


def training_of(model: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is said of the training; empty where nothing is."""
    training = model.get("training")
    return training if isinstance(training, Mapping) else {}


def training_camera_of(model: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is said of the cameras of the training; empty where nothing is."""
    camera = training_of(model).get("camera")
    return camera if isinstance(camera, Mapping) else {}


def limits_of(value: Any) -> tuple[float, float] | None:
    """A pair of positive numbers, the smaller one first; None for anything else."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    if not all(isinstance(each, (int, float)) for each in value):
        return None
    low, high = (float(each) for each in value)
    return (low, high) if 0 < low <= high and math.isfinite(high) else None


def median_depth_of(model: Mapping[str, Any]) -> NDArray[np.float64] | None:
    """The pixelwise median depth of the training on `GRID`, metres, NaN for null; None without."""
    try:
        grid = np.array(training_of(model).get("median_depth_m"), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return grid if grid.shape == GRID else None
