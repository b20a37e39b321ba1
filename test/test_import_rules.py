# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What may be imported where, what package.xml declares, and what a part does without."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "uncertainty_depth"
ROS = re.compile(
    r"rclpy|rcl_interfaces|builtin_interfaces|\w+_msgs|tf2_\w+|cv_bridge|rosbag2_py"
    r"|ament_index_python|launch|launch_ros|message_filters"
)
MAY_IMPORT_ROS = {("frames/messages/images.py", "cv_bridge")}
ROSDEP_KEYS = {
    "PIL": "python3-pil",
    "backports": "python3-rosbags-pip",  # zstd, which it depends on
    "compression": "python3-rosbags-pip",  # zstd of Python 3.14
    "cv2": "python3-opencv",
    "huggingface_hub": "python3-transformers-pip",
    "jinja2": "python3-jinja2",
    "matplotlib": "python3-matplotlib",
    "mcap": "mcap-ros2-support",
    "numpy": "python3-numpy",
    "rosbags": "python3-rosbags-pip",
    "safetensors": "python3-transformers-pip",
    "scipy": "python3-scipy",
    "sklearn": "python3-sklearn",
    "threadpoolctl": "python3-sklearn",  # which depends on it
    "torch": "python3-torch",
    "tqdm": "python3-tqdm",
    "transformers": "python3-transformers-pip",
    "yaml": "python3-yaml",
}
OPTIONAL = {"jax", "numpyro", "onnxruntime", "openvino", "ray", "rerun", "uncertainty_toolbox"}
"""Extras of setup.py."""


def imported_packages(path: Path) -> set[str]:
    """Return the top-level packages that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_only_the_room_of_the_nodes_imports_ros_and_nothing_what_only_a_clone_has():
    for path in PACKAGE.rglob("*.py"):
        names = imported_packages(path)
        assert not names & {"synthetic", "experiments", "benchmarks", "test"}, path
        place = path.relative_to(PACKAGE)
        if place.parts[0] != "ros":
            of_ros = {(place.as_posix(), name) for name in names if ROS.fullmatch(name)}
            assert of_ros <= MAY_IMPORT_ROS


def test_every_import_is_declared():
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    declared = {item.text for item in package.iter("exec_depend")}
    modules = [*PACKAGE.rglob("*.py"), *ROOT.glob("launch/*.py")]
    imported = set().union(*map(imported_packages, modules))
    foreign = imported - set(sys.stdlib_module_names) - OPTIONAL - {"uncertainty_depth"}
    assert len(foreign) > 15
    undeclared = {name for name in foreign if ROSDEP_KEYS.get(name, name) not in declared}
    assert undeclared == set()


METRICS_AND_REPORT = """
import importlib, pkgutil
for name in ("uncertainty_depth.metrics", "uncertainty_depth.report"):
    for module in pkgutil.iter_modules(importlib.import_module(name).__path__, name + "."):
        importlib.import_module(module.name)
"""
HELP = """
from uncertainty_depth.cli.main import main
for arguments in (["--help"], ["train", "--help"], ["evaluate", "--help"]):
    try:
        main(arguments)
    except SystemExit as end:
        assert end.code == 0
"""
PREDICTION = """
import numpy as np
from uncertainty_depth import Predictor
Predictor("demo").predict(np.zeros((128, 160, 3), np.uint8))
"""


@pytest.mark.parametrize(
    ("code", "unused"),
    [
        (METRICS_AND_REPORT, {"torch", "transformers", "matplotlib.pyplot", "rclpy"}),
        (HELP, {"rclpy", "torch", "matplotlib", "transformers", "scipy"}),
        (
            PREDICTION,
            {"transformers", "matplotlib", "scipy", "pandas", "sympy", "torch._dynamo", "rclpy"},
        ),
    ],
    ids=["metrics and report", "help", "a shipped model's prediction"],
)
def test_what_a_part_does_not_need_is_not_imported(code, unused):
    code += f'import sys\nsys.exit(" ".join({unused} & set(sys.modules)) or None)'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
