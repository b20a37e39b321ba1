"""Start the evaluator node beside a depth node in the same namespace.

ros2 launch uncertainty_depth evaluate.launch.py lidar:=/lidar/points output:=/path/of/report
"""

from launch import LaunchDescription
from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.ros.launching import describe_node


def generate_launch_description() -> LaunchDescription:
    topics = {"lidar": "lidar/points", "ground_truth": "ground_truth/image"}
    return LaunchDescription(describe_node("evaluator_node", "evaluator.yaml", EvaluatorNodeConfig, topics))
