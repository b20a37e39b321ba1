# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluator node over real topics: scores, images, services, the report, and failures."""

from __future__ import annotations

import csv
import json
import math
import re
import signal
import threading

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import Float64, String
from std_srvs.srv import SetBool, Trigger

from test.ros.conftest import POSE
from uncertainty_depth.config import EvaluationConfig, LidarConfig
from uncertainty_depth.errors import ConfigError, MessageError, SourceError
from uncertainty_depth.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.messages.camera_info import camera_from_info
from uncertainty_depth.messages.decoding import stamp_ns
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.ros import evaluator_outputs
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.evaluator_outputs import PLOTTED
from uncertainty_depth.ros.sigma_messages import model_description

DEADLINE_S = 120
WRITE_IN_PROCESS = evaluator_outputs.write_in_process  # which other tests replace
WIDTH = 32
HEIGHT = 24
NODE = "/evaluator_node"
IDENTITY_ARGUMENT = ("-p", f"lidar_to_camera:={POSE}")
MS = 1_000_000
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def values_of(message):
    return {item.key: item.value for item in message.status[0].values}


def numbers_of(message):
    return {key: int(text) for key, text in values_of(message).items() if text.isdigit()}


def metrics_of(message):
    return {key: float(text) for key, text in values_of(message).items()}


def is_frame(message):
    return message.status[0].message == "frame"


class Robot:
    """Publishes predictions and clouds as the depth node and a LiDAR do, and hears the node."""

    def __init__(self, graph, make, lidar=True):
        self.graph = graph
        self.make = make
        self.metrics = graph.inbox(DiagnosticArray, f"{NODE}/metrics", 50)
        self.diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
        self.depth = graph.publisher(Image, "depth/image_rect", 50)
        self.sigma = graph.publisher(Image, "uncertainty/image_rect", 50)
        self.info = graph.publisher(CameraInfo, "depth/camera_info")
        if lidar:
            self.clouds = graph.publisher(PointCloud2, "lidar/points", 50)

    def predict(self, stamp, seed=0):
        depth_m, sigma_m = maps(seed)
        self.info.publish(self.make.camera_info(stamp * MS, WIDTH, HEIGHT))
        self.depth.publish(self.make.image(stamp * MS, depth_m))
        self.sigma.publish(self.make.image(stamp * MS, sigma_m))

    def scan(self, stamp, points=None, **options):
        points = self.make.points_on_plane() if points is None else points
        self.clouds.publish(self.make.cloud(points, stamp * MS, **options))

    def drive(self, first, frames):
        """Publish frames, each once the one before is scored."""
        before = len(list(filter(is_frame, self.metrics.messages)))
        for count in range(1, frames + 1):
            number = first + count - 1
            self.predict((number + 1) * 100, seed=number)
            self.scan((number + 1) * 100)
            self.metrics.wait(
                lambda messages, count=count: sum(map(is_frame, messages)) >= before + count
            )

    def told(self, predicate):
        """Return the first diagnostics of the node whose values fulfil a predicate."""
        return self.diagnostics.wait_for(
            lambda message: (
                message.status[0].name == "evaluator_node" and predicate(values_of(message))
            )
        )


def maps(seed):
    numbers = np.random.default_rng(seed)
    depth_m = numbers.uniform(3, 5, (HEIGHT, WIDTH)).astype(np.float32)
    sigma_m = numbers.uniform(0.1, 1, (HEIGHT, WIDTH)).astype(np.float32)
    return depth_m, sigma_m


@pytest.fixture
def start(graph):
    return lambda *arguments, **parameters: graph.start(
        EvaluatorNode,
        arguments,
        **{"lidar_to_camera": POSE, "queue_size": 50, **parameters},
    )


def summary_of(folder):
    return json.loads((folder / "summary.json").read_text())


def expected(make, frames):
    """Return the metrics of the last frame and of all, by the offline evaluation."""
    camera = camera_from_info(make.camera_info(0, WIDTH, HEIGHT))
    cloud = make.points_on_plane().astype(np.float32)
    truth = ground_truth_from_cloud(cloud, np.eye(4), camera, LidarConfig())
    evaluation = Evaluation(EvaluationConfig())
    metrics = None
    for seed in range(frames):
        prediction = DepthPrediction(*maps(seed))
        frame = Frame(seed, str(seed), ground_truth_m=truth, prediction=prediction)
        metrics = evaluation.add(frame)
    return metrics, flatten(evaluation.summary())


