# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options for predicting with a model: method, device, measurements."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.options import MAX_SEED, option

TRAINED_METHODS = [
    "deterministic",
    "mc_dropout",
    "mirrored",
    "multi_epochs",
    "log_likelihood",
    "multi_inits",
    "bagging",
    "distilled",
]
"""What `train` can train; a list, as `METHODS`: a project may add a method of its own."""
UNTRAINED_METHODS = ["deterministic", "mc_dropout", "mirrored"]
"""Methods that a network can be run with as it is, without a member or a head of their own."""
METHODS = list(TRAINED_METHODS)
"""What a model can predict with."""
METHOD_ALIASES = {"deep_ensemble": "multi_inits", "snapshot_ensemble": "multi_epochs"}
"""Usual names of methods that the papers of this package call otherwise."""
DEVICES = ("auto", "cpu", "cuda", "cuda:N")
PRECISIONS = ("auto", "fp32", "tf32", "fp16", "bf16")
ENGINES = ("torch", "openvino", "onnxruntime")


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
        "number of dropout passes, or of ensemble members",
        limits=(1, 1024),
        live=True,
    )
    seed: int = option(
        0,
        "random seed of the dropout masks, combined with the image's stamp",
        limits=(0, MAX_SEED),
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
        "floating-point format of the network; auto is fp32, on a GPU fp16 or tf32 if the maps "
        "stay as they are, with engine openvino bf16 if the processor has it",
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
class MeasurementConfig:
    """What corrects predicted depth."""

    measurements: str = option(
        "",
        "correct the depth of a network for images alone by what else measures: lidar, random:N "
        "for N pixels of the ground truth, motion (tracked corners and the camera's poses), "
        "points (a visual odometry's or a SLAM's), depth (a registered depth image with holes); "
        "several after commas",
    )


@dataclass(frozen=True)
class PredictorConfig(MeasurementConfig, RawPredictorConfig):
    """How a model predicts depth and sigma."""

    calibrated: bool = option(
        True,
        "apply the calibration of sigma in the model folder, if there is one",
        on_robot=False,
    )
