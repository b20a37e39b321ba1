# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measure how many camera images reach another process, and how late.

One process publishes 640x480 rgb8 images at 30 Hz as a camera driver does (reliable, depth 10),
another subscribes as the depth node does. Run it in a ROS domain of its own.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import rclpy
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import Image
from std_msgs.msg import Empty, Header

from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.messages.stamps import stamp_ns
from uncertainty_depth.ros.messages import image_message
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS, sensor_qos

TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
TRANSPORT_VALUES = ("", "LARGE_DATA")
WIDTH = 640
HEIGHT = 480
RATE_HZ = 30.0
IMAGES = 300
DDS_DEPTH = 10
IMAGE_TOPIC = "delivery/image"
END_TOPIC = "delivery/end"
MATCH_TIMEOUT_S = 20.0
DRAIN_S = 1.0
SLACK_S = 30.0


class Delivery(NamedTuple):
    """Images sent and received over one type of transport.

    `latencies_ms` holds one value per image received, from its stamp to the callback.
    """

    transports: str
    is_reliable: bool
    sent: int
    latencies_ms: list[float]


def run(images: int = IMAGES) -> list[Delivery]:
    """Measure every combination of transports and reliability.

    Raises:
        UncertaintyDepthError: the two processes do not see each other.
    """
    combinations = itertools.product(TRANSPORT_VALUES, (True, False))
    return [measure(transports, is_reliable, images) for transports, is_reliable in combinations]


def measure(transports: str, is_reliable: bool, images: int = IMAGES) -> Delivery:
    """Send `images` images between two new processes that both use `transports`."""
    spawn = multiprocessing.get_context("spawn")
    with _environment(transports), ProcessPoolExecutor(2, spawn) as pool:
        reception = pool.submit(receive, is_reliable, MATCH_TIMEOUT_S + images / RATE_HZ + SLACK_S)
        sent = pool.submit(send, images).result()
        return Delivery(transports, is_reliable, sent, reception.result())


def send(images: int) -> int:
    """Publish `images` images at `RATE_HZ` once there is a subscriber; return their number."""
    with own_node("camera") as node:
        publisher = node.create_publisher(Image, IMAGE_TOPIC, OUTPUT_QOS)
        end = node.create_publisher(Empty, END_TOPIC, LATCHED_QOS)
        deadline_s = time.monotonic() + MATCH_TIMEOUT_S
        while not (publisher.get_subscription_count() and end.get_subscription_count()):
            if time.monotonic() > deadline_s:
                raise UncertaintyDepthError(
                    f"no subscriber on {IMAGE_TOPIC} within {MATCH_TIMEOUT_S:.0f} s"
                )
            time.sleep(0.01)
        pixels = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
        message = image_message(pixels, Header(frame_id="camera"))
        start_s = time.monotonic()
        for index in range(images):
            time.sleep(max(0.0, start_s + index / RATE_HZ - time.monotonic()))
            message.header.stamp = node.get_clock().now().to_msg()
            publisher.publish(message)
        time.sleep(DRAIN_S)
        end.publish(Empty())
        end.wait_for_all_acked(Duration(seconds=MATCH_TIMEOUT_S))
        return images


def receive(is_reliable: bool, timeout_s: float) -> list[float]:
    """Return the latency in ms of every image received before the end marker."""
    latencies_ms: list[float] = []
    is_over = threading.Event()
    with own_node("depth") as node:

        def on_image(message: Image) -> None:
            latency_ns = node.get_clock().now().nanoseconds - stamp_ns(message.header)
            latencies_ms.append(latency_ns * 1e-6)

        node.create_subscription(Image, IMAGE_TOPIC, on_image, sensor_qos(DDS_DEPTH, is_reliable))
        node.create_subscription(Empty, END_TOPIC, lambda _: is_over.set(), LATCHED_QOS)
        executor = SingleThreadedExecutor(context=node.context)
        executor.add_node(node)
        deadline_s = time.monotonic() + timeout_s
        while not is_over.is_set() and time.monotonic() < deadline_s:
            executor.spin_once(timeout_sec=0.1)
        executor.shutdown()
    return latencies_ms


def table(deliveries: list[Delivery]) -> str:
    """Return the measurements as a Markdown table."""
    rows = [
        f"640x480 rgb8 at {RATE_HZ:.0f} Hz between two processes",
        "",
        f"| {TRANSPORTS} | subscription | received of sent | latency p50 ms | p95 ms |",
        "| --- | --- | --- | --- | --- |",
    ]
    for delivery in deliveries:
        transports = delivery.transports or "not set"
        reliability = "reliable" if delivery.is_reliable else "best effort"
        received = f"{len(delivery.latencies_ms)} of {delivery.sent}"
        median, high = _percentiles(delivery.latencies_ms)
        rows.append(f"| {transports} | {reliability} | {received} | {median} | {high} |")
    return "\n".join(rows)


def _percentiles(latencies_ms: list[float]) -> tuple[str, str]:
    if not latencies_ms:
        return "-", "-"
    median, high = np.percentile(latencies_ms, (50, 95))
    return f"{median:.1f}", f"{high:.1f}"


@contextmanager
def _environment(transports: str) -> Iterator[None]:
    """Set the transports for the processes started in the block."""
    previous = os.environ.pop(TRANSPORTS, None)
    if transports:
        os.environ[TRANSPORTS] = transports
    try:
        yield
    finally:
        os.environ.pop(TRANSPORTS, None)
        if previous is not None:
            os.environ[TRANSPORTS] = previous


@contextmanager
def own_node(name: str) -> Iterator[Node]:
    """Initialize ROS in this process and yield a node."""
    rclpy.init()
    try:
        yield rclpy.create_node(name)
    finally:
        rclpy.try_shutdown()


if __name__ == "__main__":
    print(table(run()))
