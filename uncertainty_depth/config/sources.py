# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options of sources, and of what is scored or calibrated with their frames."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.config.choices import (
    DISTORTED_IMAGES,
    MAX_COUNT,
    MAX_DEPTH_M,
    MAX_DURATION_S,
    MAX_PIXELS,
)
from uncertainty_depth.options import option


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
        "frame of tf that stands still (odom, map), by which the motion between a cloud and its "
        "image is compensated; empty: it is not",
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
        "largest camera image that is decoded, pixels: a larger one is dropped by its header",
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


@dataclass(frozen=True)
class SourceConfig(LidarConfig, CameraConfig):
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


@dataclass(frozen=True)
class DepthLimitsConfig:
    """Which ground truth counts."""

    min_depth: float = option(
        0.1,
        "minimum ground truth depth that counts, metres",
        minimum=0.0,
        maximum=MAX_DEPTH_M,
    )
    max_depth: float = option(
        80.0,
        "maximum ground truth depth that counts, metres",
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
class RequirementConfig:
    """Requirements that the metrics must meet."""

    require: tuple[str, ...] = option(
        (),
        "limit of a metric, e.g. 'auce<=0.05', or a .yaml file with a list of them; repeatable",
    )


@dataclass(frozen=True)
class CalibrationConfig(DepthLimitsConfig):
    """How the calibration of sigma is fitted."""

    max_frames: int = option(
        2000,
        "maximum number of frames used per source, evenly spaced; 0 uses all",
        minimum=0,
        maximum=MAX_COUNT,
    )
    distribution: str = option(
        "",
        "distribution of the error; empty: the model's variance head, or a Gaussian",
        choices=("", "gaussian", "laplace"),
        expert=True,
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
