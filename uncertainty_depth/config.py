"""Every option of the package, once: frozen dataclasses that hold the only defaults.

The command line, YAML files and ROS parameters are all made from these (see `options`), so an option means the same wherever it is set.
"""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.options import option

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
COMPONENTS = ("total", "epistemic", "aleatoric")
DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("fp32", "fp16", "bf16")
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
    """How a model folder is run on an image."""

    method: str = option(
        "", "how sigma is made; default: the model folder's own method", choices=("", *METHODS)
    )
    component: str = option(
        "total",
        "which part of sigma: epistemic, the spread of passes; aleatoric, what a head predicts; or both",
        choices=COMPONENTS,
    )
    samples: int = option(
        8,
        "stochastic passes of a dropout method, or the most members used of an ensemble",
        minimum=1,
        maximum=1024,
    )
    chunk: int = option(
        8,
        "samples run at once: bounds the memory, does not change the maps",
        minimum=1,
        maximum=1024,
    )
    seed: int = option(
        0,
        "seed of the dropout methods, together with the frame's stamp",
        minimum=0,
        maximum=MAX_SEED,
    )
    device: str = option(
        "auto",
        "where the network runs; auto takes the GPU when there is one",
        choices=DEVICES,
        read_only=True,
    )
    precision: str = option(
        "fp32", "floating point format of the network", choices=PRECISIONS, read_only=True
    )


@dataclass(frozen=True)
class PredictorConfig(RawPredictorConfig):
    """How a model folder is run on an image, and whether its sigma is calibrated."""

    calibrated: bool = option(
        True, "calibrate sigma, where the model folder holds a calibration for the method"
    )


@dataclass(frozen=True)
class ColorConfig:
    """How depth and sigma are coloured: fixed scales, so that images can be compared."""

    color_max_depth: float = option(
        10.0,
        "depth shown as the far end of the colour scale, metres",
        minimum=0.01,
        maximum=MAX_DEPTH_M,
    )
    color_max_sigma: float = option(
        1.0,
        "standard deviation shown as the far end of the colour scale, metres",
        minimum=0.001,
        maximum=MAX_DEPTH_M,
    )


@dataclass(frozen=True)
class LidarConfig:
    """How a LiDAR cloud becomes ground truth in a camera image."""

    lidar_to_camera: tuple[float, ...] = option(
        (),
        "transform from the LiDAR to the camera optical frame: x y z qx qy qz qw, metres; empty takes tf",
        minimum=-MAX_DEPTH_M,
        maximum=MAX_DEPTH_M,
    )
    max_time_difference: float = option(
        0.05,
        "longest time between an image and the cloud that scores it, seconds",
        minimum=0.0,
        maximum=60.0,
    )
    occlusion_tolerance: float = option(
        0.1,
        "a LiDAR point this share deeper than a nearer point around it is taken as hidden from the camera; 0 keeps all",
        minimum=0.0,
        maximum=10.0,
    )
    occlusion_window: int = option(
        7,
        "height and width of the neighbourhood searched for nearer points, pixels",
        minimum=1,
        maximum=63,
    )


@dataclass(frozen=True)
class CameraConfig:
    """What is done with the images of a camera whose lens distorts them."""

    distorted_images: str = option(
        "rectify",
        "where the camera info has a distortion: rectify the images, keep them and project with the distortion, "
        "or take them as already_rectified (image_proc's image_rect)",
        choices=DISTORTED_IMAGES,
    )


@dataclass(frozen=True)
class SourceConfig(LidarConfig, CameraConfig):
    """What to read from a bag; a camera or LiDAR that is alone in the bag need not be named."""

    image_topic: str = option("", "camera image topic; empty takes the only one")
    camera_info_topic: str = option(
        "", "camera info topic; empty takes the one beside the image topic, or the only one"
    )
    lidar_topic: str = option("", "point cloud topic; empty takes the only one")
    ground_truth_topic: str = option(
        "",
        "registered depth image that is the ground truth; empty takes the LiDAR, or without one the only depth image",
    )


@dataclass(frozen=True)
class EvaluationConfig:
    """What is scored, and how."""

    min_depth: float = option(
        0.1,
        "ground truth nearer than this is not scored, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    max_depth: float = option(
        80.0,
        "ground truth farther than this is not scored, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    alpha: float = option(
        0.95,
        "share of the pixels that n-MeRCI asks the error bars to cover",
        minimum=0.01,
        maximum=1.0,
    )
    depth_interval: float = option(
        0.1,
        "width of the depth intervals of the per-depth figures, metres",
        minimum=0.01,
        maximum=MAX_DEPTH_M,
    )
    pictures: int = option(
        6, "frames shown in the report, half of them the worst", minimum=0, maximum=100
    )


