# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A sigma node that measures behind another's network: live it is what `evaluate` makes of a bag.

It publishes the corrected depth, and an evaluator scores the pixels that `evaluate` scores.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.rosbag2 import Reader

from test.ros import tf2_stand_in
from test.ros.conftest import HEIGHT, MS, POSE, WIDTH, facts, type_of
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.config.source import PredictionTopics, SourceConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.transforms import transform_from
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.messages.images import decode_depth, decode_sigma
from uncertainty_depth.frames.published import PREDICTION, measured_in, status_values
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.messages import type_name
from uncertainty_depth.ros.sigma_node import SigmaNode
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.stream import Stream

START_MS = 1_700_000_000_000
PERIOD_MS = 100
FRAMES = 3
LATE_MS = 20
CAMERA = Camera(WIDTH, HEIGHT, np.array([[30.0, 0, 15.5], [0, 30.0, 11.5], [0, 0, 1]]))
TRUE_M = 4.0 + 2.0 * np.linspace(0, 1, WIDTH, dtype=np.float32) * np.ones((HEIGHT, 1), np.float32)
STEP_M = 0.125
INPUTS = {
    "/points": "lidar/points",
    "/slam": "measured/points",
    "/tof": "measured/depth",
    "/camera_info": "depth/camera_info",
    "/sigma": "confidence/image",
    "/depth": "depth/image_rect",
}
"""Topics of the bag, in the order in which each frame's messages are sent."""
KINDS = {"lidar": "lidar/points", "points": "measured/points", "depth": "measured/depth"}
OUTPUTS = (
    "depth/model",
    "depth/prediction_info",
    "depth/corrected/image_rect",
    "depth/corrected/camera_info",
    "uncertainty/image_rect",
)
DEPTH, SIGMA = OUTPUTS[2], OUTPUTS[4]
TRUTH = SourceConfig(lidar_topic="/points", lidar_to_camera=POSE)
MEASURING = {
    "lidar": {},
    "points": {"measured_points_topic": "/slam"},
    "depth": {"measured_depth_topic": "/tof"},
    "lidar,points,depth": {"measured_points_topic": "/slam", "measured_depth_topic": "/tof"},
}


def pose_at(index):
    """The camera drives forward in the map."""
    return transform_from(0, 0, STEP_M * index, 0, 0, 0, 1)


def stamp_of(index):
    return (START_MS + index * PERIOD_MS) * MS


def points_of(depth_m, stride=1):
    points = (CAMERA.rays() * depth_m[..., None])[::stride, ::stride].reshape(-1, 3)
    return np.pad(points, ((0, 0), (0, 1)))


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    """A network whose depth is a third too large, and what measures beside it."""
    folder = tmp_path_factory.mktemp("measured") / "bag"
    with BagWriter(folder) as writer:
        for index in range(FRAMES):
            time_ns = stamp_of(index)
            noise = np.random.default_rng(index).uniform(0.95, 1.05, (HEIGHT, WIDTH))
            depth_m = (4 / 3 * noise * TRUE_M).astype(np.float32)
            sigma_m = 0.3 * depth_m
            depth_m[0, :3] = sigma_m[0, :3] = np.nan
            tof_m = TRUE_M.copy()
            tof_m[:, ::3] = np.nan
            writer.transform(time_ns, "map", "camera", pose_at(index))
            writer.cloud("/points", time_ns + LATE_MS * MS, "lidar", points_of(TRUE_M, stride=2))
            placed = points_of(TRUE_M, stride=5)
            placed[:, 2] += STEP_M * index
            writer.cloud("/slam", time_ns, "map", placed)
            writer.image("/tof", time_ns + LATE_MS * MS, "camera", tof_m)
            writer.camera_info("/camera_info", time_ns, "camera", CAMERA)
            writer.image("/sigma", time_ns, "camera", sigma_m)
            writer.image("/depth", time_ns, "camera", depth_m)
    return folder


@pytest.fixture(autouse=True)
def tf2(monkeypatch):
    tree = TransformTree()
    for index in range(FRAMES):
        tree.add_moving(stamp_of(index), "map", "camera", pose_at(index))
    tf2_stand_in.install(monkeypatch, tree)
    return tree


