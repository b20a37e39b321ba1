# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The ROS 2 nodes: thin, and the only modules that import rclpy and message packages."""
