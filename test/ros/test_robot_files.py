# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A robot's files: for launch, parameters, RViz, and those who consume its topics."""

import importlib.util
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections import ChainMap
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from test.ros.conftest import NODE_COMMAND, FakeNode
from uncertainty_depth.core.config.nodes import (
    DepthNodeConfig,
    EvaluatorNodeConfig,
    SigmaNodeConfig,
)
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.options import element_type, from_mapping, parameters_of
from uncertainty_depth.report.images import color_scales
from uncertainty_depth.ros.camera_names import arguments_of_camera, check_names

ROOT = Path(__file__).parents[2]
CONFIG_TYPES = {
    "depth": DepthNodeConfig,
    "sigma": SigmaNodeConfig,
    "evaluator": EvaluatorNodeConfig,
    "nav2_depth": SigmaNodeConfig,
}


def check_parameters(config_type, values):
    """Fail unless these are legal values of parameters that the node has."""
    assert values.keys() <= {item.name for item in parameters_of(config_type)}
    from_mapping(config_type, values)


@pytest.mark.parametrize("name", CONFIG_TYPES)
def test_parameter_files_hold_legal_parameters_of_the_node(name):
    """As they are, and with the lines that wait behind a # to be taken in."""
    text = (ROOT / "config" / f"{name}.yaml").read_text()
    for variant in (text, re.sub(r"^    # ", "    ", text, flags=re.MULTILINE)):
        ((namespace, content),) = yaml.safe_load(variant).items()
        values = content["ros__parameters"]
        values.pop("qos_overrides", None)
        assert namespace == "/**"
        assert "use_sim_time" not in values  # it would undo what a parent launch file sets
        check_parameters(CONFIG_TYPES[name], values)


def test_depth_from_images_alone_is_cleared_by_alike():
    """By this package's network, and by Nav2's."""
    clearing = []
    for name in ("depth", "nav2_depth"):
        ((_, content),) = yaml.safe_load((ROOT / "config" / f"{name}.yaml").read_text()).items()
        values = content["ros__parameters"]
        clearing.append((values["clearing_sigmas"], values["clearing_fraction"]))
    assert clearing == [(0.0, 0.6)] * 2


def test_the_aggregator_sorts_the_status_of_every_node(graph, start_depth):
    from diagnostic_msgs.msg import DiagnosticArray

    from uncertainty_depth.ros.evaluator_node import EvaluatorNode
    from uncertainty_depth.ros.sigma_node import SigmaNode

    statuses = graph.inbox(DiagnosticArray, "/diagnostics", matched=False)
    start_depth(["-r", "__ns:=/front"])
    graph.start(EvaluatorNode, lidar_to_camera=[0.0] * 6 + [1.0])
    graph.start(SigmaNode, confidence_type="variance")
    arrays = statuses.wait(lambda arrays: len({one.status[0].name for one in arrays}) == 3)
    ids = {status.name: status.hardware_id for array in arrays for status in array.status}
    assert set(ids) == {"front/depth_node: depth", "evaluator_node: scores", "sigma_node: sigma"}
    assert set(ids.values()) == {platform.node()}
    text = (ROOT / "config" / "diagnostic_aggregator.yaml").read_text()
    ((name, content),) = yaml.safe_load(text).items()
    assert name == "analyzers"  # of diagnostic_aggregator
    analyzers = [item for item in content["ros__parameters"].values() if isinstance(item, dict)]
    for status in ids:
        fitting = [one for one in analyzers if any(text in status for text in one["contains"])]
        assert len(fitting) == 1, status


@pytest.fixture(scope="module")
def displays():
    content = yaml.safe_load((ROOT / "config" / "uncertainty_depth.rviz").read_text())
    assert content["Visualization Manager"]["Global Options"]["Fixed Frame"] == "camera"
    return displays_of(content)


def displays_of(content):
    """Displays of an RViz file by topic."""
    return {
        display["Topic"]["Value"]: display
        for display in content["Visualization Manager"]["Displays"]
        if "Topic" in display
    }


def test_rviz_shows_what_matters(displays):
    shown = {topic for topic, display in displays.items() if display["Enabled"]}
    assert shown == {
        *("image", "depth/image_color", "uncertainty/image_color", "color_scales/image"),
        *("points/uncertainty_color", "points/clearing", "lidar/points"),
    }
    points = displays["points/uncertainty_color"]
    assert points["Color Transformer"] == "RGB8", "the colours of the message"


