# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Sound bags of other writers: read if what is odd decides no score, else one sentence."""

from __future__ import annotations

import pytest
from mcap.writer import Writer as McapWriter
from rosbags.typesys import Stores, get_typestore

from test.frames.test_bag import CONFIG, check_frames
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.frames.bag import BagSource
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
        ("[" * 5000, False),
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
