# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Bags of other writers: read if what is odd decides no score, else refused in one sentence.

Parts that stand for far more than they hold are refused before memory is taken.
"""

import struct
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter
from numpy.testing import assert_allclose
from rosbags import rosbag1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
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
    """A bag's MCAP with another QoS text on all its topics."""
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
    """TUM's bags have all transforms on /tf, as tf/tfMessage."""
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


BOMB_BYTES = 80_000_000
TYPE = "std_msgs/msg/UInt8MultiArray"


def write_mcap(
    path: Path, messages: list[tuple[int, int]], compression: CompressionType, chunk_bytes: int
) -> Path:
    """Write messages, each a time and a number of zeros; chunks end after `chunk_bytes`."""
    with path.open("wb") as file:
        writer = McapWriter(file, chunk_size=chunk_bytes, compression=compression)
        writer.start("ros2", "test")
        schema = writer.register_schema(TYPE, "ros2msg", b"uint8[] data")
        channel = writer.register_channel("/zeros", "cdr", schema)
        for time_ns, size in messages:
            writer.add_message(channel, time_ns, bytes(size), time_ns)
        writer.finish()
    return path


def one_chunk(folder: Path) -> Path:
    return write_mcap(folder / "a.mcap", [(1, BOMB_BYTES)], CompressionType.ZSTD, 1)


def overlapping_chunks(folder: Path) -> Path:
    """Each of 160 small chunks lasts from the first time to the last."""
    messages = [(time_ns, BOMB_BYTES // 320) for _ in range(160) for time_ns in (1, 10**9)]
    return write_mcap(folder / "a.mcap", messages, CompressionType.ZSTD, BOMB_BYTES // 300)


def chunk_that_claims_less(folder: Path) -> Path:
    path = one_chunk(folder)
    with path.open("rb") as file:
        (index,) = make_reader(file).get_summary().chunk_indexes
    size = struct.pack("<Q", index.uncompressed_size)
    data = path.read_bytes()
    assert data.count(size) == 2  # the chunk's and its index's
    path.write_bytes(data.replace(size, struct.pack("<Q", 1000)))
    return path


def chunk_without_index(folder: Path) -> Path:
    path = one_chunk(folder)
    data = path.read_bytes()
    footer = struct.pack("<BQ", 2, 20)
    end = data.rindex(footer) + len(footer)
    path.write_bytes(data[:end] + bytes(20) + data[-8:])
    return path


def rosbag2_of_zeros(folder: Path, mode: CompressionMode) -> Path:
    writer = Writer(folder / "a", version=8, storage_plugin=StoragePlugin.SQLITE3)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        store = get_typestore(Stores.ROS2_JAZZY)
        connection = writer.add_connection("/zeros", TYPE, typestore=store)
        writer.write(connection, 1, bytes(BOMB_BYTES))
    return folder / "a"


def ros1_chunk(folder: Path) -> Path:
    store = get_typestore(Stores.ROS1_NOETIC)
    writer = rosbag1.Writer(folder / "a.bag")
    writer.set_compression(writer.CompressionFormat.BZ2)
    with writer:
        connection = writer.add_connection("/zeros", TYPE, typestore=store)
        writer.write(connection, 1, bytes(BOMB_BYTES))
    return folder / "a.bag"


BOMBS = {
    "one chunk": one_chunk,
    "overlapping chunks": overlapping_chunks,
    "a chunk that claims less": chunk_that_claims_less,
    "a chunk without an index": chunk_without_index,
    "a whole file": partial(rosbag2_of_zeros, mode=CompressionMode.FILE),
    "one message": partial(rosbag2_of_zeros, mode=CompressionMode.MESSAGE),
    "a chunk of ROS 1": ros1_chunk,
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_what_stands_for_far_more_than_it_holds_is_one_sentence(bomb, tmp_path):
    path = bomb(tmp_path)
    recording = Recording(path)
    said = ""
    tracemalloc.start()
    try:
        with recording.open() as bag:
            assert list(bag.topics) == ["/zeros"]
            assert list(bag.records(["/zeros"])) == []
            said = "; ".join(recording.notes)
    except SourceError as error:
        said = str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert "stand for" in said or "inflate" in said
    assert "\n" not in said
    assert "recover" not in said  # there is nothing to repair
    assert peak < 72e6


@pytest.mark.parametrize("compression", list(CompressionType))
def test_a_sound_bag_of_one_colour_is_read_though_it_packs_ten_thousand_to_one(
    compression, tmp_path
):
    messages = [(time_ns, 1_000_000) for time_ns in range(100)]
    path = write_mcap(tmp_path / "a.mcap", messages, compression, 2_000_000)
    with Recording(path).open() as bag:
        sizes = [len(record.data) for record in bag.records(["/zeros"])]
    assert sizes == [1_000_000] * 100
