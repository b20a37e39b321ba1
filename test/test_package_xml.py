"""What package.xml declares: rosdep installs all that the package imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
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


def imports(path: Path) -> Iterator[str]:
    """The top-level packages that a module imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_every_import_is_declared():
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    declared = {item.text for item in package.iter("exec_depend")}
    modules = [*ROOT.glob("uncertainty_depth/**/*.py"), *ROOT.glob("launch/*.py")]
    imported = {name for module in modules for name in imports(module)}
    foreign = imported - set(sys.stdlib_module_names) - OPTIONAL - {"uncertainty_depth"}
    assert len(foreign) > 15
    undeclared = {name for name in foreign if ROSDEP_KEYS.get(name, name) not in declared}
    assert undeclared == set()
