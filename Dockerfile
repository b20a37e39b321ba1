# The package on a robot's distribution: docker build --tag uncertainty_depth .
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}-ros-base
WORKDIR /workspace
COPY . src/uncertainty_depth
# rosdep takes torch from the distribution, which is built for the CPU. safetensors has no key.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-pip \
    && rosdep update \
    && rosdep install --from-paths src --ignore-src --yes \
    && python3 -m pip install --break-system-packages safetensors \
    && rm -rf /var/lib/apt/lists/*
RUN . "/opt/ros/${ROS_DISTRO}/setup.sh" \
    && colcon build --packages-select uncertainty_depth
RUN sed --in-place 's|^exec|source /workspace/install/setup.bash\nexec|' /ros_entrypoint.sh
CMD ["ros2", "launch", "uncertainty_depth", "depth.launch.py"]
