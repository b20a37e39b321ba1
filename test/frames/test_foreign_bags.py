# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sound bags of other writers: read if what is odd decides no score, else one sentence."""

import numpy as np
import pytest
from mcap.writer import Writer as McapWriter
from numpy.testing import assert_allclose
from rosbags import rosbag1
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from test.frames.conftest import (
    CAMERA,
    LIDAR_TO_CAMERA,
    PERIOD_NS,
    START_NS,
    image_at,
    points_at,
    pose_message,
)
from test.frames.test_bag import CONFIG, as_ros1, check_frames
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.geometry.transforms import transform_from
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.recording import Recording

FOUR_POLICIES = """- reliability: reliable
  durability: transient_local
  history: keep_last
  depth: 100"""


def with_qos(bag, text):
    """The MCAP of a bag with another text of QoS on all of its topics."""
    path = bag.parent / "other.mcap"
    with Recording(bag).open() as recording, path.open("wb") as file:
        writer = McapWriter(file)
        writer.start("ros2", "test")
        channels = {}
        store = get_typestore(Stores.LATEST)
        for record in recording.records(recording.topics):
            if record.topic not in channels:
                definition, _ = store.generate_msgdef(record.message_type, ros_version=2)
                schema = writer.register_schema(
                    record.message_type, "ros2msg", definition.encode()
                )
                metadata = {"offered_qos_profiles": text}
                channels[record.topic] = writer.register_channel(
                    record.topic, "cdr", schema, metadata
                )
            writer.add_message(channels[record.topic], record.log_ns, record.data, record.log_ns)
        writer.finish()
    return path


@pytest.mark.parametrize(
    ("text", "latched"),
    [
        (FOUR_POLICIES, True),
        (FOUR_POLICIES.replace("transient_local", "volatile"), False),
        ("- durability: transient_local", True),
        ("", False),
        ("- depth: many", False),
        ("[" * 100, False),
        ("- &a {durability: transient_local}\n- *a", False),  # ten such lines stand for 10^9
        ("no list", False),
        ("- reliability: !!python/object/apply:os.getcwd []", False),
    ],
)
def test_a_qos_text_of_few_policies_or_of_none_that_is_known_costs_no_frame(
    text, latched, write_bag
):
    bag = with_qos(write_bag(), text)
    with Recording(bag).open() as recording:
        assert {topic.latched for topic in recording.topics.values()} == {latched}
    source = BagSource(bag, CONFIG)
    check_frames(source, range(5))
    assert source.notes == []


def test_an_mcap_of_ros_1_is_a_sentence_that_says_what_to_give(tmp_path):
    path = tmp_path / "one.mcap"
    store = get_typestore(Stores.ROS1_NOETIC)
    with path.open("wb") as file:
        writer = McapWriter(file)
        writer.start("ros1", "test")
        definition, _ = store.generate_msgdef("std_msgs/msg/Bool", ros_version=1)
        schema = writer.register_schema("std_msgs/Bool", "ros1msg", definition.encode())
        channel = writer.register_channel("/topic", "ros1", schema)
        writer.add_message(channel, 1, b"\1", 1)
        writer.finish()
    with pytest.raises(SourceError, match=r"ROS 1 is not read: give the \.bag that") as error:
        BagSource(path, CONFIG)
    assert "rosbags-convert" in str(error.value)
    assert "recover" not in str(error.value)


def test_a_serialisation_that_is_not_read_is_no_damage(write_bag):
    bag = write_bag()
    path = bag / "metadata.yaml"
    path.write_text(path.read_text().replace("cdr", "rmw_test"))
    with pytest.raises(SourceError, match=r"Serialization format .*rmw_test.* is not") as error:
        BagSource(bag, CONFIG)
    assert "recover" not in str(error.value)


def placed(parent, child, pose):
    return pose_message(START_NS - 1, parent, child, pose)


def write_with_transforms(folder, messages, prefix="", frames=3):
    """The standard frames below a namespace, and messages of (topic, TFMessage) before them."""
    with BagWriter(folder / "bag") as writer:
        for topic, message in messages:
            writer.message(topic, START_NS - 1, message)
        for index in range(frames):
            stamp_ns = START_NS + index * PERIOD_NS
            writer.camera_info(f"{prefix}/camera/camera_info", stamp_ns, "camera", CAMERA)
            writer.image(f"{prefix}/camera/image", stamp_ns, "camera", image_at(index))
            writer.cloud(f"{prefix}/lidar/points", stamp_ns, "lidar", points_at(index))
    return folder / "bag"


OTHER = transform_from(1, 2, 3, 0, 0, 0.6, 0.8)


def test_a_lidar_with_a_new_parent_is_where_it_was_last_said_to_be(tmp_path):
    mast = transform_from(0, -0.1, 0.2, 0, 0, 0, 1)
    messages = [
        ("/tf_static", placed("camera", "lidar", OTHER)),
        ("/tf_static", placed("camera", "mast", mast)),
        ("/tf_static", placed("mast", "lidar", np.linalg.inv(mast) @ LIDAR_TO_CAMERA)),
    ]
    source = BagSource(write_with_transforms(tmp_path, messages), CONFIG)
    assert_allclose(source.lidar_to_camera, LIDAR_TO_CAMERA, atol=1e-12)
    check_frames(source, range(3))
    (note,) = source.notes
    assert "tf places 'lidar' in 'camera' and in 'mast'" in note


@pytest.mark.parametrize("other", ["/other/tf_static", "/robot1/arm/tf_static"])
def test_the_transforms_of_another_robot_are_not_this_ones(other, tmp_path):
    messages = [
        ("/robot1/tf_static", placed("camera", "lidar", LIDAR_TO_CAMERA)),
        (other, placed("camera", "lidar", OTHER)),
        (other, placed("elsewhere", "lidar", OTHER)),
    ]
    source = BagSource(write_with_transforms(tmp_path, messages, "/robot1"), CONFIG)
    check_frames(source, range(3))
    assert source.notes == []


@pytest.mark.parametrize("topic", ["/tf_static", "/robot1/tf_static"])
def test_transforms_in_another_namespace_than_the_sensors_count_if_there_are_no_others(
    topic, tmp_path
):
    messages = [(topic, placed("camera", "lidar", LIDAR_TO_CAMERA))]
    check_frames(BagSource(write_with_transforms(tmp_path, messages), CONFIG), range(3))


def test_tf_of_the_first_years_of_ros_is_read(tmp_path):
    """All transforms of TUM's bags are on /tf, as tf/tfMessage."""
    times_ns = range(START_NS - PERIOD_NS, START_NS + 4 * PERIOD_NS, PERIOD_NS)
    messages = [
        ("/tf", pose_message(time_ns, "camera", "lidar", LIDAR_TO_CAMERA)) for time_ns in times_ns
    ]
    bag = as_ros1(write_with_transforms(tmp_path, messages))
    old = tmp_path / "old.bag"
    store = get_typestore(Stores.ROS1_NOETIC)
    types = {"tf2_msgs/msg/TFMessage": "tf/msg/tfMessage"}
    store.register(
        get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf/msg/tfMessage")
    )
    with Recording(bag).open() as recording, rosbag1.Writer(old) as writer:
        connections = {}
        for record in recording.records(recording.topics):
            if record.topic not in connections:
                name = types.get(record.message_type, record.message_type)
                connections[record.topic] = writer.add_connection(
                    record.topic, name, typestore=store
                )
            writer.write(connections[record.topic], record.log_ns, record.data)
    check_frames(BagSource(old, CONFIG), range(3))
