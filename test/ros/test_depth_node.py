# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node over real topics: its outputs, dropped images and changes at run time."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2
from std_msgs.msg import Float64, String

from uncertainty_depth.calibration.half_widths import BY_DISTRIBUTION
from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ConfigError, ModelError, UncertaintyDepthError
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.messages.depth_images import decode_depth
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.messages.stamps import stamp_ns
from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.ros import depth_node
from uncertainty_depth.ros.depth_node import DepthNode

WIDTH = 16
HEIGHT = 12
NODE = "/depth_node"


class FakePredictor:
    """Depth = red channel in metres, sigma = a tenth of it; waits while `gate` is closed."""

    model = SimpleNamespace(method="mc_dropout")
    device = "cpu"
    sparse_input = None
    half_widths = BY_DISTRIBUTION["gaussian"]
    sigma_name = "fake"
    loads = 0

    def __init__(self, config):
        if config.method == "multi_epochs":
            raise ModelError(f"{config.model} has no snapshots")
        if config.method == "deterministic" and config.seed == 666:
            raise MemoryError("no room for a second network")
        self.check(config)
        self.method = config.method or self.model.method
        self.config = config
        self.seen = []
        self.used = []
        FakePredictor.loads += 1
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.gate.set()
        self.fail = False

    @property
    def passes(self):
        return self.config.samples

    def predict(self, image, stamp, camera=None, samples=None, sparse_m=None):
        self.begun.release()
        assert self.gate.wait(120)
        if self.fail:
            raise RuntimeError("the network fails")
        self.seen.append((stamp, self.config))
        self.used.append(samples)
        depth = image[..., 0].astype(np.float32)
        return DepthPrediction(depth, depth / 10)

    def predict_batch(self, observations, samples=None, widen=True):
        return [
            self.predict(one.image, one.stamp_ns, one.camera, samples, one.sparse_m)
            for one in observations
        ]

    def check(self, config):
        if config.component == "aleatoric":
            raise ConfigError("component is 'aleatoric', which fake does not have")

    def describe(self):
        return {"method": self.method, "samples": self.config.samples}


@pytest.fixture
def start(graph, monkeypatch):
    monkeypatch.setattr(depth_node, "load_predictor", FakePredictor)

    def start_node(arguments=(), **parameters):
        return graph.start(
            DepthNode, arguments, **{"model": "fake", "max_frame_age": 0.0, **parameters}
        )

    return start_node


def health(node):
    """Return the counts of the node's only camera."""
    (camera,) = node.cameras
    return camera.health


def red(value=4):
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[..., 0] = value
    return image


def dropped(node):
    return health(node).dropped()


def test_maps_carry_the_image_header_and_metres(graph, start, make):
    node = start()
    depths = graph.inbox(Image, "depth/image_rect")
    sigmas = graph.inbox(Image, "uncertainty/image_rect")
    infos = graph.inbox(CameraInfo, "uncertainty/camera_info")
    latencies = graph.inbox(Float64, f"{NODE}/latency_ms")
    times = graph.inbox(Float64, f"{NODE}/processing_time_ms")
    images = graph.publisher(Image, "image")
    image = make.image(1_700_000_000_123_456_789, red(4), "left_optical")
    images.publish(image)  # nobody publishes its camera info: depth is published all the same
    depth = depths.wait()[0]
    sigma = sigmas.wait()[0]
    assert depth.header == sigma.header == image.header
    np.testing.assert_array_equal(decode_depth(depth), np.full((HEIGHT, WIDTH), 4, np.float32))
    np.testing.assert_array_equal(
        decode_depth(sigma), np.full((HEIGHT, WIDTH), 4, np.float32) / 10
    )
    assert latencies.wait()[0].data > times.wait()[0].data > 0
    assert infos.messages == []
    info = graph.publisher(CameraInfo, "camera_info")
    info.publish(make.camera_info(1, 2 * WIDTH, 2 * HEIGHT, focal=50.0))
    graph.until(lambda: node.cameras[0].camera.info is not None, "camera info in the node")
    images.publish(make.image(1_700_000_001_000_000_000, red(), "left_optical"))
    scaled = infos.wait()[0]
    assert (scaled.width, scaled.height, scaled.k[0], scaled.p[2]) == (
        WIDTH,
        HEIGHT,
        25.0,
        (WIDTH + 0.5) / 2 - 0.5,
    )
    assert scaled.header == depths.wait(2)[1].header