def test_metrics_of_frame_and_run_equal_the_offline_evaluation(graph, start, make):
    start()
    plotted = {
        key: graph.inbox(Float64, f"{NODE}/metrics/{name}", 50) for key, name in PLOTTED.items()
    }
    robot = Robot(graph, make)
    robot.drive(0, 5)
    of_frame, of_run = expected(make, 5)
    told = robot.metrics.wait_for(
        lambda message: (
            message.status[0].message == "all frames"
            and metrics_of(message)["depth.rmse"] == of_run["depth.rmse"]
        )
    )
    last = list(filter(is_frame, robot.metrics.messages))[4]
    for message, reference, rel in ((told, of_run, 0), (last, of_frame, 1e-9)):
        values = metrics_of(message)
        common = values.keys() & reference.keys()
        assert len(common) > 50
        for key in common:  # those of all frames in every digit
            assert values[key] == pytest.approx(reference[key], rel=rel, nan_ok=True), key
        assert (stamp_ns(message.header), message.header.frame_id) == (500 * MS, "camera")
    for key, inbox in plotted.items():
        assert inbox.wait(5)[4].data == pytest.approx(of_frame[key], rel=1e-9)


def test_a_confidence_without_a_unit_has_no_size_on_the_topic_either(graph, start, make):
    start(confidence_type="rank_down")
    robot = Robot(graph, make)
    robot.drive(0, 1)
    told = robot.metrics.wait_for(lambda message: message.status[0].message == "all frames")
    values = metrics_of(told)
    assert math.isfinite(values["uncertainty.ause.rmse"])
    for name in ("auce", "crps_laplace", "coverage_95_by_sigma.1"):
        assert math.isnan(values[f"uncertainty.{name}"])


def test_images_are_drawn_for_subscribers(graph, start, make):
    start()
    names = ("error", "ground_truth", "sparsification")
    inboxes = [graph.inbox(Image, f"{NODE}/{name}/image") for name in names]
    robot = Robot(graph, make)
    robot.drive(0, 1)
    error, truth, plot = (decode_image(inbox.wait(1)[0]) for inbox in inboxes)
    assert error.shape == truth.shape == (HEIGHT, WIDTH, 3)
    assert len(np.unique(error.reshape(-1, 3), axis=0)) > 3
    assert inboxes[0].messages[0].header.frame_id == "camera"
    assert plot.shape == (240, 320, 3)  # a dock of RViz shows it pixel by pixel
    assert plot.std() > 5


def test_save_acknowledges_then_writes_in_a_process_of_its_own(
    graph, start, make, tmp_path, monkeypatch
):
    monkeypatch.setattr(evaluator_outputs, "write_in_process", WRITE_IN_PROCESS)
    output = tmp_path / "report"
    start(output=str(output))
    log = graph.inbox(Log, "/rosout", 50)
    robot = Robot(graph, make)
    model = graph.publisher(String, "depth/model", LATCHED)
    model.publish(String(data="no JSON"))
    model.publish(String(data=json.dumps({"model": "tiny", "method": "mc_dropout"})))
    robot.drive(0, 3)
    robot.predict(460)  # still waits for a later cloud when ~/save comes
    robot.told(lambda values: values.get("waiting") == "1")
    saved = graph.call(Trigger, f"{NODE}/save")
    assert saved.success
    assert saved.message == f"the report of 3 frames is being written to {output}"
    log.wait_for(lambda line: line.msg == f"report: {output / 'report.html'}", 2 * DEADLINE_S)
    summary = summary_of(output)
    assert summary["frames"] == {"read": 3, "evaluated": 3, "skipped": {}}
    assert summary["notes"] == ["waiting: 1"]
    _, of_run = expected(make, 3)
    assert summary["depth"]["abs_rel"] == pytest.approx(of_run["depth.abs_rel"], rel=1e-9)
    assert summary["model"]["model"] == "tiny"
    assert summary["source"] == "live: /depth/image_rect against /lidar/points"
    assert (output / "report.html").stat().st_size > 10_000
    assert len((output / "frames.csv").read_text().splitlines()) == 1 + 3
    assert (output / "reliability.png").exists()


