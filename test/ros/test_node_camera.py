# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node's camera: raw images are rectified, and the camera infos say so."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from rcl_interfaces.msg import Log
from sensor_msgs.msg import CameraInfo, Image

from test.ros.conftest import DEADLINE_S, FakePredictor
from uncertainty_depth.config import PredictorConfig, ProjectionConfig, SourceConfig
from uncertainty_depth.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.predicted import predicted
from uncertainty_depth.frames.transforms import FixedExtrinsics
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.rectification import Rectifier
from uncertainty_depth.messages.bag_writer import BagWriter
from uncertainty_depth.messages.camera_info import calibration_from_info, camera_from_info
from uncertainty_depth.messages.depth_images import decode_depth
from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.ros import camera_infos
from uncertainty_depth.ros.live_scores import LiveFrame, LiveScores
from uncertainty_depth.ros.messages import camera_info_message, image_message

WIDTH = 64
HEIGHT = 48
IDENTITY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


class RedIsDepth(FakePredictor):
    """Depth = red channel in decimetres, and 3 m more; sigma = a tenth of it."""

    def __init__(self, config=None):
        super().__init__(config or PredictorConfig())

    def predict(self, image, stamp_ns, camera=None, samples=None, sparse_m=None):
        depth_m = 3 + image[..., 0].astype(np.float32) / 10
        return DepthPrediction(depth_m, depth_m / 10)

    def predict_batch(self, observations, samples=None):
        return [self.predict(one.image, one.stamp_ns) for one in observations]


@pytest.fixture
def start(start_depth, monkeypatch):
    for name in ("FIRST_INFO_TIMEOUT_S", "OWN_INFO_TIMEOUT_S"):
        monkeypatch.setattr(camera_infos, name, DEADLINE_S)
    return partial(start_depth, predictor=RedIsDepth)


def health(node):
    """Return the counts of the node's only camera."""
    (camera,) = node.cameras
    return camera.health


@pytest.fixture
def image():
    columns = np.arange(WIDTH, dtype=np.uint8) * 3
    return np.repeat(np.tile(columns, (HEIGHT, 1))[..., None], 3, axis=2)


@pytest.fixture
def raw_info(make):
    info = make.camera_info(0, WIDTH, HEIGHT)
    info.d = [-0.28, 0.07, 0.001, -0.002, 0.0]
    info.p[0] = info.p[5] = 36.0
    info.p[3] = -4.32
    return info


def rectify(image, info):
    return Rectifier(calibration_from_info(info)).image(image)[0]


def test_the_first_image_waits_for_its_camera_info_and_is_rectified(
    graph, start, make, image, raw_info
):
    start()
    depths = graph.inbox(Image, "depth/image_rect")
    infos = [graph.inbox(CameraInfo, f"{name}/camera_info") for name in ("depth", "uncertainty")]
    info = graph.publisher(CameraInfo, "camera_info")
    images = graph.publisher(Image, "image")
    images.publish(make.image(1, image, "left_optical"))
    info.publish(raw_info)
    expected = RedIsDepth().predict(rectify(image, raw_info), 1).depth_m
    np.testing.assert_array_equal(decode_depth(depths.wait()[0]), expected)
    for inbox in infos:
        sent = inbox.wait()[0]
        assert sent.header.frame_id == "left_optical"
        assert not np.any(sent.d)
        np.testing.assert_array_equal(sent.r.reshape(3, 3), np.eye(3))
        np.testing.assert_array_equal(sent.k.reshape(3, 3), raw_info.p.reshape(3, 4)[:, :3])
        np.testing.assert_allclose(sent.p, raw_info.p, rtol=1e-11)
        assert calibration_from_info(sent).is_rectified


def test_an_image_whose_camera_info_has_not_come_is_dropped_not_called_rectified(
    graph, start, make, image, raw_info, monkeypatch
):
    monkeypatch.setattr(camera_infos, "FIRST_INFO_TIMEOUT_S", 0.01)
    node = start()
    depths = graph.inbox(Image, "depth/image_rect")
    info = graph.publisher(CameraInfo, "camera_info")
    images = graph.publisher(Image, "image")
    images.publish(make.image(1, image))
    graph.until(lambda: health(node).dropped() == {"no_camera_info": 1}, "a counted drop")
    info.publish(raw_info)
    graph.until(lambda: node.cameras[0].info.info is not None, "camera info in the node")
    images.publish(make.image(2, image))
    expected = RedIsDepth().predict(rectify(image, raw_info), 2).depth_m
    np.testing.assert_array_equal(decode_depth(depths.wait()[0]), expected)


