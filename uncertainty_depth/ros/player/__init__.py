"""The player: publishes a bag into ROS 2."""
