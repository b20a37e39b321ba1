# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Parameters of the nodes."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.config.correction import (
    OnlineCorrectionConfig,
    OnlineEstimateConfig,
    SigmaCorrectionConfig,
)
from uncertainty_depth.core.config.limits import MAX_DURATION_S
from uncertainty_depth.core.config.outputs import OutputConfig
from uncertainty_depth.core.config.predictor import MeasurementConfig, PredictorConfig
from uncertainty_depth.core.config.recorded import AlignConfig, MapTypeConfig, MeaningConfig
from uncertainty_depth.core.config.scoring import EvaluationConfig, MaskConfig, RequirementConfig
from uncertainty_depth.core.config.source import (
    CameraConfig,
    LidarConfig,
    OdometryConfig,
    ProjectionConfig,
)
from uncertainty_depth.core.options import option

MAX_LIDARS = 4


@dataclass(frozen=True)
class LifecycleConfig:
    """How a node starts."""

    autostart: bool = option(
        True,
        "configure and activate at the start, and exit if that fails; false: wait, "
        "unconfigured, for ~/enable or a lifecycle manager",
    )


@dataclass(frozen=True)
class MeasuringNodeConfig(MeasurementConfig, ProjectionConfig, OdometryConfig):
    """What a node measures beside what predicts, and where."""

    held_out_fraction: float = option(
        0.0,
        "measurements by lidar, and models with sparse input: fraction of the LiDAR's depth that "
        "is not used, so that the evaluator node can score on it",
        minimum=0.0,
        maximum=1.0,
    )


@dataclass(frozen=True)
class DepthNodeConfig(
    PredictorConfig,
    CameraConfig,
    OutputConfig,
    OnlineCorrectionConfig,
    MeasuringNodeConfig,
    LifecycleConfig,
):
    """Parameters of the depth node."""

    model: str = option(
        "",
        "model folder, indoor or demo (shipped), or a depth model of Hugging Face: a metric one, "
        "or with measurements one that gives inverse depth alone",
    )
    max_frame_age: float = option(
        0.5,
        "drop and count frames older than this when their turn comes, seconds; 0 disables",
        minimum=0.0,
        maximum=MAX_DURATION_S,
    )
    frame_budget_ms: float = option(
        0.0,
        "time budget of a frame, milliseconds: as many samples or members as fit are used, at "
        "least 2; 0 uses all",
        minimum=0.0,
        maximum=60_000.0,
        live=True,
    )
    compressed_input: bool = option(False, "subscribe to image/compressed instead of image")


@dataclass(frozen=True)
class SigmaNodeConfig(
    OutputConfig, MeaningConfig, SigmaCorrectionConfig, MeasuringNodeConfig, LifecycleConfig
):
    """Parameters of the sigma node."""


@dataclass(frozen=True)
class EvaluatorNodeConfig(
    EvaluationConfig,
    MaskConfig,
    RequirementConfig,
    LidarConfig,
    AlignConfig,
    MapTypeConfig,
    OnlineEstimateConfig,
    LifecycleConfig,
):
    """Parameters of the evaluator node."""

    use_ground_truth_image: bool = option(
        False, "score against ground_truth/image instead of lidar/points"
    )
    lidars: int = option(
        1,
        "number of LiDARs, on lidar/points, lidar2/points and so on: their clouds nearest in time "
        "are merged",
        minimum=1,
        maximum=MAX_LIDARS,
    )
    queue_size: int = option(
        30,
        "number of predictions and clouds kept while they wait for their match; older ones are "
        "counted as unmatched",
        minimum=2,
        maximum=1000,
    )
    output: str = option(
        "",
        "folder for the report, written at the end of a run and on ~/save; empty writes none",
    )
    overwrite: bool = option(False, "replace the report of an earlier run in output")
