# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All options of the package: frozen dataclasses that hold the only defaults.

The command line, YAML files, ROS parameters and launch arguments are all made from them (see
`options`), so an option has one name, one default, one range and one line of help. Those of the
nodes are in `config.nodes`.
"""

from uncertainty_depth.config.choices import (
    DEVICES,
    DISTORTED_IMAGES,
    ENGINES,
    HEADS,
    MAX_COUNT,
    MAX_DEPTH_M,
    MAX_DURATION_S,
    MAX_SEED,
    METHOD_ALIASES,
    METHODS,
    PRECISIONS,
    TRAINED_METHODS,
    UNTRAINED_METHODS,
)
from uncertainty_depth.config.prediction import (
    ColorConfig,
    OutputConfig,
    PredictorConfig,
    RawPredictorConfig,
)
from uncertainty_depth.config.sources import (
    CalibrationConfig,
    CameraConfig,
    DepthLimitsConfig,
    EvaluationConfig,
    LidarConfig,
    PlayerConfig,
    ProjectionConfig,
    RequirementConfig,
    SourceConfig,
)
from uncertainty_depth.config.training import NetworkConfig, TrainingConfig

__all__ = [
    "DEVICES",
    "DISTORTED_IMAGES",
    "ENGINES",
    "HEADS",
    "MAX_COUNT",
    "MAX_DEPTH_M",
    "MAX_DURATION_S",
    "MAX_SEED",
    "METHODS",
    "METHOD_ALIASES",
    "PRECISIONS",
    "TRAINED_METHODS",
    "UNTRAINED_METHODS",
    "CalibrationConfig",
    "CameraConfig",
    "ColorConfig",
    "DepthLimitsConfig",
    "EvaluationConfig",
    "LidarConfig",
    "NetworkConfig",
    "OutputConfig",
    "PlayerConfig",
    "PredictorConfig",
    "ProjectionConfig",
    "RawPredictorConfig",
    "RequirementConfig",
    "SourceConfig",
    "TrainingConfig",
]
