# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The live view takes what the two nodes publish."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Float64

from uncertainty_depth.ros.live_view import LiveView

SHAPE = (12, 16)


class FakeRecorder:
    """Keeps what a recorder is given."""

    def __init__(self):
        self.frames = []
        self.scores = {}
        self.images = []

    def add(self, frame):
        self.frames.append(frame)

    def add_scores(self, scores):
        self.scores.update(scores)

    def add_image(self, entity, image):
        self.images.append((entity, image))


def test_a_pair_of_maps_is_shown_with_its_image_and_scores(graph, make):
    recorder = FakeRecorder()

    def create(**options):
        return LiveView(recorder, **options)

    create.create_executor = lambda context: SingleThreadedExecutor(context=context)
    graph.start(create)
    publish = {
        topic: graph.publisher(message_type, topic)
        for topic, message_type in {
            "image": Image,
            "depth/camera_info": CameraInfo,
            "depth/image_rect": Image,
            "uncertainty/image_rect": Image,
            "evaluator_node/error/image": Image,
            "evaluator_node/metrics/frame/ause/rmse": Float64,
        }.items()
    }
    image = np.full((*SHAPE, 3), 7, np.uint8)
    depth = np.full(SHAPE, 4, np.float32)
    publish["image"].publish(make.image(5, image))
    publish["depth/camera_info"].publish(make.camera_info(5, SHAPE[1], SHAPE[0]))
    publish["evaluator_node/error/image"].publish(make.image(5, image))
    publish["evaluator_node/metrics/frame/ause/rmse"].publish(Float64(data=0.25))
    graph.until(lambda: recorder.images and recorder.scores, "error image and score")
    assert recorder.images[0][0] == "maps/error"
    assert recorder.scores == {"ause.rmse": 0.25}
    for stamp, topic in ((5, "depth"), (6, "uncertainty"), (5, "uncertainty")):
        publish[f"{topic}/image_rect"].publish(make.image(stamp, depth))
    graph.until(lambda: recorder.frames, "a frame")
    (shown,) = recorder.frames
    assert shown.stamp_ns == 5
    np.testing.assert_array_equal(shown.prediction.sigma_m, depth)


def test_scores_and_errors_come_from_topics_that_the_evaluator_publishes(graph):
    """Subscribed to under the evaluator's name, published under that of the helper node."""
    from uncertainty_depth.ros.score_outputs import ScoreOutputs

    ScoreOutputs(graph.node)
    view = LiveView(FakeRecorder(), context=graph.context)
    wanted = {
        topic.removeprefix("/evaluator_node/")
        for topic, _ in view.get_subscriber_names_and_types_by_node("live_view", "/")
        if topic.startswith("/evaluator_node/")
    }
    view.destroy_node()
    published = {
        topic.removeprefix("/helper/")
        for topic, _ in graph.node.get_publisher_names_and_types_by_node("helper", "/")
    }
    assert wanted
    assert wanted <= published
