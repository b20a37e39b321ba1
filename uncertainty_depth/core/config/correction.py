# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options for correcting sigma and depth while driving."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.options import option


@dataclass(frozen=True)
class DepthScaleConfig:
    """Whether depth follows the scale that an evaluator estimates."""

    use_depth_scale: bool = option(
        False,
        "multiply depth and sigma by the scale that an evaluator publishes on "
        "uncertainty/calibration; in a recording: by the scale of the frames before",
        live=True,
        expert=True,
    )


@dataclass(frozen=True)
class OnlineEstimateConfig:
    """How the evaluator estimates the size of sigma from the last minutes."""

    coverage: float = option(
        0.95,
        "fraction of the errors that uncertainty/calibration makes the Gaussian interval of "
        "sigma cover",
        minimum=0.5,
        maximum=0.99,
    )
    calibration_window: float = option(
        120.0,
        "time that the estimate on uncertainty/calibration looks back at most, seconds; a change "
        "of the errors shortens it",
        minimum=1.0,
        maximum=3600.0,
    )
    calibration_min_frames: int = option(
        20,
        "number of scored frames before the first estimate on uncertainty/calibration",
        minimum=2,
        maximum=1000,
    )


@dataclass(frozen=True)
class SigmaCorrectionConfig:
    """How a node corrects sigma by an evaluator's estimate."""

    use_online_calibration: bool = option(
        False,
        "correct sigma by the estimate on uncertainty/calibration",
        live=True,
    )
    calibration_min_factor: float = option(
        1.0,
        "minimum factor of published sigma on the model's own, before the depth's scale; below 1 "
        "sigma may shrink, and does if the LiDAR is not independent of the depth",
        minimum=0.01,
        maximum=1.0,
    )


@dataclass(frozen=True)
class OnlineCorrectionConfig(SigmaCorrectionConfig, DepthScaleConfig):
    """How the depth node uses an evaluator's estimate."""
