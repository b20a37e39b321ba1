# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluator node over real topics: scores, images, services, the report, and failures."""

from __future__ import annotations

import json
import math
import threading

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger

from uncertainty_depth.config import EvaluationConfig, LidarConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.messages.camera_info import camera_from_info
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.messages.stamps import stamp_ns
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.ros import live_verdict
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.report_writer import ReportWriter
from uncertainty_depth.ros.score_outputs import PLOTTED

DEADLINE_S = 120
WIDTH = 32
HEIGHT = 24
NODE = "/evaluator_node"
IDENTITY = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
MS = 1_000_000


class Feeder:
    """Publishes predictions and clouds as the depth node and a LiDAR do."""

    def __init__(self, graph, make):
        self.make = make
        self.depth = graph.publisher(Image, "depth/image_rect", 50)
        self.sigma = graph.publisher(Image, "uncertainty/image_rect", 50)
        self.info = graph.publisher(CameraInfo, "depth/camera_info")
        self.clouds = graph.publisher(PointCloud2, "lidar/points", 50)

    def prediction(self, stamp, seed=0):
        depth_m, sigma_m = arrays(seed)
        self.info.publish(self.make.camera_info(stamp, WIDTH, HEIGHT))
        self.depth.publish(self.make.image(stamp, depth_m))
        self.sigma.publish(self.make.image(stamp, sigma_m))

    def cloud(self, stamp, points=None):
        self.clouds.publish(
            self.make.cloud(self.make.points_on_plane() if points is None else points, stamp)
        )

    def frame(self, stamp, seed=0):
        self.prediction(stamp, seed)
        self.cloud(stamp)


def arrays(seed):
    random = np.random.default_rng(seed)
    depth_m = random.uniform(3, 5, (HEIGHT, WIDTH)).astype(np.float32)
    sigma_m = random.uniform(0.1, 1, (HEIGHT, WIDTH)).astype(np.float32)
    return depth_m, sigma_m


@pytest.fixture
def start(graph):
    return lambda *arguments, **parameters: graph.start(
        EvaluatorNode,
        arguments,
        **{
            "lidar_to_camera": IDENTITY,
            "reliable_input": True,
            "queue_size": 50,
            "example_frames": 1,
            **parameters,
        },
    )


def expected(make, frames):
    """Return the metrics of the last frame and of all, by the offline evaluation."""
    camera = camera_from_info(make.camera_info(0, WIDTH, HEIGHT))
    cloud = make.points_on_plane().astype(np.float32)
    truth = ground_truth_from_cloud(cloud, np.eye(4), camera, LidarConfig())
    evaluation = Evaluation(EvaluationConfig())
    metrics = None
    for seed in range(frames):
        prediction = DepthPrediction(*arrays(seed))
        metrics = evaluation.add(
            Frame(seed, str(seed), ground_truth_m=truth, prediction=prediction)
        )
    return metrics, flatten(evaluation.summary())


def test_metrics_of_frame_and_run_equal_the_offline_evaluation(graph, start, make):
    node = start()
    arrays_of_metrics = graph.inbox(DiagnosticArray, f"{NODE}/metrics", 50)
    plotted = {"abs_rel": "depth.abs_rel", "ause/rmse": "uncertainty.ause.rmse"}
    frame = {name: graph.inbox(Float64, f"{NODE}/metrics/frame/{name}", 50) for name in plotted}
    run = {name: graph.inbox(Float64, f"{NODE}/metrics/{name}", 50) for name in plotted}
    feeder = Feeder(graph, make)
    for index in range(5):
        feeder.frame((index + 1) * 100 * MS, seed=index)
    of_frame, of_run = expected(make, 5)
    told = arrays_of_metrics.wait_for(
        lambda message: (
            message.status[0].message == "all frames"
            and metrics_of(message)["depth.rmse"] == of_run["depth.rmse"]
        )
    )
    assert_same(metrics_of(told), of_run, rel=0)  # in every digit
    last = [m for m in arrays_of_metrics.messages if m.status[0].message == "frame"][4]
    assert_same(metrics_of(last), of_frame, rel=1e-9)
    for message in (told, last):
        assert (stamp_ns(message.header), message.header.frame_id) == (500 * MS, "camera")
    for name, key in plotted.items():
        assert frame[name].wait(5)[4].data == pytest.approx(of_frame[key], rel=1e-9)
        run[name].wait_for(lambda message, key=key: message.data == of_run[key])
    assert node._run.live.evaluation.frames() == {"read": 5, "evaluated": 5, "skipped": {}}


