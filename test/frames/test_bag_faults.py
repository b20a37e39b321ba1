# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Faulty bags: each fault is one clear sentence or a counted frame.

No fault is a crash, and nothing that was read is lost in silence.
"""

import re
import shutil
import sqlite3
import struct
from collections import Counter
from contextlib import closing
from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from test.frames.conftest import (
    CAMERA,
    PERIOD_NS,
    START_NS,
    TYPES,
    image_at,
    message_header,
    points_at,
    recording,
    transform_message,
    write_frame,
)
from test.frames.test_bag import CONFIG, as_bare_db3
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.source import PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import Skipped
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.cameras import Cameras
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.stream.opening import open_source


def reasons(records) -> Counter:
    return Counter(record.reason if isinstance(record, Skipped) else "frame" for record in records)


def cut(share):
    return lambda content: content[: int(share * len(content))]


def becomes(content):
    return lambda _: content if isinstance(content, bytes) else content.encode()


NO_BAG = "is not a bag: expected a rosbag2 folder, or a file that ends in .mcap, .db3, .bag"
UNREADABLE = "cannot be read as a bag"
METADATA = "metadata.yaml cannot be read: it "
FAULTS = [
    # file, damage, part of the sentence
    ("notes.txt", becomes("hello"), NO_BAG),
    ("other.mcap", becomes("this is no MCAP file at all"), f"{UNREADABLE}: File magic is invalid"),
    ("other.bag", becomes("this is no bag"), f"{UNREADABLE}: File magic is invalid"),
    ("other.db3", becomes("this is no database"), UNREADABLE),
    ("empty.bag", becomes(""), "seems to be empty"),
    ("empty.mcap", becomes(""), "seems to be empty"),
    *((name, cut(share), f"{UNREADABLE}: .*`mcap recover bag.mcap -o ")
      for name in ("bag", "bag/bag.mcap") for share in (0.001, 0.3, 0.9, 0.999)),
    ("sqlite", cut(0.5), rf"{UNREADABLE}: .*malformed.*; was it cut off\?"),
    ("bag/metadata.yaml", becomes("rosbag2_bagfile_information: {version: 99}"),
     f"{UNREADABLE}: Rosbag2 version 99 not supported"),
    ("bag/metadata.yaml", becomes("a: &a [x, x]\nb: [*a, *a]"), METADATA + r"has the alias \*a"),
    ("bag/metadata.yaml", becomes("[" * 10_000), METADATA + "is nested more than 16 levels deep"),
    ("bag/metadata.yaml", becomes("a: " + "x" * 2**22), METADATA + "is longer than 4194304 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "damage", "sentence"), FAULTS)
def test_what_is_no_bag_is_one_sentence(tmp_path, write_bag, file, damage, sentence):
    path = tmp_path / file
    damaged = path
    if file.startswith(("bag", "sqlite")):
        bag = write_bag(frames=30)
        if file == "sqlite":
            damaged = as_bare_db3(bag)
        elif path == bag:
            damaged = bag / "bag.mcap"
        elif path.suffix == ".yaml":
            path = bag
    content = damaged.read_bytes() if damaged.exists() else b""
    damaged.write_bytes(damage(content))
    with pytest.raises(SourceError, match=sentence) as caught:
        BagSource(path, CONFIG)
    assert str(path) in str(caught.value)


def test_missing_and_empty_folders_and_a_bag_without_transforms_are_one_sentence(
    tmp_path, write_bag
):
    nowhere = tmp_path / "nowhere"
    with pytest.raises(SourceError, match=rf"^no such bag: {nowhere}; expected a bag's path"):
        open_source(str(nowhere), CONFIG)
    with pytest.raises(SourceError, match=r"is not a bag: it has no metadata\.yaml and no file"):
        BagSource(tmp_path, CONFIG)
    with pytest.raises(
        SourceError,
        match="no transform connects the LiDAR frame 'lidar' with the camera frame 'camera'; "
        "/tf_static knows none",
    ):
        BagSource(write_bag(leave_out="transforms"), CONFIG)


def test_a_camera_that_is_not_calibrated_is_one_sentence(tmp_path):
    blank = Camera(32, 24, np.zeros((3, 3)))
    with BagWriter(tmp_path / "bag") as writer:
        write_frame(writer, 0, leave_out="info")
        writer.camera_info("/camera/camera_info", START_NS, "camera", blank)
    with pytest.raises(SourceError, match=r"/camera/camera_info in .* no focal length"):
        BagSource(tmp_path / "bag", CONFIG)


def test_an_empty_first_camera_info_costs_its_frame_and_not_the_bag(tmp_path):
    blank = Camera(CAMERA.width, CAMERA.height, np.zeros((3, 3)))
    with recording(tmp_path / "bag") as writer:
        for index in range(4):
            write_frame(writer, index, leave_out="" if index else "info")
            if not index:
                writer.camera_info("/camera/camera_info", START_NS, "camera", blank)
    source = BagSource(tmp_path / "bag", CONFIG)
    assert source.rectifier.is_rectified
    assert reasons(source) == {"camera_info_zero": 1, "frame": 3}


IMAGE_FAULTS = {
    "image_zero_size": {"height": 0, "width": 0, "step": 0},
    "image_wrong_step": {"step": 17},
    "image_unknown_encoding": {"encoding": "rgb565"},
    "image_short_data": {"data": np.zeros(100, np.uint8)},
}
CLOUD_FAULTS = {
    "cloud_without_xyz": {"fields": []},
    "cloud_wrong_size": {"point_step": 5},
    "cloud_without_points": {"width": 0, "row_step": 0, "data": np.zeros(0, np.uint8)},
}


class Faulty(BagWriter):
    """Changes fields of each image and cloud as it is told by `faults`, by the message's stamp."""

    faults: dict = {}  # noqa: RUF012

    def message(self, topic, stamp_ns, message, latched=False):
        for name, value in self.faults.get((topic, stamp_ns), {}).items():
            setattr(message, name, value)
        super().message(topic, stamp_ns, message, latched)


