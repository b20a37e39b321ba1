# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node over real topics: its outputs, dropped images and changes at run time."""

import threading
from pathlib import Path

import numpy as np
import pytest
from rcl_interfaces.msg import Log
from rclpy.qos import ReliabilityPolicy

from test.ros.conftest import (
    DEADLINE_S,
    HEIGHT,
    MS,
    WIDTH,
    FakePredictor,
    Robot,
    dropped,
    numbers,
    red,
)
from uncertainty_depth.core.errors import ConfigError, UncertaintyDepthError
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.messages.images import decode_depth
from uncertainty_depth.ros import outputs
from uncertainty_depth.ros.depth_node import DepthNode

NODE = "/depth_node"
DEPTH = "depth/image_rect"


def stamps(messages):
    """Stamps in milliseconds."""
    return [stamp_ns(message.header) // MS for message in messages]


def hold(node, robot):
    """Keep one image in the network, and one behind it; return the gate that lets them on."""
    predictor = FakePredictor.newest
    predictor.gate.clear()
    robot.image(1)
    assert predictor.begun.acquire(timeout=DEADLINE_S)
    robot.image(2)
    robot.graph.until(lambda: node.health.counts()["received"] == 2, "both images")
    return predictor.gate


def test_maps_carry_the_image_header_and_metres(start_depth, robot, make):
    start_depth()
    depths, sigmas = (robot.heard(f"{name}/image_rect") for name in ("depth", "uncertainty"))
    infos = robot.heard("uncertainty/camera_info")
    robot.image(1_700_000_000_123, frame_id="left_optical")  # nobody publishes its camera info
    depth, sigma = depths.wait()[0], sigmas.wait()[0]
    assert depth.header == sigma.header == make.header(1_700_000_000_123 * MS, "left_optical")
    expected = np.full((HEIGHT, WIDTH), 4, np.float32)
    np.testing.assert_array_equal(decode_depth(depth), expected)
    np.testing.assert_array_equal(decode_depth(sigma), expected / 10)
    assert infos.messages == []
    robot.info(width=2 * WIDTH, height=2 * HEIGHT, focal=50.0)
    robot.informed()
    robot.image(1_700_000_001_000)
    scaled = infos.wait()[0]
    assert (scaled.width, scaled.height, scaled.k[0]) == (WIDTH, HEIGHT, 25.0)
    assert scaled.p[2] == (WIDTH + 0.5) / 2 - 0.5
    assert scaled.header == depths.wait(2)[1].header


def test_a_frame_whose_points_fail_is_published_and_not_counted_as_dropped(
    start_depth, robot, monkeypatch
):
    def fail(*_):
        raise ValueError("no colors today")

    monkeypatch.setattr(outputs, "colorize", fail)
    node = start_depth()
    robot.heard("depth/image_color")
    depths = robot.heard(DEPTH)
    robot.image(1)
    depths.wait()
    counts = node.health.counts
    robot.graph.until(lambda: counts().get("views_failed") == 1, "the failure counted")
    assert counts()["processed"] == 1
    assert dropped(node) == {}


def test_the_views_of_a_frame_are_published_while_the_next_is_computed(
    start_depth, robot, monkeypatch
):
    begun, gate = threading.Semaphore(0), threading.Semaphore(0)

    def colorize(*arguments):
        begun.release()
        assert gate.acquire(timeout=DEADLINE_S)
        return in_color(*arguments)

    in_color = outputs.colorize
    monkeypatch.setattr(outputs, "colorize", colorize)
    node = start_depth()
    colors, depths = robot.heard("depth/image_color"), robot.heard(DEPTH)
    robot.image(1)
    assert begun.acquire(timeout=DEADLINE_S)
    robot.image(2)
    assert stamps(depths.wait(2)) == [1, 2]
    robot.image(3)
    gate.release(3)
    assert stamps(colors.wait(3)) == stamps(depths.wait(3)) == [1, 2, 3]
    assert dropped(node) == {}


def test_only_the_newest_frame_waits_and_every_other_is_counted(graph, start_depth, robot):
    """More images than the middleware and the node keep while the network works."""
    start_depth()
    depths, diagnostics = robot.heard(DEPTH), robot.heard("/diagnostics")
    predictor = FakePredictor.newest
    predictor.gate.clear()
    robot.image(1)
    assert predictor.begun.acquire(timeout=DEADLINE_S)
    for stamp in range(2, 301):
        robot.image(stamp)

    def all_counted(array):
        counts = numbers(array)
        return counts.get("received", 0) + counts.get("lost_in_transport.image", 0) == 300

    assert numbers(diagnostics.wait_for(all_counted))["waiting"] == 2  # one in work, one behind it
    assert graph.set_parameters(NODE, samples=3).successful  # the executor is free meanwhile
    predictor.gate.set()
    assert stamps(depths.wait(2)) == [1, 300]
    for counts in map(numbers, diagnostics.messages):
        lost = sum(count for name, count in counts.items() if name.startswith("dropped."))
        inside = counts.get("processed", 0) + lost + counts["waiting"]
        assert counts.get("received", 0) == inside, counts


def test_quality_of_service_is_reliable_and_may_be_overridden(graph, start_depth):
    override = "qos_overrides./image.subscription.reliability"
    with pytest.raises(ConfigError, match=r"is 'perfect'; expected one of .*best_effort"):
        start_depth(["-p", f"{override}:=perfect"])
    start_depth(["-p", f"{override}:=best_effort"])
    subscriptions = graph.node.get_subscriptions_info_by_topic
    publishers = graph.node.get_publishers_info_by_topic
    reliable = ("/depth/image_rect", "/uncertainty/image_rect", "/depth/camera_info", "/points")
    for topic, infos, reliability in (
        ("/image", subscriptions, ReliabilityPolicy.BEST_EFFORT),
        ("/camera_info", subscriptions, ReliabilityPolicy.RELIABLE),
        *((topic, publishers, ReliabilityPolicy.RELIABLE) for topic in reliable),
    ):
        graph.until(lambda infos=infos, topic=topic: infos(topic), f"the node on {topic}")
        assert infos(topic)[0].qos_profile.reliability == reliability


def test_bad_images_are_counted_by_reason_and_the_next_one_works(graph, start_depth, robot, make):
    node = start_depth()
    depths = robot.heard(DEPTH)
    image = make.image(1, red())
    for count, changes in enumerate(
        (
            {"width": 0, "height": 0, "step": 0, "data": b""},
            {"step": 3},
            {"encoding": "cmyk32"},
            {"data": image.data[:-1]},
            {"encoding": "16UC1"},
            {"data": make.image(1, red(66)).data},  # fails in the network
            {"data": make.image(1, red(67)).data},  # needs more memory than there is
        ),
        start=1,
    ):
        bad = make.image(count, red())
        for name, value in changes.items():
            setattr(bad, name, value)
        robot.send("image", bad)
        graph.until(lambda count=count: sum(dropped(node).values()) == count, "a drop")
    robot.image(9)
    assert stamps(depths.wait()) == [9]
    assert dropped(node) == {
        "image_zero_size": 1,
        "image_wrong_step": 1,
        "image_unknown_encoding": 2,
        "image_short_data": 1,
        "failed": 1,
        "out_of_memory": 1,
    }


def test_the_gate_and_the_interval_change_at_run_time(graph, start_depth, robot):
    """Sigma is 10 % of depth: it passes the gate at 15 %, and fails it at 5 %."""
    start_depth()
    confident, upper = (robot.heard(f"depth/{name}/image_rect") for name in ("confident", "upper"))
    robot.image(1)
    wide = decode_depth(upper.wait(1)[0])
    assert (decode_depth(confident.wait(1)[0]) == 4).all()
    assert graph.set_parameters(NODE, max_relative_sigma=0.05, coverage=0.5).successful
    robot.image(2)
    narrow = decode_depth(upper.wait(2)[1])
    assert np.isnan(decode_depth(confident.wait(2)[1])).all()
    np.testing.assert_allclose(wide, 4 + 1.959964 * 0.4, rtol=1e-6)
    np.testing.assert_allclose(narrow, 4 + 0.6744898 * 0.4, rtol=1e-6)


def test_a_change_that_cannot_be_made_changes_nothing(graph, start_depth):
    node = start_depth()
    before = node.config
    fixed = "{} is fixed while the node is active; first type ros2 lifecycle set /depth_node"
    for values, reason in (
        ({"samples": 3, "coverage": 1.0}, "coverage out of range Min: 0.01, Max: 0.99"),
        ({"samples": 3, "model": "other"}, fixed.format("model")),
        ({"samples": 3, "lidar_to_camera": [0.0] * 6 + [1.0]}, fixed.format("lidar_to_camera")),
    ):
        graph.refuses(NODE, reason, **values)
        assert node.config == FakePredictor.newest.config == before


def test_what_is_set_while_inactive_holds_from_the_next_activation_on(graph, start_depth, robot):
    node = start_depth()
    depths = robot.heard(DEPTH)
    loads = FakePredictor.loads
    node.trigger_deactivate()
    assert graph.set_parameters(NODE, samples=3, max_frame_age=0.25).successful
    node.trigger_activate()
    assert FakePredictor.loads == loads
    assert FakePredictor.newest.config == node.config
    node.trigger_deactivate()
    assert graph.set_parameters(NODE, method="deterministic").successful
    node.trigger_activate()
    assert (FakePredictor.loads, FakePredictor.newest.method) == (loads + 1, "deterministic")
    node.trigger_deactivate()
    for values, reason in (
        ({"method": "multi_epochs"}, "fake has no snapshots"),
        ({"method": "mc_dropout", "samples": 13}, "MemoryError: no room for a network"),
    ):
        assert graph.set_parameters(NODE, **values).successful
        node.trigger_activate()
        assert node.inactive_status() == (b"\x02", f"inactive: {reason}")
    assert graph.set_parameters(NODE, method="", max_frame_age=0.0).successful
    node.trigger_activate()
    robot.image(1)
    assert stamps(depths.wait()) == [1]


def test_names_follow_namespace_and_remaps_and_late_subscribers_learn_the_model(
    graph, start_depth, make
):
    start_depth(["-r", "__ns:=/robot", "-r", "image:=/front/image_raw"])
    robot = Robot(graph, "/robot/")
    assert "mc_dropout" in robot.heard("depth/model").wait()[0].data
    depths = robot.heard(DEPTH)
    robot.send("/front/image_raw", make.image(1, red()))
    depths.wait()


def test_a_node_that_fails_to_start_leaves_no_topic_in_the_graph(graph):
    no_model = str(Path(__file__).parent)
    with pytest.raises(UncertaintyDepthError, match=no_model) as failure:
        graph.start(DepthNode, model=no_model)
    assert failure.traceback  # holds the node, as a program does that catches the error
    graph.until(lambda: not graph.node.count_publishers("depth/image_rect"), "publisher any more")


def test_a_clock_that_jumps_back_stands_still_or_runs_fast(graph, start_depth, robot):
    node = start_depth(use_sim_time=True, max_frame_age=0.5)
    depths = robot.heard(DEPTH)
    sent_s = [100, 110, 120, 10, 11, 12, 13]
    for count, seconds in enumerate(sent_s, start=1):
        if seconds not in (12, 13):  # the clock has stopped: stamps run ahead of it
            graph.set_clock(node, seconds)  # ten times as fast, then back to the bag's start
        robot.image(1000 * seconds)
        depths.wait(count)
    assert stamps(depths.messages) == [1000 * seconds for seconds in sent_s]
    robot.told(lambda values: "ahead of this node's clock" in values["message"])
    graph.set_clock(node, 100)
    robot.image(13_000)  # of before the jump: stale by the clock
    graph.until(lambda: dropped(node) == {"stale": 1}, "the stale image counted")


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_a_network_that_falls_to_the_cpu_is_a_warning_if_nobody_asked_for_it(
    graph, start_depth, robot, device
):
    log = robot.graph.inbox(Log, "/rosout", 50, matched=False)
    start_depth(device=device)
    log.wait_for(lambda line: "mc_dropout on cpu" in line.msg)
    robot.heard("depth/model").wait()
    robot.image(1)
    robot.heard(DEPTH).wait()
    warnings = [line for line in log.messages if "device is auto" in line.msg]
    assert [line.level for line in warnings] == ([30] if device == "auto" else [])


def test_a_deactivated_node_drops_what_waits_and_what_is_in_work(start_depth, robot):
    node = start_depth()
    depths = robot.heard(DEPTH)
    gate = hold(node, robot)
    node.trigger_deactivate()  # waits for the network shortly
    gate.set()
    assert node.health.counts() == {"received": 2, "dropped.deactivated": 2}
    node.trigger_activate()
    robot.image(3)  # its maps come after those of earlier ones, if those came
    assert stamps(depths.wait()) == [3]


def test_a_frame_that_outlasts_the_shutdown_is_counted_once(graph, start_depth, robot):
    earlier = set(threading.enumerate())  # workers of other tests may still end
    node = start_depth()
    gate = hold(node, robot)
    counts = {"received": 2, "dropped.shutdown": 2}
    graph.stop(node)
    assert node.health.counts() == counts
    gate.set()
    own = set(threading.enumerate()) - earlier
    (worker,) = [thread for thread in own if thread.name == "worker"]
    worker.join(DEADLINE_S)
    assert node.health.counts() == counts
