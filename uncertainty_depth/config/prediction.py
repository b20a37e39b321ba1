# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of predictions: a model's, recorded ones, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.config.choices import (
    DEVICES,
    ENGINES,
    MAX_DEPTH_M,
    MAX_SEED,
    METHOD_ALIASES,
    METHODS,
    PRECISIONS,
)
from uncertainty_depth.options import option

MAX_SIGMA_M = 10_000.0
MAX_SIGMAS = 100.0


@dataclass(frozen=True)
class GatingConfig:
    """Which depth is trusted, and how far a bound lies from it."""

    max_sigma: float = option(
        0.5,
        "depth with a greater sigma is left out of depth/confident and points/confident, metres; "
        "0 disables",
        minimum=0.0,
        maximum=MAX_SIGMA_M,
        live=True,
    )
    max_relative_sigma: float = option(
        0.15,
        "depth with a greater sigma than this fraction of it is left out of depth/confident and "
        "points/confident; 0 disables",
        minimum=0.0,
        maximum=1000.0,
        live=True,
    )
    clearing_sigmas: float = option(
        2.0,
        "points/clearing lies this many sigmas before the depth: space is free up to there",
        minimum=0.0,
        maximum=MAX_SIGMAS,
        live=True,
    )
    coverage: float = option(
        0.95,
        "fraction of the true depths that depth/lower and depth/upper enclose",
        minimum=0.01,
        maximum=0.99,
        live=True,
    )
    point_stride: int = option(
        1,
        "stride in rows and columns from one point of the clouds to the next",
        minimum=1,
        maximum=64,
        live=True,
    )


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
class MapTypeConfig:
    """What the depth and the confidence image of a prediction hold."""

    confidence_type: str = option(
        "",
        "what the confidence image holds: sigma in m, variance in m^2; rank_up is larger if less "
        "certain, rank_down if more; empty: sigma, or the sigma map's",
        choices=("", *CONFIDENCE_TYPES),
    )
    depth_type: str = option(
        "depth",
        "what the depth image holds; inverse_depth is disparity, as of most relative networks",
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
    """How a prediction is brought to the scale of the ground truth."""

    align: str = option(
        "none",
        "fit the prediction to the ground truth before it is scored; inverse depth as such",
        choices=ALIGNMENTS,
    )


@dataclass(frozen=True)
class PredictionConfig(AlignConfig, MeaningConfig):
    """How a recorded prediction is read, and brought to the scale of the ground truth."""

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


@dataclass(frozen=True)
class HeldOutConfig:
    """The known depth that a model with sparse input is scored on instead of given."""

    held_out_fraction: float = option(
        0.5,
        "model with sparse input: fraction of the known depth that is held out for scoring",
        minimum=0.0,
        maximum=1.0,
        expert=True,
    )


@dataclass(frozen=True)
class DepthScaleConfig:
    """Whether depth follows the scale that an evaluator estimates."""

    use_depth_scale: bool = option(
        False,
        "multiply depth and sigma by the scale on uncertainty/calibration; of a recording: by the "
        "scale of the frames before, as such a node would have",
        live=True,
        expert=True,
    )


@dataclass(frozen=True)
class RawPredictorConfig:
    """How a model predicts depth and uncalibrated sigma."""

    method: str = option(
        "",
        "uncertainty method; empty: what the model was trained for",
        choices=METHODS,
        aliases=METHOD_ALIASES,
    )
    samples: int = option(
        8,
        "passes with noise, or the most members of an ensemble",
        minimum=1,
        maximum=1024,
        live=True,
    )
    seed: int = option(
        0,
        "random seed of the dropout masks, combined with the image's stamp",
        minimum=0,
        maximum=MAX_SEED,
        expert=True,
        on_robot=False,
    )
    device: str = option(
        "auto",
        "device of the network; auto: the GPU if there is one",
        choices=DEVICES,
    )
    precision: str = option(
        "auto",
        "floating-point format of the network; auto is fp32, with engine openvino bf16 if the "
        "processor has it",
        choices=PRECISIONS,
        expert=True,
        on_robot=False,
    )
    engine: str = option(
        "torch",
        "what runs the network; torch is the reference",
        choices=ENGINES,
    )


@dataclass(frozen=True)
class PredictorConfig(RawPredictorConfig):
    """How a model predicts depth and sigma."""

    calibrated: bool = option(
        True,
        "apply the calibration of sigma in the model folder, if there is one",
        on_robot=False,
    )
    spread_sparse: str = option(
        "",
        "give a model for images alone known depth too, spread along the predicted depth: lidar, "
        "or random:N for N pixels",
    )
    rescale_depth: str = option(
        "canonical",
        "multiply depth and sigma by the camera's focal length over the training's: canonical, "
        "if the model predicts the depth of a canonical camera; always; or never",
        choices=("canonical", "always", "never"),
        expert=True,
        on_robot=False,
    )


@dataclass(frozen=True)
class ColorConfig:
    """Colour scales of depth and sigma images; fixed, so that images can be compared.

    Attributes:
        color_max_sigma: upper end of sigma's, a tenth of the depth's, metres.
    """

    color_max_depth: float = option(
        10.0,
        "depth at the upper end of its colour scale, metres; sigma's ends at a tenth of it",
        minimum=0.01,
        maximum=MAX_DEPTH_M,
        expert=True,
        live=True,
    )

    @property
    def color_max_sigma(self) -> float:  # noqa: D102  an attribute
        return self.color_max_depth / 10


@dataclass(frozen=True)
class OutputConfig(ColorConfig, GatingConfig):
    """What is published of depth and sigma beside the maps themselves."""