ZOOM = {100: 40.0, 200: 40.0, 300: 60.0, 400: 60.0, 500: 50.0}
"""Focal lengths by stamp: the camera zooms in mid-bag, and each image has a camera info."""


@pytest.mark.parametrize("first", ["image", "camera info"])
def test_a_zoom_lens_has_the_same_camera_live_and_offline_whatever_comes_first(
    graph, start, make, image, tmp_path, first
):
    """Not the camera info before, of another focal length, though that one would be at once."""
    with BagWriter(tmp_path / "bag") as writer:
        for stamp, focal in ZOOM.items():
            intrinsics = np.array(make.camera_info(stamp, WIDTH, HEIGHT, focal).k).reshape(3, 3)
            camera = Camera(WIDTH, HEIGHT, intrinsics)
            parts = [
                lambda stamp=stamp: writer.image("/camera/image_raw", stamp, "camera", image),
                lambda stamp=stamp, camera=camera: writer.camera_info(
                    "/camera/camera_info", stamp, "camera", camera
                ),
            ]
            for part in parts if first == "image" else reversed(parts):
                part()
            points = np.insert(make.points_on_plane(), 3, 0, axis=1)
            writer.cloud("/lidar/points", stamp, "lidar", points)
    config = SourceConfig(lidar_to_camera=IDENTITY)
    offline = [frame.camera.intrinsics[0, 0] for frame in BagSource(tmp_path / "bag", config)]

    node = start()
    sent = graph.inbox(CameraInfo, "depth/camera_info")
    info = graph.publisher(CameraInfo, "camera_info")
    images = graph.publisher(Image, "image")

    def send_image(stamp):
        count = health(node).counts().get("received", 0)
        images.publish(make.image(stamp, image))
        graph.until(lambda: health(node).counts().get("received") == count + 1, "the image")

    def send_info(stamp):
        message = make.camera_info(stamp, WIDTH, HEIGHT, focal=ZOOM[stamp])
        info.publish(message)
        graph.until(lambda: node.cameras[0].info.info == message, "camera info")

    for count, stamp in enumerate(ZOOM, start=1):
        for send in (send_image, send_info) if first == "image" else (send_info, send_image):
            send(stamp)
        sent.wait(count)
    assert [message.k[0] for message in sent.messages] == offline == list(ZOOM.values())
    assert "without_own_camera_info" not in health(node).counts()


def test_images_stop_waiting_for_camera_infos_that_do_not_come_with_them_until_they_do(
    graph, start, make, image, monkeypatch
):
    node = start()
    depths = graph.inbox(Image, "depth/image_rect")
    info = graph.publisher(CameraInfo, "camera_info")
    images = graph.publisher(Image, "image")

    def send(stamp, has_info=False):
        if has_info:
            message = make.camera_info(stamp, WIDTH, HEIGHT)
            info.publish(message)
            graph.until(lambda: node.cameras[0].info.info == message, "camera info")
        count = len(depths.messages)
        images.publish(make.image(stamp, image))
        depths.wait(count + 1)
        return health(node).counts().get("without_own_camera_info", 0)

    assert send(1, has_info=True) == 0
    assert send(2) == 0, "the only camera info yet: it is sent once, and holds"
    assert send(3, has_info=True) == 0
    monkeypatch.setattr(camera_infos, "OWN_INFO_TIMEOUT_S", 0.01)
    assert [send(stamp) for stamp in range(4, 9)] == [1, 2, 3, 3, 3]
    assert send(9, has_info=True) == 3
    assert send(10) == 4
    assert health(node).dropped() == {}