def assert_same(values, reference, rel):
    common = values.keys() & reference.keys()
    assert len(common) > 50
    for key in common:
        assert values[key] == pytest.approx(reference[key], rel=rel, nan_ok=True), key


def metrics_of(message):
    return {item.key: float(item.value) for item in message.status[0].values}


def test_every_plotted_metric_is_one_of_an_evaluation():
    assert set(PLOTTED) <= flatten(Evaluation().summary()).keys()


def test_images_are_drawn_only_for_subscribers(graph, start, make, monkeypatch):
    from uncertainty_depth.ros import score_outputs

    drawn = []
    original = score_outputs.colorize
    monkeypatch.setattr(
        score_outputs, "colorize", lambda *arguments: drawn.append(1) or original(*arguments)
    )
    start()
    scores = graph.inbox(Float64, f"{NODE}/metrics/frame/rmse")
    feeder = Feeder(graph, make)
    feeder.frame(100 * MS)
    scores.wait(1)
    assert drawn == []
    error = graph.inbox(Image, f"{NODE}/error/image")
    truth = graph.inbox(Image, f"{NODE}/ground_truth/image")
    plot = graph.inbox(Image, f"{NODE}/sparsification/image")
    feeder.frame(200 * MS)
    shown = decode_image(error.wait(1)[0])
    assert shown.shape == decode_image(truth.wait(1)[0]).shape == (HEIGHT, WIDTH, 3)
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) > 3
    assert error.messages[0].header.frame_id == "camera"
    plot_image = decode_image(plot.wait(1)[0])
    assert plot_image.shape[0] > 200
    assert plot_image.std() > 5


def test_save_writes_the_report_and_reset_starts_anew(graph, start, make, tmp_path):
    node = start(output=str(tmp_path / "report"))
    node._run.reports.writer = ReportWriter()  # in a process of its own, as on a robot
    scores = graph.inbox(Float64, f"{NODE}/metrics/frame/rmse", 50)
    feeder = Feeder(graph, make)
    model = graph.publisher(
        String, "depth/model", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    )
    model.publish(String(data="no JSON"))
    model.publish(String(data=json.dumps({"model": "tiny", "method": "mc_dropout"})))
    for index in range(3):
        feeder.frame((index + 1) * 100 * MS, seed=index)
    feeder.cloud(400 * MS)
    scores.wait(3)
    feeder.prediction(460 * MS)  # still waits for a later cloud when ~/save comes
    graph.until(
        lambda: node.health.counts()["received.uncertainty/image_rect"] == 4, "the last prediction"
    )
    saved = graph.call(Trigger, f"{NODE}/save")
    assert saved.success, saved.message
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    assert summary["frames"] == {"read": 3, "evaluated": 3, "skipped": {}}
    assert summary["notes"] == ["waiting: 1"]
    _, of_run = expected(make, 3)
    assert summary["depth"]["abs_rel"] == pytest.approx(of_run["depth.abs_rel"], rel=1e-9)
    assert summary["model"]["model"] == "tiny"
    assert summary["source"] == "live: /depth/image_rect against /lidar/points"
    assert saved.message == str(tmp_path / "report" / "report.html")
    assert (tmp_path / "report" / "report.html").stat().st_size > 10_000
    assert len((tmp_path / "report" / "frames.csv").read_text().splitlines()) == 1 + 3
    assert (tmp_path / "report" / "reliability.png").exists()
    node._run.reports.writer = ReportWriter(report.write)
    assert graph.call(Trigger, f"{NODE}/reset").success
    feeder.frame(500 * MS)
    scores.wait(4)
    assert graph.call(Trigger, f"{NODE}/save").success
    assert (
        json.loads((tmp_path / "report" / "summary.json").read_text())["frames"]["evaluated"] == 1
    )