@pytest.mark.parametrize(
    "names", [["Sparsification plot"], ["Sparsification plot", "Ground truth"]]
)
def test_rviz_shows_displays_that_are_off_in_its_file(displays, names):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from uncertainty_depth.ros.rviz_on_camera import with_shown

    content = with_shown(ROOT / "config" / "uncertainty_depth.rviz", names).read_text()
    shown = yaml.safe_load(content)
    by_topic = displays_of(shown)
    changed = [one for topic, one in by_topic.items() if one != displays[topic]]
    assert [one["Name"] for one in changed] == names
    assert all(one["Enabled"] is one["Value"] is True for one in changed)
    check_docks(shown)


@pytest.mark.parametrize(
    ("published", "told"),
    [
        ({}, "nobody publishes /front/depth/image_rect: start a depth node"),
        ({"/camera/image": "sensor_msgs/msg/Image"}, "images that are published: /camera/image"),
        ({"/front/depth/image_rect": "sensor_msgs/msg/Image"}, "/diagnostics say what it waits"),
    ],
)
def test_rviz_that_waits_says_why(published, told):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from uncertainty_depth.ros.rviz_on_camera import what_is_missing

    node = SimpleNamespace(
        resolve_topic_name="/front/{}".format,
        count_publishers=[*published].count,
        get_topic_names_and_types=lambda: [(name, [kind]) for name, kind in published.items()],
    )
    assert told in what_is_missing(node)


@pytest.fixture
def rviz_prefix(tmp_path):
    """An installed workspace with this package, and with a program in RViz's place."""
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    index = tmp_path / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    for package in ("rviz2", "uncertainty_depth"):
        (index / package).touch()
    rviz = tmp_path / "lib" / "rviz2" / "rviz2"
    rviz.parent.mkdir(parents=True)
    rviz.write_text('#!/bin/sh\necho "opened: $@"\n')
    rviz.chmod(0o755)
    return tmp_path


def run_rviz_on_camera(prefix, *arguments):
    code = "import sys; from uncertainty_depth.ros.rviz_on_camera import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"AMENT_PREFIX_PATH": str(prefix)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_rviz_opens_the_packages_displays_in_the_frame(rviz_prefix):
    ended = run_rviz_on_camera(rviz_prefix, "--frame", "camera")
    config = rviz_prefix / "share/uncertainty_depth/config/uncertainty_depth.rviz"
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"opened: -d {config} -f camera\n"


@pytest.mark.parametrize("missing", ["rviz2", "uncertainty_depth", ""])
def test_rviz_that_cannot_start_says_in_a_sentence_what_is_missing(rviz_prefix, missing):
    """Before it waits for a map; it was a traceback where no distribution is sourced."""
    if missing:
        (rviz_prefix / "share/ament_index/resource_index/packages" / missing).unlink()
    ended = run_rviz_on_camera(rviz_prefix if missing else "")
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert f"the ROS package {missing or 'rviz2'} is not found" in ended.stderr


def test_rviz_opens_with_a_window_layout_that_shows_every_image_at_nearly_its_size():
    check_docks(yaml.safe_load((ROOT / "config" / "uncertainty_depth.rviz").read_text()))


def check_docks(content):
    """Check the saved QMainWindow, as QDockAreaLayoutInfo::saveState writes it."""
    state = bytes.fromhex(content["Window Geometry"]["QMainWindow State"])
    assert b"\xfa" not in state  # Qt's marker of tabs: a hidden tab switches its display off
    shown = {
        "color_scales/image": color_scales(10.0, 1.0).shape[:2],
        "evaluator_node/sparsification/image": (240, 320),
        "depth/image_color": (240, 320),
    }
    for topic, display in displays_of(content).items():
        if not display["Class"].endswith("/Image"):
            continue
        name = display["Name"].encode("utf-16-be")
        dock = b"\xfb" + len(name).to_bytes(4, "big") + name
        assert state.count(dock) == 1
        flags = state.index(dock) + len(dock)
        assert bool(state[flags] & 1) == display["Enabled"], topic
        if topic in shown:
            height, width = shown[topic]
            dock_width, dock_height = size_of_dock(state, flags)
            title = 22
            scale = min(dock_width / width, (dock_height - title) / height)
            assert scale > 0.8, (topic, dock_width, dock_height)


def size_of_dock(state, flags):
    """Width and height of the dock whose flags lie there."""
    length = int.from_bytes(state[flags + 5 : flags + 9], "big")
    area = list(re.finditer(rb"(.{4})(.{4})\xfc([\x01\x02])", state[:flags], re.DOTALL))[-1]
    width, height = (int.from_bytes(area[side], "big") for side in (1, 2))
    is_row = area[3] == b"\x01"
    return (length, height) if is_row else (width, length)