def test_color_images_and_points_are_published_only_for_subscribers(
    graph, start, make, monkeypatch
):
    from uncertainty_depth.ros import sigma_outputs

    calls = []
    for name in ("colorize", "points_message"):
        original = getattr(sigma_outputs, name)
        monkeypatch.setattr(
            sigma_outputs,
            name,
            lambda *a, _name=name, _original=original: calls.append(_name) or _original(*a),
        )
    node = start()
    depths = graph.inbox(Image, "depth/image_rect")
    info = graph.publisher(CameraInfo, "camera_info")
    images = graph.publisher(Image, "image")
    info.publish(make.camera_info(0, WIDTH, HEIGHT))
    graph.until(lambda: node.cameras[0].camera.info is not None, "camera info in the node")
    views = ("points", "depth/image_color", "uncertainty/image_color")
    graph.until(lambda: not any(map(node.count_subscribers, views)), "end of other subscribers")
    images.publish(make.image(1, red(4)))
    depths.wait()
    node._worker.call(lambda: None).result()  # the views of the first frame are over
    assert calls == []
    points = graph.inbox(PointCloud2, "points")
    depth_color = graph.inbox(Image, "depth/image_color")
    sigma_color = graph.inbox(Image, "uncertainty/image_color")
    images.publish(make.image(2, red(5)))
    cloud = points.wait()[0]
    assert (cloud.width, cloud.height, cloud.header.frame_id) == (WIDTH, HEIGHT, "camera")
    assert (
        decode_image(depth_color.wait()[0]).shape
        == decode_image(sigma_color.wait()[0]).shape
        == (HEIGHT, WIDTH, 3)
    )
    assert set(calls) == {"colorize", "points_message"}


@pytest.mark.parametrize("failing", ["publish_times", "publish"])
def test_a_frame_whose_points_fail_is_published_and_not_counted_as_dropped(
    failing, graph, start, make, monkeypatch
):
    node = start()

    def fail(*_):
        raise ValueError("no points today")

    outputs = node.cameras[0].outputs
    target = {"publish_times": outputs, "publish": outputs.views}[failing]
    monkeypatch.setattr(target, failing, fail)
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(Image, "image")
    images.publish(make.image(1, red()))
    depths.wait()
    graph.until(lambda: health(node).counts().get("views_failed") == 1, "the failure counted")
    assert health(node).counts()["processed"] == 1
    assert dropped(node) == {}


def test_points_wait_for_camera_info_and_ignore_an_uncalibrated_one(graph, start, make):
    node = start()
    points = graph.inbox(PointCloud2, "points")
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(Image, "image")
    images.publish(make.image(1, red()))
    depths.wait(1)
    info = graph.publisher(CameraInfo, "camera_info")
    info.publish(CameraInfo(width=WIDTH, height=HEIGHT))
    graph.until(lambda: node.cameras[0].camera.info is not None, "camera info in the node")
    images.publish(make.image(2, red()))
    depths.wait(2)
    info.publish(make.camera_info(3, WIDTH, HEIGHT))
    graph.until(lambda: node.cameras[0].camera.info.k[0] > 0, "calibrated camera info")
    images.publish(make.image(3, red()))
    assert [stamp_ns(message.header) for message in points.wait(1)] == [3]


def test_only_the_newest_frame_waits_and_every_other_is_counted(graph, start, make):
    node = start()
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(Image, "image")
    predictor = node._predictor
    predictor.gate.clear()
    images.publish(make.image(1, red()))
    assert predictor.begun.acquire(timeout=120)
    for stamp in range(2, 8):
        images.publish(make.image(stamp, red()))
        graph.until(
            lambda stamp=stamp: health(node).counts()["received"] == stamp,
            f"image {stamp} in the node",
        )
    predictor.gate.set()
    assert [stamp_ns(message.header) for message in depths.wait(2)] == [1, 7]
    graph.until(lambda: health(node).counts()["processed"] == 2, "both counted")
    assert health(node).counts() | {"received": 7} == {
        "received": 7,
        "processed": 2,
        "dropped.queue_full": 5,
    }


def test_the_executor_stays_free_while_the_network_works(graph, start, make):
    node = start()
    images = graph.publisher(Image, "image")
    node._predictor.gate.clear()
    images.publish(make.image(1, red()))
    assert node._predictor.begun.acquire(timeout=120)
    assert graph.set_parameters(NODE, samples=3).successful  # answered while the frame is in hand
    node._predictor.gate.set()


