# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Real processes on real topics: start, stop, and live scores against offline ones."""

from __future__ import annotations

import json
import math
import signal
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import Image

from synthetic.config import SynthesisConfig
from synthetic.source import synthesize
from uncertainty_depth.config import PlayerConfig, PredictorConfig, SourceConfig
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.predicted import predicted
from uncertainty_depth.geometry.transforms import parameters_from
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.ros.depth_node import DepthNode
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.player import play

DEADLINE_S = 120
IDENTITY = ("-p", "lidar_to_camera:=[0., 0., 0., 0., 0., 0., 1.]")


def test_depth_node_stops_cleanly(start_node, tiny_model):
    """On SIGTERM; on SIGINT the one stops that starts with what launch passes."""
    node = start_node("depth_node", "-p", f"model:={tiny_model}")
    node.wait_for_output("mc_dropout on cpu")
    assert node.end(signal.SIGTERM) == 0
    assert "Traceback" not in node.output


def test_evaluator_node_stops_cleanly_and_writes_its_report(start_node, graph, tmp_path):
    """On SIGTERM; on SIGINT it stops in the demo."""
    node = start_node("evaluator_node", *IDENTITY, "-p", f"output:={tmp_path / 'report'}")
    graph.until(
        lambda: "evaluator_node" in graph.node.get_node_names(), "evaluator node", DEADLINE_S
    )
    graph.inbox(DiagnosticArray, "/diagnostics").wait(1)
    assert node.end(signal.SIGTERM) == 0
    assert "Traceback" not in node.output
    assert json.loads((tmp_path / "report" / "summary.json").read_text())["frames"]["read"] == 0
    assert (
        node.output.splitlines()[-1]
        == f"0 frames scored, report: {tmp_path / 'report' / 'report.html'}"
    )


@pytest.mark.parametrize(
    ("node", "arguments", "sentence"),
    [
        ("depth_node", (), "depth_node: the parameter model is empty; expected a model folder"),
        ("depth_node", ("--params-file", "/no/such.yaml"), "ROS arguments cannot be used"),
        ("evaluator_node", (), "lidar_to_camera is empty and tf2_ros is not installed"),
        (
            "evaluator_node",
            ("-p", "lidar_to_camera:=[1., 2.]"),
            "lidar_to_camera has 2 numbers; expected 7",
        ),
    ],
)
def test_what_cannot_work_is_one_sentence_and_exit_code_1(start_node, node, arguments, sentence):
    process = start_node(node, *arguments)
    assert process.end() == 1
    assert sentence in process.output
    assert "Traceback" not in process.output
    assert len([line for line in process.output.strip().splitlines() if "[rcl]" not in line]) == 1


NODE_COMMAND = "import sys; from uncertainty_depth.ros.main import {0}; sys.exit({0}())"


def test_a_wrong_model_folder_is_reported_before_torch_is_imported(start_python):
    without_torch = f"import sys; sys.modules['torch'] = None; {NODE_COMMAND.format('depth_node')}"
    node = start_python("-c", without_torch, "--ros-args", "-p", "model:=/no/such/model")
    assert node.end() == 1
    assert "model folder /no/such/model does not exist" in node.output


SLOW_START = """
import sys, time
from uncertainty_depth.ros import depth_node, main

def load_predictor(config):
    print("loading", flush=True)
    time.sleep(600)

depth_node.load_predictor = load_predictor
sys.exit(main.depth_node())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_node_that_still_loads_its_model(start_python, tiny_model, number):
    node = start_python("-c", SLOW_START, "--ros-args", "-p", f"model:={tiny_model}")
    node.wait_for_output("loading")
    assert node.end(number) == 0
    assert "Traceback" not in node.output


STUCK = """
import threading
from uncertainty_depth.ros.node import exit_if_stuck, take_down