def test_a_slow_report_loses_no_frame_and_reset_starts_anew(
    graph, start, make, tmp_path, monkeypatch
):
    """While ~/save draws, three times as many frames come as any queue holds: all are scored."""
    output = tmp_path / "report"
    node = start(output=str(output), queue_size=10)
    drawing = threading.Event()
    go_on = threading.Event()
    seen = []

    def draw_slowly(evaluation, folder, context):
        drawing.set()
        assert go_on.wait(DEADLINE_S)
        seen.append(evaluation.frames())
        return folder / "report.html"

    monkeypatch.setattr(evaluator_outputs, "write_in_process", draw_slowly)
    robot = Robot(graph, make)
    robot.drive(0, 1)
    assert graph.call(Trigger, f"{NODE}/save").success
    assert drawing.wait(DEADLINE_S)
    robot.drive(1, 30)
    go_on.set()
    assert not any("dropped" in name for name in node.health.counts())
    robot.told(lambda values: values.get("evaluated") == "31")
    robot.predict(4000)
    robot.told(lambda values: values.get("waiting") == "1")
    assert graph.call(Trigger, f"{NODE}/reset").success
    told = robot.told(lambda values: values.get("dropped.reset") == "1")
    assert values_of(told)["waiting"] == "0"
    robot.drive(49, 1)
    graph.stop(node)
    assert seen == [{"read": 1, "evaluated": 1, "skipped": {}}]
    assert summary_of(output)["frames"] == {"read": 1, "evaluated": 1, "skipped": {}}


def test_a_save_that_fails_is_answered_or_logged(graph, start, tmp_path, monkeypatch):
    folder = tmp_path / "report"
    start(output=str(folder))
    log = graph.inbox(Log, "/rosout", 50)
    folder.write_text("somebody else's")
    answer = graph.call(Trigger, f"{NODE}/save")
    assert (answer.success, "is a file" in answer.message) == (False, True)
    folder.unlink()

    def fail(*_):
        raise SourceError("no space left on the device")

    monkeypatch.setattr(evaluator_outputs, "write_in_process", fail)
    assert graph.call(Trigger, f"{NODE}/save").success
    log.wait_for(lambda line: line.msg == "the report is not written: no space left on the device")


