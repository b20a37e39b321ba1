# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node over real topics: its outputs, dropped images and changes at run time."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from safetensors.torch import load_file, save_file
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import String

from test.ros.conftest import FakePredictor, facts, numbers, red
from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ConfigError, UncertaintyDepthError
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.messages.clouds import cloud_points
from uncertainty_depth.messages.decoding import stamp_ns
from uncertainty_depth.messages.depth_images import decode_depth
from uncertainty_depth.ros.depth_node import DepthNode

WIDTH = 16
HEIGHT = 12
NODE = "/depth_node"
DEADLINE_S = 120


def stamps(messages):
    return [stamp_ns(message.header) for message in messages]


def dropped(node):
    return node.health.dropped()


@pytest.fixture
def camera(graph, make):
    """Publishes images, and camera infos that the node then has."""

    class Camera:
        def __init__(self, node, depth=10):
            self.node = node
            self._images = graph.publisher(Image, "image", depth)

        def send(self, stamp, value=4, frame="camera"):
            self._images.publish(make.image(stamp, red(value), frame))

        def publish(self, message):
            self._images.publish(message)

        def info(self, message):
            graph.publisher(CameraInfo, "camera_info").publish(message)
            of_camera = self.node.cameras[0].info
            graph.until(lambda: of_camera.info == message, "camera info in the node")

    return Camera


def test_maps_carry_the_image_header_and_metres(graph, start_depth, camera, make):
    driver = camera(start_depth())
    depths = graph.inbox(Image, "depth/image_rect")
    sigmas = graph.inbox(Image, "uncertainty/image_rect")
    infos = graph.inbox(CameraInfo, "uncertainty/camera_info")
    driver.send(1_700_000_000_123_456_789, 4, "left_optical")  # nobody publishes its camera info
    depth = depths.wait()[0]
    sigma = sigmas.wait()[0]
    assert depth.header == sigma.header == make.header(1_700_000_000_123_456_789, "left_optical")
    expected = np.full((HEIGHT, WIDTH), 4, np.float32)
    np.testing.assert_array_equal(decode_depth(depth), expected)
    np.testing.assert_array_equal(decode_depth(sigma), expected / 10)
    assert infos.messages == []
    driver.info(make.camera_info(1, 2 * WIDTH, 2 * HEIGHT, focal=50.0))
    driver.send(1_700_000_001_000_000_000)
    scaled = infos.wait()[0]
    assert (scaled.width, scaled.height, scaled.k[0]) == (WIDTH, HEIGHT, 25.0)
    assert scaled.p[2] == (WIDTH + 0.5) / 2 - 0.5
    assert scaled.header == depths.wait(2)[1].header


def test_a_frame_whose_points_fail_is_published_and_not_counted_as_dropped(
    graph, start_depth, camera, monkeypatch
):
    from uncertainty_depth.ros import outputs

    def fail(*_):
        raise ValueError("no colors today")

    monkeypatch.setattr(outputs, "colorize", fail)
    node = start_depth()
    graph.inbox(Image, "depth/image_color")
    depths = graph.inbox(Image, "depth/image_rect")
    camera(node).send(1)
    depths.wait()
    graph.until(lambda: node.health.counts().get("views_failed") == 1, "the failure counted")
    assert node.health.counts()["processed"] == 1
    assert dropped(node) == {}


def test_only_the_newest_frame_waits_and_every_other_is_counted(graph, start_depth, camera):
    """More images than the middleware and the node keep while the network works."""
    node = start_depth()
    driver = camera(node, depth=100)
    depths = graph.inbox(Image, "depth/image_rect")
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    predictor = FakePredictor.newest
    predictor.gate.clear()
    driver.send(1)
    assert predictor.begun.acquire(timeout=DEADLINE_S)
    for stamp in range(2, 301):
        driver.send(stamp)

    def all_counted(array):
        counts = numbers(array)
        return counts["received"] + counts.get("lost_in_transport.image", 0) == 300

    counts = numbers(diagnostics.wait_for(lambda array: "received" in facts(array) and
                                          all_counted(array)))  # fmt: skip
    assert counts["waiting"] == 2  # one in work, one behind it
    assert graph.set_parameters(NODE, samples=3).successful  # the executor is free meanwhile
    predictor.gate.set()
    assert stamps(depths.wait(2)) == [1, 300]
    for array in diagnostics.messages:
        counts = numbers(array)
        lost = sum(count for name, count in counts.items() if name.startswith("dropped."))
        inside = counts.get("processed", 0) + lost + counts["waiting"]
        assert counts.get("received", 0) == inside, counts


