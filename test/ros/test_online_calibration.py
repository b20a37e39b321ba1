# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Both nodes over real topics: the loop of sigma, and the samples of a frame."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import String

from test.ros.conftest import POSE, FakePredictor
from uncertainty_depth.calibration.online_loop import AsPublished
from uncertainty_depth.messages.decoding import stamp_ns
from uncertainty_depth.messages.depth_images import decode_depth
from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.messages import status_message
from uncertainty_depth.ros.sigma_messages import (
    ESTIMATE,
    PREDICTION,
    PredictionInfo,
    read_estimate,
    read_info,
    status_values,
)
from uncertainty_depth.ros.sigma_node import SigmaNode

SECOND_NS = 1_000_000_000
WIDTH = 64
HEIGHT = 48
ERROR_M = 0.5
OWN_SIGMA_M = 0.1
UNFAMILIARITY = 2.5
FACTOR = ERROR_M / (1.96 * OWN_SIGMA_M)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def ns(time_s: float) -> int:
    return round(time_s * SECOND_NS)


class OverconfidentPredictor(FakePredictor):
    """Half a metre too deep everywhere, with a sigma of a tenth of a metre."""

    def predict_batch(self, observations, samples=None):
        depth_m = np.full((HEIGHT, WIDTH), 4 + ERROR_M, np.float32)
        sigma_m = np.full_like(depth_m, OWN_SIGMA_M)
        return [DepthPrediction(depth_m, sigma_m, UNFAMILIARITY) for _ in observations]


@pytest.fixture
def start(start_depth):
    return partial(start_depth, predictor=OverconfidentPredictor)


class Robot:
    """Sends an image, waits for its maps, then sends the cloud."""

    def __init__(self, graph, make):
        self._make = make
        self._graph = graph
        self.sigmas = graph.inbox(Image, "uncertainty/image_rect", 100)
        self.infos = graph.inbox(DiagnosticArray, "depth/prediction_info", 100)
        self._clouds = graph.publisher(PointCloud2, "lidar/points", matched=0)
        self._sent = 0
        self._connect()

    def _connect(self) -> None:
        self.depths = self._graph.inbox(Image, "depth/image_rect", 100)
        self._camera = self._graph.publisher(CameraInfo, "camera_info")
        self._images = self._graph.publisher(Image, "image")

    def _send(self, stamp: int) -> None:
        self._camera.publish(self._make.camera_info(stamp, WIDTH, HEIGHT))
        self._images.publish(self._make.image(stamp, np.zeros((HEIGHT, WIDTH, 3), np.uint8)))

    def image(self, time_s: float) -> tuple[float, PredictionInfo]:
        """Return sigma and how it was made."""
        stamp = ns(time_s)
        self._send(stamp)
        self._sent += 1
        sigma = self.sigmas.wait(self._sent)[-1]
        message = self.infos.wait(self._sent)[-1]
        assert stamp_ns(message.header) == stamp_ns(sigma.header) == stamp
        info = read_info(status_values(message.status, PREDICTION))
        return float(decode_depth(sigma)[0, 0]), info

    def depth_m(self) -> float:
        """Return the newest image's depth, metres."""
        return float(decode_depth(self.depths.wait(self._sent)[-1])[0, 0])

    def cloud(self, time_s: float, points: np.ndarray | None = None) -> None:
        points = self._make.points_on_plane() if points is None else points
        self._clouds.publish(self._make.cloud(points, ns(time_s)))


class DepthCamera(Robot):
    """Sends the depth and the sigma of a camera instead, both of which are as wrong."""

    def _connect(self) -> None:
        self._camera = self._graph.publisher(CameraInfo, "depth/camera_info")
        topics = ("depth/image_rect", "confidence/image")
        self._maps = [self._graph.publisher(Image, topic) for topic in topics]

    def _send(self, stamp: int) -> None:
        self._camera.publish(self._make.camera_info(stamp, WIDTH, HEIGHT))
        for publisher, value in zip(self._maps, (4 + ERROR_M, OWN_SIGMA_M), strict=True):
            publisher.publish(self._make.image(stamp, np.full((HEIGHT, WIDTH), value, np.float32)))


def text_of(message):
    return message.status[0].message


def values_of(message):
    return {item.key: item.value for item in message.status[0].values}


def factor_of(message) -> float:
    read = read_estimate(stamp_ns(message.header), status_values(message.status, ESTIMATE))
    return read.correction


