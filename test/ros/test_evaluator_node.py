# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluator node over real topics: scores, images, services, the report, and failures."""

import csv
import json
import os
import re
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sensor_msgs.msg import Image
from std_msgs.msg import Float64, String
from std_srvs.srv import SetBool, Trigger

from test.conftest import summary_of
from test.ros.conftest import (
    DEADLINE_S,
    HEIGHT,
    MS,
    POSE,
    WIDTH,
    Robot,
    facts,
    header,
    maps,
    numbers,
)
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.frames.messages.camera_info import camera_from_info
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.messages.images import decode_image
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.ros import evaluator_node, evaluator_outputs, report_saver
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.evaluator_outputs import PLOTTED
from uncertainty_depth.ros.messages import image_message

START_PROCESS = report_saver.START_PROCESS  # which other tests replace
NODE = "/evaluator_node"
METRICS = f"{NODE}/metrics"


def is_frame(message):
    return message.status[0].message == "frame"


def metrics_of(message):
    return {key: float(text) for key, text in facts(message).items()}


class Driver(Robot):
    """Hears the node's metrics from the start on."""

    def __init__(self, graph):
        super().__init__(graph)
        self.metrics = self.heard(METRICS)
        self.diagnostics = self.heard("/diagnostics")

    def frames(self):
        return list(filter(is_frame, self.metrics.messages))

    def drive(self, first, frames):
        """Publish frames, each once the one before is scored."""
        before = len(self.frames())
        for count, number in enumerate(range(first, first + frames), start=before + 1):
            self.predict((number + 1) * 100, maps(number))
            self.scan((number + 1) * 100)
            self.metrics.wait(lambda _, count=count: len(self.frames()) >= count)

    def wait_until_waiting(self):
        return self.told(lambda values: values.get("waiting") == "1")


@pytest.fixture
def start(graph):
    return lambda **parameters: graph.start(
        EvaluatorNode, **{"lidar_to_camera": POSE, "queue_size": 50, **parameters}
    )


@pytest.fixture
def running(graph, start):
    """Start the node and its driver."""
    return lambda **parameters: (start(**parameters), Driver(graph))


def expected(make, frames):
    """Return what the offline evaluation says about the last frame, and about all."""
    camera = camera_from_info(make.camera_info(0))
    cloud = make.points_on_plane().astype(np.float32)
    truth = ground_truth_from_cloud(cloud, np.eye(4), camera)
    evaluation = Evaluation(EvaluationConfig())
    metrics = None
    for seed in range(frames):
        prediction = DepthPrediction(*maps(seed))
        frame = Frame(seed, str(seed), ground_truth_m=truth, prediction=prediction)
        metrics = evaluation.add(frame)
    return metrics, flatten(evaluation.summary())


def test_metrics_of_frame_and_run_equal_the_offline_evaluation(graph, start, make):
    start()
    plotted = {key: graph.inbox(Float64, f"{METRICS}/{name}") for key, name in PLOTTED.items()}
    driver = Driver(graph)
    driver.drive(0, 5)
    of_frame, of_run = expected(make, 5)
    told = driver.metrics.wait_for(
        lambda message: (
            message.status[0].message == "all frames"
            and metrics_of(message)["depth.rmse"] == of_run["depth.rmse"]
        )
    )
    for message, reference, rel in ((told, of_run, 0), (driver.frames()[4], of_frame, 1e-9)):
        values = metrics_of(message)
        common = values.keys() & reference.keys()
        assert len(common) > 50
        for key in common:  # those of all frames in every digit
            assert values[key] == pytest.approx(reference[key], rel=rel, nan_ok=True), key
        assert (stamp_ns(message.header), message.header.frame_id) == (500 * MS, "camera")
    for key, inbox in plotted.items():
        assert inbox.wait(5)[4].data == pytest.approx(of_frame[key], rel=1e-9)


