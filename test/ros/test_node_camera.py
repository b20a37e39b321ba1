# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node's camera: raw images are rectified, and the camera infos say so."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from test.conftest import refused
from test.ros.conftest import DEADLINE_S, FakePredictor, dropped
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.records import DepthPrediction
from uncertainty_depth.frames.messages.camera_info import camera_from_info, rectifier_from_info
from uncertainty_depth.frames.messages.images import decode_depth
from uncertainty_depth.ros import live_camera
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.live_camera import LiveCamera

WIDTH, HEIGHT = 64, 48


class RedIsDepth(FakePredictor):
    """Depth = red channel in decimetres, and 3 m more; sigma = a tenth of it."""

    def __init__(self, config=None):
        super().__init__(config or PredictorConfig())

    def predict(self, image, stamp_ns, camera=None, samples=None, sparse_m=None):
        depth_m = 3 + image[..., 0].astype(np.float32) / 10
        return DepthPrediction(depth_m, depth_m / 10)

    def predict_frame(self, frame, samples=None):
        return self.predict(frame.image, frame.stamp_ns)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    for name in ("FIRST_INFO_TIMEOUT_S", "OWN_MESSAGE_TIMEOUT_S"):
        monkeypatch.setattr(live_camera, name, DEADLINE_S)


@pytest.fixture
def start(start_depth):
    return partial(start_depth, predictor=RedIsDepth)


@pytest.fixture
def health():
    return Health()


@pytest.fixture
def infos(health):
    """A camera whose camera info is published."""
    camera = LiveCamera("/camera_info", lambda: True, health, print)
    camera.configure("rectify")
    return camera


@pytest.fixture
def image():
    columns = np.arange(WIDTH, dtype=np.uint8) * 3
    return np.repeat(np.tile(columns, (HEIGHT, 1))[..., None], 3, axis=2)


RAW = {
    "width": WIDTH,
    "height": HEIGHT,
    "d": [-0.28, 0.07, 0.001, -0.002, 0.0],
    "p": [36.0, 0, WIDTH / 2, -4.32, 0, 36.0, HEIGHT / 2, 0, 0, 0, 1, 0],
}


@pytest.fixture
def raw_info(make):
    return make.camera_info(0, **RAW)


def rectify(image, info):
    return rectifier_from_info(info).image(image)[0]


def test_the_first_image_waits_for_its_camera_info_and_is_rectified(start, robot, image, raw_info):
    start()
    depths = robot.heard("depth/image_rect")
    sent = [robot.heard(f"{name}/camera_info") for name in ("depth", "uncertainty")]
    robot.publisher("camera_info")
    robot.image(1, image, "left_optical")
    robot.info(**RAW)
    expected = RedIsDepth().predict(rectify(image, raw_info), 1).depth_m
    np.testing.assert_array_equal(decode_depth(depths.wait()[0]), expected)
    for inbox in sent:
        info = inbox.wait()[0]
        assert info.header.frame_id == "left_optical"
        assert not np.any(info.d)
        np.testing.assert_array_equal(info.r.reshape(3, 3), np.eye(3))
        np.testing.assert_array_equal(info.k.reshape(3, 3), raw_info.p.reshape(3, 4)[:, :3])
        np.testing.assert_allclose(info.p, raw_info.p, rtol=1e-11)
        assert rectifier_from_info(info).is_rectified


def test_images_may_be_kept_raw(graph, start, robot, image, raw_info):
    node = start(distorted_images="keep")
    depths, infos = robot.heard("depth/image_rect"), robot.heard("depth/camera_info")
    robot.info(**RAW)
    robot.image(1, image)
    kept = RedIsDepth().predict(image, 1).depth_m
    np.testing.assert_array_equal(decode_depth(depths.wait()[0]), kept)
    sent = infos.wait()[0]
    np.testing.assert_array_equal(sent.d, raw_info.d)
    points = np.random.default_rng(0).normal([0, 0, 4], 0.5, (50, 3))
    np.testing.assert_array_equal(
        camera_from_info(sent).pixels(points), camera_from_info(raw_info).pixels(points)
    )
    node.trigger_deactivate()
    assert graph.set_parameters("/depth_node", distorted_images="rectify").successful
    node.trigger_activate()
    graph.until(robot.publisher("image").get_subscription_count, "the node's subscription")
    robot.image(2, image)
    expected = RedIsDepth().predict(rectify(image, raw_info), 2).depth_m
    np.testing.assert_array_equal(decode_depth(depths.wait(2)[1]), expected)


