"""Start the evaluator node, beside a depth node in the same namespace or on any other topics.

ros2 launch uncertainty_depth evaluate.launch.py lidar:=/lidar/points output:=/path/of/report
ros2 launch uncertainty_depth evaluate.launch.py depth:=/stereo/depth uncertainty:=/stereo/sigma depth_camera_info:=/stereo/camera_info ...
"""

from launch import LaunchDescription
from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.ros.launching import describe_node


def generate_launch_description() -> LaunchDescription:
    topics = {
        "depth": "depth/image_rect",
        "uncertainty": "uncertainty/image_rect",
        "depth_camera_info": "depth/camera_info",
        "lidar": "lidar/points",
        "ground_truth": "ground_truth/image",
    }
    return LaunchDescription(
        describe_node("evaluator_node", "evaluator.yaml", EvaluatorNodeConfig, topics)
    )