def test_nothing_is_dropped_with_a_queue_and_reliable_input(graph, start, make):
    node = start(queue_size=50, reliable_input=True)
    depths = graph.inbox(Image, "depth/image_rect", 50)
    images = graph.publisher(Image, "image", 50)
    for stamp in range(1, 41):
        images.publish(make.image(stamp, red()))
    assert [stamp_ns(message.header) for message in depths.wait(40)] == list(range(1, 41))
    assert dropped(node) == {}


@pytest.mark.parametrize("depth", [1, 5])
def test_best_effort_and_reliable_publishers_are_both_heard(graph, start, make, depth):
    start()
    depths = graph.inbox(Image, "depth/image_rect", qos_profile_sensor_data)
    for stamp, qos in (
        (1, qos_profile_sensor_data),
        (2, QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)),
    ):
        graph.publisher(Image, "image", qos).publish(make.image(stamp, red()))
        depths.wait_for(lambda message, stamp=stamp: stamp_ns(message.header) == stamp)


def test_quality_of_service_may_be_overridden(graph, start):
    name = "qos_overrides./image.subscription.reliability"
    start(
        ["-p", f"{name}:=best_effort", "-p", "qos_overrides./depth/image_rect.publisher.depth:=77"]
    )
    graph.until(
        lambda: graph.node.get_subscriptions_info_by_topic("/image"), "the node's subscription"
    )
    (image,) = graph.node.get_subscriptions_info_by_topic("/image")
    assert image.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT


def test_an_impossible_quality_of_service_is_one_sentence(start):
    with pytest.raises(
        ConfigError, match=r"reliability is 'perfect'; expected one of .*best_effort"
    ):
        start(["-p", "qos_overrides./image.subscription.reliability:=perfect"])


def subscribed(graph, topic):
    graph.until(
        lambda: len(graph.node.get_subscriptions_info_by_topic(topic)) == 1,
        f"one subscription of {topic}",
    )
    return graph.node.get_subscriptions_info_by_topic(topic)[0].qos_profile


def test_default_quality_of_service(graph, start):
    start()
    graph.until(
        lambda: (
            graph.node.get_subscriptions_info_by_topic("/image")
            and graph.node.get_publishers_info_by_topic("/points")
        ),
        "endpoints",
    )
    assert (
        graph.node.get_subscriptions_info_by_topic("/image")[0].qos_profile.reliability
        == ReliabilityPolicy.RELIABLE
    )
    for topic in (
        "depth/image_rect",
        "uncertainty/image_rect",
        "depth/camera_info",
        "points",
        "depth/image_color",
    ):
        graph.until(
            lambda topic=topic: graph.node.get_publishers_info_by_topic(f"/{topic}"), topic
        )
        assert (
            graph.node.get_publishers_info_by_topic(f"/{topic}")[0].qos_profile.reliability
            == ReliabilityPolicy.RELIABLE
        )


def bad_images(make):
    good = make.image(0, red())
    empty, step, encoding, short = (make.image(stamp, red()) for stamp in (1, 2, 3, 4))
    empty.width = empty.height = empty.step = 0
    empty.data = b""
    step.step = 3
    encoding.encoding = "cmyk32"
    short.data = good.data[:-1]
    return {
        "image_zero_size": empty,
        "image_wrong_step": step,
        "image_unknown_encoding": encoding,
        "image_short_data": short,
    }


def test_bad_images_are_counted_by_reason_and_the_next_one_works(graph, start, make):
    node = start(queue_size=10, reliable_input=True)
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(Image, "image")
    bad = bad_images(make)
    for message in bad.values():
        images.publish(message)
    images.publish(make.image(9, red()))
    assert [stamp_ns(message.header) for message in depths.wait()] == [9]
    assert dropped(node) == dict.fromkeys(bad, 1)


def test_a_failing_network_is_counted_and_the_next_frame_may_pass(graph, start, make):
    node = start()
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(Image, "image")
    node._predictor.fail = True
    images.publish(make.image(1, red()))
    graph.until(lambda: dropped(node) == {"failed": 1}, "the failure counted")
    node._predictor.fail = False
    images.publish(make.image(2, red()))
    assert stamp_ns(depths.wait()[0].header) == 2


