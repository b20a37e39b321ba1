# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Both nodes over real topics: the loop that corrects sigma, and the samples per frame."""

import json
from functools import partial

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from test.ros.conftest import (
    HEIGHT,
    MS,
    POSE,
    WIDTH,
    FakeNode,
    FakePredictor,
    Robot,
    facts,
    header,
)
from uncertainty_depth.core.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.messages.images import decode_depth
from uncertainty_depth.frames.published import PREDICTION, status_values
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.evaluator_outputs import LiveCalibration
from uncertainty_depth.ros.live_scores import LiveFrame
from uncertainty_depth.ros.messages import (
    ESTIMATE,
    PredictionInfo,
    image_message,
    read_estimate,
    read_info,
    status_message,
)
from uncertainty_depth.ros.qos import LATCHED_QOS
from uncertainty_depth.ros.sigma_node import SigmaNode
from uncertainty_depth.sigma.online.correction import OnlineCorrected
from uncertainty_depth.sigma.online.estimates import MIN_FRAMES

SECOND_NS = 1000 * MS
ERROR_M = 0.5
OWN_SIGMA_M = 0.1
UNFAMILIARITY = 2.5
FACTOR = ERROR_M / (1.96 * OWN_SIGMA_M)
ESTIMATES = "uncertainty/calibration"
WRONG = [np.full((HEIGHT, WIDTH), value, np.float32) for value in (4 + ERROR_M, OWN_SIGMA_M)]
"""0.5 m too deep everywhere, with a sigma of 0.1 m."""


class OverconfidentPredictor(FakePredictor):
    def predict_frame(self, frame, samples=None):
        return DepthPrediction(*WRONG, unfamiliarity=UNFAMILIARITY)


@pytest.fixture
def start(start_depth):
    return partial(start_depth, predictor=OverconfidentPredictor)


class Camera(Robot):
    """Sends an image, waits for its maps, then sends the cloud; stamps in seconds."""

    of_node = (
        "uncertainty/image_rect",
        "depth/prediction_info",
        "/diagnostics",
        "depth/image_rect",
    )

    def __init__(self, graph):
        super().__init__(graph)
        for topic in self.of_node:
            self.heard(topic)
        self._sent = 0

    def send_image(self, stamp):
        self.info(stamp)
        self.image(stamp)

    def newest(self, topic):
        return self.heard(topic).wait(self._sent)[-1]

    def maps_of(self, time_s) -> tuple[float, PredictionInfo]:
        """Return sigma and how it was made."""
        self.send_image(round(1000 * time_s))
        self._sent += 1
        sigma, info = self.newest("uncertainty/image_rect"), self.newest("depth/prediction_info")
        assert stamp_ns(sigma.header) == stamp_ns(info.header) == round(1000 * time_s) * MS
        return float(decode_depth(sigma)[0, 0]), read_info(status_values(info.status, PREDICTION))

    def cloud(self, time_s, points=None):
        self.scan(round(1000 * time_s), points)

    def estimate_of(self, time_s) -> float:
        """Wait for the estimate after a cloud; return its correction."""
        stamp = round(1000 * time_s) * MS
        return factor_of(
            self.heard(ESTIMATES).wait_for(lambda message: stamp_ns(message.header) == stamp)
        )

    def until_corrected(self) -> tuple[float, float, PredictionInfo]:
        """Return the time, sigma and info of the first image that has the whole correction."""
        for second in range(102 - MIN_FRAMES, 102):
            sigma, info = self.maps_of(second)
            self.cloud(second)
            estimate = self.estimate_of(second)
        assert sigma == pytest.approx(OWN_SIGMA_M)
        assert info.in_force.source == "own"
        assert estimate == pytest.approx(FACTOR, rel=0.15)
        for time_s in np.arange(101.2, 111.0, 0.2):
            sigma, info = self.maps_of(time_s)
            if info.in_force.reason == "at the estimate":
                break
        assert sigma == pytest.approx(OWN_SIGMA_M * FACTOR, rel=0.15)
        self.told(lambda values: values.get("calibration") == "online")
        self.cloud(time_s)  # the frame is corrected, the estimate still about the node's own sigma
        assert self.estimate_of(time_s) == pytest.approx(FACTOR, rel=0.15)
        return time_s, sigma, info


class DepthCamera(Camera):
    """Sends a camera's depth and sigma instead, both as wrong."""

    of_node = Camera.of_node[:3]

    def send_image(self, stamp):
        self.info(stamp, "depth/camera_info")
        for topic, values in zip(("depth/image_rect", "confidence/image"), WRONG, strict=True):
            self.send(topic, image_message(values, header(stamp * MS)))