take_down(threading.Event().wait)
print("the counts")
exit_if_stuck(0)
threading.Event().wait()
"""


def test_a_middleware_that_hangs_does_not_keep_the_process(start_python):
    process = start_python("-c", STUCK)
    assert process.end() == 0
    assert process.output == "the counts\n"


def test_a_node_starts_with_what_launch_passes_and_names_a_misspelt_parameter(
    start_node, tiny_model, tmp_path
):
    file = tmp_path / "launch_params.yaml"
    file.write_text(
        f"/**: {{ros__parameters: {{use_sim_time: false, sampels: 16, model: {tiny_model}}}}}"
    )
    node = start_node(
        "depth_node",
        "--log-level",
        "info",
        "--ros-args",
        "-r",
        "__node:=front",
        "-r",
        "__ns:=/robot",
        "--params-file",
        str(file),
    )
    node.wait_for_output("mc_dropout on cpu")
    (line,) = (line for line in node.output.splitlines() if "has no effect" in line)
    assert line.startswith("[WARN]")
    assert line.endswith(
        "[robot.front]: parameter 'sampels' is not one of front's and has no effect; "
        "did you mean 'samples'?"
    )
    assert node.end(signal.SIGINT) == 0


@pytest.fixture(scope="module")
def bag(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bags") / "world"
    synthesize(
        path,
        SynthesisConfig(worlds=1, frames=8, seed=5, width=96, height=72, rings=16),
        progress=False,
    )
    return path


def test_a_player_that_loops_stops_when_interrupted(start_python, graph, bag):
    player = start_python(
        "-m", "uncertainty_depth.cli.main", "play", str(bag), "--loop", "--clock"
    )
    graph.inbox(Image, BagSource(bag, SourceConfig()).topics.image).wait(
        10
    )  # more than the bag holds
    assert player.end(signal.SIGINT) == 130
    assert "Traceback" not in player.output
    assert "uncertainty-depth: interrupted" in player.output


@pytest.mark.usefixtures("without_plots")
def test_live_and_offline_agree(graph, bag, tiny_model, tmp_path):
    """Player and both nodes, nothing dropped: the same metrics as `evaluate`."""
    source = BagSource(bag, SourceConfig())
    topics = source.topics
    report = tmp_path / "live"
    evaluator = graph.start(
        EvaluatorNode,
        ["-r", f"lidar/points:={topics.lidar}"],
        lidar_to_camera=list(parameters_from(source.lidar_to_camera)),
        output=str(report),
        queue_size=64,
    )
    depth = graph.start(
        DepthNode,
        ["-r", f"image:={topics.image}", "-r", f"camera_info:={topics.camera_info}"],
        model=str(tiny_model),
        max_frame_age=0.0,
        queue_size=64,
    )
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50, matched=False)
    diagnostics.wait_for(
        lambda message: facts(message, "depth_node").get("uncertainty_subscribers") == "1",
        DEADLINE_S,
    )

    player = PlayerConfig(
        wait_for_subscribers=DEADLINE_S,
        wait_for_result="/uncertainty/image_rect",
        result_timeout=DEADLINE_S,
    )
    played = play(bag, player, progress=False)
    assert (played.sent[topics.image], played.unanswered) == (8, 0)
    diagnostics.wait_for(
        lambda message: has_all(facts(message, "evaluator_node"), played.sent[topics.lidar]),
        DEADLINE_S,
    )
    graph.stop(evaluator)  # only now the last frame, which waits for a later cloud, is decided
    graph.stop(depth)
    live = json.loads((report / "summary.json").read_text())

    offline = evaluate(
        predicted(source, Predictor(tiny_model, PredictorConfig())), progress=False
    ).summary()
    assert live["frames"] == offline["frames"] == {"read": 8, "evaluated": 8, "skipped": {}}
    assert live["notes"] == []
    metrics = {name: value for name, value in flatten(offline).items() if name != "frames.skipped"}
    assert len(metrics) > 60
    for name, value in metrics.items():
        shown = flatten(live)[name]
        if math.isfinite(value):
            assert shown == pytest.approx(value, rel=1e-6), name
        else:  # JSON has neither NaN nor infinity
            assert shown is None, name


def facts(message, name):
    return {
        item.key: item.value
        for status in message.status
        if status.name == name
        for item in status.values
    }


def has_all(facts, clouds):
    streams = {"uncertainty/image_rect": 8, "depth/image_rect": 8, "lidar/points": clouds}
    return all(facts.get(f"received.{name}") == str(count) for name, count in streams.items())
