# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The file of a sigma map for recorded depth and confidence: a small JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uncertainty_depth.core import strict
from uncertainty_depth.core.errors import ConfigError, ModelError
from uncertainty_depth.core.output import MARK, OutputFile
from uncertainty_depth.metrics.calibration import DISTRIBUTIONS
from uncertainty_depth.sigma.calibration.depth_head import DepthHead
from uncertainty_depth.sigma.calibration.half_widths import (
    BY_DISTRIBUTION,
    HalfWidths,
    from_record,
    guarantee_of,
)
from uncertainty_depth.sigma.calibration.sigma_map import SigmaMap
from uncertainty_depth.sigma.recorded.confidence import TYPES

FORMAT = 2
MAX_BYTES = 1_000_000
EXPECTED = (
    "expected the file that `calibrate --depth-topic T --output map.json` writes in this version"
)


@dataclass(frozen=True)
class SavedMap:
    """A map and its origin, as stored in its file.

    Attributes:
        sigma_map: the map.
        confidence_type: of the confidence that it takes.
        depth_type: of the depth.
        distribution: that sigma is the standard deviation of: "gaussian" or "laplace".
        head: what makes the uncertainty that is mapped from the depth; None: the confidence does.
        provenance: sources, topics, what it was fitted to, scores on frames not used.
    """

    sigma_map: SigmaMap
    confidence_type: str
    depth_type: str
    distribution: str
    provenance: Mapping[str, Any] = field(default_factory=dict)
    head: DepthHead | None = None

    @property
    def half_widths(self) -> HalfWidths:
        """Half widths of intervals in sigmas: as measured on other frames, else of theory."""
        return from_record(self.provenance) or BY_DISTRIBUTION[self.distribution]

    @property
    def guarantee(self) -> str:
        """The guarantee by frame, a sentence; empty if the file has none."""
        return guarantee_of(self.provenance)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        content = {
            "origin": MARK,
            "format": FORMAT,
            "confidence_type": self.confidence_type,
            "depth_type": self.depth_type,
            "distribution": self.distribution,
            "map": self.sigma_map.to_mapping(),
            **({} if self.head is None else {"head": self.head.to_mapping()}),
            **self.provenance,
        }
        OutputFile(path).write(strict.json_bytes(content))


def read_map(path: str | Path) -> SavedMap:
    """Read a map's file; raise `ConfigError` if it is missing, or holds no sigma map."""
    try:
        content = strict.read_json_file(Path(path), MAX_BYTES)
    except (OSError, strict.FormatError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"sigma_map {str(path)!r} cannot be read ({reason}); {EXPECTED}") from (
            error
        )
    try:
        return _parsed(content)
    except (KeyError, TypeError, ValueError, AttributeError, ModelError) as error:
        fault = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(
            f"sigma_map {str(path)!r} is not a valid map ({fault}); {EXPECTED}"
        ) from (error)


def _parsed(content: Mapping[str, Any]) -> SavedMap:
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']!r} instead of {FORMAT}")
    for key, choices in (("confidence_type", TYPES), ("distribution", DISTRIBUTIONS)):
        if content[key] not in choices:
            raise ValueError(f"{key} {content[key]!r}")
    fields = {"origin", "format", "confidence_type", "depth_type", "distribution", "map", "head"}
    saved = SavedMap(
        SigmaMap.from_mapping(content["map"]),
        content["confidence_type"],
        content["depth_type"],
        content["distribution"],
        {key: value for key, value in content.items() if key not in fields},
        DepthHead.from_mapping(content["head"]) if "head" in content else None,
    )
    _ = saved.half_widths, saved.guarantee  # report a damaged record here, not at a frame
    return saved
