# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Parameters of the nodes: what they publish beside depth and sigma, and how they correct both."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.config.predictor import MeasurementConfig, PredictorConfig
from uncertainty_depth.core.config.scoring import EvaluationConfig, MaskConfig, RequirementConfig
from uncertainty_depth.core.config.source import (
    AlignConfig,
    CameraConfig,
    LidarConfig,
    MapTypeConfig,
    MeaningConfig,
    OdometryConfig,
    ProjectionConfig,
)
from uncertainty_depth.core.options import MAX_DEPTH_M, MAX_DURATION_S, option

MAX_SIGMA_M = 10_000.0
MAX_SIGMAS = 100.0
MAX_LIDARS = 4


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
        limits=(0.5, 0.99),
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
        limits=(0.01, 1.0),
    )


@dataclass(frozen=True)
class OnlineCorrectionConfig(SigmaCorrectionConfig, DepthScaleConfig):
    """How the depth node uses an evaluator's estimate."""


@dataclass(frozen=True)
class GatingConfig:
    """Which depth is trusted, and how far a bound lies from it."""

    max_sigma: float = option(
        0.5,
        "depth with a greater sigma is left out of depth/confident and points/confident, metres; "
        "0 disables",
        limits=(0.0, MAX_SIGMA_M),
        live=True,
    )
    max_relative_sigma: float = option(
        0.15,
        "depth with a greater sigma than this fraction of it is left out of depth/confident and "
        "points/confident; 0 disables",
        limits=(0.0, 1000.0),
        live=True,
    )
    clearing_sigmas: float = option(
        2.0,
        "points/clearing lies at least this many sigmas before the depth: up to there is free",
        limits=(0.0, MAX_SIGMAS),
        live=True,
    )
    clearing_fraction: float = option(
        1.0,
        "points/clearing lies at most at this fraction of the depth",
        limits=(0.01, 1.0),
        live=True,
    )
    clearing_margin: float = option(
        0.2,
        "a ray of points/clearing ends at the nearest bound that it passes within this distance, "
        "metres: two cells of the costmap; 0 disables",
        limits=(0.0, 2.0),
        live=True,
    )
    coverage: float = option(
        0.95,
        "fraction of the true depths that depth/lower and depth/upper enclose",
        limits=(0.01, 0.99),
        live=True,
    )
    point_stride: int = option(
        1,
        "stride in rows and columns from one point of the clouds to the next",
        limits=(1, 64),
        live=True,
    )


@dataclass(frozen=True)
class ColorConfig:
    """Colour scales for depth and sigma images; fixed, so that images can be compared."""

    color_max_depth: float = option(
        10.0,
        "depth at the upper end of its colour scale, metres; sigma's ends at a tenth of it",
        limits=(0.01, MAX_DEPTH_M),
        expert=True,
        live=True,
    )

    @property
    def color_max_sigma(self) -> float:  # noqa: D102  an attribute
        return self.color_max_depth / 10


@dataclass(frozen=True)
class OutputConfig(ColorConfig, GatingConfig):
    """What is published of depth and sigma beside the maps themselves."""


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
        "measurements by lidar: fraction of its depth that is not used, so that the evaluator "
        "node can score on it",
        limits=(0.0, 1.0),
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
        limits=(0.0, MAX_DURATION_S),
    )
    frame_budget_ms: float = option(
        0.0,
        "time budget of a frame, milliseconds: as many samples or members as fit are used, at "
        "least 2; 0 uses all",
        limits=(0.0, 60_000.0),
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
        limits=(1, MAX_LIDARS),
    )
    queue_size: int = option(
        30,
        "number of predictions and clouds kept while they wait for their match; older ones are "
        "counted as unmatched",
        limits=(2, 1000),
    )
    output: str = option(
        "",
        "folder for the report, written at the end of a run and on ~/save; empty writes none",
    )
    overwrite: bool = option(False, "replace the report of an earlier run in output")