def test_quality_of_service_is_reliable_and_may_be_overridden(graph, start_depth):
    start_depth(["-p", "qos_overrides./image.subscription.reliability:=best_effort"])

    def reliability(topic, infos):
        graph.until(lambda: infos(topic), f"the node on {topic}")
        return infos(topic)[0].qos_profile.reliability

    subscriptions = graph.node.get_subscriptions_info_by_topic
    assert reliability("/image", subscriptions) == ReliabilityPolicy.BEST_EFFORT
    assert reliability("/camera_info", subscriptions) == ReliabilityPolicy.RELIABLE
    for topic in ("/depth/image_rect", "/uncertainty/image_rect", "/depth/camera_info", "/points"):
        publishers = graph.node.get_publishers_info_by_topic
        assert reliability(topic, publishers) == ReliabilityPolicy.RELIABLE


def test_an_impossible_quality_of_service_is_one_sentence(start_depth):
    with pytest.raises(
        ConfigError, match=r"reliability is 'perfect'; expected one of .*best_effort"
    ):
        start_depth(["-p", "qos_overrides./image.subscription.reliability:=perfect"])


def test_bad_images_are_counted_by_reason_and_the_next_one_works(graph, start_depth, camera, make):
    node = start_depth()
    depths = graph.inbox(Image, "depth/image_rect")
    driver = camera(node)
    empty, step, encoding, short, depth_image = (make.image(stamp, red()) for stamp in range(5))
    empty.width = empty.height = empty.step = 0
    empty.data = b""
    step.step = 3
    encoding.encoding = "cmyk32"
    short.data = short.data[:-1]
    depth_image.encoding = "16UC1"
    failing = make.image(8, red(66))  # in the network
    for count, message in enumerate((empty, step, encoding, short, depth_image, failing), start=1):
        driver.publish(message)
        graph.until(lambda count=count: sum(dropped(node).values()) == count, "a drop")
    driver.send(9)
    assert stamps(depths.wait()) == [9]
    assert dropped(node) == {
        "image_zero_size": 1,
        "image_wrong_step": 1,
        "image_unknown_encoding": 2,
        "image_short_data": 1,
        "failed": 1,
    }


def test_the_gate_and_the_interval_change_at_run_time(graph, start_depth, camera):
    """Sigma is a tenth of depth: at 4 m the gate of 15 % is passed, one of 5 % is not."""
    driver = camera(start_depth())
    confident = graph.inbox(Image, "depth/confident/image_rect")
    upper = graph.inbox(Image, "depth/upper/image_rect")
    driver.send(1)
    wide = decode_depth(upper.wait(1)[0])
    assert (decode_depth(confident.wait(1)[0]) == 4).all()
    assert graph.set_parameters(NODE, max_relative_sigma=0.05, coverage=0.5).successful
    driver.send(2)
    narrow = decode_depth(upper.wait(2)[1])
    assert np.isnan(decode_depth(confident.wait(2)[1])).all()
    np.testing.assert_allclose(wide, 4 + 1.959964 * 0.4, rtol=1e-6)
    np.testing.assert_allclose(narrow, 4 + 0.6744898 * 0.4, rtol=1e-6)


def test_a_change_that_cannot_be_made_changes_nothing(graph, start_depth):
    node = start_depth()
    before = node.config
    fixed = "{} is fixed while the node is active; first type ros2 lifecycle set /depth_node"
    for values, reason in (
        ({"samples": 3, "coverage": 1.0}, "coverage out of range Min: 0.01, Max: 0.99"),
        ({"samples": 3, "max_frame_age": -1.0}, "max_frame_age"),
        ({"samples": 3, "cameras": ["front"]}, "cameras is fixed for the life of the node"),
        ({"samples": 3, "model": "other"}, fixed.format("model")),
        ({"samples": 3, "compressed_input": True}, fixed.format("compressed_input")),
        ({"samples": 3, "lidar_to_camera": [0.0] * 6 + [1.0]}, fixed.format("lidar_to_camera")),
    ):
        refused = graph.set_parameters(NODE, **values)
        assert not refused.successful
        assert reason in refused.reason
        assert node.config == FakePredictor.newest.config == before


