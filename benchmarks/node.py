# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a node does beside its network, and what is gained by doing it meanwhile.

python -m benchmarks.node [--network-ms 20] [--rate 30] [--seconds 4] [--rounds 5]

A real depth node takes 640x480 images of a lens with distortion, and its maps and points are
subscribed to. Its network waits for `network-ms`, as for a GPU. Prints the CPU time that the node
itself takes for a frame, with that lens and with images that are already rectified, what of it
rclpy needs to publish the finished messages, and what to take an image beside it; and the frames
per second with each frame's cloud published before the next frame, and while the next is computed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import rclpy
import torch
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.parameter import Parameter
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import Header

from benchmarks.gpu import TINY, Models
from uncertainty_depth.cli.arguments import positive_float
from uncertainty_depth.depth.estimators.estimator import Estimate
from uncertainty_depth.frames.published import PREDICTION
from uncertainty_depth.ros.depth_node import DepthNode
from uncertainty_depth.ros.messages import image_message, status_message
from uncertainty_depth.ros.predicting_node import Images

SIZE = (256, 192)
"""The network's input size."""
MAPS = ("depth/image_rect", "uncertainty/image_rect")
SETTLE_S = 60.0
SHARE_FRAMES = 40
WARM_UP = 5


@dataclass(frozen=True)
class Plan:
    """How long is measured, by a camera of `rate` hertz."""

    network_ms: float = 20.0
    rate: float = 30.0
    seconds: float = 4.0
    rounds: int = 5


def elsewhere(estimate: Estimate, milliseconds: float) -> Callable[..., Estimate]:
    """Return what stands in for a GPU: the caller waits, and the processor is free."""

    def wait(*_: Any) -> Estimate:
        time.sleep(milliseconds * 1e-3)
        return estimate

    return wait


class InTurn:
    """Stands in for the thread of the views: they are published before the next frame."""

    def __init__(self, process: Callable[[Any], None]) -> None:
        self.put = process

    def wait(self, timeout_s: float | None = None) -> bool:
        """Return that nothing waits."""
        return True


@contextmanager
def running_node(folder: Path) -> Iterator[DepthNode]:
    """Yield a depth node that spins, with a subscriber of its maps and points."""
    rclpy.init(domain_id=101)
    options = {"model": str(folder), "max_frame_age": 0.0, "device": "cpu"}
    node = DepthNode(
        parameter_overrides=[Parameter(name, value=options[name]) for name in options]
    )
    listener = rclpy.create_node("listener")
    for topic in MAPS:
        listener.create_subscription(Image, topic, print, 1)
    listener.create_subscription(PointCloud2, "points", print, 1)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    thread = threading.Thread(target=spin, args=(executor,), daemon=True)
    thread.start()
    node._camera.add(camera_info([-0.2, 0.05, 0.001, 0.001, 0.0]))
    try:
        while not all(node.count_subscribers(topic) for topic in (*MAPS, "points")):
            time.sleep(0.01)
        yield node
    finally:
        node.close()
        rclpy.try_shutdown()
        thread.join(SETTLE_S)


def spin(executor: SingleThreadedExecutor) -> None:
    """Spin until the end."""
    with suppress(ExternalShutdownException):
        executor.spin()


def image(number: int) -> Image:
    """Return a camera's image; each has its own stamp."""
    message = image_message(TINY.image, Header(frame_id="camera"))
    message.header.stamp.sec = number + 1
    return message


def camera_info(distortion: list[float]) -> CameraInfo:
    """Return the camera's, whose rectified images have the same intrinsics."""
    intrinsics = np.array([[500.0, 0, 320], [0, 500, 240], [0, 0, 1]])
    projection = np.insert(intrinsics, 3, 0, axis=1).ravel()
    info = CameraInfo(width=640, height=480, k=intrinsics.ravel(), p=projection)
    info.distortion_model = "plumb_bob"
    info.d = distortion
    info.r = np.eye(3).ravel()
    return info


def share_ms(node: DepthNode) -> float:
    """Return the median CPU time of a frame on the thread of the maps, without the network's."""

    def enter(message: Image) -> None:
        node.health.enter(message)
        node._predictions.wait(SETTLE_S)

    return thread_ms(lambda message: node._take(Images(message, (message,))), enter)