def test_a_depth_without_confidence_is_scored_alone(graph, running, tmp_path):
    output = tmp_path / "report"
    node, driver = running(confidence_type="none", output=str(output))
    for number in (1, 2):
        driver.info(100 * number, "depth/camera_info")
        depth, _ = maps(number)
        driver.send("depth/image_rect", image_message(depth, header(100 * number * MS)))
        driver.scan(100 * number)
        driver.metrics.wait(lambda _, number=number: len(driver.frames()) >= number)
    assert not node.count_subscribers("/uncertainty/image_rect")
    names = metrics_of(driver.frames()[1])
    assert names["depth.abs_rel"] > 0
    assert not [name for name in names if name.startswith("uncertainty.")]
    graph.stop(node)
    summary = summary_of(output)
    assert summary["sigma_kind"] == "none"
    lines = [line["name"] for line in summary["verdict"]["lines"]]
    assert not {"order", "size"} & set(lines)
    assert summary["frames"] == {"read": 2, "evaluated": 2, "skipped": {}}


def test_a_frame_waits_for_the_word_of_what_was_held_out(running):
    """A model that the LiDAR corrects would be scored on it else."""
    _, driver = running()
    driver.publisher("depth/model")
    driver.predict(100)
    driver.scan(100)
    driver.wait_until_waiting()
    assert not driver.frames()
    held_out = {"measurements": "lidar", "held_out_fraction": 0.5}
    driver.send("depth/model", String(data=json.dumps(held_out)))
    driver.metrics.wait(lambda _: driver.frames())
    driver.send("depth/model", String(data="{}"))
    driver.drive(1, 1)
    some, all_of_them = (metrics_of(message)["pixels"] for message in driver.frames())
    assert 0.3 < some / all_of_them < 0.7


def test_images_are_drawn_for_subscribers(running):
    _, driver = running()
    names = ("error", "ground_truth", "sparsification")
    inboxes = [driver.heard(f"{NODE}/{name}/image") for name in names]
    driver.drive(0, 1)
    error, truth, plot = (decode_image(inbox.wait(1)[0]) for inbox in inboxes)
    assert error.shape == truth.shape == (HEIGHT, WIDTH, 3)
    assert len(np.unique(error.reshape(-1, 3), axis=0)) > 3
    assert inboxes[0].messages[0].header.frame_id == "camera"
    assert plot.shape == (240, 320, 3)  # a dock of RViz shows it pixel by pixel
    assert plot.std() > 5


def test_save_acknowledges_then_writes_in_a_process_of_its_own(
    graph, running, make, tmp_path, monkeypatch
):
    monkeypatch.setattr(report_saver, "START_PROCESS", START_PROCESS)
    output = tmp_path / "report"
    _, driver = running(output=str(output))
    log = driver.heard("/rosout")
    driver.send("depth/model", String(data="no JSON"))
    description = json.dumps({"name": "tiny", "method": "mc_dropout"})
    driver.send("depth/model", String(data=description))
    driver.drive(0, 3)
    driver.predict(460)  # still waits for a later cloud when ~/save comes
    driver.wait_until_waiting()
    saved = graph.call(Trigger, f"{NODE}/save")
    assert saved.success
    assert saved.message == f"the report of 3 frames is being written to {output}"
    log.wait_for(lambda line: line.msg == f"report: {output / 'report.html'}", 2 * DEADLINE_S)
    summary = summary_of(output)
    assert summary["frames"] == {"read": 3, "evaluated": 3, "skipped": {}}
    assert summary["notes"] == ["waiting: 1"]
    _, of_run = expected(make, 3)
    assert summary["depth"]["abs_rel"] == pytest.approx(of_run["depth.abs_rel"], rel=1e-9)
    assert summary["model"]["name"] == "tiny"
    assert summary["source"] == "live: /depth/image_rect against /lidar/points"
    assert (output / "report.html").stat().st_size > 10_000
    assert len((output / "frames.csv").read_text().splitlines()) == 1 + 3
    assert (output / "reliability.png").exists()


@pytest.fixture
def drawing(monkeypatch):
    """Reports that wait for `go_on`, once `begun` is set; `written` has their numbers of frames.

    If there is a `killed`, that of so many frames alone waits, and is not written then.
    """
    begun, go_on = threading.Event(), threading.Event()
    made = SimpleNamespace(begun=begun, go_on=go_on, written=[], killed=None)
    write = report.write

    def write_slowly(evaluation, *arguments, **options):
        if made.killed in (None, evaluation.evaluated):
            begun.set()
            assert go_on.wait(DEADLINE_S)
        if made.killed == evaluation.evaluated:
            raise SourceError("killed")
        made.written.append(evaluation.evaluated)
        return write(evaluation, *arguments, **options)

    monkeypatch.setattr(report, "write", write_slowly)
    return made


