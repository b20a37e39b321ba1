# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Corruptions by name and severity, in the manner of Hendrycks and Dietterich 2019 (ImageNet-C).

No library with these corruptions is maintained and free of a second OpenCV and of torchvision, so
they are here, in OpenCV and NumPy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.corruption import light, optics, weather
from uncertainty_depth.corruption.names import CORRUPTIONS, SEVERITIES
from uncertainty_depth.errors import ConfigError

Floats = NDArray[np.float32]
SEEDED: dict[str, Callable[[Floats, int, np.random.Generator], Floats]] = {
    "night": light.night,
    "rain": weather.rain,
    "motion_blur": optics.motion_blur,
    "defocus": optics.defocus,
    "noise": optics.noise,
    "dirt": optics.dirt,
    "jpeg": optics.jpeg,
    "overexposed": light.overexposed,
    "underexposed": light.underexposed,
    "white_balance": light.white_balance,
    "low_resolution": optics.low_resolution,
}


@dataclass(frozen=True)
class Corruption:
    """One type of corruption at a severity of 1 to 5.

    Raises:
        ConfigError: the corruption or severity is unknown.
    """

    name: str
    severity: int

    def __post_init__(self) -> None:
        if self.name not in CORRUPTIONS:
            raise ConfigError(
                f"the corruption is {self.name!r}; expected one of "
                f"{', '.join(sorted(CORRUPTIONS))}"
            )
        if self.severity not in SEVERITIES:
            raise ConfigError(
                f"the severity of {self.name} is {self.severity}; expected 1, 2, 3, 4 or 5"
            )

    def __str__(self) -> str:
        return f"{self.name}:{self.severity}"

    def __call__(
        self,
        image: NDArray[np.uint8],
        stamp_ns: int,
        depth_m: NDArray[np.floating] | None = None,
    ) -> NDArray[np.uint8]:
        """Return the corrupted image, (H, W, 3) uint8 RGB; the same for the same stamp.

        Args:
            image: (H, W, 3) uint8 RGB.
            stamp_ns: time of the image, nanoseconds: the seed.
            depth_m: (H, W) metres, NaN where unknown, for fog; None where nothing is known.
        """
        values = image.astype(np.float32) / np.float32(255)
        index = self.severity - 1
        if self.name == "fog":
            corrupted = weather.fog(values, index, depth_m)
        else:
            rng = np.random.default_rng([abs(stamp_ns), zlib.crc32(self.name.encode())])
            corrupted = SEEDED[self.name](values, index, rng)
        return np.rint(255 * np.clip(corrupted, 0, 1)).astype(np.uint8)


def parse(text: str) -> Corruption:
    """Return the corruption of a notation like `fog:3`.

    Raises:
        ConfigError: the text does not match the notation.
    """
    name, colon, severity = text.partition(":")
    if not colon or not severity.isdecimal():
        raise ConfigError(
            f"the corruption is {text!r}; expected NAME:SEVERITY, such as fog:3, with one of "
            f"{', '.join(sorted(CORRUPTIONS))} and 1 to 5"
        )
    return Corruption(name, int(severity))


def notation(corruptions: Sequence[Corruption]) -> str:
    """Return the corruptions in their order, e.g. "night:2 + noise:3"."""
    return " + ".join(map(str, corruptions))
