# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options that say which pixels and frames count, for scores and for calibration."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.options import MAX_COUNT, MAX_DEPTH_M, option


@dataclass(frozen=True)
class EvaluationConfig:
    """Which ground truth counts."""

    min_depth: float = option(
        0.1,
        "ignore ground truth nearer than this, metres",
        limits=(0.0, MAX_DEPTH_M),
    )
    max_depth: float = option(
        80.0,
        "ignore ground truth farther than this, metres",
        limits=(0.0, MAX_DEPTH_M),
    )


@dataclass(frozen=True)
class MaskConfig:
    """Which part of the image counts."""

    mask: str = option(
        "",
        "file of a grey image of 8 bits: pixels where it is 0 (black) are not scored, e.g. a "
        "robot's own arm; of the camera image as recorded, with depth_topic and in evaluator_node "
        "of the depth image, at any size of its aspect; empty: all count",
    )


@dataclass(frozen=True)
class HeldOutConfig:
    """The known depth that is scored on instead of measuring."""

    held_out_fraction: float = option(
        0.5,
        "with measurements by lidar: fraction of its depth that is not used, but scored on",
        limits=(0.0, 1.0),
        expert=True,
    )


@dataclass(frozen=True)
class RequirementConfig:
    """Requirements that the metrics must meet."""

    require: tuple[str, ...] = option(
        (),
        "limit of a metric, e.g. 'auce<=0.05', or a .yaml file with a list of them; repeatable",
    )


@dataclass(frozen=True)
class CalibrationConfig(EvaluationConfig):
    """How the calibration of sigma is fitted."""

    distribution: str = option(
        "",
        "distribution of the error; empty: the model's variance head, or a Gaussian",
        choices=("", "gaussian", "laplace"),
        expert=True,
    )


@dataclass(frozen=True)
class CalibrationFramesConfig:
    """Which frames sigma is calibrated on."""

    max_frames: int = option(
        2000,
        "maximum number of frames used per source, evenly spaced; 0 uses all",
        limits=(0, MAX_COUNT),
    )
