# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All options of the package: frozen dataclasses that hold the only defaults.

The command line, YAML files, ROS parameters and launch arguments are all made from them (see
`options`), so an option has one name, one default, one range and one line of help. Options of the
nodes alone are in `config.nodes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.options import option

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
HEADS = ("none", "laplace", "gaussian")
MAX_SEED = 2**31 - 1
MAX_COUNT = 10_000_000
MAX_PIXELS = 16_000_000
"""Of an image, unless the option max_pixels says otherwise: 4000x4000."""
MAX_DEPTH_M = 10_000.0
MAX_DURATION_S = 86_400.0
DISTORTED_IMAGES = ("rectify", "keep", "already_rectified")


@dataclass(frozen=True)
class ProjectionConfig:
    """How LiDAR points become depth in the camera image."""

    lidar_to_camera: tuple[float, ...] = option(
        (),
        "transform from the LiDAR to the camera optical frame: x y z qx qy qz qw, metres, of "
        "several LiDARs one after the other; empty: tf",
        minimum=-MAX_DEPTH_M,
        maximum=MAX_DEPTH_M,
    )
    fixed_frame: str = option(
        "",
        "fixed tf frame (odom, map) to compensate the motion between a cloud and its image; "
        "empty: off",
    )
    occlusion_tolerance: float = option(
        0.1,
        "occlusion filter: drop points more than this fraction deeper than the nearest point "
        "in the window (0 disables)",
        minimum=0.0,
        maximum=10.0,
        expert=True,
        on_robot=False,
    )


@dataclass(frozen=True)
class LidarConfig(ProjectionConfig):
    """How LiDAR points become ground truth in the camera image."""

    max_time_difference: float = option(
        0.05,
        "maximum time between an image and its LiDAR cloud, seconds",
        minimum=0.0,
        maximum=60.0,
    )


@dataclass(frozen=True)
class CameraConfig:
    """How camera images are read."""

    max_pixels: int = option(
        MAX_PIXELS,
        "largest camera image, pixels: larger images are rejected before decoding",
        minimum=1,
        maximum=2**30,
        expert=True,
    )
    distorted_images: str = option(
        "rectify",
        "if the camera info has distortion: rectify the images, keep it, or take them as "
        "already_rectified (by image_proc)",
        choices=DISTORTED_IMAGES,
    )


ODOMETRY_FRAME = "odom"
"""Name of the frame that odometry is in by REP 105."""


@dataclass(frozen=True)
class OdometryConfig:
    """Where the camera's motion is read."""

    odometry_frame: str = option(
        "",
        "fixed tf frame that gives the camera's pose to measurements by motion; empty: "
        f"{ODOMETRY_FRAME}",
    )


@dataclass(frozen=True)
class SourceConfig(LidarConfig, CameraConfig, OdometryConfig):
    """What to read from a bag; topics need a name only if several would fit."""

    image_topic: str = option(
        "",
        "camera image topic; empty: the only one; with depth_topic the image to show in the "
        "report, empty: none",
    )
    camera_info_topic: str = option(
        "",
        "camera info topic; empty: the image topic's, or the only one",
    )
    lidar_topic: str = option(
        "",
        "LiDAR topic, or several separated by commas, which are merged; empty: the only one",
    )
    ground_truth_topic: str = option(
        "",
        "registered depth image as ground truth; empty: the LiDAR, or the only depth image",
    )
    measured_points_topic: str = option(
        "",
        "for measurements by points: their point cloud, in any frame of tf",
    )
    measured_depth_topic: str = option(
        "",
        "for measurements by depth: depth image that is registered to the camera image",
    )


@dataclass(frozen=True)
class DepthLimitsConfig:
    """Which ground truth counts."""

    min_depth: float = option(
        0.1,
        "ignore ground truth nearer than this, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    max_depth: float = option(
        80.0,
        "ignore ground truth farther than this, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )


@dataclass(frozen=True)
class EvaluationConfig(DepthLimitsConfig):
    """What is scored, and how."""

    example_frames: int = option(
        6,
        "number of frames plotted in the report, half of them those with the largest error",
        minimum=0,
        maximum=100,
        expert=True,
        on_robot=False,
    )


@dataclass(frozen=True)
class MaskConfig:
    """Which part of the image counts."""

    mask: str = option(
        "",
        "file of a grey image of 8 bits: pixels where it is 0 (black) are not scored, e.g. a "
        "robot's own arm; of the camera image as recorded, with depth_topic and in evaluator_node "
        "of the depth image, at any size of its aspect; empty: all count",
    )


@dataclass(frozen=True)
class RequirementConfig:
    """Requirements that the metrics must meet."""

    require: tuple[str, ...] = option(
        (),
        "limit of a metric, e.g. 'auce<=0.05', or a .yaml file with a list of them; repeatable",
    )


@dataclass(frozen=True)
class CalibrationConfig(DepthLimitsConfig):
    """How the calibration of sigma is fitted."""

    distribution: str = option(
        "",
        "distribution of the error; empty: the model's variance head, or a Gaussian",
        choices=("", "gaussian", "laplace"),
        expert=True,
    )


@dataclass(frozen=True)
class CalibrationFramesConfig:
    """Which frames sigma is calibrated on."""

    max_frames: int = option(
        2000,
        "maximum number of frames used per source, evenly spaced; 0 uses all",
        minimum=0,
        maximum=MAX_COUNT,
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
        "maximum time to wait before the first message for the subscribers, seconds: of every "
        "topic, or of the camera image and those that come within 3 s of each other",
        minimum=0.0,
        maximum=MAX_DURATION_S,
        expert=True,
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
        expert=True,
    )


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
        "points/clearing lies at least this many sigmas before the depth: up to there is free",
        minimum=0.0,
        maximum=MAX_SIGMAS,
        live=True,
    )
    clearing_fraction: float = option(
        1.0,
        "points/clearing lies at most at this fraction of the depth",
        minimum=0.01,
        maximum=1.0,
        live=True,
    )
    clearing_margin: float = option(
        0.2,
        "a ray of points/clearing ends at the nearest bound that it passes within this distance, "
        "metres: two cells of the costmap; 0 disables",
        minimum=0.0,
        maximum=2.0,
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
    """How a prediction is brought to the scale of the ground truth."""

    align: str = option(
        "none",
        "align the prediction to the ground truth before scoring (inverse depth is aligned in "
        "inverse depth)",
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
        "model with sparse input: fraction of the known depth that it is not given, but scored on",
        minimum=0.0,
        maximum=1.0,
        expert=True,
    )


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
class PredictorConfig(RawPredictorConfig):
    """How a model predicts depth and sigma."""

    calibrated: bool = option(
        True,
        "apply the calibration of sigma in the model folder, if there is one",
        on_robot=False,
    )
    measurements: str = option(
        "",
        "correct the depth of a model for images alone by what else is measured: lidar, random:N "
        "for N pixels of the ground truth, motion (tracked corners and the camera's poses), "
        "points (a visual odometry's or a SLAM's), depth (a registered depth image with holes); "
        "several after commas",
    )
    rescale_depth: str = option(
        "canonical",
        "whether depth and sigma are multiplied by the camera's focal length over the training's: "
        "canonical: only if the model predicts for a canonical camera; always; never",
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


@dataclass(frozen=True)
class NetworkConfig:
    """The network: an encoder with an up-projection decoder, or a pretrained depth model."""

    backbone: str = option(
        "resnet18",
        "encoder: resnet10 to resnet200, tiny to tiny34, mobilenet_v2, efficientnet_lite0, "
        "efficientnet_lite2, a folder or hub id of a pretrained backbone; or a depth model to "
        "fine-tune (Depth Anything, DepthPro, DPT, ZoeDepth, GLPN)",
    )
    decoder_width: int = option(
        256,
        "channels after the first up-projection; halved by each further one",
        minimum=16,
        maximum=2048,
        expert=True,
    )
    dropout: float = option(
        0.2,
        "dropout rate after each of the first three up-projections, or after each fusion stage "
        "of a depth model",
        minimum=0.0,
        maximum=0.9,
    )
    last_activation: str = option(
        "leaky_relu",
        "activation before the last convolution; relu can give zero spread where all units are "
        "inactive",
        choices=("relu", "leaky_relu"),
        expert=True,
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
    sparse_residual: bool = option(
        True,
        "with sparse input, predict the correction of the depth interpolated between the known "
        "pixels instead of depth itself",
        expert=True,
    )
    input_size: tuple[int, int] = option(
        (160, 128),
        "width and height of the network input, pixels; a depth model brings its own default",
        minimum=32,
        maximum=4096,
    )
    depth_range: tuple[float, float] = option(
        (0.3, 12.0),
        "minimum and maximum depth the network can predict, metres; a metric depth model brings "
        "its own default",
        minimum=1e-3,
        maximum=1e4,
    )
    canonical_focal_length: float = option(
        0.0,
        "canonical focal length, as sqrt(fx fy / (width height)): depth is predicted for such a "
        "camera and rescaled to each camera's own; 0: none, for robots with one camera",
        minimum=0.0,
        maximum=100.0,
    )


@dataclass(frozen=True)
class TrainingConfig:
    """How the network is trained."""

    method: str = option(
        "multi_epochs",
        "uncertainty method the model is trained for, and its default when it predicts",
        choices=TRAINED_METHODS,
        aliases=METHOD_ALIASES,
    )
    epochs: int = option(150, "maximum number of epochs", minimum=1, maximum=MAX_COUNT)
    batch_size: int = option(16, "frames per batch", minimum=1, maximum=65536)
    learning_rate: float = option(
        1e-3,
        "learning rate; the default is a tenth for a depth model",
        minimum=0.0,
        maximum=10.0,
    )
    encoder_learning_rate: float = option(
        0.0,
        "learning rate of the encoder, for one that starts from encoder_weights; 0: same as "
        "the decoder",
        minimum=0.0,
        maximum=10.0,
        expert=True,
    )
    final_learning_rate: float = option(
        1.0,
        "learning rate of the last epoch as a fraction of the first's, approached along a "
        "cosine; 1 keeps it constant",
        minimum=0.0,
        maximum=1.0,
        expert=True,
    )
    weight_decay: float = option(
        1e-4, "decoupled weight decay (AdamW)", minimum=0.0, maximum=10.0, expert=True
    )
    average_decay: float = option(
        0.0,
        "decay per batch of the running average of the weights that is validated and saved, e.g. "
        "0.995; 0 saves the weights themselves",
        minimum=0.0,
        maximum=0.99999,
        expert=True,
    )
    snapshots: int = option(
        8,
        "number of snapshots of multi_epochs: one per epoch, once the validation error has "
        "stopped improving",
        minimum=1,
        maximum=1024,
        expert=True,
    )
    members: int = option(
        5,
        "number of networks of multi_inits and bagging",
        minimum=1,
        maximum=1024,
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
    encoder_weights: str = option(
        "",
        "safetensors file of weights that the encoder starts from, under the encoder's own names; "
        "empty: random, or the pretrained backbone's",
        expert=True,
    )
    patience: int = option(
        30,
        "number of epochs without a lower validation error that count as a plateau",
        minimum=1,
        maximum=MAX_COUNT,
        expert=True,
    )
    freeze_encoder: bool = option(
        False,
        "train the decoder only, so that snapshots share one encoder; on by default for a depth "
        "model",
        expert=True,
    )
    validation_fraction: float = option(
        0.1,
        "fraction of the frames used for validation only",
        minimum=0.01,
        maximum=0.9,
        expert=True,
    )
    augment: bool = option(
        True,
        "augment with random flips, zoom, brightness, contrast and colour; off by default for "
        "DepthPro with its field of view",
        expert=True,
    )
    seed: int = option(
        0,
        "random seed of initial weights, frame order, augmentation and validation split",
        minimum=0,
        maximum=MAX_SEED,
    )
    device: str = option(
        "auto",
        "device to train on, cuda:1 for the second GPU; auto: the GPU if there is one",
        choices=DEVICES,
    )
    max_frames: int = option(
        0,
        "maximum number of frames used, evenly spaced; 0 uses all",
        minimum=0,
        maximum=MAX_COUNT,
    )