def test_saving_in_the_middle_of_a_run_changes_no_score(graph, start, make, tmp_path):
    """Whether the cloud or the prediction comes before ~/save: both frames are scored."""
    node = start(output=str(tmp_path / "report"))
    feeder = Feeder(graph, make)
    feeder.prediction(100 * MS)
    feeder.cloud(90 * MS)
    feeder.depth.publish(make.image(200 * MS, arrays(0)[0]))
    graph.until(
        lambda: (
            (node._run.live.waiting, node.health.counts().get("received.lidar/points")) == (2, 1)
        ),
        "what comes before",
    )
    assert graph.call(Trigger, f"{NODE}/save").success
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    assert (summary["frames"]["read"], summary["notes"]) == (0, ["waiting: 2"])
    feeder.sigma.publish(make.image(200 * MS, arrays(0)[1]))
    feeder.cloud(200 * MS)
    graph.until(
        lambda: node._run.live.evaluation.evaluated == 2, "both frames, decided by the later cloud"
    )
    assert node._run.live.pairing_counts["paired"] == 2
    graph.stop(node)
    assert json.loads((tmp_path / "report" / "summary.json").read_text())["notes"] == []


def test_any_failure_of_save_is_answered(graph, start, tmp_path):
    folder = tmp_path / "report"
    node = start(output=str(folder))
    folder.write_text("somebody else's")
    answer = graph.call(Trigger, f"{NODE}/save")
    assert not answer.success
    assert f"{folder} is a file" in answer.message
    folder.unlink()
    assert graph.call(Trigger, f"{NODE}/save").success
    assert node.health.dropped() == {}


def test_a_slow_report_loses_no_frame(graph, start, make, tmp_path):
    """While ~/save draws, three times as many frames come as any queue holds: all are scored."""
    node = start(output=str(tmp_path / "report"), queue_size=10)
    drawing = threading.Event()
    go_on = threading.Event()
    seen = []

    def draw_slowly(evaluation, folder, context):
        drawing.set()
        assert go_on.wait(DEADLINE_S)
        seen.append(evaluation.frames())
        return folder / "report.html"

    node._run.reports.writer = ReportWriter(draw_slowly)
    scores = graph.inbox(Float64, f"{NODE}/metrics/frame/rmse", 50)
    feeder = Feeder(graph, make)
    feeder.frame(100 * MS)
    scores.wait(1)
    client = graph.node.create_client(Trigger, f"{NODE}/save")
    assert client.wait_for_service(DEADLINE_S)
    saved = client.call_async(Trigger.Request())
    assert drawing.wait(DEADLINE_S)
    for index in range(2, 32):
        feeder.frame(index * 100 * MS)
        scores.wait(index)
    assert not saved.done()
    go_on.set()
    assert graph.result(saved).success
    assert seen == [{"read": 1, "evaluated": 1, "skipped": {}}]
    assert node._run.live.evaluation.frames() == {"read": 31, "evaluated": 31, "skipped": {}}
    assert node.health.dropped() == {}


