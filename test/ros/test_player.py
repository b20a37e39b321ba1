# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Playing bags: the bytes, the pace, the waiting, and what is said of what is not played."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mcap.writer import Writer
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_msgs.msg import Header

from synthetic import bag_publisher
from synthetic.bag_publisher import Pace, message_class
from synthetic.player import play
from synthetic.player_config import PlayerConfig
from test.ros.conftest import ManualClock
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.messages.clouds import cloud_points
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.messages.images import decode_image
from uncertainty_depth.ros.messages import image_message
from uncertainty_depth.ros.qos import LATCHED_QOS

S = 1_000_000_000
STEP_NS = S // 10
START_NS = 1_700_000_000_000_000_000
FRAMES = 4
CAMERA = Camera(8, 6, np.array([[5.0, 0, 4], [0, 5, 3], [0, 0, 1]]))
SPEED = 100.0


def picture(index):
    return np.random.default_rng(index).integers(0, 256, (6, 8, 3), np.uint8)


def points(index):
    return np.random.default_rng(index).uniform(-5, 5, (20, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    path = tmp_path_factory.mktemp("bags") / "world"
    with BagWriter(path) as writer:
        writer.static_transforms([("camera", "lidar", np.eye(4))])
        for index in range(FRAMES):
            stamp = START_NS + index * STEP_NS
            writer.camera_info("/camera/camera_info", stamp, "camera", CAMERA)
            writer.image("/camera/image", stamp, "camera", picture(index))
            writer.cloud("/lidar/points", stamp, "lidar", points(index))
    return path


@pytest.fixture
def listeners(graph):
    qos = QoSProfile(depth=100)
    return {
        "/camera/image": graph.inbox(Image, "/camera/image", qos, matched=False),
        "/camera/camera_info": graph.inbox(CameraInfo, "/camera/camera_info", qos, matched=False),
        "/lidar/points": graph.inbox(PointCloud2, "/lidar/points", qos, matched=False),
    }


@pytest.fixture(autouse=True)
def settle_soon(monkeypatch):
    monkeypatch.setattr(bag_publisher, "SETTLED_S", 0.5)


def played(bag, **options):
    return play(
        bag,
        PlayerConfig(**{"rate": SPEED, "wait_for_subscribers": 30.0, **options}),
        progress=False,
    )


def test_every_message_arrives_as_it_was_recorded(bag, listeners):
    result = played(bag)
    assert result.sent == dict.fromkeys(listeners, FRAMES)
    assert list(result.skipped) == ["/tf_static"]
    assert "tf2_msgs" in result.skipped["/tf_static"]
    for index, message in enumerate(listeners["/camera/image"].wait(FRAMES)):
        assert stamp_ns(message.header) == START_NS + index * STEP_NS
        np.testing.assert_array_equal(decode_image(message), picture(index))
    for index, message in enumerate(listeners["/lidar/points"].wait(FRAMES)):
        np.testing.assert_array_equal(cloud_points(message), points(index)[:, :3])
    assert listeners["/camera/camera_info"].wait(FRAMES)[0].k[0] == 5.0


def test_clock_runs_with_the_recording(graph, bag, listeners):
    clock = graph.inbox(Clock, "/clock", QoSProfile(depth=1000), matched=False)
    played(bag, rate=2.0, clock=True)
    last = START_NS + (FRAMES - 1) * STEP_NS

    def times(messages):
        return [message.clock.sec * S + message.clock.nanosec for message in messages]

    ticks = times(clock.wait(lambda messages: last in times(messages)))
    assert ticks[0] >= START_NS
    assert ticks == sorted(ticks)
    assert len(ticks) > 2 * FRAMES  # it also ticks between messages


def test_an_image_waits_for_the_result_of_the_one_before_but_not_its_camera_info(graph, tmp_path):
    """image_transport's order: the camera info of an image comes after it."""
    with BagWriter(tmp_path / "late") as writer:
        for stamp in range(START_NS, START_NS + 3 * STEP_NS, STEP_NS):
            writer.image("/camera/image", stamp, "camera", np.zeros((8, 8, 3), np.uint8))
            writer.camera_info("/camera/camera_info", stamp, "camera", Camera.pinhole(9.0, 8, 8))
    results = graph.node.create_publisher(Image, "/depth/image_rect", 10)
    images = graph.inbox(Image, "/camera/image", matched=False)
    seen = []

    def answer(message):  # a node that needs the camera info
        graph.until(results.get_subscription_count, "subscriber of the results")
        seen.append(len(images.messages))
        results.publish(Image(header=message.header))

    graph.node.create_subscription(CameraInfo, "/camera/camera_info", answer, 10)
    result = played(tmp_path / "late", wait_for_result="/depth/image_rect")
    assert (result.unanswered, result.sent["/camera/image"]) == (0, 3)
    assert all(count <= number for number, count in enumerate(seen, start=1))


def test_an_image_without_a_result_is_counted_and_playback_continues(bag, listeners):
    result = played(bag, wait_for_result="/depth/image_rect", result_timeout=0.1)
    assert (result.unanswered, result.sent["/camera/image"]) == (FRAMES, FRAMES)


def test_topics_that_nobody_wants_are_not_waited_for(graph, bag):
    """A depth node alone subscribes to no cloud, and nobody to a second camera."""
    images = graph.inbox(Image, "/camera/image", QoSProfile(depth=100), matched=False)
    start = time.monotonic()
    played(bag, wait_for_subscribers=60.0)
    assert time.monotonic() - start < 30
    assert images.wait(FRAMES)


def test_each_node_that_wants_a_topic_is_waited_for(graph, bag, listeners, monkeypatch):
    """Every topic has a subscriber when a second node comes; it misses nothing either."""
    monkeypatch.setattr(bag_publisher, "SETTLED_S", 3.0)
    with ThreadPoolExecutor(1) as threads:
        playing = threads.submit(played, bag, wait_for_subscribers=60.0)
        publishers = graph.node.count_publishers
        graph.until(lambda: publishers("/lidar/points") and publishers("/camera/image"), "player")
        second = graph.inbox(Image, "/camera/image", QoSProfile(depth=100), matched=False)
        playing.result()
    for inbox in (second, *listeners.values()):
        inbox.wait(FRAMES)


def test_images_are_waited_for_while_only_other_topics_have_a_subscriber(graph, bag, monkeypatch):
    """An evaluator subscribes long before the depth node beside it has loaded its model."""
    monkeypatch.setattr(bag_publisher, "SETTLED_S", 0.0)
    graph.inbox(PointCloud2, "/lidar/points", QoSProfile(depth=100), matched=False)
    start = time.monotonic()
    played(bag, wait_for_subscribers=2.0)
    assert time.monotonic() - start >= 2


def test_topics_without_a_subscriber_are_named(bag, caplog):
    played(bag, wait_for_subscribers=0.05)
    assert any(
        "no subscriber of" in record.message and "/lidar/points" in record.message
        for record in caplog.records
    )


class Latching(BagWriter):
    def message(self, topic, stamp_ns, message, latched=False):
        super().message(topic, stamp_ns, message, latched=True)


@pytest.mark.parametrize(
    ("writer_class", "topic", "count"),
    [
        (Latching, "camera/camera_info", 1),  # a name without a leading slash, as of earlier bags
        (BagWriter, "/robot/tf_static", 12),  # whatever its recorder wrote: parts of two robots
    ],
)
def test_latched_topics_and_static_transforms_reach_those_who_come_late(
    graph, tmp_path, monkeypatch, writer_class, topic, count
):
    """Of any type: tf2_msgs is not installed everywhere."""
    with writer_class(tmp_path / "bag") as writer:
        for index in range(count):
            writer.camera_info(topic, START_NS + index, "camera", CAMERA)
    heard = []

    def join_late(publisher):
        qos = QoSProfile(depth=100, durability=LATCHED_QOS.durability)
        heard.extend(graph.inbox(CameraInfo, f"/{topic.lstrip('/')}", qos).wait(count))

    monkeypatch.setattr(bag_publisher.BagPublisher, "finish_round", join_late)
    play(tmp_path / "bag", PlayerConfig(rate=SPEED), progress=False)
    assert [message.k[0] for message in heard] == [5.0] * count


def test_ros1_bag_is_converted_on_the_way(graph, tmp_path):
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    header = store.types["std_msgs/msg/Header"](
        7, store.types["builtin_interfaces/msg/Time"](12, 34), "camera"
    )
    image = store.types["sensor_msgs/msg/Image"](
        header, 6, 8, "rgb8", 0, 24, picture(0).reshape(-1)
    )
    with Writer(tmp_path / "old.bag") as writer:
        connection = writer.add_connection(
            "/camera/image", "sensor_msgs/msg/Image", typestore=store
        )
        writer.write(connection, START_NS, store.serialize_ros1(image, "sensor_msgs/msg/Image"))
    inbox = graph.inbox(Image, "/camera/image", matched=False)
    played(tmp_path / "old.bag")
    (message,) = inbox.wait(1)
    assert (stamp_ns(message.header), message.header.frame_id) == (12_000_000_034, "camera")
    np.testing.assert_array_equal(decode_image(message), picture(0))


def test_a_bag_that_is_missing_or_holds_nothing_to_play_is_refused(tmp_path):
    with pytest.raises(SourceError, match=r"no such bag: .*missing"):
        played(tmp_path / "missing")
    with BagWriter(tmp_path / "bag") as writer:
        writer.static_transforms([("camera", "lidar", np.eye(4))])
    nothing = "holds no topic whose message type is installed here; it has /tf_static"
    with pytest.raises(SourceError, match=nothing):
        played(tmp_path / "bag")


NO_MESSAGES = """
    no_such_msgs/msg/Thing sensor_msgs/msg/NoSuchThing innocent/msg/Image innocent.msg/Image
    sensor_msgs/srv/SetCameraInfo sensor_msgs/msg/../Image __main__/msg/Image os/msg/Path Image
"""


@pytest.mark.parametrize("name", [*NO_MESSAGES.split(), "sensor_msgs/msg/Image; x", ""])
def test_nothing_but_an_installed_interface_is_imported(name, tmp_path, monkeypatch):
    """No other module is, even if it looks like a message's: bags are not trusted."""
    (tmp_path / "innocent" / "msg").mkdir(parents=True)
    for module in ("__init__", "msg/__init__", "msg/_image"):
        path = tmp_path / "innocent" / f"{module}.py"
        path.write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError):
        message_class(name)


@pytest.mark.parametrize("name", ["sensor_msgs/msg/PointCloud2", "sensor_msgs/PointCloud2"])
def test_a_message_type_of_ros_1_and_ros_2_is_its_class(name):
    assert message_class(name) is PointCloud2


def write_odd_bag(path, topics, time_ns=START_NS):
    """An MCAP with a message on each of the topics, under whatever type, with whatever bytes."""
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start("ros2", "test")
        for topic, (type_name, data) in topics.items():
            schema = writer.register_schema(type_name, "ros2msg", b"")
            channel = writer.register_channel(topic, "cdr", schema)
            writer.add_message(channel, time_ns, data, time_ns)
        writer.finish()


def image_bytes():
    from rclpy.serialization import serialize_message

    return bytes(serialize_message(image_message(picture(0), Header())))


ODD = {
    "/velodyne/3d_points": ("sensor_msgs/msg/PointCloud2", "must not start with a number"),
    "/camera/the image": ("sensor_msgs/msg/Image", "no topic of such a name"),
    "": ("sensor_msgs/msg/Image", "no topic of such a name"),
    "/t\u00fcr": ("sensor_msgs/msg/Image", "no topic of such a name"),
    "/antigravity": ("antigravity/msg/Image", "not installed"),
    "/service": ("std_srvs/srv/Trigger", "not a message type"),
}


def test_topics_that_ros_2_cannot_have_are_left_out_with_their_reasons(graph, tmp_path):
    odd = {topic: (type_name, image_bytes()) for topic, (type_name, _) in ODD.items()}
    odd["/camera/image"] = ("sensor_msgs/msg/Image", image_bytes())
    write_odd_bag(tmp_path / "odd.mcap", odd)
    inbox = graph.inbox(Image, "/camera/image", matched=False)
    result = played(tmp_path / "odd.mcap")
    assert inbox.wait(1)
    assert result.sent == {"/camera/image": 1}
    assert result.skipped.keys() == ODD.keys()
    for topic, (_, reason) in ODD.items():
        assert reason in result.skipped[topic]


def test_damaged_messages_end_nothing(tmp_path):
    damaged = [b"", b"\0\1\0\0", b"\xff" * 11, bytes(40)]
    topics = {f"/camera{index}/image": ("sensor_msgs/msg/Image", data)
              for index, data in enumerate(damaged)}  # fmt: skip
    write_odd_bag(tmp_path / "odd.mcap", topics)
    result = played(
        tmp_path / "odd.mcap",
        wait_for_subscribers=0.0,
        wait_for_result="/depth/image_rect",
        result_timeout=0.1,
    )
    assert result.sent.total() + result.unsendable.total() == len(damaged)


def test_a_time_that_no_clock_can_have_is_played_without_one(tmp_path):
    image = {"/camera/image": ("sensor_msgs/msg/Image", image_bytes())}
    write_odd_bag(tmp_path / "late.mcap", image, 2**63)
    result = played(tmp_path / "late.mcap", wait_for_subscribers=0.0, clock=True)
    assert result.sent == {"/camera/image": 1}


def test_files_side_by_side_are_played_in_the_order_of_their_times(tmp_path, monkeypatch):
    folder = tmp_path / "log"
    folder.mkdir()
    for name, topic in (("a", "/camera/image"), ("b", "/rear/image")):
        with BagWriter(tmp_path / name) as writer:
            for index in range(FRAMES):
                writer.image(topic, START_NS + index * STEP_NS, "camera", picture(index))
        (tmp_path / name / f"{name}.mcap").rename(folder / f"{name}.mcap")
    order = []
    monkeypatch.setattr(
        bag_publisher.BagPublisher, "send", lambda self, topic, log_ns, data: order.append(topic)
    )
    played(folder, wait_for_subscribers=0.0)
    assert order == ["/camera/image", "/rear/image"] * FRAMES


def test_the_command_ends_though_the_middleware_hangs(bag, tmp_path):
    """Leaving ROS is made to hang with the interpreter's lock held, as Fast DDS does it."""
    script = tmp_path / "hang.py"
    script.write_text(
        "import ctypes, sys\n"
        "from synthetic import bag_publisher, player\n"
        "bag_publisher.BagPublisher.__exit__ = lambda *_: ctypes.PyDLL(None).sleep(1000)\n"
        "player.TEARDOWN_S = 0.5\n"
        f"sys.exit(player.main([{str(bag)!r}, '--rate', '100', '--json', sys.argv[1]]))\n"
    )
    command = [sys.executable, str(script), str(tmp_path / "played.json")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert f"{FRAMES} /camera/image" in result.stdout
    assert json.loads((tmp_path / "played.json").read_text())["sent"]["/camera/image"] == FRAMES
    assert result.returncode == 1


@pytest.fixture
def clock():
    return ManualClock()


@pytest.mark.parametrize("rate", [0.5, 4.0])
def test_due_times_follow_the_recording_at_the_rate(clock, rate):
    pace = Pace(rate, clock)
    assert pace.now_ns() == 0
    assert pace.due_in(50 * S) == 0
    assert pace.due_in(52 * S) == pytest.approx(2 / rate)
    clock.now += 3 / rate
    assert pace.due_in(52 * S) == pytest.approx(-1 / rate)
    assert pace.now_ns() == pytest.approx(53 * S)
    pace.restart()  # a new round starts at its first message
    assert pace.due_in(10 * S) == 0


def test_standing_still_shifts_what_is_to_come(clock):
    pace = Pace(1.0, clock)
    pace.due_in(0)
    clock.now += 7
    pace.stand_still(6)
    assert pace.due_in(2 * S) == pytest.approx(1)
    assert pace.now_ns() == pytest.approx(1 * S)
