# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Clouds of several LiDARs on real topics: one ground truth, the same as from the bag."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from uncertainty_depth.config import EvaluationConfig, PlayerConfig, SourceConfig
from uncertainty_depth.config.prediction import PredictionConfig, PredictionTopics
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.frames.predicted import Predicted
from uncertainty_depth.frames.source import open_source
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.transforms import parameters_from, transform_from
from uncertainty_depth.messages.bag_writer import BagWriter
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.report import saved_state
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.player import play

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
HEIGHT, WIDTH = 24, 32
CAMERA = Camera(WIDTH, HEIGHT, np.array([[30.0, 0, 15.5], [0, 30.0, 11.5], [0, 0, 1]]))
FRAMES = 5
MAPS = ("/robot/depth/image", "/robot/sigma/image")
LIDARS = ("/front/points", "/rear/points")
POSES = (np.eye(4), transform_from(-0.4, 0.1, 0.2, 0.0, 0.0, 0.1, 1.0))
OPTION = tuple(number for pose in POSES for number in parameters_from(pose))
WITHOUT_REAR = 2
"""The frame whose rear cloud is missing."""
REMAPS = (
    f"depth/image_rect:={MAPS[0]}",
    f"uncertainty/image_rect:={MAPS[1]}",
    "depth/camera_info:=/robot/depth/camera_info",
    f"lidar/points:={LIDARS[0]}",
    f"lidar2/points:={LIDARS[1]}",
)


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """Depth and sigma, with the near half of a wall seen by one LiDAR, the far one by the other.

    Some rays of both hit the same pixels; the stamps differ from the images'.
    """
    folder = tmp_path_factory.mktemp("lidars") / "bag"
    with BagWriter(folder) as writer:
        for index in range(FRAMES):
            random = np.random.default_rng(index)
            time_ns = START_NS + index * 100 * MS
            writer.camera_info("/robot/depth/camera_info", time_ns, "camera", CAMERA)
            depth_m = random.uniform(2, 8, (HEIGHT, WIDTH)).astype(np.float32)
            writer.image(MAPS[0], time_ns, "camera", depth_m)
            writer.image(MAPS[1], time_ns, "camera", depth_m / 10)
            rays = CAMERA.rays().reshape(-1, 3)
            near = 4 * rays[: len(rays) * 2 // 3]
            far = 7 * rays[len(rays) // 2 :] - POSES[1][:3, 3]
            writer.cloud(LIDARS[0], time_ns + 20 * MS, "front", intensity(near))
            if index != WITHOUT_REAR:
                in_rear = intensity(far @ POSES[1][:3, :3])
                writer.cloud(LIDARS[1], time_ns + 30 * MS, "rear", in_rear)
    return folder


def intensity(points):
    return np.pad(points, ((0, 0), (0, 1))).astype(np.float32)


def offline(bag):
    config = SourceConfig(lidar_topic=",".join(LIDARS), lidar_to_camera=OPTION)
    interpreter = Interpreter(PredictionConfig(), EvaluationConfig())
    source = open_source(str(bag), config, PredictionTopics(*MAPS), interpreter.config)
    return evaluate(Predicted(source, interpreter.predict), progress=False)


def test_two_lidars_live_equal_offline_in_every_digit(graph, bag, tmp_path):
    remaps = [part for remap in REMAPS for part in ("-r", remap)]
    node = graph.start(
        EvaluatorNode, remaps, lidars=2, lidar_to_camera=list(OPTION), output=str(tmp_path)
    )
    player = PlayerConfig(wait_for_subscribers=30.0, rate=5.0)
    play(bag, player, progress=False)
    counts = node.health.counts
    graph.until(
        lambda: (
            counts().get("received.lidar/points") == FRAMES
            and counts().get("received.lidar2/points") == FRAMES - 1
            and counts().get("received.uncertainty/image_rect") == FRAMES
        ),
        "all messages",
    )
    graph.stop(node)  # the last frames, which wait for later clouds, are decided
    expected = offline(bag)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["source"] == f"live: {MAPS[0]} against {', '.join(LIDARS)}"
    assert summary["frames"] == {"read": FRAMES, "evaluated": FRAMES, "skipped": {}}
    live = saved_state.read_report(tmp_path).evaluation
    assert repr(flatten(live.summary())) == repr(flatten(expected.summary()))
    without = "1 images are scored without a cloud of lidar2/points: none is near in time"
    assert without in summary["notes"]
    alone = SourceConfig(lidar_topic=LIDARS[0], lidar_to_camera=OPTION[:7])
    interpreter = Interpreter(PredictionConfig(), EvaluationConfig())
    source = open_source(str(bag), alone, PredictionTopics(*MAPS), interpreter.config)
    front = evaluate(Predicted(source, interpreter.predict), progress=False)
    assert front.summary()["depth"] != expected.summary()["depth"], "the rear one counts"


def test_a_lidar_that_is_silent_is_named_and_frames_are_scored_with_the_other(graph, make):
    queue_size = 3
    node = graph.start(
        EvaluatorNode, lidars=2, lidar_to_camera=2 * [*[0.0] * 6, 1.0], queue_size=queue_size
    )
    publish = {
        topic: graph.publisher(message_type, topic, 20).publish
        for topic, message_type in {
            "depth/camera_info": CameraInfo,
            "depth/image_rect": Image,
            "uncertainty/image_rect": Image,
            "lidar/points": PointCloud2,
        }.items()
    }
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    publish["depth/camera_info"](make.camera_info(1, WIDTH, HEIGHT))
    depth_m = np.full((HEIGHT, WIDTH), 4, np.float32)
    for index in range(1, 9):
        publish["lidar/points"](make.cloud(make.points_on_plane(60), index * 100 * MS))
        publish["depth/image_rect"](make.image(index * 100 * MS, depth_m))
        publish["uncertainty/image_rect"](make.image(index * 100 * MS, depth_m / 10))
        scored = max(0, index - queue_size)
        graph.until(
            lambda scored=scored, sent=index: (
                node.health.counts().get("evaluated", 0) == scored
                and node.health.counts().get("received") == sent
                and node.health.counts().get("received.lidar/points") == sent
            ),
            f"{scored} of {index} frames scored",
        )
    told = diagnostics.wait_for(
        lambda message: "nothing on /lidar2/points" in message.status[0].message
    ).status[0]
    assert told.level == told.WARN
    facts = {item.key: item.value for item in told.values}
    assert facts["pairing.scored_without_lidar2/points"] == str(8 - queue_size)


@pytest.mark.parametrize("numbers", [7, 13])
def test_each_lidar_needs_a_pose_of_its_own(graph, numbers):
    with pytest.raises(ConfigError, match=f"has {numbers} numbers; expected 14"):
        graph.start(EvaluatorNode, lidars=2, lidar_to_camera=[0.5] * numbers)