HOSTILE = {
    "deep": "[" * 100_000,
    "deep object": '{"a":' * 100_000,
    "a list": "[1]",
    "calibration": '{"calibration": [], "model": "m"}',
    "surrogate": '{"model": "\\ud800", "\\udfff": 1}',
    "numbers": '{"method": NaN, "samples": 1e999}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_model_is_called_a_report_is_written(graph, start, make, tmp_path, text):
    node = start(output=str(tmp_path / "report"))
    received = threading.Event()
    original = node._on_model
    node._on_model = lambda message: (original(message), received.set())
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_subscription(String, "depth/model", node._on_model, latched)
    graph.publisher(String, "depth/model", latched).publish(String(data=text))
    assert received.wait(DEADLINE_S)
    graph.stop(node)
    assert (tmp_path / "report" / "report.html").exists()


def test_reset_forgets_losses_too(graph, start, tmp_path):
    node = start(output=str(tmp_path / "report"))
    node.health.drop("queue_full", 7)
    assert graph.call(Trigger, f"{NODE}/save").success
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    assert "messages dropped.queue full: 7" in summary["notes"]
    assert graph.call(Trigger, f"{NODE}/reset").success
    node.health.drop("queue_full", 2)
    graph.stop(node)
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    assert "messages dropped.queue full: 2" in summary["notes"]


def test_an_earlier_report_is_not_replaced_unless_asked(graph, start, tmp_path):
    graph.stop(start(output=str(tmp_path / "report")))
    with pytest.raises(SourceError, match="holds a report already"):
        start(output=str(tmp_path / "report"))
    graph.stop(start(output=str(tmp_path / "report"), overwrite=True))


def test_a_scoring_parameter_saves_the_scores_first_and_says_so(graph, start, make, tmp_path):
    node = start(output=str(tmp_path / "report"))
    scores = graph.inbox(Float64, f"{NODE}/metrics/frame/rmse", 50)
    pooled = graph.inbox(Float64, f"{NODE}/metrics/rmse", 50)
    feeder = Feeder(graph, make)
    feeder.frame(100 * MS)
    scores.wait(1)
    log = graph.inbox(Log, "/rosout", 50)
    earlier = tmp_path / "report" / "earlier_1"
    for name, value in {"example_frames": 2, "queue_size": 20}.items():
        answer = graph.set_parameters(NODE, **{name: value})
        assert answer.successful
    answer = graph.set_parameters(NODE, alpha=0.5)
    assert answer.successful
    log.wait_for(lambda line: f"the 1 frames so far are written to {earlier}" in line.msg)
    feeder.frame(200 * MS)
    scores.wait(2)
    graph.stop(node)
    summaries = [
        json.loads((folder / "summary.json").read_text())
        for folder in (earlier, tmp_path / "report")
    ]
    assert [summary["config"]["alpha"] for summary in summaries] == [0.95, 0.5]
    assert [summary["frames"]["evaluated"] for summary in summaries] == [1, 1]
    assert not any(math.isnan(message.data) for message in pooled.messages)


def test_save_without_a_folder_says_what_is_missing(graph, start):
    start()
    answer = graph.call(Trigger, f"{NODE}/save")
    assert (answer.success, answer.message) == (
        False,
        "the parameter output is empty; expected a folder for the report",
    )


def test_the_folder_may_be_given_later(graph, start, make, tmp_path):
    start()
    assert graph.set_parameters(NODE, output=str(tmp_path / "later")).successful
    assert graph.call(Trigger, f"{NODE}/save").success
    assert (tmp_path / "later" / "summary.json").exists()


def test_closing_writes_the_report(graph, start, make, tmp_path):
    node = start(output=str(tmp_path / "report"))
    scores = graph.inbox(Float64, f"{NODE}/metrics/frame/rmse")
    feeder = Feeder(graph, make)
    feeder.frame(100 * MS)
    scores.wait(1)
    feeder.prediction(200 * MS)
    graph.until(
        lambda: node.health.counts()["received.uncertainty/image_rect"] == 2, "the last prediction"
    )
    graph.stop(node)
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    assert summary["frames"] == {
        "read": 2,
        "evaluated": 1,
        "skipped": {"no_lidar_within_max_time_difference": 1},
    }


def test_bad_clouds_and_lost_halves_are_counted_and_reported(graph, start, make, tmp_path):
    node = start(output=str(tmp_path / "report"))
    feeder = Feeder(graph, make)
    feeder.prediction(100 * MS)
    feeder.cloud(100 * MS, np.full((9, 3), np.nan))
    feeder.prediction(200 * MS)
    feeder.clouds.publish(make.cloud(make.points_on_plane(), 200 * MS, names="abc"))
    feeder.depth.publish(make.image(300 * MS, arrays(0)[0]))
    feeder.frame(400 * MS)
    graph.until(lambda: node.health.counts().get("evaluated") == 1, "the good frame")
    inbox = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    status = inbox.wait_for(lambda message: message.status[0].name == "evaluator_node").status[0]
    facts = {item.key: item.value for item in status.values}
    assert (
        facts["skipped.cloud_without_points"]
        == facts["skipped.cloud_without_xyz"]
        == facts["evaluated"]
        == "1"
    )
    assert facts["received.lidar/points"] == "3"
    graph.stop(node)
    frames = json.loads((tmp_path / "report" / "summary.json").read_text())["frames"]
    reasons = {"cloud_without_points": 1, "cloud_without_xyz": 1, "depth_without_uncertainty": 1}
    assert frames == {"read": 4, "evaluated": 1, "skipped": reasons}


def test_a_wrong_geometry_is_logged_and_noted_in_the_report(graph, start, make, tmp_path):
    node = start(output=str(tmp_path / "report"))
    log = graph.inbox(Log, "/rosout", 50)
    feeder = Feeder(graph, make)
    feeder.prediction(100 * MS)
    feeder.cloud(100 * MS, 1000 * make.points_on_plane())
    log.wait_for(lambda line: "the ground truth is in millimetres" in line.msg)
    graph.stop(node)
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    (note,) = summary["notes"]
    assert "the ground truth is in millimetres" in note
    assert summary["geometry"]["warnings"] == [note]


def test_diagnostics_tell_what_keeps_frames_from_being_scored(graph, start, make):
    start()
    inbox = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    feeder = Feeder(graph, make)

    def status(sentence):
        return inbox.wait_for(lambda message: sentence in message.status[0].message).status[0]

    silent = status("nothing received on depth/image_rect yet")
    assert silent.level == b"\x01"
    assert not any("latency" in item.key for item in silent.values)  # it is not measured here
    feeder.prediction(100 * MS)
    status("nothing received on lidar/points yet")
    feeder.prediction(200 * MS)
    feeder.cloud(300 * MS)
    assert status("no_lidar_within_max_time_difference").level == b"\x01"


def test_diagnostics_hold_the_verdict_and_the_requirements_of_the_report(
    graph, start, make, tmp_path, monkeypatch
):
    monkeypatch.setattr(live_verdict, "PERIOD_S", 0.1)
    require = ["scored_fraction>=0.1", "frames.evaluated>=4"]
    node = start("-p", "require:=['ause.rmse<=0']", output=str(tmp_path / "report"))
    refused = graph.set_parameters(NODE, require=["aus<=0.2"])
    assert "unknown metric 'aus'" in refused.reason
    assert graph.set_parameters(NODE, require=require).successful
    feeder = Feeder(graph, make)
    for index in range(3):
        feeder.frame((index + 1) * 100 * MS, seed=index)
    graph.until(lambda: node._run.live.evaluation.evaluated == 3, "all frames")
    inbox = graph.inbox(DiagnosticArray, "/diagnostics", 50)

    def facts(message):
        return {item.key: item.value for item in message.status[0].values}

    message = inbox.wait_for(
        lambda message: "frames.evaluated 3" in facts(message).get(f"requirement.{require[1]}", "")
    )
    told = facts(message)
    graph.stop(node)
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
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


def test_a_bag_that_loops_keeps_counting(graph, start, make):
    node = start()
    scores = graph.inbox(Float64, f"{NODE}/metrics/frame/rmse", 50)
    feeder = Feeder(graph, make)
    for turn in range(2):
        for stamp in (100, 200, 300):
            feeder.frame(stamp * MS)
        scores.wait(3 * (turn + 1))
    assert node._run.live.evaluation.frames() == {"read": 6, "evaluated": 6, "skipped": {}}


def test_ground_truth_images(graph, start, make):
    node = start(use_ground_truth_image=True)
    scores = graph.inbox(Float64, f"{NODE}/metrics/frame/rmse")
    depth, sigma = (
        graph.publisher(Image, f"{name}/image_rect") for name in ("depth", "uncertainty")
    )
    truth = graph.publisher(Image, "ground_truth/image")
    depth_m, sigma_m = arrays(0)
    depth.publish(make.image(100 * MS, depth_m))
    sigma.publish(make.image(100 * MS, sigma_m))
    truth.publish(make.image(100 * MS, depth_m + 0.25))
    assert scores.wait(1)[0].data == pytest.approx(0.25, rel=1e-5)
    assert node._run.live.evaluation.evaluated == 1


def test_best_effort_lidar_is_heard_by_default(graph, start, make):
    start(reliable_input=False)
    scores = graph.inbox(Float64, f"{NODE}/metrics/frame/rmse")
    feeder = Feeder(graph, make)
    clouds = graph.publisher(PointCloud2, "lidar/points", qos_profile_sensor_data)
    feeder.prediction(100 * MS)
    clouds.publish(make.cloud(make.points_on_plane(), 100 * MS))
    scores.wait(1)


def test_overridden_quality_of_service_outlives_a_change_at_run_time(graph, start):
    node = start("-p", "qos_overrides./lidar/points.subscription.reliability:=best_effort")
    before = node._inputs.ground_truths
    assert graph.set_parameters(NODE, queue_size=7).successful
    graph.until(lambda: node._inputs.ground_truths is not before, "the new subscription")
    graph.until(
        lambda: len(graph.node.get_subscriptions_info_by_topic("/lidar/points")) == 1,
        "end of the old subscription",
    )
    (info,) = graph.node.get_subscriptions_info_by_topic("/lidar/points")
    assert info.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT


def test_a_change_of_what_is_scored_starts_anew_and_an_impossible_one_is_refused(
    graph, start, make
):
    node = start()
    scores = graph.inbox(Float64, f"{NODE}/metrics/frame/rmse")
    feeder = Feeder(graph, make)
    feeder.frame(100 * MS)
    scores.wait(1)
    refused = graph.set_parameters(NODE, min_depth=90.0, alpha=0.5)
    assert (refused.successful, refused.reason) == (
        False,
        "min_depth is 90.0; expected less than max_depth, 80.0",
    )
    assert graph.set_parameters(NODE, color_max_error=5.0).successful
    assert node._run.live.evaluation.evaluated == 1
    assert not graph.set_parameters(NODE, lidar_to_camera=[1.0, 2.0]).successful
    assert graph.set_parameters(NODE, alpha=0.5, max_depth=3.5).successful
    feeder.frame(200 * MS)
    graph.until(
        lambda: node.health.counts().get("skipped.no_valid_pixel") == 1,
        "a frame without a valid pixel",
    )
    assert node._run.live.evaluation.frames() == {
        "read": 1,
        "evaluated": 0,
        "skipped": {"no_valid_pixel": 1},
    }
    assert node._run.live.evaluation.config.alpha == 0.5


def test_options_that_the_scores_cannot_take_are_refused_and_nothing_changes(graph, start, make):
    node = start()
    feeder = Feeder(graph, make)
    feeder.frame(100 * MS)
    graph.until(lambda: node._run.live.evaluation.evaluated == 1, "the frame")
    before = node.config
    refused = graph.set_parameters(NODE, max_depth=0.05, alpha=0.5)
    assert not refused.successful
    assert "expected less than max_depth" in refused.reason
    assert node.config == before == node._run.live.config
    feeder.frame(200 * MS)
    graph.until(
        lambda: node._run.live.evaluation.evaluated == 2, "the next frame, scored as before"
    )


def test_metrics_without_a_value_are_nan(graph, start, make):
    start()
    scores = graph.inbox(DiagnosticArray, f"{NODE}/metrics")
    feeder = Feeder(graph, make)
    feeder.info.publish(make.camera_info(1, WIDTH, HEIGHT))
    flat = np.full((HEIGHT, WIDTH), 5, np.float32)
    feeder.depth.publish(make.image(100 * MS, flat))
    feeder.sigma.publish(make.image(100 * MS, flat))
    feeder.cloud(100 * MS)
    assert math.isnan(metrics_of(scores.wait(1)[0])["uncertainty.spearman"])


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
    ],
)
def test_what_cannot_work_is_reported_at_the_start(graph, start, parameters, error, sentence):
    with pytest.raises(error, match=sentence):
        start(**parameters)


def test_a_remap_that_leads_nowhere_is_reported_with_what_to_type(graph, start, make):
    log = graph.inbox(Log, "/rosout", 50)
    graph.publisher(PointCloud2, "/velodyne_points", matched=0)
    start("-r", "lidar/points:=/velodyne_pionts")
    warning = log.wait_for(lambda line: "/velodyne_pionts" in line.msg)
    assert "-r lidar/points:=/velodyne_points" in warning.msg