def test_images_may_be_kept_raw(graph, start, make, image, raw_info):
    node = start(distorted_images="keep")
    depths = graph.inbox(Image, "depth/image_rect")
    infos = graph.inbox(CameraInfo, "depth/camera_info")
    info = graph.publisher(CameraInfo, "camera_info")
    images = graph.publisher(Image, "image")
    info.publish(raw_info)
    images.publish(make.image(1, image))
    np.testing.assert_array_equal(
        decode_depth(depths.wait()[0]), RedIsDepth().predict(image, 1).depth_m
    )
    sent = infos.wait()[0]
    np.testing.assert_array_equal(sent.d, raw_info.d)
    points = np.random.default_rng(0).normal([0, 0, 4], 0.5, (50, 3))
    np.testing.assert_array_equal(
        camera_from_info(sent).pixels(points), camera_from_info(raw_info).pixels(points)
    )
    node.trigger_deactivate()
    assert graph.set_parameters("/depth_node", distorted_images="rectify").successful
    node.trigger_activate()
    graph.until(images.get_subscription_count, "the node's subscription")
    images.publish(make.image(2, image))
    expected = RedIsDepth().predict(rectify(image, raw_info), 2).depth_m
    np.testing.assert_array_equal(decode_depth(depths.wait(2)[1]), expected)


@pytest.mark.parametrize("distorted_images", ["rectify", "keep", "already_rectified"])
def test_live_equals_offline_in_every_digit_for_a_distorted_camera(
    tmp_path, make, image, raw_info, distorted_images
):
    """A bag read offline against the same images through the node's camera and the evaluator's."""
    calibration = calibration_from_info(raw_info)
    points = make.points_on_plane(2000, spread=2.5)
    points[:, 2] += points[:, 0] / 3
    stamp_ns = 1_000_000_000
    with BagWriter(tmp_path / "bag") as writer:
        fields = {name: getattr(raw_info, name) for name in ("k", "r", "p")}
        write = writer.message

        def exact(topic, stamp, message):
            if topic == "/camera/camera_info":
                for name, values in fields.items():
                    getattr(message, name)[:] = values
            write(topic, stamp, message)

        writer.message = exact
        writer.camera_info("/camera/camera_info", stamp_ns, "camera", calibration.raw)
        writer.image("/camera/image_raw", stamp_ns, "camera", image)
        writer.cloud("/lidar/points", stamp_ns, "lidar", np.insert(points, 3, 0, axis=1))
    config = SourceConfig(lidar_to_camera=IDENTITY, distorted_images=distorted_images)
    offline = evaluate(
        predicted(BagSource(tmp_path / "bag", config), RedIsDepth()), progress=False
    )

    extrinsics = FixedExtrinsics(ProjectionConfig(lidar_to_camera=IDENTITY))
    live = LiveScores(EvaluatorNodeConfig(), extrinsics)
    used, camera = Rectifier(calibration, distorted_images).image(image)
    prediction = RedIsDepth().predict(used, stamp_ns)
    header = make.header(stamp_ns)
    messages = {
        "depth/camera_info": camera_info_message(camera, header),
        "depth/image_rect": image_message(prediction.depth_m, header),
        "uncertainty/image_rect": image_message(prediction.sigma_m, header),
        "lidar/points": make.cloud(points, stamp_ns),
    }
    for topic, message in messages.items():
        results = list(live.add(topic, message))
    assert isinstance(results[0], LiveFrame)
    assert offline.evaluated == 1
    assert repr(live.evaluation.summary()) == repr(offline.summary())  # NaN is not NaN


@pytest.mark.parametrize(
    ("model", "d", "warns"),
    [("equidistant", 4 * [0.0], True), ("equidistant", [0.1, 0.0, 0.0, 0.0], False),
     ("plumb_bob", 5 * [0.0], False)],
)  # fmt: skip
def test_a_fisheye_without_distortion_is_warned_of(graph, start, make, model, d, warns):
    log = graph.inbox(Log, "/rosout", 50)
    node = start()
    info = graph.publisher(CameraInfo, "camera_info")
    message = make.camera_info(1, 64, 48)
    message.distortion_model = model
    message.d = d
    info.publish(message)
    graph.until(lambda: node.cameras[0].info.info is not None, "camera info")
    node.get_logger().warning("the last line")
    log.wait_for(lambda line: line.msg == "the last line")
    warned = [line.msg for line in log.messages if "equidistant with D = 0" in line.msg]
    assert len(warned) == warns
