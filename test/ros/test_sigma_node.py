# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The sigma node over real topics: any confidence in, metres out, and no torch."""

import json
import signal
from array import array
from itertools import chain, count, pairwise

import numpy as np
import pytest
from sensor_msgs.msg import Image

from test.ros.conftest import HEIGHT, MS, WIDTH, Robot, header, numbers
from uncertainty_depth.frames.messages.images import decode_depth
from uncertainty_depth.ros.sigma_node import SigmaNode
from uncertainty_depth.sigma.calibration.depth_head import LAYERS, DepthHead
from uncertainty_depth.sigma.calibration.sigma_map import SigmaMap, flat
from uncertainty_depth.sigma.recorded.interpreter import SavedMap

MAP = SigmaMap("affine", (0.0, 1.0), (0.02, 0.03), 1.0, 0.5)
BLOCKED = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None
from uncertainty_depth.ros.main import sigma_node
sys.exit(sigma_node())
"""


@pytest.fixture(scope="module")
def map_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("map") / "map.json"
    SavedMap(MAP, "uncertainty_rank", "depth", "laplace").write(path)
    return str(path)


def maps():
    """A stereo camera's depth in millimetres, and its confidence in bytes, 0 = certain."""
    random = np.random.default_rng(0)
    depth = random.uniform(1000, 5000, (HEIGHT, WIDTH)).astype(np.uint16)
    depth[0] = 0  # no value
    return depth, random.integers(0, 255, (HEIGHT, WIDTH), dtype=np.uint8)


def expected_sigma():
    depth, confidence = maps()
    sigma = MAP(confidence.astype(np.float32), depth.astype(np.float32) / 1000)
    return np.where(depth > 0, sigma, np.nan)


def image(stamp, values):
    """16UC1 or mono8, which this package reads and never publishes."""
    encoding = {"uint16": "16UC1", "uint8": "mono8"}[values.dtype.name]
    height, width = values.shape
    message = Image(header=header(stamp * MS), height=height, width=width, encoding=encoding)
    message.step = values.strides[0]
    message.data = array("B", values.tobytes())
    return message


class Camera(Robot):
    """Publishes what a stereo camera's driver does."""

    def drive(self, stamp, confidence=None, delay=0):
        depth, byte_confidence = maps()
        values = byte_confidence if confidence is None else confidence
        self.info(stamp, "depth/camera_info")
        self.send("depth/image_rect", image(stamp, depth))
        self.send("confidence/image", image(stamp + delay, values))


@pytest.fixture
def camera(graph):
    return Camera(graph)


def test_a_confidence_becomes_metres_and_points(graph, camera, map_path):
    graph.start(SigmaNode, sigma_map=map_path)
    sigmas = camera.heard("uncertainty/image_rect")
    depths = camera.heard("depth/corrected/image_rect")
    points = camera.heard("points")
    infos = camera.heard("uncertainty/camera_info")
    stamps = count(100, 100)
    graph.until(lambda: infos.messages or camera.drive(next(stamps)), "camera info")
    message = sigmas.wait()[0]
    assert (message.encoding, message.header.frame_id) == ("32FC1", "camera")
    np.testing.assert_allclose(decode_depth(message), expected_sigma(), rtol=1e-6)
    depth = maps()[0]
    in_metres = np.where(depth > 0, depth / 1000, np.nan)  # nothing measures: as it came
    np.testing.assert_allclose(decode_depth(depths.wait()[0]), in_metres, rtol=1e-6)
    assert infos.messages[0].width == WIDTH
    assert points.wait()[0].width * points.wait()[0].height > 0
    (model,) = [json.loads(model.data) for model in camera.heard("depth/model").wait()]
    facts_of_map = {
        "confidence_type": "uncertainty_rank",
        "head": "laplace",
        "calibration": "affine",
    }
    assert model.items() >= facts_of_map.items()


def constant_head():
    """Its weights are 0, so its last bias is the log depth's error everywhere."""
    shapes = list(pairwise(LAYERS))
    return DepthHead(
        np.zeros(LAYERS[0], np.float32),
        np.ones(LAYERS[0], np.float32),
        tuple(np.zeros(shape, np.float32) for shape in shapes),
        tuple(np.full(outputs, np.log(0.05), np.float32) for _, outputs in shapes),
    )


