# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Several cameras in one process: batched, and each as if it had a node of its own."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from test.ros.conftest import DEADLINE_S, MS, FakePredictor, Robot, facts, red
from uncertainty_depth.core.config import PredictorConfig
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.messages.depth_images import decode_depth
from uncertainty_depth.ros import camera_infos

DEPTH = "depth/image_rect"
RTOL = 1e-5
"""Of depth in a batch against depth alone: float32 sums in another order."""


@pytest.fixture
def start(start_depth, monkeypatch):
    monkeypatch.setattr(camera_infos, "FIRST_INFO_TIMEOUT_S", DEADLINE_S)
    return lambda **parameters: start_depth(**{"cameras": ["front", "rear"], **parameters})


@pytest.fixture
def cameras(graph):
    """Drivers, and who listens to their maps."""

    def make(*names):
        robots = [Robot(graph, f"/{name}/") for name in names]
        for robot in robots:
            robot.heard(DEPTH)
        return robots

    return make


def received(node, *counts):
    return lambda: all(
        camera.health.counts().get("received", 0) == count
        for camera, count in zip(node.cameras, counts, strict=True)
    )


def stamps(camera, count):
    return [stamp_ns(message.header) // MS for message in camera.heard(DEPTH).wait(count)]


def begin(camera, stamp):
    """Send an image, which the network then has in hand until its gate is opened."""
    predictor = FakePredictor.newest
    predictor.gate.clear()
    camera.image(stamp)
    assert predictor.begun.acquire(timeout=DEADLINE_S)
    return predictor


def test_what_has_arrived_is_one_batch_of_the_newest_of_each_camera(graph, start, cameras):
    node = start()
    front, rear = cameras("front", "rear")
    predictor = begin(front, 1)  # alone: nobody waits for stragglers
    for stamp in (2, 3, 4):
        front.image(stamp, red(stamp))
        rear.image(10 * stamp, red(10 * stamp), "rear_optical")
        graph.until(received(node, stamp, stamp - 1), "both images in the node")
    predictor.gate.set()
    assert stamps(front, 2) == [1, 4]
    assert stamps(rear, 1) == [40]
    (message,) = rear.heard(DEPTH).messages
    assert message.header.frame_id == "rear_optical"
    assert decode_depth(message)[0, 0] == 40
    assert predictor.batches == [[1 * MS], [4 * MS, 40 * MS]]
    graph.until(lambda: node.cameras[1].health.counts().get("processed") == 1, "both counted")
    counts = [camera.health.counts() for camera in node.cameras]
    assert counts[0] == {"received": 4, "processed": 2, "dropped.queue_full": 2}
    assert counts[1] == {"received": 3, "processed": 1, "dropped.queue_full": 2}


def test_each_camera_gets_the_maps_that_a_node_of_its_own_publishes(
    graph, start_depth, cameras, tiny_model
):
    class Gated(Predictor):
        """The real model, which waits while `gate` is closed."""

        def predict_batch(self, observations, *args, **options):
            begun.release()
            assert gate.wait(DEADLINE_S)
            sizes.append(len(observations))
            return super().predict_batch(observations, *args, **options)

    gate, begun, sizes = threading.Event(), threading.Semaphore(0), []
    config = PredictorConfig(method="multi_epochs", samples=3)
    node = start_depth(
        predictor=lambda config: Gated(tiny_model, config),
        cameras=["front", "rear"], method="multi_epochs", samples=3,
    )  # fmt: skip
    front, rear = cameras("front", "rear")
    inboxes = [camera.heard("uncertainty/image_rect") for camera in (front, rear)]
    points = rear.heard("points")
    infos = rear.heard("depth/camera_info")
    rng = np.random.default_rng(0)
    first, second = (rng.integers(0, 256, (48, 80, 3), np.uint8) for _ in range(2))
    larger = rng.integers(0, 256, (60, 90, 3), np.uint8)
    front.info(width=80, height=48, focal=60.0)
    rear.info(width=90, height=60, focal=50.0)
    graph.until(lambda: all(one.info.info is not None for one in node.cameras), "camera infos")
    front.image(7, first)
    assert begun.acquire(timeout=DEADLINE_S)
    front.image(123_456, second)
    rear.image(987_654, larger, "rear_optical")
    graph.until(received(node, 2, 1), "both images in the node")
    gate.set()
    alone = Predictor(tiny_model, config)
    lone = alone.predict(first, 7 * MS)
    assert decode_depth(front.heard(DEPTH).wait(2)[0]).tobytes() == lone.depth_m.tobytes()
    assert decode_depth(inboxes[0].wait(2)[0]).tobytes() == lone.sigma_m.tobytes()
    for camera, sigmas, image, stamp in (
        (front, inboxes[0], second, 123_456),
        (rear, inboxes[1], larger, 987_654),
    ):
        expected = alone.predict(image, stamp * MS)
        depth, sigma = camera.heard(DEPTH).wait(1)[-1], sigmas.wait(1)[-1]
        assert stamp_ns(depth.header) == stamp_ns(sigma.header) == stamp * MS
        np.testing.assert_allclose(decode_depth(depth), expected.depth_m, rtol=RTOL)
        np.testing.assert_allclose(decode_depth(sigma), expected.sigma_m, rtol=100 * RTOL)
    assert sizes == [1, 2]
    info = infos.wait(1)[-1]
    assert (info.header.frame_id, info.width, info.k[0]) == ("rear_optical", 90, 50.0)
    assert points.wait(1)[0].header == info.header


def test_a_fault_costs_its_own_camera_alone(graph, start, cameras, make):
    node = start(cameras=["front", "rear", "left"])
    front, rear, left = cameras("front", "rear", "left")
    predictor = begin(left, 1)
    front.image(2, red(5))
    rear.image(2, red(66))
    broken = make.image(2, red())
    broken.encoding = "cmyk32"
    left.send("image", broken)
    graph.until(received(node, 1, 1, 2), "all images in the node")
    predictor.gate.set()
    assert decode_depth(front.heard(DEPTH).wait(1)[0])[0, 0] == 5
    expected = [{}, {"failed": 1}, {"image_unknown_encoding": 1}]
    graph.until(
        lambda: [camera.health.dropped() for camera in node.cameras] == expected,
        "each failure counted with its camera",
    )
    assert [len(batch) for batch in predictor.batches] == [1, 2, 1, 1]  # then one by one
    rear.image(3, red(6))
    assert decode_depth(rear.heard(DEPTH).wait(1)[0])[0, 0] == 6


def test_each_camera_has_diagnostics_and_a_silent_one_is_reported(graph, start, cameras):
    start()
    front, _ = cameras("front", "rear")
    diagnostics = front.heard("/diagnostics")
    front.image(1)
    statuses = {}

    def told(array):
        status = array.status[0]
        statuses[status.name] = facts(array) | {"message": status.message, "level": status.level}
        is_processed = statuses.get("front/depth_node", {}).get("processed") == "1"
        return is_processed and "rear/depth_node" in statuses

    diagnostics.wait_for(told)
    front, rear = (statuses[f"{name}/depth_node"] for name in ("front", "rear"))
    assert (rear["message"], rear["level"], rear["device"]) == (
        "nothing received yet",
        b"\1",
        "cpu",
    )
    expected = {"message": "running", "level": b"\0", "received": "1", "samples": "8"}
    assert front.items() >= (expected | {"device": "cpu"}).items()
    assert float(front["latency_p95_ms"]) >= float(front["processing_p50_ms"]) > 0
    assert {"received_rate_hz", "received_age_s", "waiting", "image_publishers"} <= set(front)
    served = [name for name, _ in graph.node.get_service_names_and_types()]
    assert "/depth_node/enable" in served
    assert "/rear/depth_node/enable" not in served


def test_a_deactivated_node_drops_what_waits_and_what_is_in_work(graph, start, cameras):
    node = start()
    front, rear = cameras("front", "rear")
    predictor = begin(front, 1)
    for camera in (front, rear):
        camera.image(2)
    graph.until(received(node, 2, 1), "all images in the node")
    node.trigger_deactivate()  # waits for the network shortly
    predictor.gate.set()
    counts = [camera.health.counts() for camera in node.cameras]
    assert counts == [
        {"received": 2, "dropped.deactivated": 2},
        {"received": 1, "dropped.deactivated": 1},
    ]
    node.trigger_activate()
    for camera in (front, rear):
        camera.image(3)  # its maps come after those of earlier ones, if those came
        assert stamps(camera, 1) == [3]
