# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A killed evaluator is resumed, and a stop by signals loses no number."""

from __future__ import annotations

import csv
import json
import signal

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import Float64

from uncertainty_depth import strict_npz
from uncertainty_depth.config import EvaluationConfig, EvaluatorNodeConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report import saved_state
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.evaluator_options import check_output
from uncertainty_depth.ros.run_state import RunState, state_folder

WIDTH = 32
HEIGHT = 24
FRAME_NS = 100_000_000
IDENTITY = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
IDENTITY_ARGUMENT = ("-p", f"lidar_to_camera:={IDENTITY}")


class Robot:
    """Publishes predictions with their clouds, and counts the scores that come back."""

    def __init__(self, graph, make, namespace=""):
        self._make = make
        scores = f"{namespace}/evaluator_node/metrics/frame/rmse"
        self._scores = graph.inbox(Float64, scores, 50)
        self._depth = graph.publisher(Image, f"{namespace}/depth/image_rect", 50)
        self._sigma = graph.publisher(Image, f"{namespace}/uncertainty/image_rect", 50)
        self._info = graph.publisher(CameraInfo, f"{namespace}/depth/camera_info")
        self._clouds = graph.publisher(PointCloud2, f"{namespace}/lidar/points", 50)

    def drive(self, first, frames):
        """Publish frames of these numbers, each once the one before is scored."""
        before = len(self._scores.messages)
        for count, index in enumerate(range(first, first + frames)):
            stamp = (index + 1) * FRAME_NS
            random = np.random.default_rng(index)
            depth_m = random.uniform(3, 5, (HEIGHT, WIDTH)).astype(np.float32)
            sigma_m = random.uniform(0.1, 1, (HEIGHT, WIDTH)).astype(np.float32)
            self._info.publish(self._make.camera_info(stamp, WIDTH, HEIGHT))
            self._depth.publish(self._make.image(stamp, depth_m))
            self._sigma.publish(self._make.image(stamp, sigma_m))
            self._clouds.publish(self._make.cloud(self._make.points_on_plane(), stamp))
            self._scores.wait(before + count + 1)


def saved_frames(output):
    """Frames in the state that is on the disk; -1 before there is one."""
    path = state_folder(output) / saved_state.STATE_FILE
    if not path.exists():
        return -1
    return strict_npz.read_header(path)["evaluated"]


def summary_of(output):
    return json.loads((output / "summary.json").read_text())


def numbers(metrics):
    return {name: np.nan if value is None else value for name, value in flatten(metrics).items()}


def rows_of(output):
    with (output / "frames.csv").open(newline="") as file:
        return [row["stamp_ns"] for row in csv.DictReader(file)]


@pytest.mark.usefixtures("without_plots")
def test_a_killed_process_goes_on_with_its_scores(start_node, graph, make, tmp_path):
    """Of another process the resumed run knows no more than of this one: it has the files."""
    output = tmp_path / "report"
    whole = tmp_path / "whole"
    killed = start_node("evaluator_node", *IDENTITY_ARGUMENT, "-p", f"output:={output}")
    robot = Robot(graph, make)
    robot.drive(0, 6)
    graph.until(lambda: saved_frames(output) == 6, "state of all six frames")
    assert killed.end(signal.SIGKILL) == -signal.SIGKILL
    assert not output.exists()

    def start(namespace, folder, **options):  # the graph remembers the killed node for long
        parameters = {"lidar_to_camera": IDENTITY, "output": str(folder), **options}
        return graph.start(EvaluatorNode, ["-r", f"__ns:={namespace}"], **parameters)

    with pytest.raises(SourceError, match="resume:=true"):
        start("/careless", output)
    assert saved_frames(output) == 6

    resumed = start("/resumed", output, resume=True)
    Robot(graph, make, "/resumed").drive(6, 3)
    graph.stop(resumed)
    summary = summary_of(output)
    assert summary["frames"] == {"read": 9, "evaluated": 9, "skipped": {}}
    assert any("6 frames were scored before" in note for note in summary["notes"])
    assert rows_of(output) == [str((index + 1) * FRAME_NS) for index in range(9)]
    assert not state_folder(output).exists()

    fresh = start("/fresh", whole)
    Robot(graph, make, "/fresh").drive(0, 9)
    graph.stop(fresh)
    expected = summary_of(whole)
    for part in ("depth", "uncertainty", "baselines"):  # sums of floats, added in another order
        values = pytest.approx(numbers(expected[part]), rel=1e-12, nan_ok=True)
        assert numbers(summary[part]) == values, part
    for part in ("camera", "pixels"):
        assert summary[part] == expected[part], part
    lines = [(line["name"], line["color"]) for line in expected["verdict"]["lines"]]
    assert [(line["name"], line["color"]) for line in summary["verdict"]["lines"]] == lines


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


def test_the_first_signal_writes_the_numbers_first_and_a_second_ctrl_c_aborts(
    start_python, graph, make, tmp_path
):
    output = tmp_path / "report"
    node = start_python(
        "-c", SLOW_PLOTS, "--ros-args", *IDENTITY_ARGUMENT, "-p", f"output:={output}"
    )
    Robot(graph, make).drive(0, 2)
    node.send(signal.SIGINT)
    node.wait_for_output("drawing")
    assert summary_of(output)["frames"]["evaluated"] == 2
    assert len(rows_of(output)) == 2
    node.send(signal.SIGTERM)  # as launch does after a while: the plots go on
    assert node.end(signal.SIGINT) == 128 + signal.SIGINT, node.output
    assert "evaluator_node: aborted" in node.output
    assert summary_of(output)["frames"]["evaluated"] == 2


def config(output, **changes):
    return EvaluatorNodeConfig(output=str(output), **changes)


def test_resuming_without_a_state_starts_a_new_run(tmp_path):
    state = RunState(config(tmp_path / "report", resume=True))
    assert state.resumed is None
    assert state.create_table().rows().path.parent == state_folder(tmp_path / "report")


def test_a_state_is_not_overwritten_unless_asked_and_only_resumed_with_the_same_options(tmp_path):
    output = tmp_path / "report"
    state = RunState(config(output))
    evaluation = Evaluation(EvaluationConfig(), state.create_table())
    state.save(evaluation, {}, pytest.fail)
    state.close()
    with pytest.raises(SourceError, match="resume:=true"):
        check_output(config(output))
    check_output(config(output, overwrite=True))
    check_output(config(output, resume=True))
    for changes in ({"alpha": 0.5}, {"max_time_difference": 1.0}):
        with pytest.raises(ConfigError, match=next(iter(changes))):
            RunState(config(output, resume=True, **changes))
    RunState(config(output, overwrite=True))
    assert not (state_folder(output) / saved_state.STATE_FILE).exists()