OF_DEPTH_ALONE = {
    "by its distance": (
        SavedMap(flat(0.01, 1.8, "power of depth"), "none", "depth", "laplace"),
        lambda depth_m: 0.01 * depth_m**1.8,
    ),
    "learned": (
        SavedMap(MAP, "none", "depth", "laplace", head=constant_head()),
        lambda depth_m: MAP(np.sqrt(np.float32(2)) * 0.05 * depth_m, depth_m),
    ),
}


@pytest.mark.parametrize("name", OF_DEPTH_ALONE)
def test_a_depth_without_a_confidence_has_a_sigma_too(graph, robot, tmp_path, capfd, name):
    saved, sigma_of = OF_DEPTH_ALONE[name]
    saved.write(tmp_path / "map.json")
    graph.start(SigmaNode, sigma_map=str(tmp_path / "map.json"))
    sigmas = robot.heard("uncertainty/image_rect")
    depth, _ = maps()
    robot.send("depth/image_rect", image(200, depth))
    expected = np.where(depth > 0, sigma_of(depth.astype(np.float32) / 1000), np.nan)
    np.testing.assert_allclose(decode_depth(sigmas.wait()[0]), expected, rtol=1e-4)
    assert "sigma from the depth alone" in capfd.readouterr().err


def test_the_counters_in_the_diagnostics_add_up(graph, camera, map_path):
    graph.start(SigmaNode, sigma_map=map_path)
    sigmas = camera.heard("uncertainty/image_rect")
    camera.drive(100, confidence=np.zeros((12, 16), np.uint8))
    camera.told(lambda values: "dropped.uncertainty_wrong_size" in values)
    for number in range(2, 8):
        camera.drive(number * 100)
    sigmas.wait()
    camera.drive(900, delay=1)  # two images of other stamps: both wait for their pair
    settled = camera.told(lambda values: (values["received"], values["waiting"]) == ("9", "2"))
    counts = numbers(settled)
    dropped = sum(amount for name, amount in counts.items() if name.startswith("dropped."))
    assert 1 <= counts["processed"] <= 6
    assert counts["received"] == counts["processed"] + dropped + counts["waiting"]


def test_images_without_stamps_are_no_pair(graph, camera, map_path):
    graph.start(SigmaNode, sigma_map=map_path)
    sigmas = camera.heard("uncertainty/image_rect")
    camera.drive(0)
    counts = numbers(camera.told(lambda values: "refused.confidence/image" in values))
    assert counts["dropped.unusable_stamp"] == counts["received"] == 1
    camera.drive(100)
    assert [message.header.stamp.nanosec for message in sigmas.wait()] == [100 * MS]


def test_another_map_is_taken_at_the_next_activation(graph, robot, map_path, tmp_path):
    node = graph.start(SigmaNode, sigma_map=map_path)
    models = robot.heard("depth/model")
    SavedMap(MAP, "confidence_0_1", "depth", "gaussian").write(tmp_path / "other.json")
    other = {"sigma_map": str(tmp_path / "other.json")}
    graph.refuses("/sigma_node", "sigma_map is fixed while the node is active", **other)
    node.trigger_deactivate()
    assert graph.set_parameters("/sigma_node", sigma_map=str(tmp_path / "none.json")).successful
    node.trigger_activate()
    assert "cannot be read" in node.inactive_status()[1]
    assert graph.set_parameters("/sigma_node", **other).successful
    node.trigger_activate()
    assert node.inactive_status() is None
    models.wait_for(lambda model: json.loads(model.data)["confidence_type"] == "confidence_0_1")


def test_the_node_works_if_torch_is_not_installed(camera, map_path, start_python):
    parameters = (f"sigma_map:={map_path}", "measurements:=depth")
    options = chain.from_iterable(("-p", parameter) for parameter in parameters)
    process = start_python("-c", BLOCKED, "--ros-args", *options)
    sigmas = camera.heard("uncertainty/image_rect")
    camera.drive(100)
    np.testing.assert_allclose(decode_depth(sigmas.wait()[0]), expected_sigma(), rtol=1e-6)
    assert process.end(signal.SIGINT) == 0
    assert "1 processed" in process.output
