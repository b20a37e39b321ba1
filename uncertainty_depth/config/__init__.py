# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All options of the package: frozen dataclasses that hold the only defaults.

The command line, YAML files, ROS parameters and launch arguments are all made from them (see
`options`), so an option has one name, one default, one range and one line of help. Import them
from here, those of the nodes from `config.nodes`.
"""

from uncertainty_depth.config.choices import (
    DISTORTED_IMAGES,
    HEADS,
    MAX_COUNT,
    MAX_DEPTH_M,
    MAX_PIXELS,
    MAX_SEED,
    METHODS,
    TRAINED_METHODS,
    UNTRAINED_METHODS,
)
from uncertainty_depth.config.prediction import (
    CONFIDENCE_TYPES,
    SOURCE,
    ColorConfig,
    DepthScaleConfig,
    GatingConfig,
    HeldOutConfig,
    OutputConfig,
    PredictionConfig,
    PredictionTopics,
    PredictorConfig,
    RawPredictorConfig,
)
from uncertainty_depth.config.sources import (
    CalibrationConfig,
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
    "CONFIDENCE_TYPES",
    "DISTORTED_IMAGES",
    "HEADS",
    "MAX_COUNT",
    "MAX_DEPTH_M",
    "MAX_PIXELS",
    "MAX_SEED",
    "METHODS",
    "SOURCE",
    "TRAINED_METHODS",
    "UNTRAINED_METHODS",
    "CalibrationConfig",
    "ColorConfig",
    "DepthLimitsConfig",
    "DepthScaleConfig",
    "EvaluationConfig",
    "GatingConfig",
    "HeldOutConfig",
    "LidarConfig",
    "NetworkConfig",
    "OutputConfig",
    "PlayerConfig",
    "PredictionConfig",
    "PredictionTopics",
    "PredictorConfig",
    "ProjectionConfig",
    "RawPredictorConfig",
    "RequirementConfig",
    "SourceConfig",
    "TrainingConfig",
]
