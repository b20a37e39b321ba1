# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
r"""Start the sigma node behind the depth network of Nav2's depth pipeline.

ros2 launch nav2_depth_estimation_ai depth_estimation_pipeline_launch.py
ros2 launch uncertainty_depth nav2_depth.launch.py sigma_map:=/path/to/sigma.json

Its points and points/clearing, which config/consumers/nav2_voxel_layer.yaml takes, go to
the voxel layer in the place of /pipeline/points. A robot with a LiDAR or with odometry corrects
the depth first: measurements:=lidar lidar:=/lidar/points, or measurements:=motion and image:= the
rectified images that the network takes.
"""

from launch.actions import DeclareLaunchArgument

from launch import LaunchDescription
from uncertainty_depth.ros.launching import SIGMA, describe

TOPICS = {"depth": "/depth_image", "depth_camera_info": "/resize/camera_info"}


def generate_launch_description() -> LaunchDescription:
    """Return the sigma node and its launch arguments; the first to name a topic decides."""
    topics = [
        DeclareLaunchArgument(name, default_value=topic, description="topic of Nav2's pipeline")
        for name, topic in TOPICS.items()
    ]
    return LaunchDescription([*topics, *describe(SIGMA._replace(params_file="nav2_depth.yaml"))])