def test_a_slow_report_loses_no_frame_and_reset_starts_anew(graph, running, tmp_path, drawing):
    """While ~/save draws, three times as many frames come as any queue holds: all are scored."""
    output = tmp_path / "report"
    node, driver = running(output=str(output), queue_size=10)
    driver.drive(0, 1)
    assert graph.call(Trigger, f"{NODE}/save").success
    assert drawing.begun.wait(DEADLINE_S)
    driver.drive(1, 30)
    drawing.go_on.set()
    assert not any("dropped" in name for name in node.health.counts())
    driver.told(lambda values: values.get("evaluated") == "31")
    driver.predict(4000)
    driver.wait_until_waiting()
    assert graph.call(Trigger, f"{NODE}/reset").success
    told = driver.told(lambda values: values.get("dropped.reset") == "1")
    assert facts(told)["waiting"] == "0"
    driver.drive(49, 1)
    graph.stop(node)
    assert drawing.written[0] == 1
    assert summary_of(output)["frames"] == {"read": 1, "evaluated": 1, "skipped": {}}


def test_of_saves_that_wait_the_newest_alone_is_written(graph, running, tmp_path, drawing):
    _, driver = running(output=str(tmp_path / "report"))
    log = driver.heard("/rosout")
    driver.drive(0, 1)
    assert graph.call(Trigger, f"{NODE}/save").success
    assert drawing.begun.wait(DEADLINE_S)
    for number in range(1, 5):
        driver.drive(number, 1)
        assert graph.call(Trigger, f"{NODE}/save").success
    drawing.go_on.set()
    log.wait(lambda lines: [line.msg.startswith("report: ") for line in lines].count(True) == 2)
    assert drawing.written == [1, 5]


def enable(graph, value):
    """Activate or deactivate the node by its service; return whether it did, and what it says."""
    answer = graph.call(SetBool, f"{NODE}/enable", SetBool.Request(data=value))
    return answer.success, answer.message


def test_a_save_that_waits_when_the_run_ends_never_replaces_its_report(
    graph, running, tmp_path, drawing
):
    output = tmp_path / "report"
    node, driver = running(output=str(output))
    drawing.killed = 1
    driver.drive(0, 1)
    assert graph.call(Trigger, f"{NODE}/save").success
    assert drawing.begun.wait(DEADLINE_S)
    driver.drive(1, 1)
    assert graph.call(Trigger, f"{NODE}/save").success, "it waits"
    driver.drive(2, 1)
    assert enable(graph, False) == (True, "inactive")
    written = (output / "summary.json").stat().st_mtime_ns
    drawing.go_on.set()
    graph.stop(node)
    assert summary_of(output)["frames"]["evaluated"] == 3
    assert (output / "summary.json").stat().st_mtime_ns == written


def test_a_save_that_fails_is_answered_or_logged(graph, start, robot, tmp_path, monkeypatch):
    folder = tmp_path / "report"
    start(output=str(folder))
    log = robot.heard("/rosout")
    folder.write_text("somebody else's")
    answer = graph.call(Trigger, f"{NODE}/save")
    assert (answer.success, "is a file" in answer.message) == (False, True)
    folder.unlink()

    with monkeypatch.context() as full:

        def fail(*_):
            raise SourceError("no space left on the device")

        full.setattr(report, "write", fail)
        assert graph.call(Trigger, f"{NODE}/save").success
        sentence = "the report is not written: no space left on the device"
        log.wait_for(lambda line: line.msg == sentence)


def test_a_run_lasts_from_activation_to_deactivation_which_writes_its_report(
    graph, start, running, tmp_path
):
    first, second = tmp_path / "first", tmp_path / "second"
    node, driver = running(output=str(first))
    node.health.count("dropped.queue_full", 7)
    driver.drive(0, 2)
    driver.predict(300)
    driver.wait_until_waiting()

    graph.refuses(NODE, "deactivate", max_depth=50.0)
    assert enable(graph, False) == (True, "inactive")
    unpaired = {"no_lidar_within_max_time_difference": 1}
    assert summary_of(first)["frames"] == {"read": 3, "evaluated": 2, "skipped": unpaired}
    assert "messages dropped.queue full: 7" in summary_of(first)["notes"]
    success, reason = enable(graph, True)
    assert (success, "holds a report already" in reason) == (False, True)
    assert graph.set_parameters(NODE, output=str(second), max_depth=50.0).successful
    assert enable(graph, True) == (True, "active")
    depths = driver.publisher("depth/image_rect")
    graph.until(lambda: depths.get_subscription_count() == 1, "the subscription")
    driver.drive(9, 1)
    graph.stop(node)
    summary = summary_of(second)
    assert summary["frames"] == {"read": 1, "evaluated": 1, "skipped": {}}
    assert (summary["config"]["max_depth"], summary["notes"]) == (50.0, [])
    with pytest.raises(SourceError, match="holds a report already"):
        start(output=str(second))
    graph.stop(start(output=str(second), overwrite=True))