@dataclass(frozen=True)
class CalibrationConfig:
    """How raw sigma is calibrated."""

    pixels_per_frame: int = option(
        1000, "most pixels of a frame that are used, drawn at random", minimum=1, maximum=MAX_COUNT
    )
    max_frames: int = option(
        2000,
        "use at most this many frames of a source, evenly spread; 0 uses all",
        minimum=0,
        maximum=MAX_COUNT,
    )
    min_depth: float = option(
        0.1, "ground truth nearer than this is not used, metres", minimum=0.0, maximum=MAX_DEPTH_M
    )
    max_depth: float = option(
        80.0,
        "ground truth farther than this is not used, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    distribution: str = option(
        "",
        "what sigma is the standard deviation of; empty takes the model's head's, or a Gaussian",
        choices=("", "gaussian", "laplace"),
    )
    report_fraction: float = option(
        0.33,
        "of a single source, the last fraction of the frames: only reported on",
        minimum=0.05,
        maximum=0.9,
    )
    blocks: int = option(
        4,
        "of a single source, the blocks of time that the other frames are cut into to choose the map",
        minimum=2,
        maximum=100,
    )
    pixel_seed: int = option(0, "seed of the pixels drawn", minimum=0, maximum=MAX_SEED)


@dataclass(frozen=True)
class NetworkConfig:
    """The network: an encoder and four up-projections (the hourglass), or a pretrained depth model."""

    backbone: str = option(
        "resnet18",
        "encoder: resnet10 ... resnet200, tiny ... tiny34, a saved backbone's folder, or a pretrained one's hub id; "
        "or a whole depth model (Depth Anything, DepthPro, DPT, ZoeDepth, GLPN, TIPSv2), to fine-tune",
    )
    skip_connections: bool = option(
        True, "feed the encoder's feature maps of each scale into the decoder"
    )
    decoder_width: int = option(
        256,
        "channels after the first up-projection; halved by each further one",
        minimum=16,
        maximum=2048,
    )
    dropout: float = option(
        0.2,
        "dropout rate after each of the first three up-projections, or fusion stages of a depth model",
        minimum=0.0,
        maximum=0.9,
    )
    dropout_kind: str = option(
        "bernoulli",
        "bernoulli keeps its rate, concrete learns it, gaussian learns the variance of a factor",
        choices=DROPOUTS,
    )
    last_activation: str = option(
        "leaky_relu",
        "before the final convolution; relu leaves pixels where all units are off without any spread",
        choices=("relu", "leaky_relu"),
    )
    head: str = option(
        "laplace",
        "likelihood of a second output channel, the predicted scale of the error",
        choices=HEADS,
    )
    input_size: tuple[int, ...] = option(
        (160, 128),
        "width and height the network sees, pixels; of a depth model its own",
        minimum=32,
        maximum=4096,
    )
    depth_range: tuple[float, ...] = option(
        (0.3, 12.0),
        "least and greatest depth the network can give, metres; of a metric depth model its own",
        minimum=1e-3,
        maximum=1e4,
    )


@dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained."""

    method: str = option(
        "multi_epochs",
        "what the model is made for; empty options of `predict` and the nodes fall back to it",
        choices=METHODS,
    )
    loss: str = option(
        "",
        "l1, berhu, log_l1 or nll; empty takes nll with a head, log_l1 without",
        choices=("", *LOSSES),
    )
    epochs: int = option(150, "most passes over the training frames", minimum=1, maximum=MAX_COUNT)
    batch_size: int = option(16, "frames per step", minimum=1, maximum=65536)
    learning_rate: float = option(
        1e-3,
        "step size, the same from first to last: no schedule; of a depth model a tenth",
        minimum=0.0,
        maximum=10.0,
    )
    weight_decay: float = option(1e-4, "decoupled weight decay (AdamW)", minimum=0.0, maximum=10.0)
    snapshots: int = option(
        8,
        "weights kept for multi_epochs: one each epoch once the validation error stopped improving",
        minimum=1,
        maximum=1024,
    )
    members: int = option(
        5, "networks of multi_inits, bagging and adversarial_ensemble", minimum=1, maximum=1024
    )
    backbones: tuple[str, ...] = option(
        ("resnet10", "resnet18", "resnet34"), "encoders of multi_networks, one network each"
    )
    adversarial_step: float = option(
        0.01,
        "step of adversarial_ensemble's examples, as a share of the range of a pixel",
        minimum=0.0,
        maximum=1.0,
    )
    distill: str = option(
        "",
        "model folder whose mean and total sigma one network learns; the method is then distilled",
    )
    patience: int = option(
        30,
        "epochs without a better validation error that count as having stopped improving",
        minimum=1,
        maximum=MAX_COUNT,
    )
    freeze_encoder: bool = option(
        False,
        "train the decoder alone: snapshots then share one encoder pass; on for a depth model",
    )
    validation_share: float = option(
        0.1, "share of the frames held out for validation", minimum=0.01, maximum=0.9
    )
    augment: bool = option(
        True,
        "random flips, zoom, and changes of brightness, contrast and colour; off for DepthPro with its field of view",
    )
    seed: int = option(
        0, "seed of initial weights, order, augmentation and split", minimum=0, maximum=MAX_SEED
    )
    processes: int = option(
        1,
        "networks of an ensemble trained at the same time, each in a process of its own, on the next GPU in turn; 0: one per GPU",
        minimum=0,
        maximum=1024,
    )
    device: str = option(
        "auto", "where to train; auto takes the GPU when there is one", choices=DEVICES
    )
    max_frames: int = option(
        0, "use at most this many frames, evenly spread; 0 uses all", minimum=0, maximum=MAX_COUNT
    )


@dataclass(frozen=True)
class SynthesisConfig:
    """The synthetic world, and the robot that drives through it."""

    worlds: int = option(
        4,
        "rooms and corridors to render, each with a drive through it",
        minimum=1,
        maximum=MAX_COUNT,
    )
    frames: int = option(20, "camera frames per world", minimum=1, maximum=MAX_COUNT)
    seed: int = option(0, "worlds of different seeds differ", minimum=0, maximum=MAX_SEED)
    test_objects: bool = option(False, "add the object class that training worlds never contain")
    width: int = option(320, "camera image width, pixels", minimum=16, maximum=8192)
    height: int = option(240, "camera image height, pixels", minimum=16, maximum=8192)
    rate: float = option(
        10.0, "camera frames and LiDAR turns per second", minimum=0.1, maximum=1000.0
    )
    rings: int = option(32, "LiDAR rings", minimum=1, maximum=1024)
    noise: float = option(
        1.0,
        "sensor noise, as a multiple of a typical camera's and LiDAR's",
        minimum=0.0,
        maximum=100.0,
    )
    dense: bool = option(
        False,
        "give the exact depth of every pixel: as a source instead of the LiDAR's, in a bag as a depth image besides",
    )


@dataclass(frozen=True)
class DepthNodeConfig(PredictorConfig, CameraConfig, ColorConfig):
    """The depth node's parameters."""

    model: str = option("", "model folder; demo: the shipped one", read_only=True)
    max_frame_age: float = option(
        0.5,
        "frames older than this when their turn comes are dropped and counted, seconds; 0 keeps all",
        minimum=0.0,
        maximum=MAX_DURATION_S,
    )
    reliable_input: bool = option(
        True,
        "ask for reliable camera images, where every publisher gives them; "
        "false: best effort, which loses many",
    )
    compressed_input: bool = option(False, "subscribe to image/compressed instead of image")
    queue_size: int = option(
        1,
        "newest camera images kept while the network is busy; older ones are dropped and counted",
        minimum=1,
        maximum=1000,
    )


@dataclass(frozen=True)
class EvaluatorNodeConfig(EvaluationConfig, LidarConfig):
    """The evaluator node's parameters."""

    use_ground_truth_image: bool = option(
        False, "score against ground_truth/image instead of lidar/points"
    )
    reliable_input: bool = option(
        True,
        "ask for reliable clouds or ground truth images, where every publisher gives them; "
        "false: best effort",
    )
    queue_size: int = option(
        30,
        "predictions and clouds kept while they wait for each other; older ones are counted as unmatched",
        minimum=2,
        maximum=1000,
    )
    output: str = option(
        "", "folder the report is written to on shutdown or ~/save; empty writes none on shutdown"
    )
    overwrite: bool = option(False, "replace the report that is in output from an earlier run")
    color_max_depth: float = option(
        10.0,
        "depth shown as the far end of the colour scale, metres",
        minimum=0.01,
        maximum=MAX_DEPTH_M,
    )
    color_max_error: float = option(
        2.0,
        "error shown as the far end of the colour scale, metres",
        minimum=0.001,
        maximum=MAX_DEPTH_M,
    )


@dataclass(frozen=True)
class PlayerConfig:
    """How a bag is published into ROS 2."""

    rate: float = option(1.0, "speed, as a multiple of the recording's", minimum=1e-3, maximum=1e3)
    clock: bool = option(False, "publish /clock, for nodes with use_sim_time")
    loop: bool = option(False, "start again at the end, until interrupted")
    wait_for_subscribers: float = option(
        0.0,
        "before the first message, wait up to so many seconds for a subscriber of every topic",
        minimum=0.0,
        maximum=MAX_DURATION_S,
    )
    wait_for_result: str = option(
        "",
        "image topic made by a node; the next camera image is sent once the result of the one before has come",
    )
    result_timeout: float = option(
        10.0,
        "longest wait for a result, seconds; the frame then counts as unanswered",
        minimum=0.1,
        maximum=MAX_DURATION_S,
    )
