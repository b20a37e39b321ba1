# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of the prediction, and of what is made of it."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.config.choices import (
    COMPONENTS,
    DEVICES,
    ENGINES,
    MAX_DEPTH_M,
    MAX_SEED,
    METHOD_ALIASES,
    METHODS,
    PRECISIONS,
    SAMPLINGS,
)
from uncertainty_depth.gating.config import GatingConfig
from uncertainty_depth.options import option


@dataclass(frozen=True)
class RawPredictorConfig:
    """How a model predicts depth and uncalibrated sigma."""

    method: str = option(
        "",
        "uncertainty method; empty uses the method the model was trained for",
        choices=("", *METHODS),
        aliases=METHOD_ALIASES,
    )
    component: str = option(
        "total",
        "part of the variance: epistemic (spread of the samples), aleatoric (variance head), "
        "or their sum",
        choices=COMPONENTS,
    )
    samples: int = option(
        8,
        "number of passes with noise, or maximum number of ensemble members, or of the views of "
        "tta",
        minimum=1,
        maximum=1024,
    )
    sampling: str = option(
        "stratified",
        "how the noise of a frame's samples is related: stratified, each unit is dropped its "
        "expected number of times to within one; antithetic, in mirrored pairs; independent",
        choices=SAMPLINGS,
    )
    chunk: int = option(
        8,
        "samples computed in one batch; limits memory, does not change the result",
        minimum=1,
        maximum=1024,
    )
    seed: int = option(
        0,
        "random seed of the dropout masks, combined with the image's stamp",
        minimum=0,
        maximum=MAX_SEED,
    )
    inference_dropout_rate: float = option(
        0.2,
        "fraction of the units that inference_dropout drops",
        minimum=0.0,
        maximum=0.9,
    )
    feature_noise_ratio: float = option(
        0.5,
        "standard deviation of feature_noise, as a fraction of each feature map's",
        minimum=0.0,
        maximum=10.0,
    )
    device: str = option(
        "auto",
        "device of the network, cuda:1 for the second GPU; auto uses the GPU if there is one",
        choices=DEVICES,
        read_only=True,
    )
    precision: str = option(
        "auto",
        "floating-point format of the network; auto is fp32, with engine openvino bf16 if the "
        "processor has it",
        choices=PRECISIONS,
        read_only=True,
    )
    engine: str = option(
        "torch",
        "what runs the network: torch is the reference",
        choices=ENGINES,
        read_only=True,
    )


@dataclass(frozen=True)
class PredictorConfig(RawPredictorConfig):
    """How a model predicts depth and sigma."""

    calibrated: bool = option(
        True, "apply the calibration of sigma stored in the model folder, if there is one"
    )
    widen_unfamiliar: bool = option(
        False,
        "multiply sigma by the frame's unfamiliarity if it is above 1; for a robot in places "
        "unlike the training's; it ends while use_online_calibration corrects sigma by LiDAR",
    )
    spread_sparse: str = option(
        "",
        "give a model for images alone known depth, which is spread from the known pixels along "
        "the predicted depth: lidar, or random:N for N pixels; empty: the image alone",
        read_only=True,
    )
    rescale_depth: str = option(
        "canonical",
        "multiply depth and sigma by the camera's focal length over the training's: canonical, "
        "if the model predicts the depth of a canonical camera; always; or never",
        choices=("canonical", "always", "never"),
    )


@dataclass(frozen=True)
class ColorConfig:
    """Colour scales of depth and sigma images; fixed, so that images can be compared."""

    color_max_depth: float = option(
        10.0,
        "depth at the upper end of the colour scale, metres",
        minimum=0.01,
        maximum=MAX_DEPTH_M,
    )
    color_max_sigma: float = option(
        1.0,
        "standard deviation at the upper end of the colour scale, metres",
        minimum=0.001,
        maximum=MAX_DEPTH_M,
    )


@dataclass(frozen=True)
class OutputConfig(ColorConfig, GatingConfig):
    """What is published of depth and sigma beside the maps themselves."""
