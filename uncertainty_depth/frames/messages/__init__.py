# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""ROS messages as arrays, from rclpy and rosbags alike; rclpy is not needed."""