def test_a_run_whose_report_cannot_be_written_goes_on_and_says_why(graph, running, tmp_path):
    """As on a full disk: the node stays active, scores what comes, and can be ended later."""
    output = tmp_path / "report"
    node, driver = running(output=str(output))
    driver.drive(0, 1)
    output.write_text("somebody else's")

    success, reason = enable(graph, False)
    assert (success, "cannot be written" in reason, node.state) == (False, True, "active")
    driver.told(lambda values: "the run was not ended: " in values["message"])
    driver.drive(1, 2)
    output.unlink()
    assert enable(graph, False) == (True, "inactive")
    assert summary_of(output)["frames"] == {"read": 3, "evaluated": 3, "skipped": {}}


def test_every_frame_of_the_diagnostics_is_scored_skipped_dropped_or_waits(graph, running, make):
    node, driver = running(queue_size=4)
    driver.predict(100)
    driver.scan(100, np.full((9, 3), np.nan))
    driver.predict(200)
    driver.scan(200, names="abc")
    for name, stamp in (("depth", 300), ("uncertainty", 310)):
        driver.send(f"{name}/image_rect", make.image(stamp * MS, maps()[0]))
    driver.predict(400)
    driver.scan(400)
    received = "received.uncertainty/image_rect"
    for count, stamp in enumerate(range(500, 1300, 100), start=5):
        driver.predict(stamp)
        graph.until(lambda count=count: node.health.counts().get(received) == count, received)
    driver.told(lambda values: values.get(received) == "12")
    graph.call(Trigger, f"{NODE}/reset")
    driver.told(lambda values: "dropped.reset" in values)
    for counts in map(numbers, driver.diagnostics.messages):
        settled = ("evaluated", "skipped.", "dropped.", "waiting")
        total = sum(count for name, count in counts.items() if name.startswith(settled))
        assert counts.get("received", 0) == total, counts
    assert counts["received"] == 13
    assert counts["received.lidar/points"] == 3
    assert counts["skipped.cloud_without_points"] == counts["skipped.cloud_without_xyz"] == 1


def test_diagnostics_tell_the_coverage_of_recent_frames_alone(running, monkeypatch):
    monkeypatch.setattr(evaluator_node, "RECENT_FRAMES", 2)
    _, driver = running()
    driver.drive(0, 3)
    name = "coverage_68"
    first, *recent = (metrics_of(it)[f"uncertainty.{name}"] for it in driver.frames())
    mean = f"{np.mean(recent):.3f}"
    assert mean != f"{np.mean([first, *recent]):.3f}"
    driver.told(lambda values: values.get(f"recent_{name}") == mean)


def test_a_shutdown_in_the_middle_of_a_frame_costs_no_frame(graph, running, tmp_path, monkeypatch):
    node, driver = running(output=str(tmp_path / "report"))

    def interrupted(*_):
        monkeypatch.setattr(node.context, "ok", lambda: False)  # as after a signal
        raise RuntimeError("the context is shut down")

    monkeypatch.setattr(evaluator_outputs.EvaluatorOutputs, "publish_frame", interrupted)
    driver.predict(100)
    driver.predict(120)
    counts = node.health.counts
    for topic in ("depth/image_rect", "uncertainty/image_rect"):
        graph.until(lambda topic=topic: counts().get(f"received.{topic}") == 2, topic)
    driver.scan(120)  # decides both
    graph.until(lambda: counts().get("evaluated") == 1, "the first frame")
    graph.stop(node)
    assert (counts()["received"], counts()["evaluated"]) == (2, 2)
    assert summary_of(tmp_path / "report")["frames"] == {"read": 2, "evaluated": 2, "skipped": {}}