def test_a_rectified_image_that_the_lens_hardly_fills_is_said(tmp_path):
    """P has half the resolution, as a simulator's: three quarters of the image are black."""
    p = np.insert(np.diag([0.5, 0.5, 1]) @ CAMERA.intrinsics, 3, 0, axis=1).ravel()

    class OfHalf(Faulty):
        faults = {  # noqa: RUF012
            ("/camera/camera_info", START_NS + index * PERIOD_NS): {"p": p} for index in range(2)
        }

    with recording(tmp_path / "bag", OfHalf) as writer:
        for index in range(2):
            write_frame(writer, index)
    notes = BagSource(tmp_path / "bag", CONFIG).notes
    assert any("has a P of 0.5 times K" in note for note in notes)
    (filled,) = (note for note in notes if "the lens fills" in note)
    share = int(re.search(r"fills (\d+)%", filled)[1])
    assert 23 <= share <= 27


def test_each_faulty_image_and_cloud_is_counted_under_its_reason_and_the_rest_is_scored(tmp_path):
    stamps = [START_NS + index * PERIOD_NS for index in range(10)]
    images = {
        ("/camera/image", stamp): fault
        for stamp, fault in zip(stamps[:4], IMAGE_FAULTS.values(), strict=True)
    }
    clouds = {
        ("/lidar/points", stamp + 10_000_000): fault
        for stamp, fault in zip(stamps[5:8], CLOUD_FAULTS.values(), strict=True)
    }
    with recording(tmp_path / "bag", Faulty) as writer:
        writer.faults = images | clouds
        for index in range(9):
            write_frame(writer, index)
        write_frame(writer, 9, leave_out="cloud")
        writer.cloud("/lidar/points", stamps[9], "lidar", np.full((50, 4), np.nan))
    source = BagSource(tmp_path / "bag", CONFIG)
    records = list(source)
    once = dict.fromkeys([*IMAGE_FAULTS, *CLOUD_FAULTS], 1)
    assert reasons(records) == {**once, "cloud_without_points": 2, "frame": 2}
    assert len(records) == len(source)
    assert all(record.message for record in records if isinstance(record, Skipped))


def test_a_frame_id_that_no_transform_knows_is_counted_where_it_is_not_the_first(tmp_path):
    with recording(tmp_path / "bag") as writer:
        write_frame(writer, 0)
        write_frame(writer, 1, leave_out="cloud")
        writer.cloud("/lidar/points", START_NS + PERIOD_NS, "another", points_at(1))
    records = list(BagSource(tmp_path / "bag", CONFIG))
    assert reasons(records) == {"frame": 1, "no_extrinsics": 1}
    assert "'another'" in records[1].message


