# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Options that say what is read, and how: topics, cameras, LiDARs, odometry, recorded depth."""

from __future__ import annotations

from dataclasses import dataclass

from uncertainty_depth.core.options import MAX_DEPTH_M, option

MAX_PIXELS = 16_000_000
"""Largest image, unless the option max_pixels says otherwise: 4000x4000."""
DISTORTED_IMAGES = ("rectify", "keep", "already_rectified")
ODOMETRY_FRAME = "odom"
"""Name of the frame that odometry is in by REP 105."""
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
class ProjectionConfig:
    """How LiDAR points become depth in the camera image."""

    lidar_to_camera: tuple[float, ...] = option(
        (),
        "transform from the LiDAR to the camera optical frame: x y z qx qy qz qw, metres, of "
        "several LiDARs one after the other; empty: tf",
        limits=(-MAX_DEPTH_M, MAX_DEPTH_M),
    )
    fixed_frame: str = option(
        "",
        "fixed tf frame (odom, map) to compensate the motion between a cloud and its image; "
        "empty: off",
    )


@dataclass(frozen=True)
class LidarConfig(ProjectionConfig):
    """How LiDAR points become ground truth in the camera image."""

    max_time_difference: float = option(
        0.05,
        "maximum time between an image and its LiDAR cloud, seconds",
        limits=(0.0, 60.0),
    )


@dataclass(frozen=True)
class CameraConfig:
    """How camera images are read."""

    max_pixels: int = option(
        MAX_PIXELS,
        "largest camera image, pixels: larger images are rejected before decoding",
        limits=(1, 2**30),
        expert=True,
    )
    distorted_images: str = option(
        "rectify",
        "if the camera info has distortion: rectify the images, keep it, or take them as "
        "already_rectified (by image_proc)",
        choices=DISTORTED_IMAGES,
    )


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
