# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Several cameras in one process: batched, and each as if it had a node of its own."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import String

from test.ros.conftest import FakePredictor, red
from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.messages.decoding import stamp_ns
from uncertainty_depth.messages.depth_images import decode_depth
from uncertainty_depth.ros import camera_infos

WIDTH = 16
HEIGHT = 12
RTOL = 1e-5
"""Of depth in a batch against depth alone: float32 sums in another order."""


@pytest.fixture
def start(start_depth, monkeypatch):
    monkeypatch.setattr(camera_infos, "FIRST_INFO_TIMEOUT_S", 120.0)  # of a busy machine
    return lambda **parameters: start_depth(**{"cameras": ["front", "rear"], **parameters})


class Camera:
    """A driver, and who listens to its maps."""

    def __init__(self, graph, make, name):
        self.depths = graph.inbox(Image, f"/{name}/depth/image_rect", 50)
        self.sigmas = graph.inbox(Image, f"/{name}/uncertainty/image_rect", 50)
        self.infos = graph.inbox(CameraInfo, f"/{name}/depth/camera_info", 50)
        self.images = graph.publisher(Image, f"/{name}/image", 50)
        self._graph = graph
        self._make = make
        self._name = name

    def image(self, stamp, pixels):
        self.images.publish(self._make.image(stamp, pixels, f"{self._name}_optical"))

    def info(self, width, height, **options):
        publisher = self._graph.publisher(CameraInfo, f"/{self._name}/camera_info")
        publisher.publish(self._make.camera_info(0, width, height, **options))


@pytest.fixture
def cameras(graph, make):
    return lambda *names: [Camera(graph, make, name) for name in names]


def received(node, *counts):
    return lambda: all(
        camera.health.counts().get("received", 0) == count
        for camera, count in zip(node.cameras, counts, strict=True)
    )


def test_what_has_arrived_is_one_batch_of_the_newest_of_each_camera(graph, start, cameras):
    node = start()
    front, rear = cameras("front", "rear")
    predictor = FakePredictor.newest
    predictor.gate.clear()
    front.image(1, red(1))
    assert predictor.begun.acquire(timeout=120)  # alone: nobody waits for stragglers
    for stamp in (2, 3, 4):
        front.image(stamp, red(stamp))
        rear.image(10 * stamp, red(10 * stamp))
        graph.until(received(node, stamp, stamp - 1), "both images in the node")
    predictor.gate.set()
    assert [stamp_ns(message.header) for message in front.depths.wait(2)] == [1, 4]
    (message,) = rear.depths.wait(1)
    assert (stamp_ns(message.header), message.header.frame_id) == (40, "rear_optical")
    assert decode_depth(message)[0, 0] == 40
    assert predictor.batches == [[1], [4, 40]]
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
            assert gate.wait(120)
            sizes.append(len(observations))
            return super().predict_batch(observations, *args, **options)

    gate, begun, sizes = threading.Event(), threading.Semaphore(0), []
    config = PredictorConfig(method="multi_epochs", samples=3)
    node = start_depth(
        predictor=lambda config: Gated(tiny_model, config),
        cameras=["front", "rear"], method="multi_epochs", samples=3,
    )  # fmt: skip
    front, rear = cameras("front", "rear")
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (48, 80, 3), np.uint8) for _ in range(2)]
    larger = rng.integers(0, 256, (60, 90, 3), np.uint8)
    front.info(80, 48, focal=60.0)
    rear.info(90, 60, focal=50.0)
    graph.until(lambda: all(one.info.info is not None for one in node.cameras), "camera infos")
    front.image(7, images[0])
    assert begun.acquire(timeout=120)
    front.image(123_456_789, images[1])
    rear.image(987_654_321, larger)
    graph.until(received(node, 2, 1), "both images in the node")
    gate.set()
    alone = Predictor(tiny_model, config)
    lone = alone.predict(images[0], 7)
    assert decode_depth(front.depths.wait(2)[0]).tobytes() == lone.depth_m.tobytes()
    for camera, image, stamp in ((front, images[1], 123_456_789), (rear, larger, 987_654_321)):
        expected = alone.predict(image, stamp)
        depth = camera.depths.wait(1)[-1]
        sigma = camera.sigmas.wait(len(camera.depths.messages))[-1]
        assert stamp_ns(depth.header) == stamp_ns(sigma.header) == stamp
        np.testing.assert_allclose(decode_depth(depth), expected.depth_m, rtol=RTOL)
        np.testing.assert_allclose(decode_depth(sigma), expected.sigma_m, rtol=100 * RTOL)
    assert sizes == [1, 2]
    info = rear.infos.wait(1)[-1]
    assert (info.header.frame_id, info.width, info.k[0]) == ("rear_optical", 90, 50.0)


