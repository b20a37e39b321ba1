"""ROS messages as arrays, from rclpy and rosbags alike; rclpy is not needed."""
