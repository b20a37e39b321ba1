# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Both nodes as managed nodes: what each transition does, and that a failing one says why."""

from __future__ import annotations

import gc
import json
import weakref

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Log
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_srvs.srv import SetBool, Trigger

from uncertainty_depth.report import report
from uncertainty_depth.ros.depth_node import DepthNode
from uncertainty_depth.ros.evaluator_node import EvaluatorNode

TRANSITIONS = {
    "configure": Transition.TRANSITION_CONFIGURE,
    "activate": Transition.TRANSITION_ACTIVATE,
    "deactivate": Transition.TRANSITION_DEACTIVATE,
    "cleanup": Transition.TRANSITION_CLEANUP,
    "shutdown": Transition.TRANSITION_UNCONFIGURED_SHUTDOWN,
}
MS = 1_000_000
WIDTH = 32
HEIGHT = 24
FINALIZED = "the node is finalized; expected it to be started again"
IDENTITY = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]


class Manager:
    """What a lifecycle manager does with a node, by its services."""

    def __init__(self, graph, name):
        self.graph = graph
        self.name = name

    def change(self, label):
        request = ChangeState.Request(transition=Transition(id=TRANSITIONS[label]))
        return self.graph.call(ChangeState, f"/{self.name}/change_state", request).success

    @property
    def state(self):
        return self.graph.call(GetState, f"/{self.name}/get_state").current_state.label

    def enable(self, value):
        response = self.graph.call(SetBool, f"/{self.name}/enable", SetBool.Request(data=value))
        return response.success, response.message


def test_the_depth_node_is_managed(graph, tiny_model, make):
    log = graph.inbox(Log, "/rosout", 50)
    node = graph.start(DepthNode, autostart=False, max_frame_age=0.0, samples=2)
    manager = Manager(graph, "depth_node")
    assert manager.state == "unconfigured"
    assert not manager.change("activate")  # not a transition of this state
    assert not manager.change("configure")
    assert log.wait_for(lambda line: "the parameter model is empty" in line.msg)
    assert manager.state == "unconfigured"
    assert graph.set_parameters("/depth_node", model=str(tiny_model)).successful
    assert manager.change("configure")
    assert (manager.state, graph.node.count_subscribers("/image")) == ("inactive", 0)
    depths = graph.inbox(Image, "depth/image_rect")
    assert manager.change("activate")
    images = graph.publisher(Image, "image")
    images.publish(make.image(1, np.zeros((HEIGHT, WIDTH, 3), np.uint8)))
    depths.wait(1)
    model = weakref.ref(node._predictor)
    refused = graph.set_parameters("/depth_node", model="/elsewhere", samples=1)
    assert not refused.successful
    assert "model is fixed while the node is active" in refused.reason
    assert node.config.samples == 2
    assert manager.change("deactivate")
    graph.until(lambda: not images.get_subscription_count(), "subscription any more")
    assert node._predictor is model()
    assert graph.set_parameters("/depth_node", queue_size=3, reliable_input=False).successful
    assert manager.change("activate")
    graph.until(images.get_subscription_count, "subscription")
    images.publish(make.image(2, np.zeros((HEIGHT, WIDTH, 3), np.uint8)))
    depths.wait(2)
    assert manager.change("deactivate")
    assert manager.change("cleanup")
    gc.collect()
    assert (manager.state, model()) == ("unconfigured", None)
    assert manager.change("shutdown")
    assert manager.state == "finalized"
    assert manager.enable(True) == (False, FINALIZED)


def test_enable_starts_and_stops_the_depth_node_and_says_why_it_cannot(graph, tiny_model):
    node = graph.start(DepthNode, autostart=False, model="/no/such/model")
    manager = Manager(graph, "depth_node")
    health = graph.inbox(DiagnosticArray, "/diagnostics")
    success, reason = manager.enable(True)
    assert not success
    assert "model folder /no/such/model does not exist" in reason
    told = health.wait_for(lambda message: reason in message.status[0].message)
    assert told.status[0].level == told.status[0].ERROR
    assert graph.set_parameters("/depth_node", model=str(tiny_model)).successful
    assert manager.enable(True) == (True, "active")
    assert manager.enable(True) == (True, "active")
    model = node._predictor
    assert manager.enable(False) == (True, "inactive")
    health.wait_for(lambda message: message.status[0].message.startswith("inactive"))
    assert manager.enable(False) == (True, "inactive")
    assert manager.enable(True) == (True, "active")
    assert node._predictor is model


