# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""All nodes as managed nodes: what each transition does, and that a failing one says why."""

import gc
import sys
import weakref
from types import SimpleNamespace

import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Log
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from test.ros.conftest import POSE, FakePredictor
from uncertainty_depth.ros import depth_node
from uncertainty_depth.ros.depth_node import DepthNode
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.sigma_node import SigmaNode

TRANSITIONS = {
    "configure": Transition.TRANSITION_CONFIGURE,
    "activate": Transition.TRANSITION_ACTIVATE,
    "deactivate": Transition.TRANSITION_DEACTIVATE,
    "cleanup": Transition.TRANSITION_CLEANUP,
    "shutdown": Transition.TRANSITION_UNCONFIGURED_SHUTDOWN,
}
NODES = {
    "depth_node": (DepthNode, {}, "the parameter model is empty", {"model": "fake"}),
    "evaluator_node": (
        EvaluatorNode,
        {"lidar_to_camera": POSE, "min_depth": 5.0, "max_depth": 5.0},
        "min_depth is 5.0; expected less than max_depth",
        {"max_depth": 50.0},
    ),
    "sigma_node": (
        SigmaNode,
        {"confidence_type": "uncertainty_rank"},
        "expected sigma_map:=map.json",
        {"confidence_type": "variance"},
    ),
}
"""Parameters that a node cannot be configured with, why not, and what mends it."""


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


@pytest.mark.parametrize("name", NODES)
def test_every_node_is_managed_and_says_why_it_cannot_start(graph, robot, name, monkeypatch):
    node_class, wrong, reason, right = NODES[name]
    monkeypatch.setattr(depth_node, "load_predictor", FakePredictor)
    log = graph.inbox(Log, "/rosout", 50)
    graph.start(node_class, autostart=False, **wrong)
    manager = Manager(graph, name)
    topic = "/image" if name == "depth_node" else "/depth/image_rect"

    def is_subscribed():
        return graph.node.count_subscribers(topic) > 0

    assert manager.state == "unconfigured"
    assert not manager.change("activate")  # not a transition of this state
    assert not manager.change("configure")
    assert log.wait_for(lambda line: reason in line.msg)
    success, answer = manager.enable(True)
    assert (success, reason in answer, manager.state) == (False, True, "unconfigured")
    told = robot.told(lambda values: reason in values["message"])
    assert told.status[0].level == told.status[0].ERROR
    assert graph.set_parameters(f"/{name}", **right).successful
    assert manager.change("configure")
    assert (manager.state, is_subscribed()) == ("inactive", False)
    assert manager.change("activate")
    graph.until(is_subscribed, "the subscription")
    assert manager.change("deactivate")
    graph.until(lambda: not is_subscribed(), "subscription any more")
    assert manager.enable(True) == manager.enable(True) == (True, "active")
    graph.until(is_subscribed, "the subscription")
    assert manager.enable(False) == manager.enable(False) == (True, "inactive")
    graph.until(lambda: not is_subscribed(), "subscription any more")
    robot.told(lambda values: values["message"].startswith("inactive"))
    assert manager.change("cleanup")
    assert manager.state == "unconfigured"
    assert manager.change("shutdown")
    assert manager.state == "finalized"
    finalized = "the node is finalized; expected it to be started again"
    assert manager.enable(True) == (False, finalized)


def test_a_cleaned_up_depth_node_has_freed_its_model(graph, start_depth):
    node = start_depth()
    model = weakref.ref(FakePredictor.newest)
    FakePredictor.newest = None
    node.trigger_deactivate()
    assert model() is not None
    node.trigger_cleanup()
    gc.collect()
    assert model() is None


def test_an_evaluator_that_is_not_active_saves_nothing(graph, tmp_path):
    graph.start(EvaluatorNode, autostart=False, lidar_to_camera=POSE, output=str(tmp_path / "r"))
    saved = graph.call(Trigger, "/evaluator_node/save")
    assert not saved.success
    assert saved.message == "the node is unconfigured; expected it to be active"
    assert Manager(graph, "evaluator_node").change("configure")
    assert not (tmp_path / "r").exists()


class Bond:
    """Of bondpy: what the node is bonded by, and what it did."""

    made = ()

    def __init__(self, node, topic, bond_id):
        self.did = [(node.get_name(), topic, bond_id)]
        self.pub = node.create_publisher(String, topic, 1)
        self.sub = node.create_subscription(String, topic, print, 1)
        Bond.made = (*Bond.made, self)

    def __getattr__(self, name):
        return lambda *arguments: self.did.append((name, *arguments))

    def shutdown(self):
        """As bondpy does, which leaves their events to the node."""
        self.did.append(("shutdown",))
        self.sub.destroy()
        self.pub.destroy()


@pytest.mark.parametrize("autostart", [False, True])
def test_a_node_that_a_manager_activates_has_a_bond_until_it_is_deactivated(
    graph, monkeypatch, autostart
):
    monkeypatch.setattr(Bond, "made", ())
    monkeypatch.setitem(sys.modules, "bondpy", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "bondpy.bondpy", SimpleNamespace(Bond=Bond))
    graph.start(EvaluatorNode, autostart=autostart, lidar_to_camera=POSE)
    manager = Manager(graph, "evaluator_node")
    if autostart:
        assert manager.change("deactivate")
        assert not Bond.made
        return
    for lives in (1, 2):
        assert lives == 2 or manager.change("configure")
        assert len(Bond.made) == lives - 1
        assert manager.change("activate")
        bond = Bond.made[-1]
        assert bond.did == [
            ("evaluator_node", "bond", "evaluator_node"),
            ("set_heartbeat_period", 0.1),
            ("set_heartbeat_timeout", 4.0),
            ("start",),
        ]
        assert manager.change("deactivate")
        assert bond.did[-1] == ("shutdown",)


def test_without_bondpy_a_manager_s_user_is_told_what_to_set(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "bondpy", None)
    log = graph.inbox(Log, "/rosout", 50)
    graph.start(EvaluatorNode, autostart=False, lidar_to_camera=POSE)
    manager = Manager(graph, "evaluator_node")
    assert manager.change("configure")
    assert manager.change("activate")
    log.wait_for(lambda line: "bond_timeout to 0.0" in line.msg)