def test_diagnostics_tell_what_keeps_frames_from_being_scored(graph, running, make, tmp_path):
    node, driver = running(output=str(tmp_path / "report"))
    log = driver.heard("/rosout")

    def warned(pattern):
        told = driver.told(lambda values: re.search(pattern, values["message"]))
        assert told.status[0].level == b"\x01"
        return told.status[0]

    silent = warned("nothing received on depth/image_rect yet")
    assert not any("latency" in item.key for item in silent.values)  # it is not measured here
    driver.predict(100)
    warned("nothing received on lidar/points yet")
    driver.scan(100, 1000 * make.points_on_plane())
    wrong = "the ground truth is in millimetres"
    warned(wrong)
    log.wait_for(lambda line: wrong in line.msg)
    driver.predict(200)
    driver.scan(300)
    warned("no_lidar_within_max_time_difference")
    for stamp in range(1000, 1800, 100):
        driver.predict(stamp)
        driver.scan(stamp + 10_000)
    warned(r"\+(10|9)\.\d+ s away, .* the clocks are apart \(chrony")
    graph.stop(node)
    (warning,) = summary_of(tmp_path / "report")["geometry"]["warnings"]
    assert wrong in warning


def test_diagnostics_hold_the_verdict_and_the_requirements_of_the_report(
    graph, running, tmp_path, monkeypatch
):
    monkeypatch.setattr(evaluator_outputs, "JUDGE_EVERY_S", 0.1)
    require = ["scored_fraction>=0.1", "frames.evaluated>=4"]
    node, driver = running(require=require, output=str(tmp_path / "report"))
    driver.send("depth/model", String(data="no JSON"))
    driver.drive(0, 3)
    message = driver.told(
        lambda values: "frames.evaluated 3" in values.get(f"requirement.{require[1]}", "")
    )
    told = facts(message)
    graph.stop(node)
    summary = summary_of(tmp_path / "report")
    verdict = summary["verdict"]
    assert told["verdict"] == f"{verdict['color']}: {verdict['text']}"
    for line in verdict["lines"]:
        assert told[f"verdict.{line['name']}"] == f"{line['color']}: {line['text']}"
    assert verdict["lines"][-1]["name"] == "domain", "a network's, though its description is torn"
    outcomes = summary["requirements"]
    assert [outcome["requirement"] for outcome in outcomes] == require
    assert [outcome["passed"] for outcome in outcomes] == [True, False]
    for outcome in outcomes:
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
        ({"mask": __file__}, ConfigError, "does not begin as an image"),
        ({"output": __file__}, SourceError, "is a file"),
        ({"output": str(Path(__file__).parent)}, SourceError, "holds files, and no "),
        ({"require": ["aus<=0.2"]}, ConfigError, "unknown metric 'aus'"),
        (
            {"require": ["auce<=0.2"], "confidence_type": "none"},
            ConfigError,
            "'auce<=0.2' is required of sigma, but the depth has no confidence",
        ),
    ],
)
def test_what_cannot_work_is_reported_at_the_start(start, parameters, error, sentence):
    with pytest.raises(error, match=sentence):
        start(**parameters)


SLOW_PLOTS = """
import os, sys, threading
from uncertainty_depth.report import report
from uncertainty_depth.ros import main

def draw(*_):
    print("drawing in", os.getpid(), flush=True)
    while True:
        threading.Event().wait(0.1)

report.draw = draw
if __name__ == "__main__":  # a report that is saved has a process of its own
    sys.exit(main.evaluator_node())
"""
"""Plots that never end. Like real ones they return to the interpreter, which runs the handlers of
signals there: the system may give the second of two signals to a thread that wakes nobody."""