def test_rviz_has_every_output_on_fixed_ranges_that_its_names_tell(displays):
    outputs = {"points/confident", "points/clearing"}
    outputs |= {f"depth/{name}/image_rect" for name in ("confident", "lower", "upper")}
    assert outputs <= displays.keys()
    for topic, display in displays.items():
        assert not display.get("Normalize Range")
        assert not display.get("Autocompute Intensity Bounds")
        if topic.endswith("/image_rect"):
            assert f"0-{display['Max Value']} m" in display["Name"]


def test_rviz_fits_on_a_small_screen_and_its_names_into_the_list(displays):
    window = yaml.safe_load((ROOT / "config" / "uncertainty_depth.rviz").read_text())
    geometry = window["Window Geometry"]
    assert geometry["Width"] <= 1280
    assert geometry["Height"] <= 720
    for display in window["Visualization Manager"]["Displays"]:
        assert len(display["Name"]) <= 24


@pytest.fixture
def of_nodes(interfaces):
    """The topics of the depth node and the evaluator node, with their types."""
    return dict(ChainMap(*interfaces["depth_node"][:2], *interfaces["evaluator_node"][:2]))


def test_rviz_topics_are_those_of_the_nodes(displays, of_nodes):
    types = {
        "rviz_default_plugins/Image": "sensor_msgs/msg/Image",
        "rviz_default_plugins/PointCloud2": "sensor_msgs/msg/PointCloud2",
    }
    shown = {f"/{topic}": types[display["Class"]] for topic, display in displays.items()}
    assert shown.items() <= of_nodes.items()


def test_foxglove_shows_topics_of_the_nodes_and_every_panel_has_a_place(of_nodes):
    layout = json.loads((ROOT / "config" / "uncertainty_depth.foxglove.json").read_text())
    placed = set()
    parts = [layout["layout"]]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            placed.add(part)
        else:
            parts += [part["first"], part["second"]]
    assert placed == layout["configById"].keys()
    types = {}
    for panel in layout["configById"].values():
        if "imageMode" in panel:
            types[panel["imageMode"]["imageTopic"]] = "sensor_msgs/msg/Image"
        for topic in panel.get("topics", {}):
            types[topic] = "sensor_msgs/msg/PointCloud2"
        for path in panel.get("paths", ()):
            types[path["value"].removesuffix(".data")] = "std_msgs/msg/Float64"
    assert types.items() <= of_nodes.items()