def test_messages_that_cannot_be_deserialised_are_counted(tmp_path):
    with recording(tmp_path / "bag") as writer:
        write_frame(writer, 0)
        for topic in ("/camera/image", "/lidar/points"):
            data = b"\x00\x01\x00\x00\xff\xff"
            writer.serialized(topic, START_NS + PERIOD_NS, "never/looked/at", data)
        write_frame(writer, 2)
    source = BagSource(tmp_path / "bag", CONFIG)
    assert reasons(source) == {"frame": 2, "image_message_damaged": 1}
    (note,) = (note for note in source.notes if "deserialised" in note)
    assert note.endswith("bag: 1 message on /lidar/points cannot be deserialised")


def test_damaged_messages_of_any_topic_that_is_read_are_told(tmp_path):
    """Topics that measure, that say how depth was made, and that show pictures in the report."""
    damaged = ("/camera/image", "/slam/points", "/network/prediction_info")
    with recording(tmp_path / "bag") as writer:
        for index in range(2):
            write_frame(writer, index)
            stamp_ns = START_NS + index * PERIOD_NS
            writer.image("/network/depth", stamp_ns, "camera", np.ones((24, 32), np.float32))
            writer.cloud("/slam/points", stamp_ns, "camera", points_at(index))
        infos = TYPES["diagnostic_msgs/msg/DiagnosticArray"](message_header(START_NS, ""), [])
        writer.message("/network/prediction_info", START_NS, infos)
        for topic in damaged:
            data = b"\x00\x01\x00\x00\xff\xff"
            for _ in range(2):
                writer.serialized(topic, START_NS + PERIOD_NS, "never/looked/at", data)
    config = replace(CONFIG, image_topic="/camera/image", measured_points_topic="/slam/points")
    source = BagSource(tmp_path / "bag", config, PredictionTopics("/network/depth"))
    assert len(list(source)) == 2
    for topic in damaged:
        sentence = f"2 messages on {topic} cannot be deserialised"
        assert sum(note.endswith(sentence) for note in source.notes) == 1


def test_hostile_messages_among_sound_ones_are_counted(tmp_path):
    """PNGs that claim 30000x30000 pixels, and a size unlike the camera's, with nothing behind;
    an offset of 2^31, a quaternion that overflows."""
    fields = [TYPES["sensor_msgs/msg/PointField"](name, 2**31, 7, 1) for name in "xyz"]
    header_of = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    claims = {2: (30_000, 30_000), 3: (100, 10)}
    pngs = {
        index: header_of + struct.pack(">II", *size) + bytes(5) for index, size in claims.items()
    }
    sound = cv2.imencode(".png", np.zeros((24, 32, 3)))[1].ravel()
    with recording(tmp_path / "bag", Faulty) as writer:
        writer.faults = {("/lidar/points", START_NS + 10_000_000): {"fields": fields}}
        for index in range(4):
            write_frame(writer, index, leave_out="image")
            stamp_ns = START_NS + index * PERIOD_NS
            data = np.frombuffer(bytes(pngs.get(index, sound)), np.uint8)
            header = message_header(stamp_ns, "camera")
            image = TYPES["sensor_msgs/msg/CompressedImage"](header, "png", data)
            writer.message("/camera/image/compressed", stamp_ns, image)
        odd = transform_message(START_NS, "camera", "odd", 3 * [0.0], 4 * [1e200])
        writer.message("/tf_static", START_NS, odd)
    source = BagSource(tmp_path / "bag", CONFIG)
    assert reasons(source) == {
        "cloud_wrong_size": 1,
        "image_too_large": 1,
        "camera_info_wrong_aspect": 1,
        "frame": 1,
    }
    assert any("the transform from 'odd' to 'camera' is left out" in note for note in source.notes)


class Restamped(BagWriter):
    """Stamps each message on some topics by a function that is given its recording time."""

    stamps: dict = {}  # noqa: RUF012

    def message(self, topic, stamp_ns, message, latched=False):
        if topic in self.stamps:
            time = message.header.stamp
            time.sec, time.nanosec = self.stamps[topic](stamp_ns)
        super().message(topic, stamp_ns, message, latched)


def unset(_):
    return 0, 0


def unset_once(stamp_ns):
    return (0, 0) if stamp_ns == START_NS + PERIOD_NS else divmod(stamp_ns, 10**9)


def before_1970(stamp_ns):
    return -1, stamp_ns % 10**9


def whole_seconds(stamp_ns):
    return stamp_ns // 10**9, 0


def beyond_a_second(stamp_ns):
    """The same time, as a driver writes it that never carries over."""
    return stamp_ns // 10**9 - 1, stamp_ns % 10**9 + 10**9


