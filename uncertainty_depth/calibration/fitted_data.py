# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The data that a map was fitted to, as stored beside the map in the model folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from uncertainty_depth.errors import ModelError

QUANTILE_LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Of the raw sigmas' quantiles. Between the first and the last are 98 % of the pixels."""


@dataclass(frozen=True)
class FittedData:
    """Describes the data that a map was fitted to.

    Attributes:
        sources: their names.
        frames: number of frames.
        pixels: number of pixels.
        depth_range_m: quantiles of the ground truth at 1 and 99 %.
        sigma_quantiles_m: quantiles of raw sigma at `QUANTILE_LEVELS`.
        camera: [min, max] of `focal_length_per_width` and `aspect`; None if no camera is known.
    """

    sources: tuple[str, ...]
    frames: int
    pixels: int
    depth_range_m: tuple[float, ...]
    sigma_quantiles_m: tuple[float, ...]
    camera: dict[str, list[float]] | None

    @property
    def sigma_range_m(self) -> tuple[float, float]:
        """Return the range that holds 98 % of the raw sigmas."""
        return self.sigma_quantiles_m[0], self.sigma_quantiles_m[-1]

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_mapping` is the inverse."""
        return asdict(self)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> FittedData:
        """Read what `model.json` holds.

        Raises:
            ModelError: a value is missing or of another type.
        """
        try:
            fitted = cls(
                tuple(str(name) for name in values["sources"]),
                int(values["frames"]),
                int(values["pixels"]),
                tuple(float(value) for value in values["depth_range_m"]),
                tuple(float(value) for value in values["sigma_quantiles_m"]),
                values["camera"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"calibration was fitted to {values!r}; expected sources, frames, pixels, "
                "depth_range_m, sigma_quantiles_m and camera"
            ) from error
        if len(fitted.depth_range_m) != 2 or len(fitted.sigma_quantiles_m) != len(QUANTILE_LEVELS):
            raise ModelError(
                f"calibration has {len(fitted.depth_range_m)} depths and "
                f"{len(fitted.sigma_quantiles_m)} quantiles; expected 2 and {len(QUANTILE_LEVELS)}"
            )
        return fitted
