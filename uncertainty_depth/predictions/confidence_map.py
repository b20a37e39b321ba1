# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The map from any confidence, and the depth, to sigma in metres: a small JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth import strict_json
from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.errors import ConfigError, ModelError
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS
from uncertainty_depth.predictions.confidence import TYPES

FORMAT = 1
POWERS = {0: "", 1: ", times depth", 2: ", times depth squared"}
"""Powers of the depth that are tried: the error of stereo grows with the square of the depth."""


@dataclass(frozen=True)
class ConfidenceMap:
    """`sigma = f(uncertainty + offset) * depth^power`, f strictly increasing.

    Attributes:
        sigma_map: f.
        depth_power: power of the depth, in metres.
        offset: keeps a full confidence, an uncertainty of 0, from being a sigma of 0.
    """

    sigma_map: SigmaMap
    depth_power: int = 0
    offset: float = 0.0

    @property
    def name(self) -> str:
        """The name of the map."""
        return self.sigma_map.name + POWERS[self.depth_power]

    def __call__(
        self, uncertainty: NDArray[np.floating], depth_m: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Return sigma, metres, of arrays of one shape; NaN stays."""
        with np.errstate(invalid="ignore"):
            factor = np.maximum(depth_m, 0) ** self.depth_power
            return self.sigma_map(uncertainty + uncertainty.dtype.type(self.offset)) * factor


@dataclass(frozen=True)
class SavedMap:
    """A map with where it comes from, as its file holds it.

    Attributes:
        confidence_map: the map.
        confidence_type: of the confidence that it takes.
        depth_type: of the depth.
        distribution: that sigma is the standard deviation of: "gaussian" or "laplace".
        provenance: sources, topics, what it was fitted to, scores on frames not used.
    """

    confidence_map: ConfidenceMap
    confidence_type: str
    depth_type: str
    distribution: str
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        content = {
            "format": FORMAT,
            "confidence_type": self.confidence_type,
            "depth_type": self.depth_type,
            "distribution": self.distribution,
            "depth_power": self.confidence_map.depth_power,
            "offset": self.confidence_map.offset,
            "map": self.confidence_map.sigma_map.to_mapping(),
            **self.provenance,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        strict_json.write(path, content)


def read_map(path: str | Path) -> SavedMap:
    """Read the file of a map.

    Raises:
        ConfigError: the file is missing, or is not a confidence map.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"sigma_map {str(path)!r} cannot be read ({reason}); expected the file that "
            "`calibrate ... --depth-topic T --output map.json` writes"
        ) from error
    try:
        saved = _parsed(content)
    except (KeyError, TypeError, ValueError, AttributeError, ModelError) as error:
        fault = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(
            f"sigma_map {str(path)!r} is not a valid map ({fault}); expected the file that "
            "`calibrate ... --depth-topic T --output map.json` writes"
        ) from error
    return saved


def _parsed(content: Mapping[str, Any]) -> SavedMap:
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']!r} instead of {FORMAT}")
    power = int(content["depth_power"])
    offset = float(content["offset"])
    if power not in POWERS or not (np.isfinite(offset) and offset >= 0):
        raise ValueError(f"depth_power {power}, offset {offset}")
    for key, choices in (("confidence_type", TYPES), ("distribution", DISTRIBUTIONS)):
        if content[key] not in choices:
            raise ValueError(f"{key} {content[key]!r}")
    fields = {"format", "confidence_type", "depth_type", "distribution", "depth_power", "offset"}
    provenance = {key: value for key, value in content.items() if key not in {*fields, "map"}}
    sigma_map = SigmaMap.from_mapping(content["map"])
    return SavedMap(
        ConfidenceMap(sigma_map, power, offset),
        content["confidence_type"],
        content["depth_type"],
        content["distribution"],
        provenance,
    )