def publishing_ms(node: DepthNode) -> float:
    """Return the median CPU time of publishing a frame's messages, which are made before."""
    publisher: Any = node._predictions
    header = Header(frame_id="camera")
    info = camera_info([])
    values = image_message(np.ones((480, 640), np.float32), header)
    status = status_message(header, PREDICTION, "", {str(number): "" for number in range(12)})

    def publish(_: Image) -> None:
        publisher._info.publish(status)
        for one in publisher._camera_infos:
            one.publish(info)
        for one in publisher._maps.values():
            one.publish(values)

    return thread_ms(publish)


def taking_ms() -> float:
    """Return the median CPU time in which a bare node takes a camera's image."""
    bare = rclpy.create_node("bare")
    publisher = bare.create_publisher(Image, "bare/image", 1)
    bare.create_subscription(Image, "bare/image", lambda _: None, 1)
    executor = SingleThreadedExecutor()
    executor.add_node(bare)
    try:
        while not publisher.get_subscription_count():
            time.sleep(0.01)
        return thread_ms(lambda _: executor.spin_once(SETTLE_S), publisher.publish)
    finally:
        executor.shutdown()
        bare.destroy_node()


def thread_ms(
    call: Callable[[Image], object], prepare: Callable[[Image], object] = lambda _: None
) -> float:
    """Return the median CPU time that a call on an image takes on this thread."""
    found = []
    for number in range(WARM_UP + SHARE_FRAMES):
        message = image(number)
        prepare(message)
        start = time.thread_time()
        call(message)
        found.append(1e3 * (time.thread_time() - start))
    return statistics.median(found[WARM_UP:])


def frames_per_second(node: DepthNode, plan: Plan) -> float:
    """Return how many frames are published of a camera's."""
    before = node.health.counts().get("processed", 0)
    start = time.perf_counter()
    for number in range(round(plan.seconds * plan.rate)):
        time.sleep(max(0.0, number / plan.rate - (time.perf_counter() - start)))
        node._on_image(image(number))
    node._worker.wait(SETTLE_S)
    node._predictions.wait(SETTLE_S)
    seconds = max(plan.seconds, time.perf_counter() - start)
    return (node.health.counts()["processed"] - before) / seconds


def run(plan: Plan) -> dict[str, Any]:
    """Return the node's share, and the frames per second of each way and their ratio by round."""
    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = Models(Path(folder)).folder("resnet18", SIZE, "mc_dropout")
        with running_node(model) as node:
            predictor, _ = node._loaded()
            estimator: Any = predictor._estimator
            estimate = estimator.estimate(torch.rand(1, 3, *SIZE[::-1]), 0, predictor.config)
            estimator.estimate = elsewhere(estimate, plan.network_ms)
            found["share_ms"] = share_ms(node)
            node._camera.add(camera_info([]))
            found["rectified_ms"] = share_ms(node)
            found["publishing_ms"] = publishing_ms(node)
            found["taking_ms"] = taking_ms()
            publisher: Any = node._predictions
            meanwhile = publisher._views
            ways = {"in turn": InTurn(publisher._publish_views), "meanwhile": meanwhile}
            rates: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(plan.rounds):
                for name, views in ways.items():
                    publisher._views = views
                    rates[name].append(frames_per_second(node, plan))
            publisher._views = meanwhile
    ratios = [late / early for early, late in zip(*rates.values(), strict=True)]
    return found | {"per_second": rates, "meanwhile_of_in_turn": ratios}


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("network_ms", "rate", "seconds"):
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=positive_float, default=getattr(Plan, name))
    parser.add_argument("--rounds", type=int, default=Plan.rounds)
    found = run(Plan(**vars(parser.parse_args())))
    print(f"the node's share: {found['share_ms']:.2f} ms of CPU time a frame")
    print(f"of images that are rectified already: {found['rectified_ms']:.2f} ms")
    print(f"of these to publish finished messages: {found['publishing_ms']:.2f} ms")
    print(f"beside it rclpy takes the image in {found['taking_ms']:.2f} ms")
    for name, rates in found["per_second"].items():
        print(f"frames per second, views {name}: {spread(rates)}")
    print(f"meanwhile / in turn: {spread(found['meanwhile_of_in_turn'])}")


def spread(values: list[float]) -> str:
    """Return median and range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
