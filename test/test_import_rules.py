# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What may be imported where, what package.xml declares, and what a part does without."""

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter
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
    "cv2": "python3-opencv",
    "jinja2": "python3-jinja2",
    "matplotlib": "python3-matplotlib",
    "mcap": "mcap-ros2-support",
    "numpy": "python3-numpy",
    "scipy": "python3-scipy",
    "sklearn": "python3-sklearn",
    "threadpoolctl": "python3-sklearn",  # which depends on it
    "torch": "python3-torch",
    "tqdm": "python3-tqdm",
    "yaml": "python3-yaml",
}
ROOMS = ("core", "metrics", "frames", "sigma", "depth", "report", "stream", "ros", "cli")
"""Each imports only from those before it."""
OPTIONAL = {
    *("backports", "compression"),  # zstd, for rosbags
    *("huggingface_hub", "transformers"),
    *("jax", "numpyro", "onnxruntime", "openvino", "ray", "rerun", "rosbags"),
}
"""Extras of setup.py; no apt package has them."""


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


ON_A_ROBOT = """
import importlib, sys

class Absent:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("rosbags", "transformers", "safetensors", "huggingface_hub"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import numpy as np
for node in ("depth_node", "evaluator_node", "sigma_node", "rviz_on_camera"):
    importlib.import_module(f"uncertainty_depth.ros.{node}")
from uncertainty_depth.depth.predictor import Predictor
for model in ("demo", "indoor"):
    found = Predictor(model, device="cpu").predict(np.zeros((48, 64, 3), np.uint8))
    assert np.isfinite(found.sigma_m).all()
"""


def test_nodes_and_shipped_models_need_what_apt_has():
    subprocess.run([sys.executable, "-c", ON_A_ROBOT], check=True, cwd=ROOT)


def test_every_import_is_declared():
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    declared = {item.text for item in package.iter("exec_depend")}
    modules = [*PACKAGE.rglob("*.py"), *ROOT.glob("launch/*.py")]
    imported = set().union(*map(imported_packages, modules))
    foreign = imported - set(sys.stdlib_module_names) - OPTIONAL - {"uncertainty_depth"}
    assert len(foreign) > 15
    undeclared = {name for name in foreign if ROSDEP_KEYS.get(name, name) not in declared}
    assert undeclared == set()
    by_pip = {key for key in declared if key and key.endswith("-pip")}
    assert by_pip == set(), "bloom releases no package that needs pip"


def modules() -> dict[str, Path]:
    """Return every module's file, by dotted name."""
    paths = {path.relative_to(ROOT).with_suffix(""): path for path in PACKAGE.rglob("*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): path for name, path in paths.items()}


def imports_of_ours(path: Path, known: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yield each module of the package that a file imports, and whether it loads it at once.

    An import in a function, or for types alone, does not.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    later = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING")
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno} is relative"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else str(node.module) for name in whole]
        for name in names:
            if name in known:
                yield name, id(node) not in later


def room_of(module: str) -> str:
    """Return the part after the package's name; empty for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def test_no_modules_import_each_other_in_a_circle():
    """Imports for types alone, or inside functions, count: they only hide a circle."""
    known = modules()
    imported = {
        name: {other for other, _ in imports_of_ours(path, known)} - {name}
        for name, path in known.items()
    }
    assert sum(map(len, imported.values())) > 500
    tuple(TopologicalSorter(imported).static_order())  # a CycleError names the circle


def test_a_room_imports_only_from_the_rooms_below_it():
    known = modules()
    assert {room_of(name) for name in known} == {*ROOMS, "contrib", "__main__", ""}
    for name, path in known.items():
        room = room_of(name)
        if room not in ROOMS:
            continue
        below = ROOMS[: ROOMS.index(room) + 1]
        for other, is_loaded_at_once in imports_of_ours(path, known):
            if room_of(other) == "contrib":
                assert not is_loaded_at_once, f"{name} needs {other}"
            else:
                assert room_of(other) in below, f"{name} imports {other}"


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
ARRAYS = """
import numpy as np
from uncertainty_depth import Camera, Evaluation, OnlineMetrics
depth = np.full((24, 32), 2.0)
Evaluation().add_arrays(depth, depth / 10, depth + 0.1, image=np.zeros((24, 32, 3), np.uint8))
"""
GATES = """
import uncertainty_depth.sigma.gating, uncertainty_depth.frames.messages.compressed
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
        (HELP, {"rclpy", "torch", "matplotlib", "transformers", "scipy", "cv2", "rosbags"}),
        (ARRAYS, {"torch", "cv2", "rosbags", "rclpy"}),
        (GATES, {"torch", "matplotlib", "rclpy"}),
        (
            PREDICTION,
            {"transformers", "matplotlib", "scipy", "pandas", "sympy", "torch._dynamo", "rclpy"},
        ),
    ],
    ids=[
        "metrics and report",
        "help",
        "scores of arrays",
        "gates",
        "a shipped model's prediction",
    ],
)
def test_what_a_part_does_not_need_is_not_imported(code, unused):
    code += f'import sys\nsys.exit(" ".join({unused} & set(sys.modules)) or None)'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