def restamped(folder, stamps, frames=4):
    with recording(folder / "bag", Restamped) as writer:
        writer.stamps = stamps
        for index in range(frames):
            write_frame(writer, index)
    return folder / "bag"


IMAGE, INFO, CLOUD = "/camera/image", "/camera/camera_info", "/lidar/points"
LATE = "no_lidar_within_max_time_difference"
STAMPS = [
    # topics, their stamps, what becomes of four images, what the first skipped one says
    *(
        ((IMAGE, INFO, CLOUD), stamps, {"unusable_stamp": 4}, f"{IMAGE} has the stamp")
        for stamps in (unset, beyond_a_second, before_1970)
    ),
    ((IMAGE,), unset_once, {"frame": 3, "unusable_stamp": 1}, f"{IMAGE} has the stamp"),
    ((CLOUD,), unset, {LATE: 4}, f"{CLOUD} has the stamp"),
    ((CLOUD,), beyond_a_second, {LATE: 4}, f"{CLOUD} has the stamp"),
    ((IMAGE, CLOUD), whole_seconds, {"frame": 1, "repeated_stamp": 3}, ""),
    ((CLOUD,), whole_seconds, {"frame": 1, LATE: 3}, ""),
]


@pytest.mark.parametrize(("topics", "stamps", "outcome", "said"), STAMPS)
def test_stamps_that_are_no_times_or_that_messages_share_cost_their_messages_alone(
    topics, stamps, outcome, said, tmp_path
):
    """Of whole seconds they are shared at 10 Hz, as on a topic that two nodes publish."""
    source = BagSource(restamped(tmp_path, dict.fromkeys(topics, stamps)), CONFIG)
    records = list(source)
    assert reasons(records) == outcome
    assert said in next(record.message for record in records if isinstance(record, Skipped))
    unpaired = [note for note in source.notes if "messages cannot be paired; the first: " in note]
    if topics == (CLOUD,):
        assert f"{outcome[LATE]} messages" in unpaired[0]
        assert (f"a message on {said}" in unpaired[0]) or not said
    if stamps == whole_seconds:
        first = next(record for record in records if not isinstance(record, Skipped))
        assert_array_equal(first.image, image_at(0))
        assert_array_equal(first.scan.points, points_at(0)[:, :3].astype(np.float32))


def test_whatever_a_frame_raises_is_a_counted_skip(write_bag, monkeypatch):
    def fail(self, x, y):
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr(Camera, "ray_pixels", fail)
    records = list(BagSource(write_bag(), CONFIG))
    assert reasons(records) == {"unreadable": 5}
    assert "s cannot be read: ZeroDivisionError: nobody foresaw this" in records[0].message


@pytest.fixture
def many(tmp_path):
    """40 frames in chunks with a few messages each, as a real camera's large images make them."""
    rng = np.random.default_rng(0)
    with recording(tmp_path / "bag") as writer:
        for index in range(40):
            write_frame(writer, index)
            stamp_ns = START_NS + index * PERIOD_NS
            writer.serialized("/large", stamp_ns, "std_msgs/msg/String", rng.bytes(300_000))
    return tmp_path / "bag" / "bag.mcap"


def test_from_a_damaged_chunk_on_the_messages_are_counted_as_lost(many):
    content = bytearray(many.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 400_000] = bytes(400_000)
    many.write_bytes(content)
    source = BagSource(many, CONFIG)
    for _ in range(2):
        records = list(source)
        assert len(records) == len(source) == 40
        counts = reasons(records)
        assert counts["image_message_lost"] > 0
        assert counts["frame"] > 0
        (damage,) = source.notes
        assert damage.startswith(f"reading {many} stopped early: ")
        assert "mcap recover" in damage


def test_no_flipped_bit_goes_unseen_in_a_bag_that_was_written_here(many):
    whole = many.read_bytes()
    for share in (0.2, 0.35, 0.5, 0.65, 0.8):
        content = bytearray(whole)
        content[int(share * len(whole))] ^= 4
        many.write_bytes(content)
        source = BagSource(many, CONFIG)
        assert reasons(source)["frame"] < 40
        (damage,) = source.notes
        assert "mcap recover" in damage


