# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A strictly increasing map from raw to calibrated sigma: plain numbers in `model.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import ModelError


@dataclass(frozen=True)
class SigmaMap:
    """A piecewise linear map of raw sigma; its last segment extends to infinity.

    Strictly increasing: no two sigmas become equal, so metrics that only see their order (AUSE,
    AURG, Spearman) stay as they are.

    Attributes:
        name: how it was fitted, e.g. "affine 50%".
        raw_m: two or more raw sigmas, metres, from 0 on, strictly increasing.
        calibrated_m: what each becomes, metres, not negative, strictly increasing.
    """

    name: str
    raw_m: tuple[float, ...]
    calibrated_m: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the knots; raises `ModelError` where they make no such map."""
        if len(self.raw_m) != len(self.calibrated_m) or len(self.raw_m) < 2:
            raise ModelError(
                f"calibration has {len(self.raw_m)} raw and {len(self.calibrated_m)} calibrated "
                "sigmas; expected as many, 2 or more"
            )
        for name, values in (("raw_m", self.raw_m), ("calibrated_m", self.calibrated_m)):
            if not np.isfinite(values).all() or not (np.diff(values) > 0).all():
                raise ModelError(
                    f"calibration has {name} = {list(values)}; expected finite numbers, each "
                    "greater than the one before"
                )
        if self.raw_m[0] != 0 or self.calibrated_m[0] < 0:
            raise ModelError(
                f"calibration starts at {self.raw_m[0]:g} -> {self.calibrated_m[0]:g} m; expected "
                "0 -> 0 or more"
            )

    def __call__(self, sigma_m: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return calibrated sigma, metres, of raw sigma of any shape; NaN and dtype stay."""
        sigma = np.asarray(sigma_m)
        before, last = self.raw_m[-2:]
        low, high = self.calibrated_m[-2:]
        slope = (high - low) / (last - before)
        if len(self.raw_m) == 2:
            return sigma * sigma.dtype.type(slope) + sigma.dtype.type(low)
        inside = np.interp(sigma, self.raw_m, self.calibrated_m)
        return (inside + slope * np.maximum(sigma - last, 0.0)).astype(sigma.dtype, copy=False)

    def named(self, name: str) -> SigmaMap:
        """Return the same map under another name."""
        return SigmaMap(name, self.raw_m, self.calibrated_m)

    def scaled(self, factor: float) -> SigmaMap:
        """Return the map whose calibrated sigmas are `factor` times this one's."""
        return SigmaMap(
            self.name, self.raw_m, tuple(factor * value for value in self.calibrated_m)
        )

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_mapping` is the inverse."""
        return {
            "kind": self.name,
            "raw_m": list(self.raw_m),
            "calibrated_m": list(self.calibrated_m),
        }

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> SigmaMap:
        """Read the map from its entry in `model.json`; other keys are ignored.

        Raises:
            ModelError: the values make no such map.
        """
        try:
            raw_m = tuple(map(float, values["raw_m"]))
            calibrated_m = tuple(map(float, values["calibrated_m"]))
            return cls(values["kind"], raw_m, calibrated_m)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"calibration is {values!r}; expected kind, raw_m and calibrated_m"
            ) from error


def affine(offset_m: float, slope: float, name: str = "affine") -> SigmaMap:
    """Return the map `offset + slope * sigma`."""
    return SigmaMap(name, (0.0, 1.0), (offset_m, offset_m + slope))


IDENTITY = affine(0.0, 1.0, "identity")
