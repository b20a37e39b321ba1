# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What any node publishes is scored live as it is scored from its bag: the same, to the digit."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from test.ros.conftest import HEIGHT, MS, POSE, WIDTH
from uncertainty_depth.core.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.core.config.scoring import MaskConfig
from uncertainty_depth.core.config.source import (
    PredictionConfig,
    PredictionTopics,
    ProjectionConfig,
    SourceConfig,
)
from uncertainty_depth.core.geometry.camera import Camera, Distortion
from uncertainty_depth.core.geometry.transforms import parameters_from, transform_from
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.recording import Recording
from uncertainty_depth.frames.transforms import FixedExtrinsics
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.ros.live_scores import LiveScores
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.stream import Stream

START_NS = 1_700_000_000_000_000_000
CAMERA = Camera(WIDTH, HEIGHT, np.array([[30.0, 0, 15.5], [0, 30.0, 11.5], [0, 0, 1]]))
LENSES = {"pinhole": None, "raw": Distortion("plumb_bob", np.array([-0.28, 0.07, 0.001, 0, 0]))}
FRAMES = 6
TOPICS = {
    "/depth": "depth/image_rect",
    "/sigma": "uncertainty/image_rect",
    "/camera_info": "depth/camera_info",
    "/points": "lidar/points",
    "/rear": "lidar2/points",
    "/tof/image_raw": "ground_truth/image",
    "/tof/camera_info": "ground_truth/camera_info",
}
MEANINGS = {
    "sigma": {},
    "rank": {"confidence_type": "uncertainty_rank", "align": "scale_shift"},
    "inverse": {
        "confidence_type": "uncertainty_rank",
        "depth_type": "inverse_depth",
        "align": "scale",
    },
    "none": {"confidence_type": "none"},
}


def write_maps(writer, index):
    """Write depth and sigma of a frame; return its time, its random numbers, and the depth."""
    numbers = np.random.default_rng(index)
    time_ns = START_NS + index * 100 * MS
    depth_m = numbers.uniform(2, 8, (HEIGHT, WIDTH)).astype(np.float32)
    writer.image("/depth", time_ns, "camera", depth_m)
    writer.image("/sigma", time_ns, "camera", depth_m / 10)
    return time_ns, numbers, depth_m


@pytest.fixture(scope="module", params=LENSES)
def bag(tmp_path_factory, request):
    """A camera that zooms in mid-bag, whose camera infos come after their images."""
    folder = tmp_path_factory.mktemp("zoom") / "bag"
    with BagWriter(folder) as writer:
        for index in range(FRAMES):
            time_ns, numbers, depth_m = write_maps(writer, index)
            zoom = 1.0 if index < FRAMES // 2 else 1.5
            intrinsics = CAMERA.intrinsics * [[zoom], [zoom], [1]]
            lens = LENSES[request.param]
            camera = replace(CAMERA, intrinsics=intrinsics, distortion=lens)
            factors = numbers.uniform(0.9, 1.2, (HEIGHT, WIDTH, 1))
            points = (camera.rays() * depth_m[..., None] * factors).reshape(-1, 3)
            cloud = np.pad(points, ((0, 0), (0, 1))).astype(np.float32)
            writer.cloud("/points", time_ns, "lidar", cloud)
            writer.camera_info("/camera_info", time_ns, "camera", camera)
    return folder


def offline_and_live(bag, source_config, node_config):
    """Evaluate a bag, and its messages one by one; return the offline and the live result."""
    meaning = PredictionConfig(
        confidence_type=node_config.confidence_type,
        depth_type=node_config.depth_type,
        align=node_config.align,
    )
    topics = PredictionTopics("/depth", "/sigma")
    job = Job(
        sources=(str(bag),),
        reading=source_config,
        mask=MaskConfig(node_config.mask),
        topics=topics,
        meaning=meaning,
    )
    stream = Stream.open(job)
    recorded = stream.predicting
    offline = evaluate(stream, progress=False, sigma_kind=job.sigma_kind)
    extrinsics = None
    if not node_config.use_ground_truth_image:
        poses = ProjectionConfig(lidar_to_camera=source_config.lidar_to_camera)
        extrinsics = FixedExtrinsics(poses, node_config.lidars)
    heard = [topic for topic in TOPICS if topic != "/rear" or node_config.lidars == 2]
    if node_config.confidence_type == "none":
        heard.remove("/sigma")
    with Recording(bag).open() as recording:
        live = LiveScores(
            node_config,
            extrinsics,
            lambda name: any(TOPICS.get(topic) == name for topic in recording.topics),
        )
        for topic, message in recording.messages(set(heard) & recording.topics.keys()):
            list(live.add(TOPICS[topic], message))
    list(live.finish())
    assert repr(flatten(live.evaluation.summary())) == repr(flatten(offline.summary()))
    assert live.evaluation.sigma_kind is offline.sigma_kind
    assert live.interpreter.notes() == recorded.notes()
    doubts = live.interpreter.doubts(live.evaluation.metrics.total())
    assert doubts == recorded.doubts(offline.metrics.total())
    return offline, live


