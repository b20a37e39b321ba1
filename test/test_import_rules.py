# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Only `ros/` imports ROS: everything else works where no ROS is installed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "uncertainty_depth"
ROS = re.compile(
    r"rclpy|rcl_interfaces|builtin_interfaces|\w+_msgs|tf2_\w+|cv_bridge|rosbag2_py"
    r"|ament_index_python|launch|launch_ros|message_filters"
)
OPTIONAL = {("messages/images.py", "cv_bridge")}


def imported_packages(tree: ast.AST) -> set[str]:
    """Return the top-level packages that a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_only_the_room_of_the_nodes_imports_ros() -> None:
    imports = set()
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        if place.parts[0] != "ros":
            for name in imported_packages(ast.parse(path.read_text(encoding="utf-8"))):
                if ROS.fullmatch(name) and (place.as_posix(), name) not in OPTIONAL:
                    imports.add((place.as_posix(), name))
    assert not imports


def test_the_package_imports_nothing_that_only_a_clone_has() -> None:
    for path in PACKAGE.rglob("*.py"):
        names = imported_packages(ast.parse(path.read_text(encoding="utf-8")))
        assert not names & {"synthetic", "experiments", "benchmarks", "test"}, path
