# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measure how soon the depth node answers services while a camera publishes at 200 Hz.

The node is a process with the demo's model; far more images come than it can predict. Run it in
a ROS domain of its own.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import rclpy
from rcl_interfaces.srv import GetParameters
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import Image
from std_msgs.msg import Header
from std_srvs.srv import SetBool

from benchmarks.delivery import HEIGHT, WIDTH, own_node
from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.process_resources import resources_of
from uncertainty_depth.ros.demo.live_run import COMMAND, START_S, running
from uncertainty_depth.ros.demo.monitor import Monitor
from uncertainty_depth.ros.messages import image_message
from uncertainty_depth.ros.qos import OUTPUT_QOS

RATE_HZ = 200.0
CALLS = 100
"""Of each service."""
MAX_PAUSE_S = 0.2
"""Between two calls; the pauses are random, so that calls come anywhere in a frame's work."""
ANSWER_S = 30.0
REQUESTS: dict[str, tuple[Any, Any]] = {
    "get_parameters": (GetParameters, GetParameters.Request(names=["samples"])),
    "enable": (SetBool, SetBool.Request(data=True)),
}


class Answers(NamedTuple):
    """Latencies of the services.

    Attributes:
        latencies_ms: of each call, by service.
        counts: the node's counters at the end.
        memory_mib: of its process before the first call and after the last one.
    """

    latencies_ms: dict[str, list[float]]
    counts: dict[str, int]
    memory_mib: tuple[float, float]


def run(calls: int = CALLS) -> Answers:
    """Call each service `calls` times while images come.

    Raises:
        UncertaintyDepthError: the node does not start, or does not answer.
    """
    code = COMMAND.format("depth_node")
    options = ["--ros-args", "-p", "model:=demo", "-p", "max_frame_age:=0.0"]
    command = [sys.executable, "-c", code, *options]
    with (
        tempfile.TemporaryDirectory() as folder,
        running(command, Path(folder) / "log") as process,
        Monitor([], lambda _: None) as monitor,
        own_node("camera") as camera,
        _camera(camera),
        _client() as client,
    ):
        if not monitor.wait_for(
            lambda: monitor.counts("depth_node").get("processed", 0) > 1, START_S
        ):
            raise UncertaintyDepthError(f"depth_node processed no image within {START_S:.0f} s")
        before_mib = _memory_mib(process.pid)
        latencies_ms = {name: _call(client, name, calls) for name in REQUESTS}
        after_mib = _memory_mib(process.pid)
        return Answers(latencies_ms, monitor.counts("depth_node"), (before_mib, after_mib))


def _memory_mib(pid: int) -> float:
    resources = resources_of(pid)
    return float("nan") if resources is None else resources.memory_mib


@contextmanager
def _client() -> Iterator[Node]:
    """Yield a spinning node in a context of its own: the camera shares no transport with it."""
    context = Context()
    rclpy.init(context=context)
    node = rclpy.create_node("client", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)

    def spin() -> None:
        with suppress(ExternalShutdownException):
            executor.spin()

    thread = threading.Thread(target=spin, daemon=True)
    thread.start()
    try:
        yield node
    finally:
        executor.shutdown()
        thread.join()
        rclpy.try_shutdown(context=context)


@contextmanager
def _camera(node: Node) -> Iterator[None]:
    """Publish images."""
    stop = threading.Event()
    thread = threading.Thread(target=_publish, args=(node, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _publish(node: Node, stop: threading.Event) -> None:
    publisher = node.create_publisher(Image, "image", OUTPUT_QOS)
    pixels = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    message = image_message(pixels, Header(frame_id="camera"))
    while not stop.wait(1 / RATE_HZ):
        message.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(message)


def _call(node: Node, name: str, calls: int) -> list[float]:
    """Return the time from each request to its answer, milliseconds."""
    service_type, request = REQUESTS[name]
    client: Any = node.create_client(service_type, f"/depth_node/{name}")
    if not client.wait_for_service(ANSWER_S):
        raise UncertaintyDepthError(f"/depth_node/{name} is not available")
    latencies_ms = []
    for pause_s in np.random.default_rng(0).uniform(0.0, MAX_PAUSE_S, calls):
        time.sleep(pause_s)
        latencies_ms.append(_latency_ms(lambda: client.call_async(request)))
    return latencies_ms


def _latency_ms(call: Callable[[], Any]) -> float:
    response_event = threading.Event()
    start_s = time.monotonic()
    call().add_done_callback(lambda _: response_event.set())
    if not response_event.wait(ANSWER_S):
        raise UncertaintyDepthError(f"a service did not answer within {ANSWER_S:.0f} s")
    return 1e3 * (time.monotonic() - start_s)


def table(answers: Answers) -> str:
    """Return the measurements as a Markdown table."""
    counts = answers.counts
    before, after = answers.memory_mib
    rows = [
        f"{WIDTH}x{HEIGHT} rgb8 at {RATE_HZ:.0f} Hz: {counts.get('received', 0)} images received, "
        f"{counts.get('processed', 0)} processed, {counts.get('dropped.queue_full', 0)} dropped; "
        f"memory {before:.0f} -> {after:.0f} MiB",
        "",
        "| service | calls | p50 ms | p95 ms | max ms |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, latencies_ms in answers.latencies_ms.items():
        values = (*np.percentile(latencies_ms, (50, 95)), max(latencies_ms))
        cells = " | ".join(f"{value:.1f}" for value in values)
        rows.append(f"| `~/{name}` | {len(latencies_ms)} | {cells} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table(run()))