def test_the_first_signal_scores_what_waits_and_writes_the_numbers_first_and_a_second_aborts(
    start_python, graph, tmp_path
):
    """Saves that are drawn or wait meanwhile are given up, and their process ends."""
    output = tmp_path / "report"
    parameters = (f"lidar_to_camera:={list(POSE)}", f"output:={output}")
    options = [word for parameter in parameters for word in ("-p", parameter)]
    (tmp_path / "node.py").write_text(SLOW_PLOTS)
    node = start_python(str(tmp_path / "node.py"), "--ros-args", *options)
    driver = Driver(graph)
    driver.drive(0, 2)
    for _ in range(10):
        assert graph.call(Trigger, f"{NODE}/save").success
    node.wait_for_output("drawing in")
    (saving,) = map(int, re.findall(r"drawing in (\d+)", node.output))
    driver.publisher("depth/prediction_info")  # but never a word of a frame
    for frames in range(3, 13):  # until the node knows of this publisher, it waits for no word
        driver.predict(100 * frames)
        driver.scan(100 * frames)
        told = driver.told(
            lambda values, clouds=str(frames): values.get("received.lidar/points") == clouds
        )
        if facts(told)["waiting"] == "1":
            break
    node.send(signal.SIGINT)
    node.wait_for_output(f"drawing in {node.pid}")
    with pytest.raises(ProcessLookupError):
        os.kill(saving, 0)
    assert facts(told)["waiting"] == "1"
    assert summary_of(output)["frames"]["evaluated"] == frames
    with (output / "frames.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == frames
    node.send(signal.SIGTERM)  # as launch does after a while: the plots go on
    assert node.end(signal.SIGINT) == 128 + signal.SIGINT, node.output
    assert "evaluator_node: aborted" in node.output


RAW = {"d": [-0.3, 0.1, 0.0, 0.0, 0.0]}
OTHER_INFO = "/calibration/camera_info"


@pytest.mark.parametrize(
    ("remaps", "topic"),
    [
        ({}, "ground_truth/camera_info"),
        ({"ground_truth/image": "/tof/image_raw"}, "/tof/camera_info"),
        (
            {"ground_truth/image": "/tof/image_raw", "ground_truth/camera_info": OTHER_INFO},
            OTHER_INFO,
        ),
    ],
)
def test_a_raw_depth_image_waits_for_the_camera_info_beside_it_or_the_remapped_one(
    graph, make, monkeypatch, remaps, topic
):
    """The maps are rectified: of other pixels than the depth image, where there is noise."""
    monkeypatch.setattr(evaluator_node, "DISCOVERY_S", 0.0)  # its publisher is known by then
    arguments = [word for pair in remaps.items() for word in ("-r", "{}:={}".format(*pair))]
    graph.start(EvaluatorNode, arguments, use_ground_truth_image=True, queue_size=50)
    driver = Driver(graph)
    driver.publisher(topic)
    image = remaps.get("ground_truth/image", "ground_truth/image")
    driver.predict(100)
    driver.send(image, make.image(100 * MS, maps()[0]))
    driver.wait_until_waiting()
    driver.info(topic=topic, **RAW)
    told = driver.metrics.wait_for(is_frame)
    assert metrics_of(told)["depth.rmse"] > 0.1


def test_no_two_evaluators_write_to_one_folder(graph, robot, tmp_path):
    """The last to end would replace the report of the others, without a word."""
    options = {"output": str(tmp_path / "report"), "lidar_to_camera": POSE}
    first = graph.start(EvaluatorNode, **options)
    with pytest.raises(SourceError, match=r"another evaluator will write its report to .*report"):
        graph.start(EvaluatorNode, ["-r", "__node:=second"], **options)
    other = {**options, "output": str(tmp_path / "other")}
    graph.start(EvaluatorNode, ["-r", "__node:=third"], **other)
    robot.predict(100)
    robot.scan(100)
    robot.graph.until(lambda: first.health.counts().get("evaluated") == 1, "a score")
    first.trigger_deactivate()
    again = {**options, "overwrite": True}
    graph.start(EvaluatorNode, ["-r", "__node:=fourth"], **again)


def test_nodes_of_one_name_are_told(graph, robot):
    graph.start(EvaluatorNode, ["-r", "__node:=scores"], lidar_to_camera=POSE)
    graph.start(EvaluatorNode, ["-r", "__node:=scores"], lidar_to_camera=POSE)
    told = robot.told(lambda values: "2 nodes are called /scores: " in values["message"])
    assert told.status[0].name == "scores: scores"


def test_two_networks_on_one_topic_are_told(graph, robot):
    """Their maps have the same stamps: one's depth was scored with the other's sigma."""
    graph.start(EvaluatorNode, lidar_to_camera=POSE)
    for _ in range(2):
        graph.publisher(Image, "depth/image_rect")
    told = robot.told(lambda values: "2 publish /depth/image_rect (/" in values["message"])
    assert "give each a topic of its own" in told.status[0].message