def test_an_image_whose_camera_info_has_not_come_is_refused_not_called_rectified(
    infos, raw_info, monkeypatch
):
    monkeypatch.setattr(live_camera, "FIRST_INFO_TIMEOUT_S", 0.01)
    monkeypatch.setattr(live_camera, "DISCOVERY_S", 0.01)
    with refused("no_camera_info"):
        infos.rectifier(1)
    infos.add(raw_info)
    assert infos.rectifier(2).rectifies


ZOOM = {100: 40.0, 200: 45.0, 300: 60.0, 400: 60.0, 500: 50.0}
"""Focal lengths by stamp: the camera zooms from the first image on; each has a camera info."""


@pytest.mark.parametrize("first", ["image", "camera info"])
def test_an_image_of_a_zoom_lens_has_its_own_camera_info_whatever_comes_first(
    infos, health, make, first
):
    """Not the camera info before, of another focal length, though that one would be at once."""
    live = []
    with ThreadPoolExecutor(1) as images:
        for stamp, focal in ZOOM.items():
            message = make.camera_info(stamp, WIDTH, HEIGHT, focal=focal)
            if first == "camera info":
                infos.add(message)
            rectifier = images.submit(infos.rectifier, stamp)  # as on the worker's thread
            if first == "image":
                with pytest.raises(TimeoutError):
                    rectifier.result(0.02)  # it waits for its own
                infos.add(message)
            camera = rectifier.result(DEADLINE_S).camera(WIDTH, HEIGHT)
            live.append(camera.intrinsics[0, 0])
    assert live == list(ZOOM.values())
    assert "without_own_camera_info" not in health.counts()


def test_images_stop_waiting_for_camera_infos_that_do_not_come_with_them_until_they_do(
    infos, health, make, monkeypatch
):
    def at(stamp, has_info=False):
        if has_info:
            infos.add(make.camera_info(stamp))
        assert infos.rectifier(stamp) is not None
        return health.counts().get("without_own_camera_info", 0)

    infos.add(make.camera_info(0))
    assert at(1) == at(2) == 0, "the only camera info yet: it is sent once, and holds"
    assert at(3, has_info=True) == 0
    monkeypatch.setattr(live_camera, "OWN_MESSAGE_TIMEOUT_S", 0.01)
    assert [at(stamp) for stamp in range(4, 9)] == [1, 2, 3, 3, 3]
    assert at(9, has_info=True) == 3
    assert at(10) == 4


def test_a_fisheye_without_distortion_is_warned_of_in_the_node_s_log(start, robot):
    start()
    log = robot.heard("/rosout")
    for stamp, (model, d) in enumerate(
        [
            ("equidistant", [0.1, 0.0, 0.0, 0.0]),
            ("plumb_bob", 5 * [0.0]),
            ("equidistant", 4 * [0.0]),
        ]
    ):
        robot.info(stamp, distortion_model=model, d=d)
    log.wait_for(lambda line: "equidistant with D = 0" in line.msg)
    assert len([line for line in log.messages if "equidistant" in line.msg]) == 1


def test_what_names_no_frame_is_in_the_frame_of_its_camera_info(start, robot, image):
    start()
    depths, infos = robot.heard("depth/image_rect"), robot.heard("depth/camera_info")
    robot.info(width=WIDTH, height=HEIGHT)
    robot.informed()
    robot.image(1, image, "")
    assert depths.wait()[0].header.frame_id == infos.wait()[0].header.frame_id == "camera"


INTRUDER = """
import time
import rclpy
from std_msgs.msg import String
rclpy.init()
publisher = rclpy.create_node("intruder").create_publisher(String, "camera_info", 10)
while True:
    publisher.publish(String(data="no camera info"))
    time.sleep(0.05)
"""


def test_a_publisher_of_another_type_on_the_camera_info_s_topic_stops_no_image(
    graph, start, robot, image, start_python
):
    node = start()
    depths = robot.heard("depth/image_rect")
    start_python("-c", INTRUDER)  # a process: Fast DDS refuses a second type in this one
    graph.until(lambda: node.count_publishers("/camera_info"), "the intruder")
    for stamp in (1, 2):
        robot.image(stamp, image)
        np.testing.assert_array_equal(
            decode_depth(depths.wait(stamp)[-1]), RedIsDepth().predict(image, stamp).depth_m
        )
    assert dropped(node) == {}