def test_what_is_set_while_inactive_holds_from_the_next_activation_on(graph, start_depth, camera):
    node = start_depth()
    driver = camera(node)
    depths = graph.inbox(Image, "depth/image_rect")
    loads = FakePredictor.loads
    node.trigger_deactivate()
    assert graph.set_parameters(NODE, samples=3, max_frame_age=0.25).successful
    node.trigger_activate()
    assert FakePredictor.loads == loads
    assert FakePredictor.newest.config == node.config
    node.trigger_deactivate()
    assert graph.set_parameters(NODE, method="deterministic").successful
    node.trigger_activate()
    assert (FakePredictor.loads, FakePredictor.newest.method) == (loads + 1, "deterministic")
    node.trigger_deactivate()
    for values, reason in (
        ({"method": "multi_epochs"}, "fake has no snapshots"),
        ({"method": "mc_dropout", "samples": 13}, "MemoryError: no room for a network"),
    ):
        assert graph.set_parameters(NODE, **values).successful
        node.trigger_activate()
        assert node.standing() == (b"\x02", f"inactive: {reason}")
    assert graph.set_parameters(NODE, method="", max_frame_age=0.0).successful
    node.trigger_activate()
    driver.send(1)
    assert stamps(depths.wait()) == [1]


def test_a_deactivated_node_drops_what_waits_and_what_is_in_work(graph, start_depth, camera):
    node = start_depth()
    driver = camera(node)
    depths = graph.inbox(Image, "depth/image_rect")
    predictor = FakePredictor.newest
    predictor.gate.clear()
    driver.send(1)
    assert predictor.begun.acquire(timeout=DEADLINE_S)
    driver.send(2)
    graph.until(lambda: node.health.counts()["received"] == 2, "both images")
    node.trigger_deactivate()  # waits for the network shortly
    counts = {"received": 2, "dropped.deactivated": 2}
    assert node.health.counts() == counts
    predictor.gate.set()
    node.trigger_activate()
    driver.send(3)  # its maps come after those of the first one, if those came
    assert stamps(depths.wait()) == [3]
    assert node.health.counts() == counts | {"received": 3, "processed": 1}


def test_diagnostics_once_a_second(graph, start_depth, camera, make):
    driver = camera(start_depth())
    inbox = graph.inbox(DiagnosticArray, "/diagnostics", QoSProfile(depth=50))
    first = inbox.wait_for(lambda message: message.status[0].name == "depth_node").status[0]
    assert (first.level, first.message) == (b"\x01", "nothing received yet")
    driver.send(1)
    running = inbox.wait_for(lambda message: facts(message).get("processed") == "1")
    status = running.status[0]
    values = facts(running)
    assert (status.level, status.message) == (b"\x00", "running")
    assert (values["received"], values["samples"], values["device"]) == ("1", "8", "cpu")
    assert float(values["latency_p95_ms"]) >= float(values["processing_p50_ms"]) > 0
    assert {"received_rate_hz", "received_age_s", "waiting", "image_publishers"} <= set(values)
    bad = make.image(2, red())
    bad.encoding = "cmyk32"
    driver.publish(bad)
    warned = inbox.wait_for(
        lambda message: facts(message).get("dropped.image_unknown_encoding") == "1"
    ).status[0]
    assert warned.level == b"\x01"
    assert "image_unknown_encoding" in warned.message


def test_names_follow_namespace_and_remaps_and_late_subscribers_learn_the_model(
    graph, start_depth, make
):
    start_depth(["-r", "__ns:=/robot", "-r", "image:=/front/image_raw"])
    qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    assert "mc_dropout" in graph.inbox(String, "/robot/depth/model", qos).wait()[0].data
    depths = graph.inbox(Image, "/robot/depth/image_rect")
    graph.publisher(Image, "/front/image_raw").publish(make.image(1, red()))
    depths.wait()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"model": ""}, "the parameter model is empty; expected a model folder"),
        ({"model": "no/such/folder"}, "no/such/folder"),
        ({"model": str(Path(__file__).parent)}, str(Path(__file__).parent)),  # no model's folder
        ({"cameras": ["front", "front"]}, "expected different names"),
    ],
)
def test_a_node_that_fails_to_start_leaves_no_topic_in_the_graph(graph, wrong, sentence):
    with pytest.raises(UncertaintyDepthError, match=sentence) as failure:
        graph.start(DepthNode, **wrong)
    assert failure.traceback  # holds the node, as a program does that catches the error
    graph.until(lambda: not graph.node.count_publishers("depth/image_rect"), "publisher any more")


