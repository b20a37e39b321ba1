"""Start the depth node.

ros2 launch uncertainty_depth depth.launch.py model:=/path/to/model image:=/camera/image_raw camera_info:=/camera/camera_info
"""

from launch import LaunchDescription
from uncertainty_depth.config import DepthNodeConfig
from uncertainty_depth.ros.launching import describe_node


def generate_launch_description() -> LaunchDescription:
    topics = {"image": "image", "camera_info": "camera_info"}
    return LaunchDescription(describe_node("depth_node", "depth.yaml", DepthNodeConfig, topics))
