"""The ROS 2 nodes: thin, and the only place that imports rclpy and message packages."""