@pytest.mark.parametrize("command", [["info"], ["evaluate", "--model", "demo"]])
def test_a_cloud_in_a_body_frame_without_transforms_is_named_with_what_to_type(
    tmp_path, capsys, command
):
    floor = np.random.default_rng(0).uniform([-9, -9, -1.5, 0], [9, 9, 0, 1], (500, 4))
    with BagWriter(tmp_path / "bag") as writer:
        write_frame(writer, 0, leave_out="cloud")
        writer.cloud("/lidar/points", START_NS, "lidar", floor.astype(np.float32))
    assert main([*command, str(tmp_path / "bag"), "--output", str(tmp_path / "out.png")]) == 1
    said = capsys.readouterr().err
    assert "in a body frame (x forward, z up)" in said
    assert "the camera's optical frame" in said
    typed = said.partition("it is --lidar-to-camera ")[2].split()
    assert typed == ["0", "0", "0", "0.5", "-0.5", "0.5", "0.5"]
    source = BagSource(tmp_path / "bag", SourceConfig(lidar_to_camera=tuple(map(float, typed))))
    forward_left_up = np.array([2.0, 0.1, 0.2, 1.0])
    np.testing.assert_allclose(source.lidar_to_camera @ forward_left_up, [-0.1, -0.2, 2, 1])
    assert reasons(source)["frame"] == 1


def test_no_body_frame_is_suspected_of_a_cloud_in_the_optical_frame(write_bag):
    with pytest.raises(SourceError) as raised:
        BagSource(write_bag(leave_out="transforms"), CONFIG)
    assert "body frame" not in str(raised.value)


def test_a_camera_info_that_changes_holds_from_its_stamp_on(tmp_path):
    with BagWriter(tmp_path / "bag") as writer:
        writer.static_transforms([("camera", "lidar", np.eye(4))])
        for index in range(4):
            stamp_ns = START_NS + index * PERIOD_NS
            zoomed = replace(CAMERA, intrinsics=CAMERA.intrinsics * [[1 + (index > 1)], [1], [1]])
            writer.camera_info("/camera/camera_info", stamp_ns, "camera", zoomed)
            write_frame(writer, index, leave_out="info")
    source = BagSource(tmp_path / "bag", CONFIG)
    assert source.notes == []
    records = list(source)
    assert len(records) == 4
    (note,) = source.notes
    assert "/camera/camera_info changes 1 times, first at 1700000000.200000000 s" in note
    assert "each image is taken with the one of its time" in note
    focal_lengths = [record.camera.intrinsics[0, 0] for record in records]
    own = CAMERA.intrinsics[0, 0]
    assert focal_lengths == [own, own, 2 * own, 2 * own]


def test_a_bag_that_begins_again_has_the_lens_of_its_camera_infos(tmp_path):
    """Zoomed in at 3 s, and still so when the next round is at 2 s: not second 1's lens."""
    cameras = Cameras("/camera/camera_info")

    class Heard(BagWriter):
        def message(self, topic, stamp_ns, message, latched=False):
            cameras.add(message)

    with Heard(tmp_path / "bag") as writer:
        for seconds, zoom in ((1, 1.0), (3, 2.0), (2, 2.0)):
            zoomed = replace(CAMERA, intrinsics=CAMERA.intrinsics * [[zoom], [zoom], [1]])
            writer.camera_info("/camera/camera_info", seconds * 10**9, "camera", zoomed)
    rectifier = cameras.at(2_500_000_000)
    assert rectifier.rectified.intrinsics[0, 0] == 2 * CAMERA.intrinsics[0, 0]


@pytest.mark.parametrize("column", ["name", "type"])
def test_a_topic_whose_name_is_no_text_is_one_sentence(write_bag, capsys, column):
    """SQLite takes bytes in any column."""
    path = as_bare_db3(write_bag(frames=2))
    with closing(sqlite3.connect(path)) as database, database:
        where = f"SET {column} = X'2Fff' WHERE name = '/camera/image'"
        assert database.execute(f"UPDATE topics {where}").rowcount == 1
    assert main(["info", str(path)]) == 1
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "expected a text" in sentence
    assert str(path) in sentence


def test_a_time_that_is_no_number_ends_its_file_and_is_said(write_bag, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for name in ("0.db3", "1.db3"):
        as_bare_db3(write_bag(frames=2)).rename(folder / name)
        shutil.rmtree(tmp_path / "bag")
        shutil.rmtree(tmp_path / "sqlite")
    with closing(sqlite3.connect(folder / "1.db3")) as database, database:
        database.execute("UPDATE messages SET timestamp = X'00' WHERE id > 5")
    source = BagSource(folder, CONFIG)
    assert len(list(source)) >= 2
    assert any("stopped early: a message's time is" in note for note in source.notes)