def test_sigma_is_corrected_without_running_away_and_returns_when_lidar_is_gone(
    graph, start, make
):
    start(use_online_calibration=True)
    graph.start(EvaluatorNode, lidar_to_camera=POSE, calibration_min_frames=2)
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    estimates = graph.inbox(DiagnosticArray, "uncertainty/calibration", LATCHED)
    graph.until(lambda: graph.node.count_subscribers("lidar/points"), "the evaluator's input")
    robot = Robot(graph, make)
    for second in (100, 101, 102):
        sigma, info = robot.image(second)
        robot.cloud(second)
    assert sigma == pytest.approx(OWN_SIGMA_M)
    assert info.in_force.source == "own"
    estimate = estimates.wait_for(lambda message: message.header.stamp.sec == 102)
    assert factor_of(estimate) == pytest.approx(FACTOR, rel=0.15)
    for time_s in np.arange(102.2, 112.0, 0.2):
        sigma, info = robot.image(time_s)
        if info.in_force.reason == "at the estimate":
            break
    assert sigma == pytest.approx(OWN_SIGMA_M * FACTOR, rel=0.15)
    assert info.in_force.source == "online"
    assert info.unfamiliarity == UNFAMILIARITY
    assert info.half_widths.at(0.95) == pytest.approx(1.96, abs=0.001)
    told = diagnostics.wait_for(lambda message: values_of(message).get("calibration") == "online")
    assert values_of(told)["samples_used"] == "8 of 8"
    robot.cloud(time_s)  # of a corrected frame: the estimate is still of the model's own sigma
    again = estimates.wait_for(lambda message: stamp_ns(message.header) == ns(time_s))
    assert factor_of(again) == pytest.approx(FACTOR, rel=0.15)

    late = graph.inbox(DiagnosticArray, "uncertainty/calibration", LATCHED)  # it is latched
    assert factor_of(late.wait()[0]) == pytest.approx(FACTOR, rel=0.15)
    for second in range(124, 140):  # more than the time limit after the last cloud
        sigma, info = robot.image(second)
    assert sigma == pytest.approx(OWN_SIGMA_M)
    assert info.in_force.source == "own"
    assert "s old" in info.in_force.reason
    diagnostics.wait_for(lambda message: values_of(message).get("calibration") == "own")


def test_the_sigma_of_a_depth_camera_is_corrected_by_the_same_loop(graph, make):
    graph.start(SigmaNode, use_online_calibration=True)
    graph.start(EvaluatorNode, lidar_to_camera=POSE, calibration_min_frames=2)
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    estimates = graph.inbox(DiagnosticArray, "uncertainty/calibration", LATCHED)
    graph.until(lambda: graph.node.count_subscribers("lidar/points"), "the evaluator's input")
    camera = DepthCamera(graph, make)
    for second in (100, 101, 102):
        sigma, info = camera.image(second)
        camera.cloud(second)
    assert sigma == pytest.approx(OWN_SIGMA_M)
    assert info.in_force.source == "own"
    estimates.wait_for(lambda message: message.header.stamp.sec == 102)
    for time_s in np.arange(102.2, 112.0, 0.2):
        sigma, info = camera.image(time_s)
        if info.in_force.reason == "at the estimate":
            break
    assert sigma == pytest.approx(OWN_SIGMA_M * FACTOR, rel=0.15)
    diagnostics.wait_for(lambda message: values_of(message).get("calibration") == "online")
    camera.cloud(time_s)  # of a corrected frame: the estimate is still of the camera's own sigma
    again = estimates.wait_for(lambda message: stamp_ns(message.header) == ns(time_s))
    assert factor_of(again) == pytest.approx(FACTOR, rel=0.15)


def test_an_estimate_beyond_a_limit_for_ten_seconds_is_a_warning(graph, start, make):
    start(use_online_calibration=True)
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    estimates = graph.publisher(DiagnosticArray, "uncertainty/calibration", LATCHED)
    robot = Robot(graph, make)
    values = {
        "sigma": FakePredictor.sigma_name,
        "correction": repr(1 / 64),
        "depth_scale": "",
        "scale_sigma": "",
    }
    for second in range(100, 116):
        estimates.publish(status_message(make.header(ns(second)), ESTIMATE, "", values))
        sigma, _ = robot.image(second)
        assert sigma == pytest.approx(OWN_SIGMA_M)  # by default it does not shrink
    told = diagnostics.wait_for(lambda message: "calibration_min_factor 1 for" in text_of(message))
    assert told.status[0].level == DiagnosticStatus.WARN
    assert "a LiDAR that is independent of the depth" in text_of(told)


