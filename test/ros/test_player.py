"""Playing bags: the bytes, the pace, the waiting, and what is said of what is not played."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from uncertainty_depth.config import PlayerConfig
from uncertainty_depth.errors import SourceError
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.messages.clouds import cloud_points
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.ros.messages import stamp_ns
from uncertainty_depth.ros.player import bag_publisher
from uncertainty_depth.ros.player.bag_publisher import header_stamp_ns, message_class
from uncertainty_depth.ros.player.player import play
from uncertainty_depth.writers.bag_writer import BagWriter

STEP_NS = 100_000_000
START_NS = 1_700_000_000_000_000_000
FRAMES = 4
CAMERA = Camera(8, 6, np.array([[5.0, 0, 4], [0, 5, 3], [0, 0, 1]]))
SPEED = 100.0


def picture(index):
    return np.random.default_rng(index).integers(0, 256, (6, 8, 3), np.uint8)


def points(index):
    return np.random.default_rng(index).uniform(-5, 5, (20, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def bag(tmp_path_factory) -> Path:
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


def test_a_bag_of_names_without_leading_slashes_is_played_on_the_same_topics(graph, tmp_path):
    with BagWriter(tmp_path / "earlier") as writer:
        writer.image("depth/image_rect", START_NS, "camera", picture(0))
    inbox = graph.inbox(Image, "/depth/image_rect", QoSProfile(depth=100), matched=False)
    assert played(tmp_path / "earlier").sent == {"depth/image_rect": 1}
    np.testing.assert_array_equal(decode_image(inbox.wait(1)[0]), picture(0))


def test_messages_are_paced_by_their_time_of_recording(bag, monkeypatch):
    asked = []
    monkeypatch.setattr(
        bag_publisher.BagPublisher, "_wait_until_due", lambda self, log_ns: asked.append(log_ns)
    )
    play(bag, PlayerConfig(rate=0.001), progress=False)
    assert asked == [START_NS + index * STEP_NS for index in range(FRAMES) for _ in range(3)]


def test_clock_runs_with_the_recording(graph, bag, listeners):
    clock = graph.inbox(Clock, "/clock", QoSProfile(depth=1000), matched=False)
    played(bag, rate=2.0, clock=True)
    last = START_NS + (FRAMES - 1) * STEP_NS
    ticks = [
        stamp_ns_of(message)
        for message in clock.wait(
            lambda messages: any(stamp_ns_of(message) == last for message in messages)
        )
    ]
    assert ticks[0] >= START_NS
    assert ticks == sorted(ticks)
    assert len(ticks) > 2 * FRAMES  # it also ticks between messages


def stamp_ns_of(message):
    return message.clock.sec * 1_000_000_000 + message.clock.nanosec


def test_loop_begins_again(bag, listeners, monkeypatch):
    class Enough(Exception):
        pass

    rounds = []

    def finish(publisher):
        rounds.append(dict(publisher.played.sent))
        if len(rounds) == 3:
            raise Enough

    monkeypatch.setattr(bag_publisher.BagPublisher, "finish_round", finish)
    with pytest.raises(Enough):
        played(bag, loop=True)
    assert [counts["/camera/image"] for counts in rounds] == [FRAMES, 2 * FRAMES, 3 * FRAMES]


def test_images_wait_for_their_results(graph, bag, listeners, monkeypatch):
    results = graph.node.create_publisher(Image, "/depth/image_rect", 10)

    def answer(message):
        graph.until(results.get_subscription_count, "subscriber of the results")
        results.publish(Image(header=message.header))

    graph.node.create_subscription(Image, "/camera/image", answer, 10)
    sent, original = [], bag_publisher.BagPublisher._on_result

    def on_result(publisher, data):
        sent.append(publisher.played.sent["/camera/image"])
        original(publisher, data)

    monkeypatch.setattr(bag_publisher.BagPublisher, "_on_result", on_result)
    result = played(bag, wait_for_result="/depth/image_rect")
    assert sent == [1, 2, 3, 4]  # how many images were out when each result came
    assert (result.unanswered, result.sent["/camera/image"]) == (0, FRAMES)


def test_an_image_nobody_answers_is_counted_and_the_bag_goes_on(bag, listeners):
    result = played(bag, wait_for_result="/depth/image_rect", result_timeout=0.1)
    assert (result.unanswered, result.sent["/camera/image"]) == (FRAMES, FRAMES)


def test_topics_without_a_subscriber_are_named(bag, caplog):
    played(bag, wait_for_subscribers=0.05)
    assert any(
        "no subscriber of" in record.message and "/lidar/points" in record.message
        for record in caplog.records
    )


def test_latched_topics_stay_latched_for_those_who_come_late(graph, tmp_path):
    path = tmp_path / "latched"
    write_with_latched_camera_info(path)
    inbox = []

    def join_late(publisher):
        qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        inbox.append(graph.inbox(CameraInfo, "/camera/camera_info", qos))
        inbox[0].wait(1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bag_publisher.BagPublisher, "finish_round", join_late)
        play(path, PlayerConfig(rate=SPEED), progress=False)
    assert inbox[0].messages[0].k[0] == 5.0


def write_with_latched_camera_info(path):
    from uncertainty_depth.writers import bag_writer

    with BagWriter(path) as writer, pytest.MonkeyPatch.context() as patch:
        add = writer._writer.add_connection

        def latched(topic, msgtype, **options):
            return add(
                topic, msgtype, **(options | {"offered_qos_profiles": [bag_writer._latched()]})
            )

        patch.setattr(writer._writer, "add_connection", latched)
        writer.camera_info("/camera/camera_info", START_NS, "camera", CAMERA)


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


def test_no_such_bag(tmp_path):
    with pytest.raises(SourceError, match=r"no such bag: .*missing"):
        played(tmp_path / "missing")


def test_a_bag_with_nothing_to_play(tmp_path):
    with BagWriter(tmp_path / "bag") as writer:
        writer.static_transforms([("camera", "lidar", np.eye(4))])
    with pytest.raises(
        SourceError, match="holds no topic whose message type is installed here; it has /tf_static"
    ):
        played(tmp_path / "bag")


def test_a_truncated_bag_is_played_as_far_as_it_goes(bag, tmp_path, caplog):
    (whole,) = bag.glob("*.mcap")
    data, cut = whole.read_bytes(), tmp_path / "cut.mcap"
    cut.write_bytes(data[: len(data) * 2 // 3])  # what is lost is the index at the end
    result = played(cut, wait_for_subscribers=0.0)
    assert sum(result.sent.values()) == 3 * FRAMES
    assert any(
        "cut.mcap is truncated: 13 messages were recovered" in record.message
        for record in caplog.records
    )


def test_stamp_of_serialized_messages(bag, make):
    from rclpy.serialization import serialize_message

    message = make.image(1_234_567_890_987_654_321, picture(0))
    data = bytes(serialize_message(message))
    assert header_stamp_ns(data) == 1_234_567_890_987_654_321
    assert deserialize_message(data, Image).header == message.header


@pytest.mark.parametrize("name", ["no_such_msgs/msg/Thing", "sensor_msgs/msg/NoSuchThing"])
def test_message_types_that_are_not_installed(name):
    with pytest.raises(ImportError):
        message_class(name)
