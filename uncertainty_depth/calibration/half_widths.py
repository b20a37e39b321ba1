# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How many sigmas to each side of the depth enclose a fraction of the true depths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import ModelError
from uncertainty_depth.metrics.distributions import CONFIDENCE_LEVELS, HALF_WIDTHS
from uncertainty_depth.metrics.merci import error_ratio

KEY = "half_widths"
"""In the record of a calibration in `model.json`."""
MEASURED = "measured on frames that the calibration was not fitted to"


@dataclass(frozen=True)
class HalfWidths:
    """Half widths of the intervals at the levels 1 to 99 %.

    Attributes:
        origin: what they follow from, for the model's description.
        at_levels: (99,) in sigmas, finite, not negative, never falling.
    """

    origin: str
    at_levels: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the numbers; raises `ModelError` unless they are half widths."""
        values = np.array(self.at_levels)
        is_valid = values.shape == CONFIDENCE_LEVELS.shape and np.isfinite(values).all()
        if not is_valid or values[0] < 0 or (np.diff(values) < 0).any():
            raise ModelError(
                f"calibration has {KEY} = {list(self.at_levels)}; expected "
                f"{len(CONFIDENCE_LEVELS)} finite numbers of at least 0, none below the one before"
            )

    def at(self, coverage: float) -> float:
        """Return the half width in sigmas of the interval at `coverage`, 0.01 to 0.99."""
        return float(np.interp(coverage, CONFIDENCE_LEVELS, self.at_levels))


BY_DISTRIBUTION = {
    name: HalfWidths(f"{name} distribution", tuple(values.tolist()))
    for name, values in HALF_WIDTHS.items()
}


def measured_half_widths(
    error: NDArray[np.floating], sigma: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the smallest half width that covers each level of the pixels, (99,) in sigmas.

    Infinite at levels that no half width covers, because sigma is 0 and the error is not.

    Args:
        error: (N,) absolute errors, metres, N at least 1.
        sigma: (N,) standard deviations, metres.
    """
    ratios = np.sort(error_ratio(error.astype(np.float64), sigma.astype(np.float64)))
    orders = np.ceil(CONFIDENCE_LEVELS * len(ratios)).astype(int)
    at_levels: NDArray[np.float64] = ratios[orders - 1]
    return at_levels


def from_record(record: Mapping[str, Any]) -> HalfWidths | None:
    """Return the half widths in a calibration's record; None if an earlier version wrote it.

    Raises:
        ModelError: they are not half widths.
    """
    values: Sequence[float] | None = record.get(KEY)
    if values is None:
        return None
    try:
        return HalfWidths(MEASURED, tuple(map(float, values)))
    except (TypeError, ValueError) as error:
        raise ModelError(f"calibration has {KEY} = {values!r}; expected numbers") from error