def test_every_image_of_a_burst_is_counted(graph, start, make):
    """More images than the middleware and the worker keep while the executor is busy."""
    node = start()
    images = graph.publisher(Image, "image", 100)
    node._predictor.gate.clear()
    images.publish(make.image(1, red()))
    assert node._predictor.begun.acquire(timeout=120)
    for stamp in range(2, 301):
        images.publish(make.image(stamp, red()))
    graph.until(
        lambda: (
            sum(
                health(node).counts().get(key, 0)
                for key in ("received", "lost_in_transport.image")
            )
            == 300
        ),
        "every image in a counter",
    )
    node._predictor.gate.set()
    graph.until(
        lambda: health(node).counts().get("processed") == 2,
        "the first and the last image",
    )
    counts = health(node).counts()
    assert counts["received"] == 2 + counts["dropped.queue_full"]


def test_stale_frames_are_dropped_by_the_nodes_clock(graph, start, make):
    node = start(max_frame_age=0.5, queue_size=5, reliable_input=True, use_sim_time=True)
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(Image, "image")
    clock = graph.publisher(Clock, "/clock")
    clock.publish(Clock(clock=Time(sec=100)))
    graph.until(lambda: node.get_clock().now().nanoseconds == 100_000_000_000, "sim time")
    for stamp in (99_400_000_000, 99_600_000_000, 100_000_000_000):
        images.publish(make.image(stamp, red()))
    assert [stamp_ns(message.header) for message in depths.wait(2)] == [
        99_600_000_000,
        100_000_000_000,
    ]
    assert dropped(node) == {"stale": 1}
    clock.publish(Clock(clock=Time(sec=50)))  # the bag loops
    graph.until(
        lambda: node.get_clock().now().nanoseconds == 50_000_000_000, "sim time that jumped back"
    )
    images.publish(make.image(50_000_000_000, red()))
    assert stamp_ns(depths.wait(3)[2].header) == 50_000_000_000


def test_compressed_images(graph, start, make):
    import cv2

    start(compressed_input=True)
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(CompressedImage, "image/compressed")
    _, data = cv2.imencode(".png", red(7)[..., ::-1])
    images.publish(
        CompressedImage(
            header=make.header(5), format="rgb8; png compressed bgr8", data=data.tobytes()
        )
    )
    np.testing.assert_array_equal(
        decode_depth(depths.wait()[0]), np.full((HEIGHT, WIDTH), 7, np.float32)
    )


def test_changes_at_run_time_take_effect_together(graph, start, make):
    node = start()
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(Image, "image")
    assert graph.set_parameters(NODE, samples=3, chunk=2, seed=11).successful
    images.publish(make.image(1, red()))
    depths.wait()
    _, config = node._predictor.seen[0]
    assert (config.samples, config.chunk, config.seed) == (3, 2, 11)
    assert not graph.set_parameters(NODE, samples=5, chunk=0).successful
    images.publish(make.image(2, red()))
    depths.wait(2)
    assert node._predictor.seen[1][1] == config


def test_the_gate_and_the_interval_change_at_run_time(graph, start, make):
    """Sigma is a tenth of depth: at 4 m the gate of 15 % is passed, one of 5 % is not."""
    start()
    confident = graph.inbox(Image, "depth/confident/image_rect")
    upper = graph.inbox(Image, "depth/upper/image_rect")
    images = graph.publisher(Image, "image")
    images.publish(make.image(1, red(4)))
    wide = decode_depth(upper.wait(1)[0])
    assert (decode_depth(confident.wait(1)[0]) == 4).all()
    assert graph.set_parameters(NODE, max_relative_sigma=0.05, coverage=0.5).successful
    images.publish(make.image(2, red(4)))
    narrow = decode_depth(upper.wait(2)[1])
    assert np.isnan(decode_depth(confident.wait(2)[1])).all()
    np.testing.assert_allclose(wide, 4 + 1.959964 * 0.4, rtol=1e-6)
    np.testing.assert_allclose(narrow, 4 + 0.6744898 * 0.4, rtol=1e-6)
    result = graph.set_parameters(NODE, coverage=1.0)
    assert not result.successful
    assert "coverage" in result.reason


