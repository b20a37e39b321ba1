# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Memory of one depth node for several cameras against one depth node for each.

Resident memory without the pages of shared files, as the nodes' diagnostics tell it, once each
camera has had its first frames. Run it in a ROS domain of its own.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.ros.messages import image_message
from uncertainty_depth.ros.qos import OUTPUT_QOS

CAMERAS = ("front", "rear", "left", "right")
SIZE = (480, 640)
FRAMES = 5
PERIOD_S = 0.5
TIMEOUT_S = 180.0
START = "import sys; from uncertainty_depth.ros.main import depth_node; sys.exit(depth_node())"


class CameraMemory(NamedTuple):
    """Memory of both ways, MiB."""

    one_process: float
    processes: tuple[float, ...]


def run(cameras: Sequence[str] = CAMERAS) -> CameraMemory:
    """Start the nodes of both ways one after the other, send images, and read their memory.

    Raises:
        UncertaintyDepthError: a camera gets no maps.
    """
    names = "[" + ",".join(cameras) + "]"
    together = _measure([("/", ["-p", f"cameras:={names}"])], cameras)
    apart = _measure([(f"/{camera}", []) for camera in cameras], cameras)
    return CameraMemory(max(together.values()), tuple(apart.values()))


def table(memory: CameraMemory) -> str:
    """Return both ways as a Markdown table."""
    number = len(memory.processes)
    total = sum(memory.processes)
    return "\n".join(
        [
            f"| depth nodes for {number} cameras | memory, MiB | of one each |",
            "| --- | ---: | ---: |",
            f"| one each | {total:.0f} | 1.00 |",
            f"| one process | {memory.one_process:.0f} | {memory.one_process / total:.2f} |",
        ]
    )


def _measure(
    nodes: Sequence[tuple[str, Sequence[str]]], cameras: Sequence[str]
) -> dict[str, float]:
    """Return the memory by camera, once each has processed `FRAMES` images."""
    with ExitStack() as stack:
        for namespace, arguments in nodes:
            stack.enter_context(_node(namespace, arguments))
        node = stack.enter_context(_helper())
        memory: dict[str, float] = {}
        node.create_subscription(
            DiagnosticArray, "/diagnostics", lambda message: _read(message, memory), 50
        )
        _send_images(node, cameras)
        executor = SingleThreadedExecutor(context=node.context)
        executor.add_node(node)
        end_s = time.monotonic() + TIMEOUT_S
        while len(memory) < len(cameras):
            if time.monotonic() > end_s:
                raise UncertaintyDepthError(
                    f"{sorted(memory)} of the cameras {list(cameras)} had maps within "
                    f"{TIMEOUT_S:.0f} s; expected all"
                )
            executor.spin_once(timeout_sec=0.1)
        return memory


def _send_images(node: Node, cameras: Sequence[str]) -> None:
    """Send an image of each camera every `PERIOD_S`."""
    publishers = [
        node.create_publisher(Image, f"/{camera}/image", OUTPUT_QOS) for camera in cameras
    ]
    pixels = np.random.default_rng(0).integers(0, 256, (*SIZE, 3), np.uint8)

    def send() -> None:
        header = Header(stamp=node.get_clock().now().to_msg(), frame_id="camera")
        for publisher in publishers:
            publisher.publish(image_message(pixels, header))

    node.create_timer(PERIOD_S, send)


def _read(message: DiagnosticArray, memory: dict[str, float]) -> None:
    for status in message.status:
        camera, _, node = status.name.rpartition("/")
        values = {item.key: item.value for item in status.values}
        if node == "depth_node" and int(values.get("processed", 0)) >= FRAMES:
            memory[camera] = float(values["memory_mib"])


@contextmanager
def _node(namespace: str, arguments: Sequence[str]) -> Iterator[None]:
    options = ["-p", "model:=demo", "-p", "max_frame_age:=0.0", "-r", f"__ns:={namespace}"]
    process = subprocess.Popen(
        [sys.executable, "-c", START, "--ros-args", *options, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


@contextmanager
def _helper() -> Iterator[Node]:
    context = rclpy.Context()
    rclpy.init(context=context)
    try:
        yield rclpy.create_node("cameras", context=context)
    finally:
        rclpy.try_shutdown(context=context)
