# The package on a robot's distribution, without RViz:
#   docker build --tag uncertainty_depth .
#   docker run --rm --network host --ipc host uncertainty_depth
# --ipc host: Fast DDS of the host sends large images through shared memory.
# On a GPU: docs/start.md, "With a GPU".
ARG ROS_DISTRO=jazzy
FROM ros:${ROS_DISTRO}-ros-base
WORKDIR /workspace
COPY . src/uncertainty_depth
# rosdep takes torch from the distribution, which is built for the CPU; one from TORCH_INDEX covers
# it, with what else it needs.
ARG TORCH_INDEX=
ARG TORCH=torch
RUN apt-get update \
    && rosdep update \
    && rosdep install --from-paths src --ignore-src --yes \
    && if [ -n "${TORCH_INDEX}" ]; then \
        apt-get install --yes --no-install-recommends python3-pip \
        && pip install --break-system-packages --no-cache-dir --index-url "${TORCH_INDEX}" ${TORCH}; \
    fi \
    && rm -rf /var/lib/apt/lists/*
RUN . "/opt/ros/${ROS_DISTRO}/setup.sh" \
    && colcon build --packages-select uncertainty_depth
RUN sed --in-place 's|^exec|source /workspace/install/setup.bash\nexec|' /ros_entrypoint.sh
# Write another line behind the image's name for other topics, or another node.
CMD ["ros2", "launch", "uncertainty_depth", "depth.launch.py", "model:=indoor", \
     "image:=/camera/image_raw", "camera_info:=/camera/camera_info"]
