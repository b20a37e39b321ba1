# The package on a robot's distribution, without RViz:
#   docker build --tag uncertainty_depth .
#   docker run --rm --network host --ipc host uncertainty_depth
# --ipc host: Fast DDS of the host sends large images through shared memory.
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}-ros-base
WORKDIR /workspace
COPY . src/uncertainty_depth
# rosdep takes torch from the distribution, which is built for the CPU, and transformers and rosbags
# from pip, which it refuses to call on Ubuntu 24.04 without this.
ENV PIP_BREAK_SYSTEM_PACKAGES=1
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-pip \
    && rosdep update \
    && rosdep install --from-paths src --ignore-src --skip-keys rviz2 --yes \
    && rm -rf /var/lib/apt/lists/*
RUN . "/opt/ros/${ROS_DISTRO}/setup.sh" \
    && colcon build --packages-select uncertainty_depth
RUN sed --in-place 's|^exec|source /workspace/install/setup.bash\nexec|' /ros_entrypoint.sh
# Write another line behind the image's name for other topics, or another node.
CMD ["ros2", "launch", "uncertainty_depth", "depth.launch.py", "model:=indoor", \
     "image:=/camera/image_raw", "camera_info:=/camera/camera_info"]
