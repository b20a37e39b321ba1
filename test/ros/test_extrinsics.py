# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Live extrinsics from the parameter, or from tf2: a stand-in here, since no wheel has it."""

import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from rclpy.clock import Clock, ClockType
from std_srvs.srv import SetBool

from test.ros import tf2_stand_in
from test.ros.conftest import frame_messages
from test.ros.tf2_stand_in import Buffer, TransformListener
from uncertainty_depth.core.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.core.config.source import ProjectionConfig
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.geometry.transforms import transform_from
from uncertainty_depth.frames.messages.decoding import SECOND_NS
from uncertainty_depth.frames.transforms import TransformTree, TreeExtrinsics, Viewpoint
from uncertainty_depth.ros.evaluator_node import EvaluatorNode
from uncertainty_depth.ros.extrinsics import Transforms, live_extrinsics
from uncertainty_depth.ros.live_scores import MAX_LATE, LiveScores

POSE = (0.1, -0.2, 0.3, 0.0, 0.0, 0.6, 0.8)


def drive(first_s=1, last_s=3):
    """Return what tf knows of a base that drives at 15 m/s along x, with 7 Hz odometry."""
    tree = TransformTree()
    tree.add("base", "camera", transform_from(0, 0, 0, -0.5, 0.5, -0.5, 0.5))
    tree.add("base", "lidar", transform_from(0.5, 0, 0.2, 0, 0, 0, 1))
    for time_ns in range(first_s * SECOND_NS, last_s * SECOND_NS, SECOND_NS // 7):
        seconds = time_ns / SECOND_NS
        pose = transform_from(15 * seconds, 0, 0, 0, 0, 0.1 * seconds, 1)
        tree.add_moving(time_ns, "odom", "base", pose)
    return tree


@pytest.fixture
def tf2(monkeypatch):
    tf2_stand_in.install(monkeypatch, drive())


@pytest.fixture
def node():
    """A node's clock, which tells of jumps."""
    clock = Clock(clock_type=ClockType.ROS_TIME)
    return SimpleNamespace(get_clock=lambda: clock)


def test_the_parameter_wins_over_tf(tf2, node):
    extrinsics = live_extrinsics(partial(Transforms, node), ProjectionConfig(POSE))
    np.testing.assert_array_equal(extrinsics.lookup(None, None), transform_from(*POSE))
    assert not extrinsics.is_awaited(None, None)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (ProjectionConfig((1.0,)), "x y z qx qy qz qw"),
        (ProjectionConfig((0.0,) * 7), "x y z qx qy qz qw"),
        (ProjectionConfig(POSE, "odom"), "fixed_frame is 'odom'; expected one of them"),
        (ProjectionConfig(), "lidar_to_camera is empty and tf2_ros is not installed"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(monkeypatch, node, options, sentence):
    monkeypatch.setitem(sys.modules, "tf2_ros", None)
    with pytest.raises(ConfigError, match=sentence):
        live_extrinsics(partial(Transforms, node), options)


CAMERA = Viewpoint("camera", 2 * SECOND_NS)


@pytest.mark.parametrize("fixed_frame", ["", "odom"])
@pytest.mark.parametrize(
    ("frame", "later_ns", "is_known"),
    [("lidar", SECOND_NS // 20, True), ("lidar", 2 * SECOND_NS, False), ("radar", 0, False)],
)
def test_tf_answers_as_the_bag_does(tf2, node, make, fixed_frame, frame, later_ns, is_known):
    """Without a fixed frame the pose is that of /tf_static, known at all times."""
    cloud = make.header(CAMERA.stamp_ns + later_ns, frame)
    live = live_extrinsics(
        partial(Transforms, node), ProjectionConfig(fixed_frame=fixed_frame), timeout_s=0.25
    )
    recorded = TreeExtrinsics(drive(), fixed_frame)
    is_known = is_known or (frame == "lidar" and not fixed_frame)
    assert live.is_awaited(CAMERA, cloud) != is_known
    if is_known:
        found = live.lookup(CAMERA, cloud)
        np.testing.assert_array_equal(found.round(12), recorded.lookup(CAMERA, cloud).round(12))
        moved_m = np.linalg.norm((found - drive().lookup("camera", "lidar"))[:3, 3])
        assert moved_m == pytest.approx(0.75 if fixed_frame else 0, abs=0.01)
    else:
        reasons = []
        for extrinsics in (live, recorded):
            with pytest.raises(MessageError, match="no transform") as caught:
                extrinsics.lookup(CAMERA, cloud)
            reasons.append(caught.value.reason)
        assert reasons == 2 * ["no_ego_motion" if fixed_frame else "no_extrinsics"]
    assert Buffer.timeouts_s == [0.0, 0.25]  # whether it is awaited is asked without waiting


def moved(make, seconds, child="base"):
    header = make.header(seconds * SECOND_NS, "odom")
    return SimpleNamespace(header=header, child_frame_id=child)


def test_transforms_of_before_a_jump_that_arrive_after_it_do_not_stay(tf2, node, make):
    """As in a node that lags behind /tf: /clock is the first that it hears of a looping bag."""
    live_extrinsics(partial(Transforms, node), ProjectionConfig())
    (buffer,) = TransformListener.buffers
    for seconds in (100, 101, 100, 20, 21):  # a late message is no jump
        buffer.set_transform(moved(make, seconds), "tf")
    assert buffer.stamps_s == [20, 21]
    buffer.set_transform(moved(make, 5, "gripper"), "tf")  # another frame's time is its own
    assert buffer.cleared == 1


def test_a_clock_that_jumps_back_clears_the_transforms_of_an_active_node_once(tf2, graph):
    node = graph.start(EvaluatorNode, use_sim_time=True)
    first = TransformListener.buffers[0]
    graph.set_clock(node, 100)
    cleared = first.cleared
    graph.set_clock(node, 50)
    graph.set_clock(node, 60)
    assert first.cleared == cleared + 1
    for is_enabled in (False, True):
        request = SetBool.Request(data=is_enabled)
        assert graph.call(SetBool, "/evaluator_node/enable", request).success
    (second,) = TransformListener.buffers  # a run has its own, and the last run's has ended
    graph.set_clock(node, 10)
    assert (first.cleared, second.cleared) == (cleared + 1, 1)


def test_frames_wait_for_a_late_transform_and_a_clock_that_jumps_back_costs_few(tf2, node, make):
    """As when a bag loops: tf2 clears its buffer, and knows nothing until /tf comes again."""
    config = EvaluatorNodeConfig(fixed_frame="odom", queue_size=50)
    run = LiveScores(config, live_extrinsics(partial(Transforms, node), config))
    wall = make.points_on_plane()[:, [2, 0, 1]]

    def frame(stamp_ns):
        messages = frame_messages(stamp_ns, wall, seed=stamp_ns)
        return [result for item in messages.items() for result in run.add(*item)]

    period_ns = SECOND_NS // 10
    assert len(frame(2 * SECOND_NS)) == 1
    Buffer.tree = drive(last_s=2)  # /tf is late
    assert frame(2 * SECOND_NS + period_ns) == []
    Buffer.tree = drive(last_s=4)
    assert len(frame(2 * SECOND_NS + 2 * period_ns)) == 2
    Buffer.tree = TransformTree()  # the clock went back
    for index in range(MAX_LATE):
        assert frame(SECOND_NS + index * period_ns) == []
    Buffer.tree = drive(last_s=2)
    assert len(frame(SECOND_NS + MAX_LATE * period_ns)) == MAX_LATE + 1
    list(run.finish())
    assert run.evaluation.frames() == {"read": 9, "evaluated": 9, "skipped": {}}
    assert run.frames.images == 9
