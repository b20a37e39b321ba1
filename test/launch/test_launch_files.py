"""The launch files start nodes that become ready and end cleanly (launch_testing).

`launch_test test/launch/test_launch_files.py`, or pytest with launch_testing's plugin, in a
workspace where the package is installed.
"""

import tempfile
import unittest
from pathlib import Path

import pytest

pytest.importorskip("launch_testing", reason="launch_testing is not installed")
pytest.importorskip("launch_ros", reason="launch_ros is not installed")

import launch_testing
import launch_testing.actions
import launch_testing.asserts
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

from launch import LaunchDescription

LAUNCH = Path(__file__).parents[2] / "launch"
STARTS_WITHIN_S = 120.0
AT_THE_CAMERA = "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]"  # needs no /tf


def include(name, **arguments):
    """Return the action that starts a launch file of the package."""
    source = PythonLaunchDescriptionSource(str(LAUNCH / f"{name}.launch.py"))
    return IncludeLaunchDescription(source, launch_arguments=list(arguments.items()))


@pytest.mark.launch_test
def generate_test_description():
    """Start the depth node with the shipped model, the evaluator, and the sigma node."""
    return LaunchDescription(
        [
            include("depth", model="demo", image="/camera/image_raw"),
            include(
                "evaluate",
                lidar="/lidar/points",
                lidar_to_camera=AT_THE_CAMERA,
                output=tempfile.mkdtemp(),
            ),
            include(
                "sigma",
                confidence_type="variance",
                depth="/stereo/depth",
                confidence="/stereo/variance",
                depth_camera_info="/stereo/camera_info",
            ),
            launch_testing.actions.ReadyToTest(),
        ]
    )


class TestStart(unittest.TestCase):
    """While the nodes run."""

    def test_each_node_says_what_it_does_or_waits_for(self, proc_output):
        """The depth node loads the shipped model, the evaluator waits, the sigma node reads."""
        for text in ("mc_dropout on", "nothing on /lidar/points", "sigma from variance"):
            proc_output.assertWaitFor(text, timeout=STARTS_WITHIN_S)


@launch_testing.post_shutdown_test()
class TestEnd(unittest.TestCase):
    """After the launch was shut down."""

    def test_all_nodes_end_cleanly(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