def test_a_fault_costs_its_own_camera_alone(graph, start, cameras, make):
    node = start(cameras=["front", "rear", "left"])
    front, rear, left = cameras("front", "rear", "left")
    predictor = FakePredictor.newest
    predictor.gate.clear()
    left.image(1, red())
    assert predictor.begun.acquire(timeout=120)
    front.image(2, red(5))
    rear.image(2, red(66))
    broken = make.image(2, red())
    broken.encoding = "cmyk32"
    left.images.publish(broken)
    graph.until(received(node, 1, 1, 2), "all images in the node")
    predictor.gate.set()
    assert decode_depth(front.depths.wait(1)[0])[0, 0] == 5
    graph.until(
        lambda: (
            [camera.health.dropped() for camera in node.cameras]
            == [{}, {"failed": 1}, {"image_unknown_encoding": 1}]
        ),
        "each failure counted with its camera",
    )
    assert predictor.batches == [[1], [2, 2], [2], [2]]  # then one by one
    rear.image(3, red(6))
    assert decode_depth(rear.depths.wait(1)[0])[0, 0] == 6


def test_a_silent_camera_is_reported_and_the_others_continue(graph, start, cameras):
    start()
    front, _ = cameras("front", "rear")
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", QoSProfile(depth=50))
    front.image(1, red())
    front.depths.wait(1)
    statuses = {}

    def told(message):
        (status,) = message.status
        statuses[status.name] = {item.key: item.value for item in status.values}
        statuses[status.name] |= {"message": status.message}
        return statuses.get("front/depth_node", {}).get("processed") == "1" and (
            "rear/depth_node" in statuses
        )

    diagnostics.wait_for(told)
    assert statuses["rear/depth_node"]["message"].startswith("nothing received yet")
    assert statuses["front/depth_node"]["message"] == "running"
    assert statuses["front/depth_node"]["device"] == statuses["rear/depth_node"]["device"] == "cpu"


def test_topics_are_those_of_nodes_of_their_own(graph, start, cameras):
    start()
    front, rear = cameras("front", "rear")
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    for name in ("front", "rear"):
        model = graph.inbox(String, f"/{name}/depth/model", latched)
        assert "mc_dropout" in model.wait(1)[0].data
    points = graph.inbox(PointCloud2, "/rear/points")
    rear.info(WIDTH, HEIGHT)
    rear.image(1, red())
    assert points.wait(1)[0].header.frame_id == "rear_optical"
    assert front.depths.messages == []
    served = [name for name, _ in graph.node.get_service_names_and_types()]
    assert "/depth_node/enable" in served
    assert "/rear/depth_node/enable" not in served


def test_a_deactivated_node_drops_for_all_cameras(graph, start, cameras):
    node = start()
    front, rear = cameras("front", "rear")
    predictor = FakePredictor.newest
    predictor.gate.clear()
    front.image(1, red())
    assert predictor.begun.acquire(timeout=120)
    for camera in (front, rear):
        camera.image(2, red())
    graph.until(received(node, 2, 1), "all images in the node")
    node.trigger_deactivate()
    predictor.gate.set()
    assert [camera.health.dropped() for camera in node.cameras] == [
        {"deactivated": 2},
        {"deactivated": 1},
    ]
