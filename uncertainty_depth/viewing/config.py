# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of the viewer."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.config import ColorConfig
from uncertainty_depth.config.prediction import GatingConfig


@dataclass(frozen=True)
class ViewConfig(ColorConfig, GatingConfig):
    """Fixed color scales, and which points are trusted."""