def frames_of(bag):
    """A bag's messages frame by frame, as ROS has them, with the sigma node's topics."""
    found = [[] for _ in range(FRAMES)]
    with Reader(bag) as reader:
        for connection, _, data in reader.messages():
            if connection.topic in INPUTS:
                topic = INPUTS[connection.topic]
                message = deserialize_message(data, type_of(topic)[0])
                index = (stamp_ns(message.header) // MS - START_MS) // PERIOD_MS
                found[index].append((topic, message))
    order = list(INPUTS.values())
    return [sorted(messages, key=lambda item: order.index(item[0])) for messages in found]


def start(graph, measurements, **parameters):
    return graph.start(
        SigmaNode,
        **{
            "confidence_type": "sigma",
            "measurements": measurements,
            "lidar_to_camera": POSE,
            **parameters,
        },
    )


def drive(robot, node, bag, measurements):
    """Send a bag's frames one by one, and return the inboxes for the node's outputs."""
    heard = {topic: robot.heard(topic) for topic in OUTPUTS}
    measured = {KINDS[kind] for kind in measurements.split(",")}
    received = node.health.counts
    for index, messages in enumerate(frames_of(bag), start=1):
        for topic, message in messages:
            if topic.startswith("measured/") and topic not in measured:
                continue
            robot.send(topic, message)
            if topic in measured:
                name = f"received.{topic}"
                robot.graph.until(lambda at=(name, index): received().get(at[0]) == at[1], name)
        for topic in OUTPUTS[1:]:
            heard[topic].wait(index)
    return heard


def offline(bag, measurements, fraction=0.5):
    job = Job(
        sources=(str(bag),),
        reading=SourceConfig(**{**vars(TRUTH), **MEASURING[measurements]}),
        topics=PredictionTopics("/depth", "/sigma"),
        predictor=PredictorConfig(measurements=measurements),
        held_out=HeldOutConfig(fraction),
    )
    return Stream.open(job)


@pytest.mark.parametrize("measurements", ["lidar", "points", "depth"])
def test_live_equals_offline_in_every_digit(graph, robot, bag, tmp_path, measurements):
    node = start(graph, measurements, held_out_fraction=0.5)
    remap = ["-r", f"depth/image_rect:={DEPTH}"]
    scorer = graph.start(EvaluatorNode, remap, lidar_to_camera=POSE, confidence_type="sigma")
    told = robot.heard("/evaluator_node/metrics")
    robot.graph.until(lambda: scorer.count_publishers("/depth/model"), "the sigma node")
    heard = drive(robot, node, bag, measurements)
    expected = list(offline(bag, measurements))
    assert len(expected) == FRAMES
    for frame, depth, sigma, info in zip(
        expected, *(heard[it].messages for it in (DEPTH, SIGMA, OUTPUTS[1])), strict=True
    ):
        depth_m = decode_depth(depth)
        assert_array_equal(depth_m, frame.prediction.depth_m)
        assert_array_equal(decode_sigma(sigma), frame.prediction.sigma_m)
        assert np.nanmedian(np.abs(depth_m / TRUE_M - 1)) < 0.1, "a third before"
        values = status_values(info.status, PREDICTION)
        assert float(values["scale_sigma"]) == pytest.approx(frame.prediction.scale_log_sigma)
        measured = frame.measurements
        pixels = () if measured is None else measured.rows * WIDTH + measured.columns
        assert measured_in(values) == tuple(pixels)
    summary = flatten(evaluate(offline(bag, measurements), progress=False).summary())
    total = told.wait_for(
        lambda message: (
            message.status[0].message == "all frames"
            and float(facts(message)["pixels"]) == summary["pixels"]
        )
    )
    values = {key: float(text) for key, text in facts(total).items()}
    common = values.keys() & summary.keys()
    assert len(common) > 50
    for key in common:
        assert values[key] == pytest.approx(summary[key], rel=0, nan_ok=True), key
    with BagWriter(tmp_path / "run") as writer:
        for topic in OUTPUTS:
            for message in heard[topic].messages:
                time_ns = stamp_of(0) if topic == "depth/model" else stamp_ns(message.header)
                data = serialize_message(message)
                is_latched = topic == "depth/model"
                writer.serialized(f"/{topic}", time_ns, type_name(type(message)), data, is_latched)
        for messages in frames_of(bag):
            writer.serialized(
                "/points",
                stamp_ns(messages[0][1].header),
                "sensor_msgs/msg/PointCloud2",
                serialize_message(messages[0][1]),
            )
    topics = PredictionTopics(f"/{DEPTH}", f"/{SIGMA}")
    run = Stream.open(Job(sources=(str(tmp_path / "run"),), reading=TRUTH, topics=topics))
    assert repr(flatten(evaluate(run, progress=False).summary())) == repr(summary)
