# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options for recorded depth and confidence: where they are, what they hold."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.options import option

CONFIDENCE_TYPES = (
    "sigma",
    "variance",
    "relative_error",
    "log_error",
    "confidence_0_1",
    "confidence_0_100",
    "dust3r",
    "uncertainty_rank",
    "certainty_rank",
    "none",
)
DEPTH_TYPES = ("depth", "inverse_depth")
ALIGNMENTS = ("none", "median", "scale", "scale_shift")
FRAME = "frame"
SOURCE = "source"


@dataclass(frozen=True)
class MapTypeConfig:
    """What the depth and the confidence image of a prediction hold."""

    confidence_type: str = option(
        "",
        "what the confidence image holds: sigma in m, variance in m^2; uncertainty_rank: larger "
        "is less certain (ZED, OAK with DepthAI 2); certainty_rank: larger is more certain "
        "(RealSense L515, OAK with DepthAI 3); dust3r: 1 + exp(x) (VGGT, Depth Anything 3); "
        "empty: sigma, or the sigma map's",
        choices=("", *CONFIDENCE_TYPES),
    )
    depth_type: str = option(
        "depth",
        "what the depth image holds; inverse_depth: disparity, the output of most relative "
        "networks",
        choices=DEPTH_TYPES,
    )


@dataclass(frozen=True)
class MeaningConfig(MapTypeConfig):
    """What the depth and the confidence of a prediction mean."""

    sigma_map: str = option(
        "", "map from confidence to sigma in metres, a file written by calibrate"
    )


@dataclass(frozen=True)
class AlignConfig:
    """How a prediction is brought to the ground truth's scale."""

    align: str = option(
        "none",
        "align the prediction to the ground truth before scoring (inverse depth is aligned in "
        "inverse depth)",
        choices=ALIGNMENTS,
    )


@dataclass(frozen=True)
class PredictionConfig(AlignConfig, MeaningConfig):
    """How a recorded prediction is read, and brought to the ground truth's scale."""

    align_per: str = option(
        FRAME,
        "fit the alignment to each frame, or once to the whole source",
        choices=(FRAME, SOURCE),
        expert=True,
    )


@dataclass(frozen=True)
class PredictionTopics:
    """Recorded predictions to score instead of a model's."""

    depth_topic: str = option("", "depth image topic to score in place of a model")
    confidence_topic: str = option(
        "", "image topic with the depth's confidence; empty scores the depth alone"
    )
