# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A small recording of a stereo camera and a LiDAR, made once, in whatever form a driver has."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from uncertainty_depth.core.config.source import PredictionConfig, PredictionTopics, SourceConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.stream import Stream

START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000
HEIGHT, WIDTH = 48, 64
TOPICS = ("/stereo/depth/image", "/stereo/confidence")
NAMES = ["--depth-topic", TOPICS[0], "--confidence-topic", TOPICS[1]]
CAMERA = Camera(WIDTH, HEIGHT, np.array([[60.0, 0, 31.5], [0, 60.0, 23.5], [0, 0, 1]]))


def scene(index):
    """A simulated stereo camera's truth, depth and true standard deviation, (H, W) metres.

    Sigma grows with the square of the depth, and with a texture that the confidence tells of.
    """
    random = np.random.default_rng(index)
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    truth = 3 + 0.05 * columns + 0.8 * np.sin(rows / 7 + index / 3)
    texture = 0.5 + 0.5 * np.sin(columns / 5 + index) * np.cos(rows / 6)
    sigma = 0.004 * truth**2 * (1 + 6 * (1 - texture))
    depth = truth + random.normal(0, sigma)
    return SimpleNamespace(
        truth=truth.astype(np.float32),
        depth=depth.astype(np.float32),
        sigma=sigma.astype(np.float32),
        texture=texture.astype(np.float32),
    )


def points_of(truth):
    """(N, 4) points at every second pixel, in the camera's frame, and their intensity."""
    points = CAMERA.rays()[::2, ::2] * truth[::2, ::2, None]
    return np.pad(points.reshape(-1, 3), ((0, 0), (0, 1))).astype(np.float32)


def run(source, topics=TOPICS, config=None, **meaning):
    """Score recorded predictions; return the evaluation and the stream."""
    job = Job(
        sources=(str(source),),
        reading=config or SourceConfig(),
        topics=PredictionTopics(*topics),
        meaning=PredictionConfig(**meaning),
    )
    stream = Stream.open(job)
    evaluation = evaluate(stream, job.evaluation, progress=False, sigma_kind=job.sigma_kind)
    return evaluation, stream


class ShownCamera(NamedTuple):
    """A camera image beside the depth, brighter where nearer; stamped `delay_ns` after it."""

    topic: str = "/stereo/left/image"
    frame_id: str = "camera"
    size: int = 2
    delay_ns: int = 0

    def write(self, writer, time_ns, now):
        grey = (255 / now.truth).clip(0, 255).astype(np.uint8)
        pixels = np.repeat(grey, 3).reshape(HEIGHT, WIDTH, 3)
        enlarged = pixels.repeat(self.size, 0).repeat(self.size, 1)
        writer.image(self.topic, time_ns + self.delay_ns, self.frame_id, enlarged)


@pytest.fixture
def write_camera(tmp_path):
    return camera_writer(tmp_path)


@pytest.fixture(scope="module")
def write_shared(tmp_path_factory):
    return camera_writer(tmp_path_factory.mktemp("bags"))


def camera_writer(folder):
    """Write a bag of depth and confidence topics, with a LiDAR in the camera's place."""

    def write(
        topics,
        depth=lambda s: s.depth,
        confidence=lambda s: s.sigma,
        frames=4,
        name="bag",
        first=0,
        truth_image=False,
        confidence_delay_ns=0,
        image=None,
    ):
        depth_topic, confidence_topic = topics
        with BagWriter(folder / name) as writer:
            writer.static_transforms([("lidar", "camera", np.eye(4))])
            for index in range(frames):
                time_ns = START_NS + index * PERIOD_NS
                now = scene(first + index)
                info_topic = depth_topic.rpartition("/")[0] + "/camera_info"
                writer.camera_info(info_topic, time_ns, "camera", CAMERA)
                writer.image(depth_topic, time_ns, "camera", depth(now))
                if confidence_topic:
                    delayed_ns = time_ns + confidence_delay_ns
                    writer.image(confidence_topic, delayed_ns, "camera", confidence(now))
                if image is not None:
                    image.write(writer, time_ns, now)
                if truth_image:
                    writer.image("/truth/image", time_ns, "camera", now.truth)
                else:
                    writer.cloud(
                        "/lidar/points", time_ns + 10_000_000, "lidar", points_of(now.truth)
                    )
        return folder / name

    return write