class Frames:
    """Publishes whole frames to an evaluator, whose subscriptions may come and go."""

    def __init__(self, graph, make):
        self.make = make
        self.info = graph.publisher(CameraInfo, "depth/camera_info", matched=0)
        self.maps = [
            graph.publisher(Image, f"{name}/image_rect", 50, matched=0)
            for name in ("depth", "uncertainty")
        ]
        self.clouds = graph.publisher(PointCloud2, "lidar/points", 50, matched=0)
        self.graph = graph

    def publish(self, stamp):
        publishers = (self.info, *self.maps, self.clouds)
        self.graph.until(
            lambda: all(publisher.get_subscription_count() for publisher in publishers),
            "subscriptions",
        )
        random = np.random.default_rng(stamp)
        self.info.publish(self.make.camera_info(stamp, WIDTH, HEIGHT))
        for publisher, (low, high) in zip(self.maps, ((3, 5), (0.1, 1)), strict=True):
            values = random.uniform(low, high, (HEIGHT, WIDTH)).astype(np.float32)
            publisher.publish(self.make.image(stamp, values))
        self.clouds.publish(self.make.cloud(self.make.points_on_plane(), stamp))


def test_the_evaluator_is_managed_and_a_run_outlives_a_pause(graph, make, monkeypatch, tmp_path):
    write = report.write
    monkeypatch.setattr(report, "write", lambda *parts, images=False: write(*parts, images=False))
    output = tmp_path / "report"
    node = graph.start(
        EvaluatorNode, autostart=False, lidar_to_camera=IDENTITY, output=str(output)
    )
    manager = Manager(graph, "evaluator_node")
    saved = graph.call(Trigger, "/evaluator_node/save")
    assert (saved.success, saved.message) == (
        False,
        "the node is unconfigured; expected it to be configured",
    )
    frames = Frames(graph, make)
    assert manager.change("configure")
    assert manager.change("activate")
    frames.publish(100 * MS)
    run = node._run
    graph.until(lambda: run.live.evaluation.evaluated == 1, "the first frame")
    assert manager.change("deactivate")
    graph.until(lambda: not frames.clouds.get_subscription_count(), "subscription any more")
    assert graph.set_parameters("/evaluator_node", queue_size=7).successful
    assert manager.change("activate")
    frames.publish(200 * MS)
    graph.until(lambda: run.live.evaluation.evaluated == 2, "the second frame")
    assert manager.change("deactivate")
    assert manager.change("cleanup")
    assert json.loads((output / "summary.json").read_text())["frames"]["evaluated"] == 2
    success, reason = manager.enable(True)
    assert (success, manager.state) == (False, "unconfigured")
    assert f"{output}" in reason
    assert graph.set_parameters("/evaluator_node", overwrite=True).successful
    assert manager.enable(True) == (True, "active")
    assert node._run.live.evaluation.evaluated == 0


@pytest.mark.parametrize("failure", ["table", "subscription"])
def test_a_change_that_the_evaluator_cannot_make_leaves_the_run_as_it_was(
    graph, make, monkeypatch, failure
):
    node = graph.start(EvaluatorNode, lidar_to_camera=IDENTITY)
    frames = Frames(graph, make)
    frames.publish(100 * MS)
    run = node._run
    graph.until(lambda: run.live.evaluation.evaluated == 1, "the first frame")
    before = (node.config, run.live.evaluation, node._inputs.ground_truths, run.live.extrinsics)

    def fail(*_, **__):
        raise OSError("no space left on device")

    if failure == "table":
        monkeypatch.setattr(run.live, "_create_table", fail)
    else:
        monkeypatch.setattr("uncertainty_depth.ros.evaluator_inputs.WatchedInput", fail)
    refused = graph.set_parameters(
        "/evaluator_node", use_ground_truth_image=True, max_depth=50.0, queue_size=9
    )
    assert (refused.successful, refused.reason) == (False, "OSError: no space left on device")
    assert before == (
        node.config,
        run.live.evaluation,
        node._inputs.ground_truths,
        run.live.extrinsics,
    )
    frames.publish(200 * MS)
    graph.until(lambda: run.live.evaluation.evaluated == 2, "the second frame, as before")
