# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What any node publishes is scored live as it is scored from its bag: the same, to the digit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from uncertainty_depth.config import (
    EvaluationConfig,
    EvaluatorNodeConfig,
    ProjectionConfig,
    SourceConfig,
)
from uncertainty_depth.config.prediction import PredictionConfig, PredictionTopics
from uncertainty_depth.frames.extrinsics import FixedExtrinsics
from uncertainty_depth.frames.predicted import Predicted
from uncertainty_depth.frames.recording import Recording
from uncertainty_depth.frames.source import open_source
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.messages.bag_writer import BagWriter
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.ros.live_scores import LiveScores

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
HEIGHT, WIDTH = 24, 32
CAMERA = Camera(WIDTH, HEIGHT, np.array([[30.0, 0, 15.5], [0, 30.0, 11.5], [0, 0, 1]]))
FRAMES = 6
POSE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
TOPICS = {
    "/depth": "depth/image_rect",
    "/sigma": "uncertainty/image_rect",
    "/camera_info": "depth/camera_info",
    "/points": "lidar/points",
}
MEANINGS = {
    "sigma": {},
    "rank": {"confidence_type": "rank_up", "align": "scale_shift"},
    "inverse": {"confidence_type": "rank_up", "depth_type": "inverse_depth", "align": "scale"},
}


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """A camera that zooms in mid-bag, whose camera infos come after their images."""
    folder = tmp_path_factory.mktemp("zoom") / "bag"
    with BagWriter(folder) as writer:
        for index in range(FRAMES):
            numbers = np.random.default_rng(index)
            time_ns = START_NS + index * 100 * MS
            zoom = 1.0 if index < FRAMES // 2 else 1.5
            camera = replace(CAMERA, intrinsics=CAMERA.intrinsics * [[zoom], [zoom], [1]])
            depth_m = numbers.uniform(2, 8, (HEIGHT, WIDTH)).astype(np.float32)
            writer.image("/depth", time_ns, "camera", depth_m)
            writer.image("/sigma", time_ns, "camera", depth_m / 10)
            factors = numbers.uniform(0.9, 1.2, (HEIGHT, WIDTH, 1))
            points = (camera.rays() * depth_m[..., None] * factors).reshape(-1, 3)
            cloud = np.pad(points, ((0, 0), (0, 1))).astype(np.float32)
            writer.cloud("/points", time_ns, "lidar", cloud)
            writer.camera_info("/camera_info", time_ns, "camera", camera)
    return folder


@pytest.mark.parametrize("meaning", MEANINGS)
def test_live_equals_offline_in_every_digit(meaning, bag):
    options = MEANINGS[meaning]
    interpreter = Interpreter(PredictionConfig(**options), EvaluationConfig())
    config = SourceConfig(lidar_to_camera=POSE)
    topics = PredictionTopics("/depth", "/sigma")
    source = open_source(str(bag), config, topics, interpreter.config)
    frames = Predicted(source, interpreter.predict)
    offline = evaluate(frames, progress=False, without_size=interpreter.without_size)
    cameras = {frame.camera.intrinsics[0, 0] for frame in source}
    assert cameras == {30.0, 45.0}

    extrinsics = FixedExtrinsics(ProjectionConfig(lidar_to_camera=POSE))
    live = LiveScores(EvaluatorNodeConfig(**options), extrinsics)
    with Recording(bag).open() as recording:
        for topic, message in recording.messages(TOPICS):
            list(live.add(TOPICS[topic], message))
    list(live.finish())
    assert offline.evaluated == FRAMES
    assert repr(flatten(live.evaluation.summary())) == repr(flatten(offline.summary()))
    assert live.evaluation.without_size == offline.without_size
    assert live.interpreter.notes() == interpreter.notes()