@pytest.fixture
def description():
    pytest.importorskip("launch_ros", reason="the launch library is not installed")

    def load(name):
        spec = importlib.util.spec_from_file_location(name, ROOT / "launch" / f"{name}.launch.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.generate_launch_description()

    return load


def test_the_launch_file_for_nav2_reads_the_topics_of_its_depth_pipeline(description):
    from launch import LaunchContext

    context = LaunchContext()
    for argument in description("nav2_depth").get_launch_arguments():
        if argument.name in ("depth", "depth_camera_info", "confidence"):
            argument.execute(context)
    assert context.launch_configurations == {
        "depth": "/depth_image",
        "depth_camera_info": "/resize/camera_info",
        "confidence": "confidence/image",
    }
    arguments = {it.name: it for it in description("nav2_depth").get_launch_arguments()}
    assert "nav2_depth.yaml" in arguments["params_file"].default_value[0].describe()


def test_the_page_has_every_argument_of_the_launch_files(description):
    files = ("depth", "sigma", "evaluate", "robot", "nav2_depth")
    launched = {it.name for name in files for it in description(name).get_launch_arguments()}
    page = (ROOT / "docs" / "robot.md").read_text()
    section = page.partition("\n## Launch files\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+) \|", section, flags=re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == launched


@pytest.fixture
def context(description):
    """Returns the context of a launch file with only these arguments, and its first node."""
    from launch import LaunchContext
    from uncertainty_depth.ros.launching import DEPTH, EVALUATOR, SIGMA

    def make(launch_file, **arguments):
        context = LaunchContext()
        for argument in description(launch_file).get_launch_arguments():
            context.launch_configurations[argument.name] = ""
        context.launch_configurations.update(arguments)
        nodes = {"depth": DEPTH, "robot": DEPTH, "sigma": SIGMA, "evaluate": EVALUATOR}
        return context, nodes[launch_file]

    return make


def test_an_empty_argument_leaves_the_parameter_file_alone_and_others_are_of_their_type(context):
    from uncertainty_depth.ros.launching import parameter_overrides

    def overrides(launch_file, **arguments):
        launch_context, node = context(launch_file, **arguments)
        values = parameter_overrides(node, launch_context.launch_configurations)
        if "model" in values:
            values["model"] = values["model"].evaluate(launch_context)
        return values

    assert overrides("depth") == {}
    text = {"samples": "4", "autostart": "false", "use_sim_time": "true", "model": "007"}
    assert overrides("depth", **text) == {
        "samples": 4,
        "autostart": False,
        "use_sim_time": True,
        "model": "007",  # a path, not a number
    }
    pose = {"lidar_to_camera": [0.1, 0, 0, 0, 0, 0, 1]}
    for text in ("0.1 0 0 0 0 0 1", "[0.1, 0, 0, 0, 0, 0, 1]"):
        assert overrides("evaluate", lidar_to_camera=text) == pose
    of_both = overrides("evaluate", evaluator_autostart="false", autostart="true")
    assert of_both == {"autostart": False}, "each node has those that name it"


@pytest.mark.parametrize(
    ("launch_file", "arguments", "names"),
    [
        ("depth", {}, []),
        ("evaluate", {}, ["Sparsification plot"]),
        (
            "evaluate",
            {"use_ground_truth_image": "true"},
            ["Sparsification plot", "Ground truth"],
        ),
    ],
)
def test_rviz_shows_what_an_evaluator_and_its_depth_image_bring(
    context, monkeypatch, launch_file, arguments, names
):
    """A LiDAR is among the points; of a depth image nothing else would be seen."""
    from uncertainty_depth.ros import launching

    monkeypatch.setattr(launching, "get_package_prefix", lambda _: None)
    monkeypatch.setattr(launching, "Node", lambda **options: SimpleNamespace(**options))
    launch_context, node = context(launch_file, **arguments)
    given = launching.rviz([node], "", launch_context.launch_configurations).arguments
    assert [name for flag, name in pairwise(given) if flag == "--show"] == names


def test_transports_are_set_only_where_asked_for(context):
    from launch.actions import SetEnvironmentVariable

    from uncertainty_depth.ros.launching import start

    def settings(**arguments):
        launch_context, node = context("depth", **arguments)
        actions = start(launch_context, [node])
        for action in actions:
            if isinstance(action, SetEnvironmentVariable):
                action.execute(launch_context)
        return launch_context.environment.get("FASTDDS_BUILTIN_TRANSPORTS")

    before = os.environ.get("FASTDDS_BUILTIN_TRANSPORTS")
    assert settings() == before
    assert settings(transports="LARGE_DATA") == "LARGE_DATA"


def test_the_camera_info_of_the_ground_truth_can_be_named(description):
    from launch import LaunchContext
    from uncertainty_depth.ros.launching import EVALUATOR, remappings

    context = LaunchContext()
    for argument in description("evaluate").get_launch_arguments():
        argument.execute(context)
    arguments = context.launch_configurations
    name = "ground_truth/camera_info"
    assert (name, name) in remappings(EVALUATOR.topics, arguments), "as if it were not remapped"
    arguments["ground_truth_camera_info"] = "/tof/camera_info"
    assert (name, "/tof/camera_info") in remappings(EVALUATOR.topics, arguments)


@pytest.mark.parametrize("cameras", ["front rear", "front,rear", " front,  rear "])
def test_nodes_are_started_once_per_camera(context, cameras):
    from uncertainty_depth.ros.launching import DEPTH, EVALUATOR, start

    launch_context, _ = context("robot", cameras=cameras, image="/{camera}/image_raw")
    assert len(start(launch_context, [DEPTH, EVALUATOR])) == 4
    launch_context.launch_configurations["cameras"] = ""
    assert len(start(launch_context, [DEPTH, EVALUATOR])) == 2


@pytest.mark.parametrize(
    ("launch_file", "name"),
    [("depth", "depth"), ("sigma", "sigma"), ("evaluate", "evaluator")],
)
def test_launch_files_give_no_parameter_the_node_lacks(context, monkeypatch, launch_file, name):
    """With every argument given."""
    from launch_ros.utilities import evaluate_parameters, normalize_parameters

    from uncertainty_depth.ros import launching

    monkeypatch.setattr(launching, "Node", lambda **options: SimpleNamespace(**options))
    config_type = CONFIG_TYPES[name]
    context_of_file, node = context(launch_file)
    fields = [item for item in parameters_of(config_type) if item.name in node.parameters]
    for item in fields:
        argument = argument_of(item, element_type(config_type, item.name))
        context_of_file.launch_configurations[node.argument(item.name)] = argument
    params_file = str(ROOT / "config" / f"{name}.yaml")
    context_of_file.launch_configurations[node.argument("params_file")] = params_file
    context_of_file.launch_configurations["use_sim_time"] = "false"
    started = launching.start_node(node, "", context_of_file.launch_configurations)
    file, parameters = evaluate_parameters(
        context_of_file, normalize_parameters(started.parameters)
    )
    assert parameters.keys() == {*node.parameters, "use_sim_time"}
    assert str(file) == params_file or Path(file).is_file()
    parameters.pop("use_sim_time")
    check_parameters(config_type, parameters)


def argument_of(item, scalar):
    """Return a launch argument that sets this field, whose elements are scalars of this type."""
    if item.metadata["choices"]:
        return item.metadata["choices"][-1]
    if item.default == ():
        return "0 0 0 0 0 0 1" if scalar is float else "auce<=0.05, 7"
    return "somewhere" if item.default == "" else str(item.default)


LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

arguments = [text.split(":=", 1) for text in sys.argv[2:]]
source = PythonLaunchDescriptionSource(sys.argv[1])
service = LaunchService(noninteractive=True)  # else Ctrl-C is the terminal's to pass on
include = IncludeLaunchDescription(source, launch_arguments=arguments)
service.include_launch_description(LaunchDescription([include]))
sys.exit(service.run())
"""


@pytest.fixture
def launch(description, start_python, tmp_path, monkeypatch):
    """Starts a launch file with the package installed, with these programs as its nodes."""

    def start(name, *arguments, **programs):
        index = tmp_path / "share" / "ament_index" / "resource_index" / "packages"
        scripts = tmp_path / "lib" / "uncertainty_depth"
        share = tmp_path / "share" / "uncertainty_depth"
        for folder in (index, scripts, share):
            folder.mkdir(parents=True)
        for package in ("uncertainty_depth", *(["rviz2"] if "rviz_on_camera" in programs else [])):
            (index / package).touch()
        (share / "config").symlink_to(ROOT / "config")
        for program, text in programs.items():
            (scripts / program).write_text(f"#!/bin/sh\n{text}\n")
            (scripts / program).chmod(0o755)
        prefixes = f"{tmp_path}:{os.environ.get('AMENT_PREFIX_PATH', '')}"
        monkeypatch.setenv("AMENT_PREFIX_PATH", prefixes)
        return start_python("-c", LAUNCH, str(ROOT / "launch" / f"{name}.launch.py"), *arguments)

    return start


@pytest.mark.parametrize(("code", "expected"), [(3, 1), (0, 0)])
def test_launch_ends_with_a_node_and_tells_its_failure(launch, code, expected):
    """The other node is stopped as Ctrl-C does: it writes its report."""
    process = launch(
        "robot",
        depth_node=f"sleep 1; exit {code}",
        evaluator_node="trap 'echo report; exit 0' INT; while :; do sleep .1; done",
    )
    assert process.end() == expected, process.output
    assert "report" in process.output
    if code:
        assert "depth_node-1 ended with exit code 3" in process.output


def test_each_camera_has_a_node_and_all_may_share_a_lidar(launch, tiny_model):
    """The documented example."""
    process = launch(
        "depth",
        *(f"model:={tiny_model}", "cameras:=front rear"),
        *("image:=/{camera}/image_raw", "camera_info:=/{camera}/camera_info"),
        "lidar:=/lidar/points",
        depth_node=f"exec {sys.executable} -c '{NODE_COMMAND.format('depth_node')}' \"$@\"",
    )
    for name in ("front.depth_node", "rear.depth_node"):
        process.wait_for_output(f"[{name}]: mc_dropout on")
    assert process.end(signal.SIGINT) == 0, process.output
    assert "process has died" not in process.output


def test_nothing_is_started_where_rviz_is_asked_for_and_missing(launch):
    process = launch("depth", "rviz:=true", depth_node="echo started")
    assert process.end() == 1, process.output
    assert "rviz2 is not installed" in process.output
    assert "started" not in process.output


def test_each_of_several_cameras_has_an_rviz_of_its_own_topics(launch):
    """One for all would show topics that no node has, or refuse the name `/{camera}/image_raw`."""
    process = launch(
        "depth",
        *("rviz:=true", "cameras:=front rear"),
        *("image:=/{camera}/image_raw", "frame:={camera}_optical"),
        "use_sim_time:=true",
        depth_node="sleep 2",
        rviz_on_camera='echo "shown: $@"',
    )
    process.end()
    shown = [line for line in process.output.splitlines() if "shown: " in line]
    assert len(shown) == 2, process.output
    for camera, line in zip(
        ("front", "rear"), sorted(shown, key=lambda it: "rear" in it), strict=True
    ):
        assert f"-r __ns:=/{camera} " in line
        assert f"-r image:=/{camera}/image_raw " in line
        assert f"--frame {camera}_optical " in line
        assert f"-t {camera} - RViz " in line
        assert "--params-file " in line, "RViz runs on the nodes' clock"


CONSUMERS = sorted((ROOT / "config" / "consumers").glob("*.yaml"))
OF_CLOUDS = (
    "nav2_obstacle_layer", "nav2_voxel_layer", "spatio_temporal_voxel_layer", "elevation_mapping",
)  # fmt: skip
CLOUD_TYPES = dict.fromkeys(OF_CLOUDS, "sensor_msgs/msg/PointCloud2")
SCAN_TYPES = {"depth": "sensor_msgs/msg/Image", "depth_camera_info": "sensor_msgs/msg/CameraInfo"}


def mappings(content):
    """Every mapping in the file, the outer ones first."""
    yield content
    for value in content.values():
        if isinstance(value, dict):
            yield from mappings(value)


def named_topics(path):
    """The topics in the parameters and in the commented remaps, with their types."""
    text = path.read_text()
    found = {
        part["topic"]: CLOUD_TYPES[path.stem]
        for part in mappings(yaml.safe_load(text))
        if "topic" in part
    }
    for consumed, topic in re.findall(r"-r (\S+):=(\S+)", text):
        found[f"/{topic}"] = SCAN_TYPES[consumed]
    return found


def test_there_is_a_file_for_each_consumer():
    assert {path.stem for path in CONSUMERS} == {*CLOUD_TYPES, "depthimage_to_laserscan"}


def test_every_topic_is_published_with_the_type_that_is_read():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from uncertainty_depth.ros.messages import type_name
    from uncertainty_depth.ros.outputs import DerivedOutputs

    node = FakeNode()
    DerivedOutputs(node)
    published = {f"/{topic}": message_type for topic, message_type in node.types.items()}
    for path in CONSUMERS:
        topics = named_topics(path)
        assert topics, path
        for topic, message_type in topics.items():
            assert type_name(published[topic]) == message_type, f"{path.name}: {topic}"


@pytest.mark.parametrize("path", CONSUMERS, ids=lambda path: path.stem)
def test_all_points_mark_and_clearing_points_clear(path):
    """A layer marks with one source, clears with the other, and uses each that it lists."""
    for layer in mappings(yaml.safe_load(path.read_text())):
        for name in layer.get("observation_sources", "").split():
            source = layer[name]
            expected = "/points" if source["marking"] else "/points/clearing"
            assert source["topic"] == expected
            assert source["clearing"] is not source["marking"]


def test_elevation_mappings_model_is_the_one_that_confidence_ratio_is_made_for():
    content = yaml.safe_load(
        (ROOT / "config" / "consumers" / "elevation_mapping.yaml").read_text()
    )
    model = content["input_sources"].popitem()[1]["sensor_processor"]
    assert [model[f"normal_factor_{letter}"] for letter in "abcde"] == [0.0, 0.0, 0.0, 1.0, 1.0]
    assert model["lateral_factor"] > 0


@pytest.mark.parametrize("text", ["front front", "front re-ar", "1st"])
def test_what_is_no_namespace_is_refused(text):
    with pytest.raises(ConfigError, match="expected different names"):
        check_names(text.split())


def test_the_name_stands_in_any_argument_and_reports_are_kept_apart():
    arguments = {"image": "/{camera}/image_raw", "lidar": "/lidar", "output": "", "model": "demo"}
    assert arguments_of_camera("rear", arguments) == {
        "image": "/rear/image_raw",
        "lidar": "/lidar",
        "output": "evaluation/rear",
        "model": "demo",
    }
    assert arguments_of_camera("rear", {"output": "day/{camera}"}) == {"output": "day/rear"}
    with pytest.raises(ConfigError, match=r"expected \{camera\} in it"):
        arguments_of_camera("rear", {"output": "day"})
