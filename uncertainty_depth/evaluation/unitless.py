# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Metrics of a sigma without a unit: it ranks pixels, and its metrics of size are NaN."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

SIZED = ("auce", "coverage", "nll", "crps", "interval_score", "mpiw")
"""Beginnings of the names of metrics that compare the size of sigma with the errors."""
NO_UNIT = "no unit"


def is_sized(name: str) -> bool:
    """Return whether a metric of sigma, by its dotted name, needs sigma in metres."""
    return name.rpartition("uncertainty.")[2].startswith(SIZED)


def without_sizes(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested metrics of `OnlineMetrics` with NaN for those of the size of sigma."""
    sigma = {
        name: math.nan if is_sized(name) else value
        for name, value in metrics["uncertainty"].items()
    }
    return {**metrics, "uncertainty": sigma}
