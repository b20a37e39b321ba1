# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of depth and confidence that do not come from a model of this package."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.options import option

CONFIDENCE_TYPES = (
    "sigma",
    "variance",
    "relative_error",
    "log_error",
    "confidence_0_1",
    "confidence_0_100",
    "exp_plus_one",
    "rank_up",
    "rank_down",
    "none",
)
DEPTH_TYPES = ("depth", "inverse_depth")
ALIGNMENTS = ("none", "median", "scale", "scale_shift")
FRAME = "frame"
SOURCE = "source"


@dataclass(frozen=True)
class MeaningConfig:
    """What the depth and the confidence of a prediction mean."""

    confidence_type: str = option(
        "",
        "what the confidence image holds: sigma (m), variance (m^2), relative_error, log_error, "
        "confidence_0_1, confidence_0_100 (most certain), exp_plus_one, rank_up (larger = less "
        "certain), rank_down (larger = more certain), none; empty is sigma, or the sigma map's",
        choices=("", *CONFIDENCE_TYPES),
        other_flags=("--confidence-kind",),
    )
    depth_type: str = option(
        "depth",
        "what the depth image holds: depth, or inverse_depth (disparity, most relative networks)",
        choices=DEPTH_TYPES,
    )
    sigma_map: str = option(
        "", "map from confidence to sigma in metres: a file written by calibrate"
    )


@dataclass(frozen=True)
class PredictionConfig(MeaningConfig):
    """How a recorded prediction is read, and brought to the scale of the ground truth."""

    align: str = option(
        "none",
        "fit the prediction to the ground truth before it is scored: its median, its scale, or "
        "scale_shift; inverse depth is fitted as such",
        choices=ALIGNMENTS,
    )
    align_per: str = option(
        FRAME,
        "fit the alignment to each frame, or once to the whole source",
        choices=(FRAME, SOURCE),
    )


@dataclass(frozen=True)
class PredictionTopics:
    """Recorded predictions to score instead of a model's."""

    depth_topic: str = option(
        "", "depth image topic to score; with it no model is needed, nor used"
    )
    confidence_topic: str = option(
        "", "image topic with the confidence of the depth; empty scores the depth alone"
    )
