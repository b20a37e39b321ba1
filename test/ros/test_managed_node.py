# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Both nodes as managed nodes: what each transition does, and that a failing one says why."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Log
from sensor_msgs.msg import Image
from std_srvs.srv import SetBool, Trigger

from test.ros.conftest import FakePredictor
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


def test_the_depth_node_is_managed(graph, start_depth, make):
    log = graph.inbox(Log, "/rosout", 50)
    start_depth(autostart=False, model="")
    manager = Manager(graph, "depth_node")
    assert manager.state == "unconfigured"
    assert not manager.change("activate")  # not a transition of this state
    assert not manager.change("configure")
    assert log.wait_for(lambda line: "the parameter model is empty" in line.msg)
    assert manager.state == "unconfigured"
    assert graph.set_parameters("/depth_node", model="fake").successful
    assert manager.change("configure")
    assert (manager.state, graph.node.count_subscribers("/image")) == ("inactive", 0)
    depths = graph.inbox(Image, "depth/image_rect")
    assert manager.change("activate")
    images = graph.publisher(Image, "image")
    images.publish(make.image(1, np.zeros((HEIGHT, WIDTH, 3), np.uint8)))
    depths.wait(1)
    loads = FakePredictor.loads
    model = weakref.ref(FakePredictor.newest)
    FakePredictor.newest = None
    assert manager.change("deactivate")
    graph.until(lambda: not images.get_subscription_count(), "subscription any more")
    assert graph.set_parameters("/depth_node", queue_size=3).successful
    assert manager.change("activate")
    graph.until(images.get_subscription_count, "subscription")
    images.publish(make.image(2, np.zeros((HEIGHT, WIDTH, 3), np.uint8)))
    depths.wait(2)
    assert FakePredictor.loads == loads
    assert manager.change("deactivate")
    assert manager.change("cleanup")
    gc.collect()
    assert (manager.state, model()) == ("unconfigured", None)
    assert manager.change("shutdown")
    assert manager.state == "finalized"
    assert manager.enable(True) == (False, FINALIZED)


def test_enable_starts_and_stops_the_depth_node_and_says_why_it_cannot(graph, tiny_model):
    graph.start(DepthNode, autostart=False, model="/no/such/model")
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
    assert manager.enable(False) == (True, "inactive")
    health.wait_for(lambda message: message.status[0].message.startswith("inactive"))
    assert manager.enable(False) == (True, "inactive")
    assert manager.enable(True) == (True, "active")


def test_the_evaluator_is_managed_and_says_why_it_cannot_start(graph, tmp_path):
    output = tmp_path / "report"
    graph.start(EvaluatorNode, autostart=False, lidar_to_camera=IDENTITY, output=str(output))
    manager = Manager(graph, "evaluator_node")
    saved = graph.call(Trigger, "/evaluator_node/save")
    assert (saved.success, saved.message) == (
        False,
        "the node is unconfigured; expected it to be active",
    )
    assert manager.change("configure")
    assert not output.exists()
    assert manager.change("activate")
    assert manager.change("deactivate")
    assert (output / "summary.json").exists()
    assert manager.change("cleanup")
    success, reason = manager.enable(True)
    assert (success, manager.state) == (False, "unconfigured")
    assert f"{output}" in reason
    assert graph.set_parameters("/evaluator_node", overwrite=True).successful
    assert manager.enable(True) == (True, "active")
