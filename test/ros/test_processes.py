# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Real processes on real topics: start, stop, and live scores against offline ones."""

import signal

import pytest
from sensor_msgs.msg import Image

from synthetic.config import SynthesisConfig
from synthetic.source import synthesize
from test.ros.conftest import NODE_COMMAND
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.frames.bag import BagSource


@pytest.mark.parametrize(
    ("node", "arguments", "sentence"),
    [
        ("depth_node", ("--params-file", "/no/such.yaml"), "ROS arguments cannot be used"),
        ("evaluator_node", (), "lidar_to_camera is empty and tf2_ros is not installed"),
    ],
)
def test_what_cannot_work_is_one_sentence_and_exit_code_1(start_node, node, arguments, sentence):
    process = start_node(node, *arguments)
    assert process.end() == 1
    assert sentence in process.output
    assert "Traceback" not in process.output
    assert len([line for line in process.output.strip().splitlines() if "[rcl]" not in line]) == 1


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


def test_a_signal_ends_a_node_that_still_loads_its_model(start_python, tiny_model):
    node = start_python("-c", SLOW_START, "--ros-args", "-p", f"model:={tiny_model}")
    node.wait_for_output("loading")
    assert node.end(signal.SIGTERM) == 0
    assert "Traceback" not in node.output


LOST_GPU = """
import sys
from uncertainty_depth.core.device_errors import DeviceLostError
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.ros import main

def lose(predictor, frame, samples=None):
    raise DeviceLostError("cuda is lost until the process starts anew: a bad access")

Predictor.predict_frame = lose
sys.exit(main.depth_node())
"""


def test_a_gpu_that_is_lost_ends_the_node_for_launch_to_start_it_anew(
    start_python, robot, tiny_model
):
    options = ("-p", f"model:={tiny_model}", "-p", "max_frame_age:=0.0")
    node = start_python("-c", LOST_GPU, "--ros-args", *options)
    robot.image(1)
    assert node.end() == 1
    sentence = "cuda is lost until the process starts anew: a bad access"
    assert f"depth_node: {sentence}" in node.output
    assert "1 dropped.failed" in node.output
    assert "Traceback" not in node.output


STUCK = """
import threading
from uncertainty_depth.ros.main import exit_if_stuck
from uncertainty_depth.ros.node import take_down

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
    arguments = "--log-level info --ros-args -r __node:=front -r __ns:=/robot --params-file"
    node = start_node("depth_node", *arguments.split(), str(file))
    node.wait_for_output("mc_dropout on cpu")
    (line,) = (line for line in node.output.splitlines() if "has no effect" in line)
    assert line.startswith("[WARN]")
    assert line.endswith(
        "[robot.front]: parameter 'sampels' is not one of front's and has no effect; "
        "did you mean 'samples'?"
    )
    assert node.end(signal.SIGTERM) == 0
    assert "Traceback" not in node.output


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    path = tmp_path_factory.mktemp("bags") / "world"
    synthesize(
        path,
        SynthesisConfig(worlds=1, frames=8, seed=5, width=96, height=72, rings=16),
        progress=False,
    )
    return path


def test_a_player_that_loops_stops_when_interrupted(start_python, graph, bag):
    player = start_python("-m", "synthetic.player", str(bag), "--loop", "--clock")
    images = graph.inbox(Image, BagSource(bag, SourceConfig()).topics.image)
    images.wait(10)  # more than the bag holds
    assert player.end(signal.SIGINT) == 130
    assert "Traceback" not in player.output
    assert "player: interrupted" in player.output
