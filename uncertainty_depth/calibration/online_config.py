# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of the online calibration, which runs while the robot drives."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.options import option


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
class OnlineCorrectionConfig:
    """How the depth node uses the estimate of an evaluator."""

    use_online_calibration: bool = option(
        False,
        "correct sigma by the estimate on uncertainty/calibration",
        live=True,
    )
    calibration_timeout: float = option(
        10.0,
        "age of the newest estimate, by the stamps, from which on sigma returns to the model's "
        "own, seconds",
        minimum=0.1,
        maximum=3600.0,
        on_robot=False,
    )
    calibration_min_factor: float = option(
        1.0,
        "minimum factor of published sigma on the model's own; below 1 sigma may shrink, and does "
        "if the LiDAR is not independent of the depth",
        minimum=0.01,
        maximum=1.0,
    )
    calibration_max_factor: float = option(
        8.0,
        "maximum factor of published sigma on the model's own",
        minimum=1.0,
        maximum=100.0,
        on_robot=False,
    )
    calibration_max_rate: float = option(
        1.5,
        "maximum factor by which the correction of sigma grows within a second; it shrinks at a "
        "fifth of this rate",
        minimum=1.001,
        maximum=100.0,
        on_robot=False,
    )