def factor_of(message) -> float:
    read = read_estimate(stamp_ns(message.header), status_values(message.status, ESTIMATE))
    return read.correction


def test_sigma_is_corrected_without_running_away_and_returns_when_lidar_is_gone(graph, start):
    start(use_online_calibration=True)
    graph.start(EvaluatorNode, lidar_to_camera=POSE)
    camera = Camera(graph)
    _, _, info = camera.until_corrected()
    assert info.in_force.source == "online"
    assert info.unfamiliarity == UNFAMILIARITY
    assert info.half_widths.at(0.95) == pytest.approx(1.96, abs=0.001)
    told = camera.told(lambda values: values.get("calibration") == "online")
    assert facts(told)["samples_used"] == "8 of 8"
    late = graph.inbox(type(told), ESTIMATES, LATCHED_QOS)
    assert factor_of(late.wait()[0]) == pytest.approx(FACTOR, rel=0.15)
    for second in range(124, 140):  # more than the time limit after the last cloud
        sigma, info = camera.maps_of(second)
    assert sigma == pytest.approx(OWN_SIGMA_M)
    assert info.in_force.source == "own"
    assert "s old" in info.in_force.reason
    camera.told(lambda values: "s old" in values.get("calibration_reason", ""))


def test_what_a_robot_acts_on_has_the_corrected_sigma(graph, start):
    """With the node's own sigma all depth would be trusted; with the corrected one none is."""
    limit = (OWN_SIGMA_M + ERROR_M / 1.96) / 2
    start(use_online_calibration=True, max_sigma=limit, max_relative_sigma=0.0)
    graph.start(EvaluatorNode, lidar_to_camera=POSE)
    camera = Camera(graph)
    images = [f"depth/{name}/image_rect" for name in ("confident", "lower", "upper")]
    clouds = ["points", "points/confident", "points/clearing"]
    inboxes = {topic: camera.heard(topic) for topic in (*images, *clouds)}
    time_s, sigma_m, info = camera.until_corrected()
    stamp = round(1000 * time_s) * MS
    sent = {
        topic: inbox.wait_for(lambda message: stamp_ns(message.header) == stamp)
        for topic, inbox in inboxes.items()
    }
    depth_m, own_m = WRONG[0][0, 0], sigma_m / info.in_force.correction
    assert own_m == pytest.approx(OWN_SIGMA_M)
    assert own_m < limit < sigma_m
    confident, lower, upper = (decode_depth(sent[topic]) for topic in images)
    half_width = info.half_widths.at(0.95)
    assert np.isnan(confident).all()
    np.testing.assert_allclose(lower, depth_m - half_width * sigma_m, rtol=1e-5)
    np.testing.assert_allclose(upper, depth_m + half_width * sigma_m, rtol=1e-5)
    floats = np.frombuffer(sent["points"].data, np.float32)
    names = [field.name for field in sent["points"].fields]
    uncertainty = floats.reshape(-1, len(names))[:, names.index("uncertainty")]
    np.testing.assert_allclose(uncertainty, sigma_m, rtol=1e-6)
    assert sent["points/confident"].width == 0
    ends = np.frombuffer(sent["points/clearing"].data, np.float32)
    fields = sent["points/clearing"].fields
    rows = ends.reshape(-1, len(fields))
    assert {field.name for field in fields} >= {"z", "clearing_sigmas"}
    by_name = {field.name: rows[:, index] for index, field in enumerate(fields)}
    taken_m = by_name["clearing_sigmas"] * sigma_m
    np.testing.assert_allclose(depth_m - by_name["z"], taken_m, rtol=1e-4)


def test_the_sigma_of_a_depth_camera_is_corrected_by_the_same_loop(graph):
    graph.start(SigmaNode, use_online_calibration=True)
    graph.start(EvaluatorNode, lidar_to_camera=POSE)
    DepthCamera(graph).until_corrected()