def test_real_model_gives_what_the_predictor_gives(graph, make, tiny_model):
    graph.start(DepthNode, model=str(tiny_model), max_frame_age=0.0, samples=3)
    depths = graph.inbox(Image, "depth/image_rect")
    sigmas = graph.inbox(Image, "uncertainty/image_rect")
    image = np.random.default_rng(0).integers(0, 256, (48, 80, 3), np.uint8)
    images = graph.publisher(Image, "image")
    for number, samples in enumerate((3, 5)):
        assert graph.set_parameters(NODE, samples=samples).successful
        images.publish(make.image(123_456_789, image))
        config = PredictorConfig(samples=samples)
        expected = Predictor(tiny_model, config).predict(image, 123_456_789)
        depth = decode_depth(depths.wait(number + 1)[number])
        sigma = decode_depth(sigmas.wait(number + 1)[number])
        assert depth.tobytes() == expected.depth_m.tobytes()
        assert sigma.tobytes() == expected.sigma_m.tobytes()


def test_what_a_network_cannot_compute_has_no_value_and_the_node_goes_on(
    graph, make, make_model, tmp_path
):
    """Finite weights whose products overflow, as those of an unfit quantisation or image do."""
    folder = make_model(tmp_path / "overflowing", members=("m0",), input_size=(64, 64))
    (weights,) = folder.glob("m0*.safetensors")
    save_file({name: it * 1e30 for name, it in load_file(weights).items()}, weights)
    node = graph.start(DepthNode, model=str(folder), max_frame_age=0.0)
    inboxes = [graph.inbox(Image, f"{name}/image_rect") for name in ("depth", "uncertainty")]
    points = graph.inbox(PointCloud2, "points")
    graph.publisher(CameraInfo, "camera_info").publish(make.camera_info(1, WIDTH, HEIGHT))
    images = graph.publisher(Image, "image")
    for count in (1, 2):
        images.publish(make.image(count, red()))
        for inbox in inboxes:
            assert np.isnan(decode_depth(inbox.wait(count)[-1])).all()
    assert np.isnan(cloud_points(points.wait(2)[1])).all()
    graph.until(lambda: node.health.counts().get("processed") == 2, "both counted")
    assert dropped(node) == {}


S = 1_000_000_000


def test_a_clock_that_jumps_back_stands_still_or_runs_fast(graph, start_depth, make):
    node = start_depth(use_sim_time=True, max_frame_age=0.5)
    depths = graph.inbox(Image, "depth/image_rect", 50)
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics")
    clock = graph.publisher(Clock, "/clock")
    images = graph.publisher(Image, "image")

    def set_clock(seconds):
        clock.publish(Clock(clock=make.header(seconds * S).stamp))
        graph.until(
            lambda: node.get_clock().now().nanoseconds == seconds * S, f"the clock at {seconds} s"
        )

    stamps_s = []
    for seconds in (100, 110, 120, 10, 11):  # ten times as fast, then back to the bag's start
        set_clock(seconds)
        images.publish(make.image(seconds * S, red()))
        stamps_s.append(seconds)
        depths.wait(len(stamps_s))
    for seconds in (12, 13):  # the clock has stopped: stamps run ahead of it
        images.publish(make.image(seconds * S, red()))
        stamps_s.append(seconds)
        depths.wait(len(stamps_s))
    assert [stamp_ns(message.header) // S for message in depths.messages] == stamps_s
    diagnostics.wait_for(lambda message: "ahead of this node's clock" in message.status[0].message)
    set_clock(100)
    images.publish(make.image(13 * S, red()))  # of before the jump: stale by the clock
    graph.until(lambda: dropped(node) == {"stale": 1}, "the stale image counted")


def test_a_frame_that_outlasts_the_shutdown_is_counted_once(graph, start_depth, make):
    earlier = set(threading.enumerate())  # workers of other tests may still end
    node = start_depth()
    predictor = FakePredictor.newest
    predictor.gate.clear()
    images = graph.publisher(Image, "image", 10)
    images.publish(make.image(1, red()))
    assert predictor.begun.acquire(timeout=DEADLINE_S)
    images.publish(make.image(2, red()))
    graph.until(lambda: node.health.counts()["received"] == 2, "both images")
    counts = {"received": 2, "dropped.shutdown": 2}
    graph.stop(node)
    assert node.health.counts() == counts
    predictor.gate.set()
    own = set(threading.enumerate()) - earlier
    (worker,) = [thread for thread in own if thread.name == "worker"]
    worker.join(DEADLINE_S)
    assert node.health.counts() == counts