def test_depth_follows_the_scale_as_a_recorded_run_scores_it_and_warns_at_its_limit(
    graph, start, make
):
    node = start(use_depth_scale=True)
    graph.start(EvaluatorNode, lidar_to_camera=POSE)
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    estimates = graph.inbox(DiagnosticArray, "uncertainty/calibration", LATCHED)
    logs = graph.inbox(Log, "/rosout", 100)
    graph.until(lambda: graph.node.count_subscribers("lidar/points"), "the evaluator's input")
    robot = Robot(graph, make)
    truth_m = np.full((HEIGHT, WIDTH), 4.0, np.float32)
    own_m = truth_m + np.float32(ERROR_M)
    own = DepthPrediction(own_m, np.full_like(own_m, OWN_SIGMA_M), UNFAMILIARITY)
    recorded = AsPublished(lambda frame: own, node.config, delay=1)
    received = "received.uncertainty/calibration"
    for index, plane_m in enumerate((4.0, 3.0, 5.0, 20.0, 4.0)):
        stamp = (100 + index) * SECOND_NS
        sigma, info = robot.image(100 + index)
        offline = recorded(Frame(stamp, "", ground_truth_m=np.full_like(truth_m, plane_m)))
        in_force = info.in_force
        assert in_force == recorded.in_force.last
        assert (robot.depth_m(), sigma) == (offline.depth_m[0, 0], offline.sigma_m[0, 0])
        robot.cloud(100 + index, make.points_on_plane() * np.float32(plane_m / 4))
        estimates.wait_for(lambda message, stamp=stamp: stamp_ns(message.header) == stamp)
        graph.until(
            lambda sent=index + 1: node.health.counts().get(received) == sent, "the estimate"
        )
    assert in_force.depth_scale == 2.0
    warned = diagnostics.wait_for(
        lambda message: (
            "the depth's scale is beyond its limit" in text_of(message)
            and values_of(message)["depth_scale"] == "2.000"
        )
    )
    assert values_of(warned)["calibration"] == "own"
    logs.wait_for(lambda log: "the depth's scale is beyond its limit" in log.msg)
    told = diagnostics.wait_for(lambda message: "calibration.scale_sigma" in values_of(message))
    assert float(values_of(told)["calibration.depth_scale"]) > 0
    models = graph.inbox(String, "depth/model", LATCHED)
    models.wait_for(lambda message: json.loads(message.data).get("depth_scale") == "followed")


def test_a_budget_limits_the_samples_and_each_prediction_tells_how_many(graph, start, make):
    start(frame_budget_ms=0.001)
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    robot = Robot(graph, make)
    ranges = [robot.image(100 + second)[1].samples for second in range(12)]
    counts = [samples.count for samples in ranges]
    assert counts == [2, 4] * 4 + [2] * 4  # learning, then the least
    heard = {number for samples in ranges[-4:] for number in samples.numbers(8)}
    assert heard == set(range(8))
    told = diagnostics.wait_for(lambda message: "fewest samples take longer" in text_of(message))
    assert told.status[0].level == DiagnosticStatus.WARN
    values = values_of(told)
    assert (values["frame_budget_ms"], values["samples_used"][:1]) == ("0.001", "2")
    assert 1 <= int(values["over_budget"]) <= 8  # the batches of two


@pytest.mark.parametrize(("confidence_type", "frames"), [("sigma", 1), ("rank_up", 0)])
def test_the_sigma_of_any_node_is_estimated_where_it_has_a_unit(
    graph, make, confidence_type, frames
):
    graph.start(EvaluatorNode, lidar_to_camera=POSE, confidence_type=confidence_type)
    maps = [graph.publisher(Image, f"{name}/image_rect") for name in ("depth", "uncertainty")]
    info = graph.publisher(CameraInfo, "depth/camera_info")
    clouds = graph.publisher(PointCloud2, "lidar/points")
    stamp = 100 * SECOND_NS
    info.publish(make.camera_info(stamp, WIDTH, HEIGHT))
    values = np.random.default_rng(0).uniform(3, 5, (HEIGHT, WIDTH)).astype(np.float32)
    for publisher in maps:
        publisher.publish(make.image(stamp, values))
    clouds.publish(make.cloud(make.points_on_plane(), stamp))
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    told = diagnostics.wait_for(lambda message: values_of(message).get("evaluated") == "1")
    assert values_of(told)["calibration.frames"] == str(frames)