def test_pixels_outside_the_depth_limits_do_not_count_for_the_estimate():
    """Half of the pixels are beyond max_depth, with errors ten times as large."""
    truth_m = np.full((HEIGHT, WIDTH), 4, np.float32)
    truth_m[HEIGHT // 2 :] = 50
    error_m = np.where(truth_m < 10, 0.5, 5).astype(np.float32)
    sigma_m = np.full_like(truth_m, OWN_SIGMA_M)
    node = FakeNode()
    config = EvaluatorNodeConfig(max_depth=10.0)
    calibration = LiveCalibration(node, config)
    for second in range(100, 100 + MIN_FRAMES):
        prediction = DepthPrediction(truth_m + error_m, sigma_m)
        frame = LiveFrame(
            second * SECOND_NS,
            "",
            ground_truth_m=truth_m,
            prediction=prediction,
            header=header(second * SECOND_NS),
        )
        calibration.add(frame, is_described=False)
    assert factor_of(node.sent[ESTIMATES][-1]) == pytest.approx(FACTOR, rel=0.05)


def test_an_estimate_beyond_a_limit_for_ten_seconds_is_a_warning(graph, start):
    start(use_online_calibration=True)
    camera = Camera(graph)
    values = {"sigma": FakePredictor.sigma_name, "correction": repr(1 / 64)}
    values |= {"depth_scale": "", "scale_sigma": ""}
    for second in range(100, 116):
        camera.send(ESTIMATES, status_message(header(second * SECOND_NS), ESTIMATE, "", values))
        sigma, _ = camera.maps_of(second)
        assert sigma == pytest.approx(OWN_SIGMA_M)  # by default it does not shrink
    told = camera.told(lambda values: "calibration_min_factor 1 for" in values["message"])
    assert told.status[0].level == DiagnosticStatus.WARN
    assert "a LiDAR that is independent of the depth" in told.status[0].message


def test_depth_follows_the_scale_as_a_recorded_run_scores_it_and_warns_at_its_limit(
    graph, start, make
):
    node = start(use_depth_scale=True)
    graph.start(EvaluatorNode, lidar_to_camera=POSE)
    camera = Camera(graph)
    counts, received = node.health.counts, f"received.{ESTIMATES}"
    logs = camera.heard("/rosout")
    own = DepthPrediction(*WRONG, unfamiliarity=UNFAMILIARITY)
    recorded = OnlineCorrected(lambda frame: own, node.config, delay=1)
    for count, plane_m in enumerate((4.0, 3.0, 5.0, 20.0, 4.0), start=1):
        second = 99 + count
        sigma, info = camera.maps_of(second)
        truth_m = np.full_like(own.depth_m, plane_m)
        offline = recorded(Frame(second * SECOND_NS, "", ground_truth_m=truth_m))
        assert info.in_force == recorded.in_force.last
        depth_m = decode_depth(camera.newest("depth/image_rect"))[0, 0]
        assert (depth_m, sigma) == (offline.depth_m[0, 0], offline.sigma_m[0, 0])
        camera.cloud(second, make.points_on_plane() * np.float32(plane_m / 4))
        camera.estimate_of(second)
        graph.until(lambda count=count: counts().get(received) == count, received)
    assert info.in_force.depth_scale == 2.0
    limit = "the depth's scale is beyond its limit"
    warned = camera.told(
        lambda values: limit in values["message"] and values["depth_scale"] == "2.000"
    )
    assert facts(warned)["calibration"] == "own"
    logs.wait_for(lambda log: limit in log.msg)
    told = camera.told(lambda values: "calibration.scale_sigma" in values)
    assert float(facts(told)["calibration.depth_scale"]) > 0
    model = camera.heard("depth/model").wait()[0]
    assert json.loads(model.data)["depth_scale"] == "followed"


def test_a_budget_limits_the_samples_and_each_prediction_tells_how_many(graph, start):
    start(frame_budget_ms=0.001)
    camera = Camera(graph)
    ranges = [camera.maps_of(100 + second)[1].samples for second in range(12)]
    counts = [samples.count for samples in ranges]
    assert counts == [2, 4] * 4 + [2] * 4  # learning, then the least
    heard = {number for samples in ranges[-4:] for number in samples.numbers(8)}
    assert heard == set(range(8))
    told = camera.told(lambda values: "fewest samples take longer" in values["message"])
    assert told.status[0].level == DiagnosticStatus.WARN
    values = facts(told)
    assert (values["frame_budget_ms"], values["samples_used"][:1]) == ("0.001", "2")
    assert 1 <= int(values["over_budget"]) <= 8  # the frames of two samples


@pytest.mark.parametrize(("confidence_type", "frames"), [("sigma", 1), ("uncertainty_rank", 0)])
def test_the_sigma_of_any_node_is_estimated_if_it_has_a_unit(
    graph, robot, confidence_type, frames
):
    graph.start(EvaluatorNode, lidar_to_camera=POSE, confidence_type=confidence_type)
    robot.predict(100)
    robot.scan(100)
    told = robot.told(lambda values: values.get("evaluated") == "1")
    assert facts(told)["calibration.frames"] == str(frames)