@pytest.mark.parametrize("meaning", MEANINGS)
def test_live_equals_offline_in_every_digit(meaning, bag, request):
    config = EvaluatorNodeConfig(**MEANINGS[meaning])
    offline, live = offline_and_live(bag, SourceConfig(lidar_to_camera=POSE), config)
    assert offline.evaluated == FRAMES
    assert any("camera_info changes" in note for note in live.notes())  # the zoom
    kept_raw = "depth/camera_info is distorted (plumb_bob): images stay as they are, points are"
    assert any(note.startswith(kept_raw) for note in live.notes()) == ("raw" in request.node.name)


@pytest.mark.parametrize("bag", ["raw"], indirect=True)
@pytest.mark.parametrize("meaning", MEANINGS)
def test_a_mask_leaves_out_the_same_pixels_live(meaning, bag, tmp_path):
    mask = np.full((2 * HEIGHT, 2 * WIDTH), 255, np.uint8)
    mask[3 * HEIGHT // 2 :, : WIDTH // 2] = 0
    cv2.imwrite(str(tmp_path / "mask.png"), mask)
    config = EvaluatorNodeConfig(mask=str(tmp_path / "mask.png"), **MEANINGS[meaning])
    offline, live = offline_and_live(bag, SourceConfig(lidar_to_camera=POSE), config)
    assert offline.evaluated + offline.skipped["too_few_points_to_align"] == FRAMES
    assert 0.02 < offline.left_out_fraction == live.evaluation.left_out_fraction < 0.2
    assert any("of the ground truth: no score" in note for note in live.notes())


REAR = transform_from(-0.4, 0.1, 0.2, 0.0, 0.0, 0.1, 1.0)
WITHOUT_REAR = 2
"""The frame whose rear cloud is missing."""


@pytest.fixture(scope="module")
def bag_of_two(tmp_path_factory):
    """The near half of a wall is seen by one LiDAR, the far one by the other; some rays by both.

    The stamps differ from the images'.
    """
    folder = tmp_path_factory.mktemp("lidars") / "bag"
    rays = CAMERA.rays().reshape(-1, 3)
    near = 4 * rays[: len(rays) * 2 // 3]
    far = (7 * rays[len(rays) // 2 :] - REAR[:3, 3]) @ REAR[:3, :3]
    near, far = (np.pad(points, ((0, 0), (0, 1))).astype(np.float32) for points in (near, far))
    with BagWriter(folder) as writer:
        for index in range(FRAMES):
            time_ns, *_ = write_maps(writer, index)
            writer.camera_info("/camera_info", time_ns, "camera", CAMERA)
            writer.cloud("/points", time_ns + 20 * MS, "front", near)
            if index != WITHOUT_REAR:
                writer.cloud("/rear", time_ns + 30 * MS, "rear", far)
    return folder


def test_two_lidars_live_equal_offline_in_every_digit(bag_of_two):
    poses = tuple(parameters_from(np.eye(4))) + tuple(parameters_from(REAR))
    both = SourceConfig(lidar_topic="/points,/rear", lidar_to_camera=poses)
    offline, live = offline_and_live(bag_of_two, both, EvaluatorNodeConfig(lidars=2))
    without = "1 images are scored without a cloud of lidar2/points: none is near in time"
    assert without in live.notes()
    front = SourceConfig(lidar_topic="/points", lidar_to_camera=POSE)
    alone, _ = offline_and_live(bag_of_two, front, EvaluatorNodeConfig())
    assert (offline.evaluated, alone.evaluated) == (FRAMES, FRAMES)
    assert alone.summary()["depth"] != offline.summary()["depth"], "the rear one counts"


@pytest.mark.parametrize("has_info", [True, False])
def test_raw_depth_images_of_rectified_maps_live_equal_offline_in_every_digit(tmp_path, has_info):
    """They are rectified by the camera info beside them, which comes last."""
    raw = replace(CAMERA, distortion=LENSES["raw"])
    with BagWriter(tmp_path / "bag") as writer:
        for index in range(FRAMES):
            time_ns, _, depth_m = write_maps(writer, index)
            writer.image("/tof/image_raw", time_ns, "camera", depth_m)
            writer.camera_info("/camera_info", time_ns, "camera", CAMERA)
            if has_info:
                writer.camera_info("/tof/camera_info", time_ns, "camera", raw)
    live_config = EvaluatorNodeConfig(use_ground_truth_image=True)
    offline, live = offline_and_live(tmp_path / "bag", SourceConfig(), live_config)
    assert offline.evaluated == FRAMES
    assert (offline.summary()["depth"]["abs_rel"] > 0.05) == has_info
    assert any("registered to the maps" in note for note in live.notes()) != has_info
