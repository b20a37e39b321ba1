# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The map from a network's raw sigma, or any uncertainty, to sigma in metres: plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import ModelError

FLAT_RANGE = 1e12
FLAT_RISE = 1e-6
"""Relative rise in a map that ignores the uncertainty over `FLAT_RANGE`: maps rise strictly."""


@dataclass(frozen=True)
class SigmaMap:
    """`sigma = f(uncertainty + offset) * depth^power`; f is piecewise linear.

    f's last segment extends to infinity. f strictly increases, so at one depth no two
    uncertainties become equal; with a power of 0 the pixels' order, and with it AUSE, AURG
    and Spearman, stays as it is.

    Attributes:
        name: how it was fitted, e.g. "affine, 95%".
        raw_m: two or more uncertainties from 0 on, strictly increasing; metres if with a unit.
        calibrated_m: f at each, not negative, strictly increasing; metres / metres^power.
        depth_power: the depth's power.
        offset: keeps a full confidence, an uncertainty of 0, from being a sigma of 0.
    """

    name: str
    raw_m: tuple[float, ...]
    calibrated_m: tuple[float, ...]
    depth_power: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers; raises `ModelError` unless they make such a map."""
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
        for name, value in (("depth_power", self.depth_power), ("offset", self.offset)):
            if not (np.isfinite(value) and value >= 0):
                raise ModelError(f"calibration has {name} = {value}; expected 0 or more")

    def __call__(
        self, uncertainty: NDArray[np.floating], depth_m: NDArray[np.floating] | None = None
    ) -> NDArray[np.floating]:
        """Return sigma, metres, for arrays of one shape; NaN and dtype stay.

        Only a map with power 0 goes without the depth.
        """
        uncertainty = np.asarray(uncertainty)
        value = uncertainty + uncertainty.dtype.type(self.offset)
        before, last = self.raw_m[-2:]
        low, high = self.calibrated_m[-2:]
        slope = (high - low) / (last - before)
        if len(self.raw_m) == 2:
            sigma = value * value.dtype.type(slope) + value.dtype.type(low)
        else:
            inside = np.interp(value, self.raw_m, self.calibrated_m)
            beyond = slope * np.maximum(value - last, 0.0)
            sigma = (inside + beyond).astype(value.dtype, copy=False)
        if not self.depth_power:
            return sigma
        if depth_m is None:
            raise ValueError(f"the map '{self.name}' needs the depth; expected depth_m")
        with np.errstate(invalid="ignore"):
            return sigma * np.maximum(depth_m, 0) ** sigma.dtype.type(self.depth_power)

    @property
    def ignores_uncertainty(self) -> bool:
        """Whether sigma depends on the depth alone, or on nothing."""
        return self.raw_m[-1] >= FLAT_RANGE

    def scaled(self, factor: float) -> SigmaMap:
        """Return the map whose sigmas are `factor` times this one's."""
        return replace(self, calibrated_m=tuple(factor * value for value in self.calibrated_m))

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_mapping` is the inverse."""
        values: dict[str, Any] = {
            "kind": self.name,
            "raw_m": list(self.raw_m),
            "calibrated_m": list(self.calibrated_m),
        }
        if self.depth_power or self.offset:
            values |= {"depth_power": self.depth_power, "offset": self.offset}
        return values

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> SigmaMap:
        """Read the map in `model.json` or a map's file, or raise `ModelError`."""
        try:
            return cls(
                str(values["kind"]),
                tuple(map(float, values["raw_m"])),
                tuple(map(float, values["calibrated_m"])),
                float(values.get("depth_power", 0.0)),
                float(values.get("offset", 0.0)),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"calibration is {values!r}; expected kind, raw_m and calibrated_m"
            ) from error


def affine(offset_m: float, slope: float, name: str = "affine") -> SigmaMap:
    """Return the map `offset + slope * sigma`."""
    return SigmaMap(name, (0.0, 1.0), (offset_m, offset_m + slope))


def flat(factor: float, depth_power: float, name: str) -> SigmaMap:
    """Return the map `factor * depth^power`, which ignores the uncertainty."""
    return SigmaMap(
        name, (0.0, FLAT_RANGE), (factor, factor * (1 + FLAT_RISE)), float(depth_power)
    )


IDENTITY = affine(0.0, 1.0, "raw sigma")