HOSTILE = {
    "deep": "[" * 100_000,
    "deep object": '{"a":' * 100_000,
    "a list": "[1]",
    "calibration": '{"calibration": [], "model": "m"}',
    "surrogate": '{"model": "\\ud800", "\\udfff": 1}',
    "numbers": '{"method": NaN, "samples": 1e999}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_model_is_called_a_report_is_written(tmp_path, text):
    """A description that cannot be used is left out: the node says so."""
    try:
        model = model_description(text)
    except MessageError:
        model = {}
    page = report.write(Evaluation(), tmp_path, report.Context("live", model))
    assert page.exists()


def test_a_run_lasts_from_activation_to_deactivation_which_writes_its_report(
    graph, start, make, tmp_path
):
    first, second = tmp_path / "first", tmp_path / "second"
    node = start(output=str(first))
    node.health.count("dropped.queue_full", 7)
    robot = Robot(graph, make)
    robot.drive(0, 2)
    robot.predict(300)
    robot.told(lambda values: values.get("waiting") == "1")

    def enable(value):
        request = SetBool.Request(data=value)
        answer = graph.call(SetBool, f"{NODE}/enable", request)
        return answer.success, answer.message

    refused = graph.set_parameters(NODE, max_depth=50.0)
    assert not refused.successful
    assert "deactivate" in refused.reason
    assert enable(False) == (True, "inactive")
    unpaired = {"no_lidar_within_max_time_difference": 1}
    assert summary_of(first)["frames"] == {"read": 3, "evaluated": 2, "skipped": unpaired}
    assert "messages dropped.queue full: 7" in summary_of(first)["notes"]
    success, reason = enable(True)
    assert (success, "holds a report already" in reason) == (False, True)
    assert graph.set_parameters(NODE, output=str(second), max_depth=50.0).successful
    assert enable(True) == (True, "active")
    graph.until(lambda: robot.depth.get_subscription_count() == 1, "the subscription")
    robot.drive(9, 1)
    graph.stop(node)
    summary = summary_of(second)
    assert summary["frames"] == {"read": 1, "evaluated": 1, "skipped": {}}
    assert (summary["config"]["max_depth"], summary["notes"]) == (50.0, [])
    with pytest.raises(SourceError, match="holds a report already"):
        start(output=str(second))
    graph.stop(start(output=str(second), overwrite=True))


def test_every_frame_of_the_diagnostics_is_scored_skipped_dropped_or_waits(
    graph, start, make, tmp_path
):
    node = start(output=str(tmp_path / "report"), queue_size=4)
    robot = Robot(graph, make)
    robot.predict(100)
    robot.scan(100, np.full((9, 3), np.nan))
    robot.predict(200)
    robot.scan(200, names="abc")
    robot.depth.publish(make.image(300 * MS, maps(0)[0]))
    robot.sigma.publish(make.image(310 * MS, maps(0)[1]))
    robot.predict(400)
    robot.scan(400)
    received = "received.uncertainty/image_rect"
    for count, stamp in enumerate(range(500, 1300, 100), start=5):
        robot.predict(stamp)
        graph.until(lambda count=count: node.health.counts().get(received) == count, received)
    reasons = {"cloud_without_points": 1, "cloud_without_xyz": 1}
    robot.told(lambda values: values.get(received) == "12")
    graph.call(Trigger, f"{NODE}/reset")
    robot.told(lambda values: "dropped.reset" in values)
    for message in robot.diagnostics.messages:
        numbers = numbers_of(message)
        settled = ("evaluated", "skipped.", "dropped.", "waiting")
        total = sum(count for name, count in numbers.items() if name.startswith(settled))
        assert numbers.get("received", 0) == total, numbers
    assert numbers["received"] == 13
    assert numbers["received.lidar/points"] == 3
    assert numbers.items() >= {f"skipped.{name}": count for name, count in reasons.items()}.items()
    graph.stop(node)


def test_a_shutdown_in_the_middle_of_a_frame_costs_no_frame(
    graph, start, make, tmp_path, monkeypatch
):
    node = start(output=str(tmp_path / "report"))

    def interrupted(*_):
        monkeypatch.setattr(node.context, "ok", lambda: False)  # as after a signal
        raise RuntimeError("the context is shut down")

    monkeypatch.setattr(evaluator_outputs.EvaluatorOutputs, "publish_frame", interrupted)
    robot = Robot(graph, make)
    robot.predict(100)
    robot.predict(120)
    counts = node.health.counts
    for topic in ("depth/image_rect", "uncertainty/image_rect"):
        graph.until(lambda topic=topic: counts().get(f"received.{topic}") == 2, topic)
    robot.scan(120)  # decides both
    graph.until(lambda: counts().get("evaluated") == 1, "the first frame")
    graph.stop(node)
    assert (counts()["received"], counts()["evaluated"]) == (2, 2)
    assert summary_of(tmp_path / "report")["frames"] == {"read": 2, "evaluated": 2, "skipped": {}}


def test_diagnostics_tell_what_keeps_frames_from_being_scored(graph, start, make, tmp_path):
    node = start(output=str(tmp_path / "report"))
    log = graph.inbox(Log, "/rosout", 50)
    robot = Robot(graph, make)

    def status(sentence):
        told = robot.diagnostics.wait_for(lambda message: sentence in message.status[0].message)
        return told.status[0]

    silent = status("nothing received on depth/image_rect yet")
    assert silent.level == b"\x01"
    assert not any("latency" in item.key for item in silent.values)  # it is not measured here
    robot.predict(100)
    status("nothing received on lidar/points yet")
    robot.scan(100, 1000 * make.points_on_plane())
    wrong = "the ground truth is in millimetres"
    assert wrong in status(wrong).message
    log.wait_for(lambda line: wrong in line.msg)
    robot.predict(200)
    robot.scan(300)
    assert status("no_lidar_within_max_time_difference").level == b"\x01"
    for stamp in range(1000, 1800, 100):
        robot.predict(stamp)
        robot.scan(stamp + 10_000)
    apart = robot.diagnostics.wait_for(
        lambda message: re.search(r"\+(10|9)\.\d+ s away, .* the clocks are apart \(chrony",
                                  message.status[0].message)
    )  # fmt: skip
    assert apart.status[0].level == b"\x01"
    graph.stop(node)
    (warning,) = summary_of(tmp_path / "report")["geometry"]["warnings"]
    assert wrong in warning


def test_diagnostics_hold_the_verdict_and_the_requirements_of_the_report(
    graph, start, make, tmp_path, monkeypatch
):
    monkeypatch.setattr(evaluator_outputs, "JUDGE_EVERY_S", 0.1)
    require = ["scored_fraction>=0.1", "frames.evaluated>=4"]
    node = start(require=require, output=str(tmp_path / "report"))
    robot = Robot(graph, make)
    robot.drive(0, 3)
    message = robot.told(
        lambda values: "frames.evaluated 3" in values.get(f"requirement.{require[1]}", "")
    )
    told = values_of(message)
    graph.stop(node)
    summary = summary_of(tmp_path / "report")
    verdict = summary["verdict"]
    assert told["verdict"] == f"{verdict['color']}: {verdict['text']}"
    for line in verdict["lines"]:
        assert told[f"verdict.{line['name']}"] == f"{line['color']}: {line['text']}"
    assert [outcome["requirement"] for outcome in summary["requirements"]] == require
    assert [outcome["passed"] for outcome in summary["requirements"]] == [True, False]
    for outcome in summary["requirements"]:
        assert told[f"requirement.{outcome['requirement']}"] == outcome["text"]
    assert message.status[0].level == b"\x01"
    assert "requirement not met: frames.evaluated 3, required >= 4" in message.status[0].message


@pytest.mark.parametrize(
    ("parameters", "error", "sentence"),
    [
        (
            {"lidar_to_camera": [1.0, 2.0]},
            ConfigError,
            "lidar_to_camera has 2 numbers; expected 7",
        ),
        (
            {"min_depth": 5.0, "max_depth": 5.0},
            ConfigError,
            "min_depth is 5.0; expected less than max_depth, 5.0",
        ),
        ({"output": __file__}, SourceError, "is a file"),
        ({"require": ["aus<=0.2"]}, ConfigError, "unknown metric 'aus'"),
    ],
)
def test_what_cannot_work_is_reported_at_the_start(graph, start, parameters, error, sentence):
    with pytest.raises(error, match=sentence):
        start(**parameters)


SLOW_PLOTS = """
import sys, threading
from uncertainty_depth.report import report
from uncertainty_depth.ros import main

def draw(*_):
    print("drawing", flush=True)
    while True:
        threading.Event().wait(0.1)

report.draw = draw
sys.exit(main.evaluator_node())
"""
"""Plots that never end. Like real ones they return to the interpreter, which runs the handlers of
signals there: the system may give the second of two signals to a thread that wakes nobody."""


def test_the_first_signal_scores_what_waits_and_writes_the_numbers_first_and_a_second_aborts(
    start_python, graph, make, tmp_path
):
    output = tmp_path / "report"
    node = start_python(
        "-c", SLOW_PLOTS, "--ros-args", *IDENTITY_ARGUMENT, "-p", f"output:={output}"
    )
    robot = Robot(graph, make)
    robot.drive(0, 2)
    graph.publisher(DiagnosticArray, "depth/prediction_info")  # but never a word of a frame
    robot.predict(300)
    robot.scan(300)
    robot.told(
        lambda values: (values.get("waiting"), values.get("received.lidar/points")) == ("1", "3")
    )
    node.send(signal.SIGINT)
    node.wait_for_output("drawing")
    assert summary_of(output)["frames"]["evaluated"] == 3
    with (output / "frames.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 3
    node.send(signal.SIGTERM)  # as launch does after a while: the plots go on
    assert node.end(signal.SIGINT) == 128 + signal.SIGINT, node.output
    assert "evaluator_node: aborted" in node.output


def test_ground_truth_images_are_scored_and_a_raw_one_is_rectified_first(graph, start, make):
    node = start(use_ground_truth_image=True)
    robot = Robot(graph, make, lidar=False)
    truths = graph.publisher(Image, "ground_truth/image")
    raw = make.camera_info(0, WIDTH, HEIGHT)
    raw.d = [-0.3, 0.1, 0.0, 0.0, 0.0]
    depth_m, _ = maps(0)
    number = 0

    def error_m() -> float:
        nonlocal number
        number += 1
        robot.predict(100 * number)
        truths.publish(make.image(100 * number * MS, depth_m))
        robot.metrics.wait(lambda found: sum(map(is_frame, found)) == number)
        return metrics_of(list(filter(is_frame, robot.metrics.messages))[-1])["depth.rmse"]

    assert error_m() == 0
    graph.publisher(CameraInfo, "ground_truth/camera_info").publish(raw)
    later_m = [0.0]
    while later_m[-1] == 0 and number < 100:  # until the camera info has arrived
        later_m.append(error_m())
    assert later_m[-1] > 0.1, "noise that is looked up elsewhere"
    assert node.health.counts()["evaluated"] == number
