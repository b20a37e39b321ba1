# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All options of the package: frozen dataclasses that hold the only defaults.

The command line, YAML files, ROS parameters and launch arguments are all made from them (see
`options`), so an option has one name, one default, one range and one line of help.
"""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.calibration.online_config import (
    OnlineCorrectionConfig,
    OnlineEstimateConfig,
)
from uncertainty_depth.completion.config import SparseInputConfig
from uncertainty_depth.gating.config import CompressionConfig, GatingConfig
from uncertainty_depth.options import option
from uncertainty_depth.predictions.config import MeaningConfig, PredictionConfig

METHODS = (
    "deterministic",
    "mc_dropout",
    "multi_epochs",
    "log_likelihood",
    "multi_inits",
    "bagging",
    "adversarial_ensemble",
    "multi_networks",
    "learned_error",
    "self_teaching",
    "distilled",
    "concrete_dropout",
    "variational_dropout",
)
METHOD_ALIASES = {"deep_ensemble": "multi_inits", "snapshot_ensemble": "multi_epochs"}
"""Usual names of methods that the papers of this package call otherwise."""
COMPONENTS = ("total", "epistemic", "aleatoric")
DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("auto", "fp32", "fp16", "bf16")
ENGINES = ("torch", "openvino", "onnxruntime", "auto")
LOSSES = ("l1", "berhu", "log_l1", "nll")
HEADS = ("none", "laplace", "gaussian")
DROPOUTS = ("bernoulli", "concrete", "gaussian")
MAX_SEED = 2**31 - 1
MAX_COUNT = 10_000_000
MAX_DEPTH_M = 10_000.0
MAX_DURATION_S = 86_400.0
DISTORTED_IMAGES = ("rectify", "keep", "already_rectified")


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
        "number of MC-dropout passes, or maximum number of ensemble members",
        minimum=1,
        maximum=1024,
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
    device: str = option(
        "auto",
        "device of the network; auto uses the GPU if there is one",
        choices=DEVICES,
        read_only=True,
    )
    precision: str = option(
        "auto",
        "floating-point format of the network; auto is fp32, with engine openvino bf16 where the "
        "processor has it, and with engine auto the fastest",
        choices=PRECISIONS,
        read_only=True,
    )
    engine: str = option(
        "torch",
        "what runs the network: torch is the reference; auto measures those that are installed, "
        "and remembers the fastest beside the model",
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
        "multiply sigma by the frame's unfamiliarity where that is above 1; for a robot in places "
        "unlike the training's until LiDAR corrects sigma",
    )
    rescale_depth: str = option(
        "canonical",
        "multiply depth and sigma by the camera's focal length over the training's: canonical, "
        "where the model predicts the depth of a canonical camera; always; or never",
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
class OutputConfig(ColorConfig, GatingConfig, CompressionConfig):
    """What is published of depth and sigma beside the maps themselves."""


@dataclass(frozen=True)
class ProjectionConfig:
    """How LiDAR points become depth in the camera image."""

    lidar_to_camera: tuple[float, ...] = option(
        (),
        "transform from the LiDAR frame to the camera optical frame: x y z qx qy qz qw, metres; "
        "empty uses tf",
        minimum=-MAX_DEPTH_M,
        maximum=MAX_DEPTH_M,
    )
    occlusion_tolerance: float = option(
        0.1,
        "occlusion filter: drop points more than this fraction deeper than the nearest point "
        "in the window (0 disables)",
        minimum=0.0,
        maximum=10.0,
    )
    occlusion_window: int = option(
        7,
        "occlusion filter: width and height of the window, pixels",
        minimum=1,
        maximum=63,
    )


@dataclass(frozen=True)
class LidarConfig(ProjectionConfig):
    """How LiDAR points become ground truth in the camera image."""

    max_time_difference: float = option(
        0.05,
        "maximum time between an image and the LiDAR cloud it is scored against, seconds",
        minimum=0.0,
        maximum=60.0,
    )


@dataclass(frozen=True)
class CameraConfig:
    """How images with lens distortion are handled."""

    distorted_images: str = option(
        "rectify",
        "if the camera info has distortion: rectify the images, keep them and project with the "
        "distortion, or treat them as already_rectified (the output of image_proc)",
        choices=DISTORTED_IMAGES,
    )


@dataclass(frozen=True)
class SourceConfig(LidarConfig, CameraConfig):
    """What to read from a bag; topics need a name only where several would fit."""

    image_topic: str = option("", "camera image topic; empty uses the only one")
    camera_info_topic: str = option(
        "",
        "camera info topic; empty uses the one in the image topic's namespace, or the only one",
    )
    lidar_topic: str = option("", "LiDAR point cloud topic; empty uses the only one")
    ground_truth_topic: str = option(
        "",
        "registered depth image used as ground truth; empty uses the LiDAR, or without LiDAR "
        "the only depth image",
    )


@dataclass(frozen=True)
class EvaluationConfig:
    """What is scored, and how."""

    min_depth: float = option(
        0.1,
        "minimum ground truth depth that is scored, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    max_depth: float = option(
        80.0,
        "maximum ground truth depth that is scored, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    alpha: float = option(
        0.95,
        "fraction of the pixels whose error the scaled sigma of n-MeRCI must cover",
        minimum=0.01,
        maximum=1.0,
    )
    depth_bin_width: float = option(
        0.1,
        "width of the depth bins of the metrics by depth, metres",
        minimum=0.01,
        maximum=MAX_DEPTH_M,
        former_name="depth_interval",
    )
    example_frames: int = option(
        6,
        "number of frames plotted in the report, half of them those with the largest error",
        minimum=0,
        maximum=100,
        former_name="pictures",
    )


@dataclass(frozen=True)
class RequirementConfig:
    """Requirements that the metrics must meet."""

    require: tuple[str, ...] = option(
        (),
        "limit of a metric, such as 'ause.rmse<=0.2' or 'auce<=0.05': PASS or FAIL; repeatable",
    )
    require_file: str = option("", "YAML file with a list of such requirements")


@dataclass(frozen=True)
class CalibrationConfig:
    """How the calibration of sigma is fitted."""

    pixels_per_frame: int = option(
        1000, "maximum number of random pixels used per frame", minimum=1, maximum=MAX_COUNT
    )
    max_frames: int = option(
        2000,
        "maximum number of frames used per source, evenly spaced; 0 uses all",
        minimum=0,
        maximum=MAX_COUNT,
    )
    min_depth: float = option(
        0.1,
        "minimum ground truth depth that is used, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    max_depth: float = option(
        80.0,
        "maximum ground truth depth that is used, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    distribution: str = option(
        "",
        "distribution of the error; empty uses that of the model's variance head, or a Gaussian",
        choices=("", "gaussian", "laplace"),
    )
    report_fraction: float = option(
        0.33,
        "with a single source: last fraction of its frames, held out for the reported scores",
        minimum=0.05,
        maximum=0.9,
    )
    blocks: int = option(
        4,
        "with a single source: number of blocks in time for the cross-validation that selects "
        "the map",
        minimum=2,
        maximum=100,
    )
    pixel_seed: int = option(0, "random seed of the pixel selection", minimum=0, maximum=MAX_SEED)


@dataclass(frozen=True)
class NetworkConfig:
    """The network: an encoder with an up-projection decoder, or a pretrained depth model."""

    backbone: str = option(
        "resnet18",
        "encoder: resnet10 to resnet200, tiny to tiny34, a folder or hub id of a pretrained "
        "backbone; or a depth model to fine-tune (Depth Anything, DepthPro, DPT, ZoeDepth, GLPN, "
        "TIPSv2)",
    )
    skip_connections: bool = option(
        True, "connect the encoder's feature maps of each scale to the decoder"
    )
    decoder_width: int = option(
        256,
        "channels after the first up-projection; halved by each further one",
        minimum=16,
        maximum=2048,
    )
    dropout: float = option(
        0.2,
        "dropout rate after each of the first three up-projections, or after each fusion stage "
        "of a depth model",
        minimum=0.0,
        maximum=0.9,
    )
    dropout_type: str = option(
        "bernoulli",
        "bernoulli has a constant rate, concrete learns the rate, gaussian multiplies by noise "
        "of learned variance",
        choices=DROPOUTS,
        former_name="dropout_kind",
    )
    last_activation: str = option(
        "leaky_relu",
        "activation before the last convolution; with relu, pixels whose units are all off have "
        "no spread",
        choices=("relu", "leaky_relu"),
    )
    head: str = option(
        "laplace",
        "variance head: likelihood whose scale a second output channel predicts",
        choices=HEADS,
    )
    sparse_input: str = option(
        "",
        "known depth that the network takes beside the image: lidar, or random:N for N pixels; "
        "empty: the image alone",
    )
    input_size: tuple[int, ...] = option(
        (160, 128),
        "width and height of the network input, pixels; a depth model brings its own default",
        minimum=32,
        maximum=4096,
    )
    depth_range: tuple[float, ...] = option(
        (0.3, 12.0),
        "minimum and maximum depth the network can predict, metres; a metric depth model brings "
        "its own default",
        minimum=1e-3,
        maximum=1e4,
    )
    canonical_focal_length: float = option(
        0.0,
        "predict the depth of a camera whose sqrt(fx fy / (width height)) is this, rescaled by "
        "each camera's own; 0 predicts metres whatever the camera, for robots of one camera",
        minimum=0.0,
        maximum=100.0,
    )


@dataclass(frozen=True)
class TrainingConfig:
    """How the network is trained."""

    method: str = option(
        "multi_epochs",
        "uncertainty method the model is trained for, and its default when it predicts",
        choices=METHODS,
        aliases=METHOD_ALIASES,
    )
    loss: str = option(
        "",
        "l1, berhu, log_l1 or nll; empty uses nll with a variance head, log_l1 without",
        choices=("", *LOSSES),
    )
    epochs: int = option(150, "maximum number of epochs", minimum=1, maximum=MAX_COUNT)
    batch_size: int = option(16, "frames per batch", minimum=1, maximum=65536)
    learning_rate: float = option(
        1e-3,
        "learning rate; the default is a tenth for a depth model",
        minimum=0.0,
        maximum=10.0,
    )
    final_learning_rate: float = option(
        1.0,
        "learning rate of the last epoch as a fraction of that of the first, approached along a "
        "cosine; 1 keeps it constant",
        minimum=0.0,
        maximum=1.0,
    )
    weight_decay: float = option(1e-4, "decoupled weight decay (AdamW)", minimum=0.0, maximum=10.0)
    snapshots: int = option(
        8,
        "number of snapshots of multi_epochs: one per epoch, once the validation error has "
        "stopped improving",
        minimum=1,
        maximum=1024,
    )
    members: int = option(
        5,
        "number of networks of multi_inits, bagging and adversarial_ensemble",
        minimum=1,
        maximum=1024,
    )
    backbones: tuple[str, ...] = option(
        ("resnet10", "resnet18", "resnet34"), "encoders of multi_networks, one network each"
    )
    adversarial_step: float = option(
        0.01,
        "step size of adversarial_ensemble, as a fraction of the range of pixel values",
        minimum=0.0,
        maximum=1.0,
    )
    distill: str = option(
        "",
        "model folder of a teacher: train one network to predict its mean and sigma "
        "(method distilled)",
    )
    from_model: str = option(
        "",
        "model folder to fine-tune: its network and method are kept, each network starts from "
        "its member",
        flag="--from",
    )
    patience: int = option(
        30,
        "number of epochs without a lower validation error that count as a plateau",
        minimum=1,
        maximum=MAX_COUNT,
    )
    freeze_encoder: bool = option(
        False,
        "train the decoder only, so that snapshots share one encoder; on by default for a depth "
        "model",
    )
    validation_fraction: float = option(
        0.1,
        "fraction of the frames held out for validation",
        minimum=0.01,
        maximum=0.9,
        former_name="validation_share",
    )
    augment: bool = option(
        True,
        "augment with random flips, zoom, brightness, contrast and colour; off by default for "
        "DepthPro with its field of view",
    )
    seed: int = option(
        0,
        "random seed of initial weights, frame order, augmentation and validation split",
        minimum=0,
        maximum=MAX_SEED,
    )
    processes: int = option(
        1,
        "number of networks of an ensemble trained in parallel, each in its own process, spread "
        "over the GPUs; 0 uses one per GPU",
        minimum=0,
        maximum=1024,
    )
    device: str = option(
        "auto", "device to train on; auto uses the GPU if there is one", choices=DEVICES
    )
    max_frames: int = option(
        0,
        "maximum number of frames used, evenly spaced; 0 uses all",
        minimum=0,
        maximum=MAX_COUNT,
    )


@dataclass(frozen=True)
class SynthesisConfig:
    """The synthetic worlds, and the robot that drives through them."""

    worlds: int = option(
        4,
        "number of worlds (rooms and corridors), each with one drive",
        minimum=1,
        maximum=MAX_COUNT,
    )
    frames: int = option(20, "camera frames per world", minimum=1, maximum=MAX_COUNT)
    seed: int = option(0, "random seed of the worlds", minimum=0, maximum=MAX_SEED)
    scenes: str = option(
        "rooms",
        "rooms: rooms and corridors, all with one camera; varied: those, furnished homes and "
        "streets, each with a camera, lights and textures of its own",
        choices=("rooms", "varied"),
    )
    test_objects: bool = option(False, "add a class of objects that training worlds never contain")
    width: int = option(320, "camera image width, pixels", minimum=16, maximum=8192)
    height: int = option(240, "camera image height, pixels", minimum=16, maximum=8192)
    rate: float = option(
        10.0, "camera and LiDAR rate, frames per second", minimum=0.1, maximum=1000.0
    )
    rings: int = option(32, "number of LiDAR rings", minimum=1, maximum=1024)
    noise: float = option(
        1.0,
        "sensor noise, as a multiple of that of a typical camera and LiDAR",
        minimum=0.0,
        maximum=100.0,
    )
    dense: bool = option(
        False,
        "add exact dense depth: a source has it instead of the LiDAR's, a bag as an additional "
        "depth image",
    )


@dataclass(frozen=True)
class LifecycleConfig:
    """How a node starts."""

    autostart: bool = option(
        True,
        "configure and activate at the start, and end where that fails; false: wait, "
        "unconfigured, for ~/enable or a lifecycle manager",
    )


@dataclass(frozen=True)
class DepthNodeConfig(
    PredictorConfig,
    CameraConfig,
    OutputConfig,
    OnlineCorrectionConfig,
    SparseInputConfig,
    ProjectionConfig,
    LifecycleConfig,
):
    """Parameters of the depth node."""

    model: str = option("", "model folder; demo: the shipped model", read_only=True)
    max_frame_age: float = option(
        0.5,
        "drop and count frames older than this when their turn comes, seconds; 0 disables",
        minimum=0.0,
        maximum=MAX_DURATION_S,
    )
    frame_budget_ms: float = option(
        0.0,
        "time for a frame from its turn to its maps, milliseconds: as many samples or members as "
        "fit, 2 at least; 0 uses all",
        minimum=0.0,
        maximum=60_000.0,
    )
    reliable_input: bool = option(
        True,
        "subscribe to images with reliable QoS if every publisher offers it; "
        "false: best effort, which loses many",
    )
    compressed_input: bool = option(False, "subscribe to image/compressed instead of image")
    queue_size: int = option(
        1,
        "number of newest images kept while the network is busy; older ones are dropped and "
        "counted",
        minimum=1,
        maximum=1000,
    )


@dataclass(frozen=True)
class SigmaNodeConfig(OutputConfig, MeaningConfig, LifecycleConfig):
    """Parameters of the sigma node."""

    reliable_input: bool = option(
        True,
        "subscribe to depth and confidence with reliable QoS if every publisher offers it; "
        "false: best effort, which loses many",
    )
    queue_size: int = option(
        1,
        "number of newest pairs kept while one is processed; older ones are dropped and counted",
        minimum=1,
        maximum=1000,
    )


@dataclass(frozen=True)
class EvaluatorNodeConfig(
    EvaluationConfig,
    RequirementConfig,
    LidarConfig,
    PredictionConfig,
    OnlineEstimateConfig,
    LifecycleConfig,
):
    """Parameters of the evaluator node."""

    use_ground_truth_image: bool = option(
        False, "score against ground_truth/image instead of lidar/points"
    )
    reliable_input: bool = option(
        True,
        "subscribe to point clouds or ground truth images with reliable QoS if every publisher "
        "offers it; false: best effort",
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
        "folder for the report, written on shutdown and on ~/save; empty writes none on shutdown",
    )
    overwrite: bool = option(False, "replace the report of an earlier run in output")
    resume: bool = option(
        False, "continue a run that was killed, from its state beside output", read_only=True
    )
    color_max_depth: float = option(
        10.0,
        "depth at the upper end of the colour scale, metres",
        minimum=0.01,
        maximum=MAX_DEPTH_M,
    )
    color_max_error: float = option(
        2.0,
        "error at the upper end of the colour scale, metres",
        minimum=0.001,
        maximum=MAX_DEPTH_M,
    )


@dataclass(frozen=True)
class PlayerConfig:
    """How a bag is published into ROS 2."""

    rate: float = option(
        1.0, "playback rate, as a multiple of the recording's", minimum=1e-3, maximum=1e3
    )
    clock: bool = option(False, "publish /clock, for nodes with use_sim_time")
    loop: bool = option(False, "start again at the end, until interrupted")
    wait_for_subscribers: float = option(
        0.0,
        "maximum time to wait before the first message for a subscriber to every topic, seconds",
        minimum=0.0,
        maximum=MAX_DURATION_S,
    )
    wait_for_result: str = option(
        "",
        "image topic published by a node; each camera image is sent only after the result of the "
        "previous one",
    )
    result_timeout: float = option(
        10.0,
        "maximum time to wait for a result, seconds; the frame then counts as unanswered",
        minimum=0.1,
        maximum=MAX_DURATION_S,
    )