def test_a_method_the_model_lacks_is_refused(graph, start):
    node = start()
    before = node._predictor
    node.trigger_deactivate()
    result = graph.set_parameters(NODE, method="multi_epochs", samples=2)
    assert (result.successful, result.reason) == (False, "fake has no snapshots")
    assert node._predictor is before
    assert node.config.samples == 8
    assert graph.set_parameters(NODE, method="deterministic").successful
    assert node._predictor.config.method == "deterministic"


def test_whatever_a_change_raises_refuses_it_and_the_node_goes_on(graph, start, make):
    node = start(seed=666)
    before = node._predictor
    node.trigger_deactivate()
    result = graph.set_parameters(NODE, method="deterministic", samples=2, queue_size=3)
    assert (result.successful, result.reason) == (
        False,
        "MemoryError: no room for a second network",
    )
    assert node._predictor is before
    node.trigger_activate()
    assert (node.config.samples, node.cameras[0].queue.capacity) == (8, 1)
    depths = graph.inbox(Image, "depth/image_rect")
    graph.publisher(Image, "image").publish(make.image(1, red()))
    depths.wait()


def test_another_component_is_taken_without_loading_the_model_again(graph, start):
    node = start()
    loads = FakePredictor.loads
    assert graph.set_parameters(NODE, component="epistemic").successful
    assert FakePredictor.loads == loads
    assert node._predictor.config.component == "epistemic"


def test_the_models_own_method_by_name_does_not_load_the_model_again(graph, start):
    node = start()
    node.trigger_deactivate()
    loads = FakePredictor.loads
    for method in ("mc_dropout", ""):
        assert graph.set_parameters(NODE, method=method).successful
        assert node.config.method == method
    assert FakePredictor.loads == loads
    for method in ("deterministic", ""):
        assert graph.set_parameters(NODE, method=method).successful
    assert FakePredictor.loads == loads + 2
    assert node._predictor.method == "mc_dropout"


def test_samples_that_the_component_cannot_do_with_are_refused(graph, tiny_model):
    graph.start(DepthNode, model=str(tiny_model), component="epistemic", samples=2)
    result = graph.set_parameters(NODE, samples=1)
    assert not result.successful
    assert "component is 'epistemic', which mc_dropout with samples 1" in result.reason


def test_an_excessive_queue_size_is_refused(graph, start):
    node = start()
    assert not graph.set_parameters(NODE, queue_size=2**31).successful
    assert node.config.queue_size == 1


def test_a_component_the_model_lacks_is_refused(graph, start):
    node = start()
    result = graph.set_parameters(NODE, component="aleatoric")
    assert (result.successful, result.reason) == (
        False,
        "component is 'aleatoric', which fake does not have",
    )
    assert graph.set_parameters(NODE, component="epistemic").successful
    assert node._predictor.config.component == "epistemic"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compressed_input", True),
        ("reliable_input", False),
        ("queue_size", 4),
        ("method", "deterministic"),
        ("lidar_to_camera", [0.0] * 6 + [1.0]),
        ("fixed_frame", "odom"),
    ],
)
def test_what_activation_reads_is_set_before_it(graph, start, name, value):
    node = start()
    before = node.config
    refused = graph.set_parameters(NODE, **{"samples": 2, name: value})
    assert (refused.successful, refused.reason) == (
        False,
        f"{name} is fixed while the node is active; first type "
        "ros2 lifecycle set /depth_node deactivate",
    )
    assert node.config == before
    node.trigger_deactivate()
    assert graph.set_parameters(NODE, **{"samples": 2, name: value}).successful
    assert graph.set_parameters(NODE, samples=3).successful


def test_another_input_is_subscribed_at_the_next_activation(graph, start, make):
    node = start()
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(Image, "image")
    images.publish(make.image(1, red()))
    depths.wait(1)
    node.trigger_deactivate()
    assert graph.set_parameters(NODE, compressed_input=True, queue_size=4).successful
    node.trigger_activate()
    graph.until(lambda: images.get_subscription_count() == 0, "end of the old subscription")
    graph.until(
        lambda: graph.node.count_subscribers("/image/compressed") == 1, "the new subscription"
    )
    assert node.cameras[0].queue.capacity == 4


