# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages that no node publishes cost themselves: the node that gets them goes on."""

import cv2
import numpy as np
import pytest
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import Header, String
from std_srvs.srv import Trigger

from test.ros.conftest import HEIGHT, MS, POSE, WIDTH, dropped, red
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.frames.messages.images import decode_depth
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.messages import model_description, status_message

HUGE = "9" * 401
ESTIMATES = (
    {"correction": HUGE, "depth_scale": "", "scale_sigma": ""},
    {"correction": "", "depth_scale": "nan", "scale_sigma": "0.1"},
    {"correction": "", "depth_scale": HUGE, "scale_sigma": HUGE},
    {"correction": "", "scale": "1.0", "scale_sigma": "0.1"},
)


def test_the_depth_node_goes_on(graph, start_depth, robot):
    node = start_depth(use_depth_scale=True)
    depths = robot.heard("depth/image_rect")
    robot.info(1, k=[np.nan] * 9)
    robot.told(lambda values: "K [nan" in str(values))
    robot.info(2)
    robot.told(lambda values: "K [nan" not in str(values))
    refused = "refused.uncertainty/calibration"
    for count, values in enumerate(ESTIMATES, start=1):
        estimate = status_message(Header(), "online_calibration", "", {"sigma": "raw", **values})
        robot.send("uncertainty/calibration", estimate)
        graph.until(lambda count=count: node.health.counts().get(refused) == count, refused)
        robot.image(count + 2)
        depths.wait(count)


def test_the_evaluator_goes_on(graph, robot):
    node = graph.start(EvaluatorNode, lidar_to_camera=POSE)
    held_out = f'{{"measurements": "lidar", "held_out_fraction": 1{"0" * 400}}}'
    robot.send("depth/model", String(data=held_out))
    values = {"sigma": "raw", "samples": HUGE, "first_sample": "0", "passes": "8"}
    values |= {"calibration": "own", "calibration_reason": "", "correction": HUGE}
    values |= {"depth_scale": "1.0", "depth_scale_reason": "", "scale_sigma": ""}
    info = status_message(Header(), "prediction", "", values | {"unfamiliarity": ""})
    robot.send("depth/prediction_info", info)
    refused = "refused.depth/prediction_info"
    graph.until(lambda: node.health.counts().get(refused), "the refusal in the counts")
    graph.node.destroy_publisher(robot.publisher("depth/prediction_info"))  # else frames wait
    graph.until(lambda: node.count_publishers("depth/prediction_info") == 0, "publisher any more")
    robot.predict(100)
    robot.scan(100)
    graph.until(lambda: node.health.counts().get("evaluated") == 1, "scored frame")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[1]",
        '{"calibration": [], "model": "m"}',
        '{"model": "\\ud800", "\\udfff": 1}',
        '{"method": NaN, "samples": 1e999}',
    ],
    ids=["deep", "deep object", "list", "calibration", "surrogate", "numbers"],
)
def test_whatever_a_model_is_called_a_report_is_written(tmp_path, text):
    """A description that cannot be used is left out: the node says so."""
    try:
        model = model_description(text)
    except MessageError:
        model = {}
    page = report.write(Evaluation(), tmp_path, report.Context("live", model))
    assert page.exists()


class FailingNode(EvaluatorNode):
    """With a subscription, a timer and a service that fail."""

    def __init__(self, **options):
        super().__init__(**options)
        self.create_subscription(String, "fails/model", self._fail, 10)
        self.create_service(Trigger, "~/fails", self._fail)
        self.timer = self.create_timer(0.01, self._fail_once)

    def _fail(self, *_):
        raise OverflowError("int too large to convert to float")

    def _fail_once(self):
        self.timer.cancel()
        self._fail()


def test_whatever_a_callback_raises_the_node_goes_on_and_counts_it(graph, robot):
    graph.start(FailingNode, lidar_to_camera=POSE)
    robot.send("fails/model", String())
    answer = graph.call(Trigger, "/evaluator_node/fails")
    reason = "OverflowError: int too large to convert to float"
    assert (answer.success, answer.message) == (False, reason)
    robot.told(lambda values: values.get("callback_failed") == "3")


def test_a_compressed_image_larger_than_max_pixels_is_dropped_by_its_header(
    graph, start_depth, robot, make
):
    node = start_depth(compressed_input=True, max_pixels=WIDTH * HEIGHT)
    depths = robot.heard("depth/image_rect")

    def send(width, value=0):
        png = cv2.imencode(".png", red(value, width)[..., ::-1])[1].tobytes()
        image = CompressedImage(header=make.header(MS), format="rgb8; png compressed bgr8")
        image.data = png
        robot.send("image/compressed", image)

    for count, width in enumerate((WIDTH + 1, 8192), start=1):
        send(width)
        lost = {"image_too_large": count}
        graph.until(lambda lost=lost: dropped(node) == lost, "the drop")
    send(WIDTH, value=7)
    assert (decode_depth(depths.wait()[0]) == 7).all()
