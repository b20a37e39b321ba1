"""Metadata of the package; read by pip and by colcon (ament_python) alike."""

import os
import re
from glob import glob
from pathlib import Path

from setuptools import find_packages, setup

NAME = "uncertainty_depth"
ROS = [
    "ros-rclpy[fastrtps]>=7.1",
    "ros-sensor-msgs>=5.3",
    "ros-std-srvs>=5.3",
    "ros-diagnostic-msgs>=5.3",
    "ros-rosgraph-msgs>=2.0",
]
OPENCV = "opencv-python-headless>=4.6"
BAGS = [OPENCV, "rosbags>=0.11", 'backports.zstd>=1.0; python_version < "3.14"']
NETWORK = [OPENCV, "torch>=2.2"]
PRETRAINED = [*NETWORK, "transformers>=4.48"]
OPENVINO = ["openvino>=2024.4", "onnx>=1.16"]
ONNXRUNTIME = ["onnxruntime>=1.18", "onnx>=1.16"]
VIEW = [*BAGS, "rerun-sdk>=0.23"]
DOCS = ["mkdocs-material>=9.5", "mkdocstrings[python]>=0.26"]
LINT = [
    "ruff>=0.4",
    "mypy>=1.10",
    "flake8>=5",
    "pydocstyle>=6",
    "ros-ament-flake8>=0.17",
    "ros-ament-pep257>=0.17",
    "catkin-pkg>=1.0",
]
TEST = [
    *PRETRAINED,
    "safetensors>=0.4",
    "pytest>=7.4",
    "pytest-timeout>=2.2",
    "pytest-xdist>=3.5",
    "hypothesis>=6.90",
    "mcap>=1.1",
    "uncertainty-toolbox>=0.1.1",
    "torch-uncertainty>=0.13",
    "torchmetrics>=1.0",
    *OPENVINO,
    *ONNXRUNTIME,
]

RELATIVE = r"\((?!https?:|#)([^)\s]+)\)"


def description(readme: str, repository: str) -> str:
    """Return README for a package index, where its own files are not.

    Links and pictures lead to the repository, whose address is known to whoever publishes; without
    it pictures are left out, and links are their text.
    """
    if not repository:
        readme = re.sub(rf"^!\[[^]]*\]{RELATIVE}\n+(\*.*?\*\n+)?", "", readme, flags=re.M | re.S)
        return re.sub(rf"\[([^]]*)\]{RELATIVE}", r"\1", readme)
    readme = re.sub(rf"(!\[[^]]*\]){RELATIVE}", rf"\1({repository}/raw/main/\2)", readme)
    return re.sub(rf"(\]){RELATIVE}", rf"\1({repository}/blob/main/\2)", readme)


setup(
    name=NAME,
    version="0.1.0",
    description=(
        "Monocular depth with an error bar in ROS 2, and the scores that tell whether to trust it."
    ),
    long_description=description(
        Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
        os.environ.get("REPOSITORY_URL", ""),
    ),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    keywords="depth-estimation uncertainty calibration ros2 robotics lidar evaluation",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)),
        "Topic :: Scientific/Engineering :: Image Processing",
        "Typing :: Typed",
    ],
    url="https://example.org/uncertainty_depth",
    author="The uncertainty_depth developers",
    maintainer="The uncertainty_depth developers",
    maintainer_email="uncertainty_depth@users.noreply.github.com",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed", "models/*/*", "report/*.html.j2"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", glob("launch/*.launch.py")),
        (f"share/{NAME}/config", glob("config/*.*")),
        (f"share/{NAME}/config/consumers", glob("config/consumers/*.yaml")),
        (f"share/{NAME}/config/security", glob("config/security/*.xml")),
    ],
    options={
        "editable_wheel": {
            "mode": "compat"
        },  # every folder of a clone can be imported: synthetic:
        "develop": {"script_dir": f"$base/lib/{NAME}"},
        "install": {"install_scripts": f"$base/lib/{NAME}"},
    },
    python_requires=">=3.11",
    install_requires=[
        "setuptools>=64",
        "numpy>=1.26",
        "scipy>=1.10",
        "scikit-learn>=1.3",
        "threadpoolctl>=3.1",
        "matplotlib>=3.7",
        "pillow>=9.3",
        "jinja2>=3.1",
        "pyyaml>=6.0",
        "tqdm>=4.65",
    ],
    extras_require={
        "bags": BAGS,
        "network": NETWORK,
        "pretrained": PRETRAINED,
        "openvino": OPENVINO,
        "onnxruntime": ONNXRUNTIME,
        "ros": [*BAGS, *ROS],
        "test": TEST,
        "lint": LINT,
        "docs": DOCS,
        "view": VIEW,
        "ray": ["ray>=2.9"],
        "experiments": ["numpyro>=0.15"],
    },
    entry_points={
        "console_scripts": [
            "uncertainty-depth = uncertainty_depth.cli.main:main",
            "depth_node = uncertainty_depth.ros.main:depth_node",
            "evaluator_node = uncertainty_depth.ros.main:evaluator_node",
            "sigma_node = uncertainty_depth.ros.main:sigma_node",
            "rviz_on_camera = uncertainty_depth.ros.rviz_on_camera:main",
        ]
    },
    zip_safe=True,
)