def test_diagnostics_once_a_second(graph, start, make):
    start()
    inbox = graph.inbox(DiagnosticArray, "/diagnostics", QoSProfile(depth=50))
    first = inbox.wait_for(lambda message: message.status[0].name == "depth_node").status[0]
    assert (first.level, first.message) == (b"\x01", "nothing received yet")
    images = graph.publisher(Image, "image")
    images.publish(make.image(1, red()))
    status = inbox.wait_for(lambda message: values(message).get("processed") == "1").status[0]
    facts = {item.key: item.value for item in status.values}
    assert (status.level, status.message) == (b"\x00", "running")
    assert facts["received"] == "1"
    assert facts["samples"] == "8"
    assert facts["device"] == "cpu"
    assert float(facts["latency_p95_ms"]) >= float(facts["latency_p50_ms"]) > 0
    assert {
        "received_rate_hz",
        "received_age_s",
        "waiting",
        "depth_subscribers",
        "image_publishers",
    } <= set(facts)
    bad = make.image(2, red())
    bad.encoding = "cmyk32"
    images.publish(bad)
    warned = inbox.wait_for(
        lambda message: values(message).get("dropped.image_unknown_encoding") == "1"
    ).status[0]
    assert warned.level == b"\x01"
    assert "image_unknown_encoding" in warned.message


def values(message):
    return {item.key: item.value for item in message.status[0].values}


def test_late_subscribers_learn_which_model_it_is(graph, start):
    start()
    qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    assert "mc_dropout" in graph.inbox(String, "depth/model", qos).wait()[0].data


def test_names_follow_namespace_and_remaps(graph, start, make):
    start(["-r", "__ns:=/robot", "-r", "image:=/front/image_raw"])
    depths = graph.inbox(Image, "/robot/depth/image_rect")
    images = graph.publisher(Image, "/front/image_raw")
    images.publish(make.image(1, red()))
    depths.wait()


def test_no_model_is_one_sentence(graph):
    with pytest.raises(ConfigError, match="the parameter model is empty; expected a model folder"):
        graph.start(DepthNode)


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "no/such/folder"},
        {"samples": -1},
        {"cameras": "front front"},
        {"qos_overrides__/image__subscription__reliability": "perfect"},
    ],
)
def test_a_node_that_fails_to_start_leaves_no_topic_in_the_graph(graph, wrong):
    with pytest.raises(UncertaintyDepthError) as failure:
        graph.start(DepthNode, **wrong)
    assert failure.traceback  # holds the node, as a program does that catches the error
    graph.until(lambda: not graph.node.count_publishers("depth/image_rect"), "publisher any more")


def test_the_shipped_model_has_a_name(graph):
    node = graph.start(DepthNode, model="demo")
    assert node._predictor.describe()["model"] == "demo"


def test_a_folder_that_is_no_model_is_one_sentence(graph, tmp_path):
    with pytest.raises(ModelError, match=str(tmp_path)):
        graph.start(DepthNode, model=str(tmp_path))


@pytest.mark.parametrize("method", ["mc_dropout", "multi_epochs", "deterministic"])
def test_real_model_gives_what_the_predictor_gives(graph, make, tiny_model, method):
    graph.start(DepthNode, model=str(tiny_model), max_frame_age=0.0, method=method, samples=3)
    depths = graph.inbox(Image, "depth/image_rect")
    sigmas = graph.inbox(Image, "uncertainty/image_rect")
    image = np.random.default_rng(0).integers(0, 256, (48, 80, 3), np.uint8)
    graph.publisher(Image, "image").publish(make.image(123_456_789, image))
    expected = Predictor(tiny_model, PredictorConfig(method=method, samples=3)).predict(
        image, 123_456_789
    )
    assert decode_depth(depths.wait()[0]).tobytes() == expected.depth_m.tobytes()
    assert decode_depth(sigmas.wait()[0]).tobytes() == expected.sigma_m.tobytes()


def test_real_model_takes_new_samples(graph, make, tiny_model):
    graph.start(DepthNode, model=str(tiny_model), max_frame_age=0.0, samples=2)
    sigmas = graph.inbox(Image, "uncertainty/image_rect")
    images = graph.publisher(Image, "image")
    image = np.random.default_rng(0).integers(0, 256, (48, 80, 3), np.uint8)
    for count in (2, 5):
        assert graph.set_parameters(NODE, samples=count).successful
        images.publish(make.image(77, image))
        expected = Predictor(tiny_model, PredictorConfig(samples=count)).predict(image, 77)
        sigmas.wait_for(
            lambda message, expected=expected: (
                decode_depth(message).tobytes() == expected.sigma_m.tobytes()
            )
        )
